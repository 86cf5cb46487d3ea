"""Law III: frames follow poses, or parts of them; the rest keeps clear of obstacles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.avoidance import Avoidance
from framefree.control.port.base import PortLaw
from framefree.control.port.clearance import Guard
from framefree.control.port.command import PortCommand
from framefree.control.port.goals import FrameGoal, PlacedGoal
from framefree.control.port.sweeps import BodyChain, VelocityRequest
from framefree.control.shared.input_map import rank
from framefree.control.shared.model import at_configurations
from framefree.motion.spatial import Matrix

SAMPLES = 4


@dataclass(frozen=True, eq=False)
class EndEffectorControl(PortLaw):
    """Frames follow poses, the bodies keep clear of obstacles by what is left.

        nu_r = Jbar nu_er + (I - Jbar J_t) Phi_c h,     Jbar = Phi_c J_t^T (J_t Phi_c J_t^T)^-1

    with nu_er = nu_ed - Lambda_e e of the frames (`goals.py`). Then J_t nu_r = nu_er exactly. Of an
    avoidance, h is the push of its potential, and Phi_c counts the inertia that stands against
    motion along the normal of an obstacle (`avoidance.py`); near contact the tasks give way.
    Reference signals FRAME.pose, FRAME.twist, FRAME.acceleration of every frame.

    Signals: `task_mobility`, the least pivot of J_t Phi_c J_t^T relative to its diagonal entry,
    which goes to 0 where the machine cannot move the frames as asked; with an avoidance
    `clearance`, the least distance of the bodies to obstacles and to each other, and
    `task_compliance`, 0 where the tasks are met exactly.

    Parameters
    ----------
    frame : str, FrameGoal, or a sequence of these
        What is to follow. A name stands for a whole pose, with the gains below.
    rate, turn_rate : float, (3,) or (3, 3)
        Lambda_e of position and attitude, 1/s, in the axes of the frame.
    gain : (6, 6), optional
        Lambda_e as a whole, in place of the two.
    avoidance : Avoidance, optional
    """

    frame: Any = "end"
    rate: Any = 3.0
    turn_rate: Any = 3.0
    gain: Any = None
    avoidance: Avoidance | None = None

    units: ClassVar[Mapping[str, str]] = {**PortLaw.units, "clearance": "m"}

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [goal.frame for goal in self.goals]
        if len(set(names)) < len(names):
            raise ControlError(f"every frame has one goal, got {names}")
        _ = self._placed
        if self.avoidance is not None:
            if not isinstance(self.avoidance, Avoidance):
                raise ControlError(f"`avoidance` must be an Avoidance, got {self.avoidance!r}")
            self.avoidance.check(self.machine)
        self._check_reach()

    @cached_property
    def goals(self) -> tuple[FrameGoal, ...]:
        """What the frames are to do."""
        given = self.frame
        given = [given] if isinstance(given, str | FrameGoal) else given
        if not isinstance(given, Sequence) or not len(given):
            raise ControlError(f"`frame` must be frames or FrameGoals, got {self.frame!r}")
        gains = {"rate": self.rate, "turn_rate": self.turn_rate, "gain": self.gain}
        goals = []
        for one in given:
            if not isinstance(one, str | FrameGoal):
                raise ControlError(f"`frame` must be frames or FrameGoals, got {one!r}")
            goals.append(FrameGoal(one, **gains) if isinstance(one, str) else one)
        return tuple(goals)

    @cached_property
    def _placed(self) -> tuple[PlacedGoal, ...]:
        return tuple(PlacedGoal(self.machine, goal) for goal in self.goals)

    @cached_property
    def _guard(self) -> Guard | None:
        held = [placed.body for placed in self._placed if placed.goal.whole]
        return None if self.avoidance is None else Guard(self.machine, self.avoidance, held)

    # ------------------------------------------------------------------ what can be asked

    def _check_reach(self) -> None:
        """Refuse a machine whose joints never let the frames move as asked."""
        way: set[int] = set()
        for placed in self._placed:
            i = placed.body
            while i >= 0:
                way.add(i)
                i = self.machine.parent[i]
        freedom = sum(self.machine.joints[i].nv for i in way)
        freedom = min(freedom, self.model.n) if self.machine.closed else freedom
        asked = sum(goal.size for goal in self.goals)
        names = ", ".join(f"`{goal.frame}`" for goal in self.goals)
        subject = f"the frame {names}" if len(self.goals) == 1 else f"the frames {names}"
        what = "follow a pose" if self.goals[0].whole and len(self.goals) == 1 else "do all that"
        if freedom < asked:
            raise ControlError(
                f"{subject} cannot {what}: the joints that carry it have {freedom} velocities, "
                f"and {asked} are needed"
            )
        if len(self.machine.parameters) or len(way) > 30:
            return
        most = max(map(rank, self._sampled_rows()))
        if most < asked:
            raise ControlError(
                f"{subject} cannot {what}: of the {asked} directions that are asked for, the "
                f"joints allow only {most}"
            )

    def _sampled_rows(self) -> list[np.ndarray]:
        """Return the rows of all tasks at some random configurations."""
        machine, x = self.machine, ca.SX.sym("x", self.machine.nx)
        state, rows = self.model.at(x, ca.SX(machine.nv, 1)), []
        for goal in self.goals:
            J = state.jacobian(goal.frame).value
            Z = goal.rows(state.tree.frame_pose(goal.frame)[:3, :3], ca.SX(3, 1))[0]
            rows.append(J if goal.whole else Z @ J)
        return at_configurations(machine, x, ca.vertcat(*rows), self.model.samples(SAMPLES))

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        names = [name for goal in self.goals for name in goal.needs]
        return (*names, *(() if self.avoidance is None else self.avoidance.needs))

    @property
    def signal_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all signals by name."""
        further = [] if self.ignore_joints else ["task_mobility"]
        if self._guard is not None and self._guard.watches:
            further += ["clearance", *(["task_compliance"] if self._guard.avoidance.yields else [])]
        return {**super().signal_shapes, **dict.fromkeys(further, ())}

    def body_key(self, body: str) -> Any:
        """Return what covers the body, and which frames on it have goals."""
        index = self.machine.body_index[body]
        ends = tuple(k for k, placed in enumerate(self._placed) if placed.body == index)
        return (ends, None if self._guard is None else self._guard.key(body))

    # ------------------------------------------------------------------ the law

    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return the tasks, and what keeps bodies clear."""
        tasks = tuple(placed.task(chain, reference) for placed in self._placed)
        request = VelocityRequest(lambda i: None, [None] * chain.count, tasks)
        guard = self._guard
        if guard is None:
            return request
        softness = [placed.softness(guard.mass, guard.length) for placed in self._placed]
        return guard.guarded(chain, reference, request, softness)

    def signals(self, chain: BodyChain, asked: PortCommand) -> dict[str, Matrix]:
        """Return the least pivot of the tasks, the clearance, and how far the tasks give way."""
        signals: dict[str, Matrix] = {}
        if asked.reference.pivot is not None:
            signals["task_mobility"] = asked.reference.pivot
        request = asked.reference.request
        if request.distance is not None:
            signals["clearance"] = request.distance
        if request.give is not None:
            signals["task_compliance"] = request.give.value
        return signals
