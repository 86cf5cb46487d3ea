"""What law III asks of a frame: to follow a pose, a part of it, or a direction.

With e = (r - r_d, e_R), e_R the sine of the angle of the turn R_d^T R times its axis,

    nu_er = nu_ed - Lambda e,     on s = 0:  d/dt (|r - r_d|^2 / 2 + 1 - cos(angle)) = -e^T Lambda e

for any positive definite Lambda (6x6) [Eslami2025, eq. 39, with errata E0-10]. Of a frame that is
only to point along a direction a_d with its axis a, e_R is a_d x a, and the second term the same of
the angle between the two. Directions in which nothing is asked for have neither rows nor errors.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.frame_tasks import FrameOnLink, FrameTask, GoalRows
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import matrix_gain
from framefree.geometry import se3
from framefree.geometry.operators import vee2
from framefree.machine import Machine
from framefree.machine.values import constant_pose
from framefree.motion.loops import BodyMath
from framefree.motion.spatial import Matrix, Step
from framefree.motion.tree.links import links_of

AXES = "xyz"
ATTITUDES = ("full", "none", *AXES)


@dataclass(frozen=True, eq=False)
class FrameGoal:
    """What a frame is to do.

    Reference signals FRAME.pose, FRAME.twist, FRAME.acceleration; only the part that is asked for
    matters.

    Parameters
    ----------
    frame : str
        A frame on a body, or the body itself.
    position : str
        World axes along which the frame follows the position: "xyz", "xy", "z", ...; "" for none.
    attitude : "full", "none", "x", "y" or "z"
        Whether it follows the attitude, or only points one of its axes where that of the reference
        points.
    rate, turn_rate : float, (3,) or (3, 3)
        Lambda of position and attitude, 1/s.
    gain : (6, 6), optional
        Lambda_e as a whole, in place of the two.
    axes : "frame" or "world"
        Whose axes the gains have.
    """

    frame: str
    position: str = AXES
    attitude: str = "full"
    rate: Any = 3.0
    turn_rate: Any = 3.0
    gain: Any = None
    axes: str = "frame"

    def __post_init__(self) -> None:
        owner = f"frame `{self.frame}`"
        if not isinstance(self.frame, str):
            raise ControlError(f"the `frame` of a FrameGoal must be a name, got {self.frame!r}")
        axes = list(self.position) if isinstance(self.position, str) else None
        if axes is None or not set(axes) <= set(AXES) or len(set(axes)) < len(axes):
            raise ControlError(
                f'`position` of {owner} must be some of the axes "xyz", got {self.position!r}'
            )
        if self.attitude not in ATTITUDES:
            raise ControlError(
                f"`attitude` of {owner} must be one of {ATTITUDES}, got {self.attitude!r}"
            )
        if not self.position and self.attitude == "none":
            raise ControlError(f"{owner} has nothing to do: neither `position` nor `attitude`")
        if self.axes not in ("frame", "world"):
            raise ControlError(f'`axes` of {owner} must be "frame" or "world", got {self.axes!r}')
        _ = self.matrix

    @cached_property
    def matrix(self) -> np.ndarray:
        """Lambda_e (6, 6)."""
        owner = f"frame `{self.frame}`"
        if self.gain is not None:
            return matrix_gain(self.gain, 6, "gain", owner)
        parts = [
            matrix_gain(value, 3, name, owner)
            for name, value in (("rate", self.rate), ("turn_rate", self.turn_rate))
        ]
        return np.block([[parts[0], np.zeros((3, 3))], [np.zeros((3, 3)), parts[1]]])

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        return frame_signals(self.frame)

    # ------------------------------------------------------------------ rows

    @property
    def whole(self) -> bool:
        """Whether all six directions have a task."""
        return len(self.position) == 3 and self.attitude == "full"

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.position) + len(self._turned)

    @property
    def _selected(self) -> np.ndarray:
        """World axes of the position, (k, 3)."""
        return np.eye(3)[[k for k, axis in enumerate(AXES) if axis in self.position]]

    @property
    def _turned(self) -> np.ndarray:
        """Axes of the frame about which it turns for its task, (k, 3)."""
        keep = [self.attitude == "full" or axis != self.attitude for axis in AXES]
        return np.eye(3)[keep] if self.attitude != "none" else np.zeros((0, 3))

    def rows(self, R: Matrix, w: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z (m x 6) in the axes of a frame of attitude R and rate w, and its rate."""
        along, about = ca.SX(ca.DM(self._selected)) @ R, ca.SX(ca.DM(self._turned))
        size = self.size
        Z, rate = ca.SX(size, 6), ca.SX(size, 6)
        k = along.shape[0]
        Z[:k, :3], Z[k:, 3:] = along, about
        rate[:k, :3] = along @ se3.wed(ca.vertcat(ca.SX(3, 1), w))[:3, :3]
        return ca.densify(Z), ca.densify(rate)

    @cached_property
    def law(self) -> ca.Function:
        """From pose, twist of the frame, their desired values to nu_er and its rate (6 each)."""
        G, Gd = ca.SX.sym("G", 4, 4), ca.SX.sym("Gd", 4, 4)
        xi, twist, rate = (ca.SX.sym(name, 6) for name in ("xi", "twist", "rate"))
        R, Rd = G[:3, :3], Gd[:3, :3]
        turn = R.T @ Rd
        desired = ca.vertcat(turn @ twist[:3], turn @ twist[3:])
        followed = desired - self._pull(R, G[:3, 3] - Gd[:3, 3], turn)
        moving = ca.vertcat(ca.vec(G), ca.vec(Gd), twist)
        speed = ca.vertcat(ca.vec(G @ se3.wed(xi)), ca.vec(Gd @ se3.wed(twist)), rate)
        changed = ca.jtimes(followed, moving, speed)
        return ca.Function("followed", [G, xi, Gd, twist, rate], [followed, changed])

    def _pull(self, R: Matrix, gap: Matrix, turn: Matrix) -> Matrix:
        """Return Lambda e (6) in the frame's axes; gap in world axes, turn = R^T R_d."""
        S = self._selected
        gap = gap if len(S) == 3 else ca.DM(S.T @ S) @ gap
        if self.attitude == "none":
            angle = ca.SX(3, 1)
        elif self.attitude == "full":
            angle = vee2(turn.T) / 2
        else:
            axis = ca.DM(np.eye(3)[AXES.index(self.attitude)])
            angle = ca.cross(turn @ axis, axis)
        if self.axes == "frame":
            return ca.SX(ca.DM(self.matrix)) @ ca.vertcat(R.T @ gap, angle)
        pull = ca.SX(ca.DM(self.matrix)) @ ca.vertcat(gap, R @ angle)
        return ca.vertcat(R.T @ pull[:3], R.T @ pull[3:])


class PlacedGoal:
    """A goal of a frame of some machine, as a task of its body.

    Parameters
    ----------
    machine : Machine
    goal : FrameGoal
    """

    def __init__(self, machine: Machine, goal: FrameGoal) -> None:
        self.goal, frame = goal, machine.frame(goal.frame)
        self.body = machine.body_index[frame.body]
        if self.body < 0:
            raise ControlError(f"the frame `{goal.frame}` of EndEffectorControl must be on a body")
        G = se3.compose(links_of(machine)[self.body].to_body, constant_pose(frame.pose))
        self.frame = FrameOnLink(Step(se3.rotation(G), se3.position(G)))

    def task(self, chain: Any, reference: Any) -> FrameTask:
        """Return the task at a state."""
        signals = [reference[name] for name in self.goal.needs]
        found = chain.tape.call(self.follow, self.body, chain.placed[self.body], *signals)
        twist, rate, rows = found if len(found) == 3 else (*found, None)
        return FrameTask(self.body, twist, rate, self.frame, self.goal.size, rows)

    def follow(
        self, body: BodyMath, placed: PlacedLink, pose: Matrix, twist: Matrix, rate: Matrix
    ) -> tuple[Any, ...]:
        """Return nu_er (6) and its rate, in the axes of the frame, and the rows of the task."""
        step = self.frame.step
        G = se3.compose(placed.pose.matrix, se3.pose(step.rotation, step.r))
        own = step.twist_into(placed.twist).vector
        followed = self.goal.law(G, own, pose, twist, rate)
        if self.goal.whole:
            return followed
        return *followed, GoalRows(*self.goal.rows(G[:3, :3], own[3:]))

    def softness(self, mass: Any, length: float) -> Matrix:
        """Return compliances (m) for a unit of it: 1/mass, and 1/(mass length^2) of turns."""
        along = len(self.goal.position)
        turns = self.goal.size - along
        return ca.vertcat(ca.SX.ones(along) / mass, ca.SX.ones(turns) / (mass * length**2))
