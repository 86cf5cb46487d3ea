"""A frame follows a pose, and the base reacts."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.passive.goals import GoalError, goal_velocity, posture_velocity
from framefree.control.passive.law import CommandedState, PassiveLaw, ReferenceVelocity
from framefree.control.passive.potentials import check_joints, rotation_potential
from framefree.control.passive.tracking import joint_symbols
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import vector_gain
from framefree.geometry import se3
from framefree.machine.part import set_field
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class EndEffectorPassivity(PassiveLaw):
    """One frame follows a pose; what motion is left draws all joints to a posture.

        J_w = J N,   Jbar = W^-1 J_w^T (J_w W^-1 J_w^T)^-1
        w_r = Jbar (carried twist - rates g - J drift) + (I - Jbar J_w) w_p

    with g the gradient of k/2 |r - r_d|^2 + tr(Wed(k_turn I) (I - R_d^T R)), k = `stiffness`. Then
    J v_r is exactly what the frame wants, and

        V = 1/2 s^T M_w s + Ph,    dV/dt = -s^T (K + D) s - g^T rates g

    w_p is the posture's carried velocity less its gain times its gradient. For a floating base
    without thrusters (`FreeFloating`) J_w is the generalised Jacobian and the base turns as it
    must; with `Whole` the base moves along, the more the less it weighs in W; on wheels it drives.
    Reference signals FRAME.pose, FRAME.twist and FRAME.acceleration, and with `follow_posture` x,
    v, a.

    Signals: `frame_distance` (m), `frame_angle` (rad), `task_pivot`: the least pivot of J_w W^-1
    J_w^T with unit diagonal, which goes to 0 where the frame cannot move in all directions.

    Parameters
    ----------
    machine, K, freedom, form, drag, within_limits :
        As in `PassiveLaw`.
    frame : str
    stiffness : (2,)
        Of the frame's potential: N/m and Nm/rad.
    rates : (2,)
        Paces at which position and attitude errors of the frame decay, 1/s.
    weights : float or (n,)
        Diagonal of W: what it costs to move each velocity.
    posture : (nx,), optional
        Configuration that the joints are drawn to; default neutral.
    follow_posture : bool
        Whether the posture is that of the reference "x", "v", "a" instead.
    posture_gain : float or (n,)
        Pace of that, 1/s; 0 leaves a joint free.
    """

    frame: str = "tool"
    stiffness: Any = (50.0, 5.0)
    rates: Any = (2.0, 2.0)
    weights: Any = 1.0
    posture: Any = None
    follow_posture: bool = False
    posture_gain: Any = 0.5

    units: ClassVar = {**PassiveLaw.units, "frame_distance": "m", "frame_angle": "rad"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.machine.body_index[self.machine.frame(self.frame).body] < 0:
            raise ControlError(f"the frame `{self.frame}` of {self.name} must be on a body")
        for name in ("stiffness", "rates"):
            pair = vector_gain(getattr(self, name), 2, name, self.name, alike=False,
                               of=("position", "attitude"))  # fmt: skip
            set_field(self, name, pair)
        set_field(self, "weights", self.gain("weights"))
        set_field(self, "posture_gain", self.gain("posture_gain", zero=True))
        n = len(self.places)
        if n < 6:
            raise ControlError(f"{self.name} commands {n} velocities: a pose needs 6 or more")
        set_field(self, "posture", np.array(
            self.machine.neutral() if self.posture is None else self.posture, float))  # fmt: skip
        self.machine.validate(self.posture)
        check_joints(self.machine, self.joints, np.ones(len(self.joint_places)))

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the reference signals."""
        own = frame_signals(self.frame)
        return (*own, "x", "v", "a") if self.follow_posture else own

    def symbols(self) -> dict[str, tuple[Matrix, Matrix]]:
        """Return pose, twist and acceleration, with d(pose)/dt = pose wed(twist)."""
        pose, twist, rate = ca.SX.sym("pose", 4, 4), ca.SX.sym("twist", 6), ca.SX.sym("a", 6)
        values = ((pose, pose @ se3.wed(twist)), (twist, rate), (rate, ca.SX(6, 1)))
        own = dict(zip(self.needs[:3], values, strict=True))
        return own | joint_symbols(self.machine) if self.follow_posture else own

    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return velocities that carry the frame, and of those the ones nearest to the posture."""
        state = at.state
        pose_d, twist_d = (at.reference[name] for name in self.needs[:2])
        G, J = state.frame_pose(self.frame), state.jacobian(self.frame).value
        R, R_d = se3.rotation(G), se3.rotation(pose_d)
        e = se3.position(G) - se3.position(pose_d)
        turn = rotation_potential(np.full(3, self.stiffness[1]), R, R_d, twist_d[3:])
        g = ca.vertcat(self.stiffness[0] * (R.T @ e), turn.gradient)
        carried = ca.vertcat(R.T @ R_d @ twist_d[:3], turn.carried)
        # Paces are by error, not by force: rates / stiffness is the Lambda of the other laws.
        pace = ca.DM(np.repeat(self.rates / self.stiffness, 3)) * g
        cosine = (ca.trace(R_d.T @ R) - 1) / 2
        sine = ca.sqrt(ca.sumsqr(turn.gradient)) / self.stiffness[1]
        signals = {"frame_distance": ca.sqrt(ca.sumsqr(e)), "frame_angle": ca.atan2(sine, cosine)}
        potential = self.stiffness[0] / 2 * ca.sumsqr(e) + turn.potential
        error = GoalError(potential, g, carried, pace, J)
        return goal_velocity(at, [error], self.weights, self._posture_velocity(at), signals)

    def _posture_velocity(self, at: CommandedState) -> Matrix:
        machine, reference = self.machine, at.reference
        x_d = reference["x"] if self.follow_posture else ca.DM(self.posture)
        v_d = reference["v"] if self.follow_posture else ca.SX(machine.nv, 1)
        return posture_velocity(self, at, x_d, v_d, self.posture_gain)
