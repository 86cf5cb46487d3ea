"""Several frames follow their references, each in part; a craft may lean to get across."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.passive.goals import (
    ATTITUDE,
    GoalError,
    PassiveGoal,
    goal_velocity,
    posture_velocity,
)
from framefree.control.passive.law import CommandedState, PassiveLaw, ReferenceVelocity
from framefree.control.passive.lean import HorizontalLean, LeaningAttitude
from framefree.control.passive.potentials import check_joints
from framefree.control.passive.tracking import joint_symbols
from framefree.control.shared.frame_error import frame_signals
from framefree.geometry import se3
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class FramesPassivity(PassiveLaw):
    """Frames follow their references along axes or in attitude, on any base.

        V = 1/2 s^T M_w s + sum of the goals' potentials
        dV/dt = -s^T K s - s_v^T D s_v - sum g^T pace

    with the goals of `framefree.control.passive.goals`. There may be as many numbers to follow as
    there are commanded velocities; what motion is left draws joints to a posture. A multicopter
    with three arm joints has seven inputs: three for the place of its gripper in the world, one for
    its height, three for its attitude, which leans (`HorizontalLean`) so that it gets across.

    Reference signals FRAME.pose, FRAME.twist and FRAME.acceleration of every frame with a goal, and
    with `follow_posture` x, v, a.

    Signals: `goal_distance` (one for each goal: m or rad), `task_pivot` (see `goal_velocity`), and
    with `lean` `lean_angle` (rad), `across_error` (m, 2) of the leaning frame from its place and
    `across_lacking` (m/s^2, 2): the acceleration asked for less that of its lean.

    Parameters
    ----------
    machine, K, freedom, form, drag, within_limits :
        As in `PassiveLaw`.
    goals : sequence of PassiveGoal
    lean : HorizontalLean, optional
        For a craft that is borne by its thrust. Its frame must have a goal for its attitude.
    weights : float or (n,)
        Diagonal of W: what it costs to move each velocity.
    posture : (nx,), optional
        Configuration that the joints are drawn to; default neutral.
    follow_posture : bool
        Whether the posture is that of the reference "x", "v", "a" instead.
    posture_gain : float or (n,)
        Pace of that, 1/s; 0 leaves a velocity free.
    """

    goals: Any = ()
    lean: HorizontalLean | None = None
    weights: Any = 1.0
    posture: Any = None
    follow_posture: bool = False
    posture_gain: Any = 0.5

    units: ClassVar = {
        **PassiveLaw.units, "lean_angle": "rad", "across_error": "m", "across_lacking": "m/s^2",
        "goal_distance": "m, rad",
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        goals = (self.goals,) if isinstance(self.goals, PassiveGoal) else tuple(self.goals)
        set_field(self, "goals", goals)
        self._check_goals()
        set_field(self, "weights", self.gain("weights"))
        set_field(self, "posture_gain", self.gain("posture_gain", zero=True))
        set_field(self, "posture", np.array(
            self.machine.neutral() if self.posture is None else self.posture, float))  # fmt: skip
        self.machine.validate(self.posture)
        check_joints(self.machine, self.joints, np.ones(len(self.joint_places)))

    def _check_goals(self) -> None:
        for goal in self.goals:
            if not isinstance(goal, PassiveGoal):
                raise ControlError(f"`goals` of {self.name} must be PassiveGoals, got {goal!r}")
            if self.machine.body_index[self.machine.frame(goal.frame).body] < 0:
                raise ControlError(f"the frame `{goal.frame}` of a goal must be on a body")
        wanted, n = sum(goal.size for goal in self.goals), len(self.places)
        if not 0 < wanted <= n:
            raise ControlError(
                f"{self.name} commands {n} velocities of `{self.machine.name}`: goals may have 1 "
                f"to {n} numbers together, got {wanted}"
            )
        if self.lean is None:
            return
        if not isinstance(self.lean, HorizontalLean):
            raise ControlError(f"`lean` of {self.name} must be a HorizontalLean, got {self.lean!r}")
        if not any(g.frame == self.lean.frame and g.follows == ATTITUDE for g in self.goals):
            raise ControlError(
                f'the frame `{self.lean.frame}` that leans needs a goal that follows "attitude"'
            )
        gravity = np.asarray(self.machine.numeric.gravity, float)
        if gravity[2] >= 0 or np.abs(gravity[:2]).max() > 0:
            raise ControlError(
                f"HorizontalLean needs gravity down along z; `{self.machine.name}` has "
                f"{gravity.tolist()} m/s^2"
            )

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the reference signals."""
        frames = dict.fromkeys(goal.frame for goal in self.goals)
        own = tuple(name for frame in frames for name in frame_signals(frame))
        return (*own, "x", "v", "a") if self.follow_posture else own

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return pose, twist and acceleration of every frame, with their rates."""
        symbols: dict[str, tuple[Matrix, Matrix]] = {}
        for frame in dict.fromkeys(goal.frame for goal in self.goals):
            pose = ca.SX.sym(f"{frame}_pose", 4, 4)
            twist, rate = (ca.SX.sym(f"{frame}_{word}", 6) for word in ("twist", "rate"))
            values = ((pose, pose @ se3.wed(twist)), (twist, rate), (rate, ca.SX(6, 1)))
            symbols |= dict(zip(frame_signals(frame), values, strict=True))
        return symbols | joint_symbols(self.machine) if self.follow_posture else symbols

    # ------------------------------------------------------------------ what is followed

    @property
    def first_own(self) -> np.ndarray:
        """States of the lean."""
        return np.zeros(0) if self.lean is None else self.lean.first

    def own_rate(self, at: CommandedState) -> Matrix:
        """Return the rates of the lean."""
        if self.lean is None:
            return ca.SX(0, 1)
        return self.lean.rate(at.state, *self._wanted(at, self.lean.frame), at.own)

    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return velocities that carry the frames, nearest to the posture's."""
        leaning = self._leaning(at)
        errors = [self._error(at, goal, leaning) for goal in self.goals]
        signals = {"goal_distance": ca.vertcat(*map(_distance, self.goals, errors))}
        if leaning is not None and self.lean is not None:
            wanted = self._wanted(at, self.lean.frame)
            there = se3.position(at.state.frame_pose(self.lean.frame))
            signals |= {
                "lean_angle": leaning.angle,
                "across_error": (there - se3.position(wanted[0]))[:2, :],
                "across_lacking": self.lean.wanted(at.state, *wanted, at.own) - at.own[:2, :],
            }
        return goal_velocity(at, errors, self.weights, self._posture_velocity(at), signals)

    def _wanted(self, at: CommandedState, frame: str) -> tuple[Matrix, Matrix, Matrix]:
        pose, twist, acceleration = (at.reference[name] for name in frame_signals(frame))
        return pose, twist, acceleration

    def _leaning(self, at: CommandedState) -> LeaningAttitude | None:
        if self.lean is None:
            return None
        pose, twist, _ = self._wanted(at, self.lean.frame)
        return self.lean.attitude(at.state, at.own, se3.rotation(pose), twist[3:, :])

    def _error(
        self, at: CommandedState, goal: PassiveGoal, leaning: LeaningAttitude | None
    ) -> GoalError:
        pose, twist, _ = self._wanted(at, goal.frame)
        R, place = se3.rotation(pose), se3.position(pose)
        leans = self.lean is not None and self.lean.frame == goal.frame
        if leaning is not None and leans and goal.follows == ATTITUDE:
            return goal.error(at, leaning.R, place, ca.vertcat(twist[:3, :], leaning.w))
        return goal.error(at, R, place, twist)

    def _posture_velocity(self, at: CommandedState) -> Matrix:
        if not self.posture_gain.any():
            return ca.SX(len(self.places), 1)
        x_d = at.reference["x"] if self.follow_posture else ca.DM(self.posture)
        v_d = at.reference["v"] if self.follow_posture else ca.SX(self.machine.nv, 1)
        return posture_velocity(self, at, x_d, v_d, self.posture_gain)


def _distance(goal: PassiveGoal, error: GoalError) -> Matrix:
    """Return how far a goal is off, m, or rad for small turns."""
    return ca.sqrt(ca.sumsqr(error.gradient)) / goal.stiffness
