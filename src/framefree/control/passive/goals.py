"""Where frames should be: potentials, and the velocities that lead there on any base.

A goal has a potential Ph, rows J of a Jacobian and a desired velocity such that

    d/dt Ph = g . (J v - carried)

    axes of the world      k/2 |r - r_d|^2 along them       J = those rows of R J_lin
    attitude               tr(Wed(k I) (I - R_d^T R))       J = J_turn

With J_w = J N of all goals together, velocities of least weight W beside those of a posture w_p,

    Jbar = W^-1 J_w^T (J_w W^-1 J_w^T)^-1
    w_r  = Jbar (carried - pace - J drift) + (I - Jbar J_w) w_p

so that J v_r is exactly what the goals want, and d/dt Ph = s . J_w^T g - g . pace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.passive.law import CommandedState, PassiveLaw, ReferenceVelocity
from framefree.control.passive.potentials import joint_potentials, rotation_potential
from framefree.control.qp.factor import SymmetricFactor
from framefree.control.shared.gains import positive
from framefree.geometry import se3
from framefree.motion.spatial import Matrix

ATTITUDE = "attitude"
AXES = "xyz"


@dataclass(frozen=True)
class PassiveGoal:
    """One frame follows its reference along some axes of the world, or in its attitude.

    Parameters
    ----------
    frame : str
    follows : str
        "attitude", or axes of the world: "xyz", "xy", "z".
    stiffness : float
        N/m or Nm/rad.
    rate : float
        Pace at which the error decays, 1/s.
    """

    frame: str
    follows: str = AXES
    stiffness: float = 50.0
    rate: float = 2.0

    def __post_init__(self) -> None:
        axes = set(self.follows)
        known = self.follows == ATTITUDE or (axes and axes <= set(AXES))
        if not known or (self.follows != ATTITUDE and len(axes) < len(self.follows)):
            raise ControlError(
                f'`follows` of the goal of `{self.frame}` must be "attitude" or axes such as '
                f'"xyz", "xy" or "z", got {self.follows!r}'
            )
        for name in ("stiffness", "rate"):
            positive(getattr(self, name), name, f"the goal of `{self.frame}`")

    @property
    def size(self) -> int:
        """How many numbers are followed."""
        return 3 if self.follows == ATTITUDE else len(self.follows)

    def error(self, at: CommandedState, R_d: Matrix, place: Matrix, twist: Matrix) -> "GoalError":
        """Return the error of the frame from an attitude and a place that move with a twist (6).

        The twist is in desired axes.
        """
        G, J = at.state.frame_pose(self.frame), at.state.jacobian(self.frame).value
        R = se3.rotation(G)
        if self.follows == ATTITUDE:
            turn = rotation_potential(np.full(3, self.stiffness), R, R_d, twist[3:])
            pace = self.rate / self.stiffness * turn.gradient
            return GoalError(turn.potential, turn.gradient, turn.carried, pace, J[3:, :])
        rows = [AXES.index(axis) for axis in self.follows]
        e = (se3.position(G) - place)[rows, :]
        wanted = (R_d @ twist[:3])[rows, :]
        k = self.stiffness
        return GoalError(
            k / 2 * ca.sumsqr(e), k * e, wanted, self.rate * e, (R @ J[:3, :])[rows, :]
        )


class GoalError(NamedTuple):
    """How far a frame is from its goal; see the top of this file.

    Attributes
    ----------
    potential : scalar
        J.
    gradient, carried, pace : (k)
        g, the desired velocity, and how fast the error should decay.
    J : (k x nv)
    """

    potential: Matrix
    gradient: Matrix
    carried: Matrix
    pace: Matrix
    J: Matrix


def goal_velocity(
    at: CommandedState,
    errors: Sequence[GoalError],
    weights: np.ndarray,
    posture: Matrix,
    signals: Mapping[str, Matrix],
) -> ReferenceVelocity:
    """Return velocities that carry all goals, and of those the ones nearest to a posture's (n).

    Adds the signal `task_pivot`: the least pivot of J_w W^-1 J_w^T with unit diagonal, which goes
    to 0 where the goals cannot be moved in all directions.
    """
    g, carried, pace, J = (ca.vertcat(*(error[k] for error in errors)) for k in range(1, 5))
    J_w = J @ at.N
    A = SymmetricFactor(J_w @ ca.diag(ca.DM(1 / weights)) @ J_w.T)
    missing = carried - pace - J @ at.drift - J_w @ posture
    w_r = posture + (J_w.T @ A.solve(missing)) / ca.DM(weights)
    potential = sum((error.potential for error in errors), ca.SX(0))
    signals = {**signals, "task_pivot": A.least}
    return ReferenceVelocity(w_r, J_w.T @ g, potential, ca.dot(g, pace), signals)


def posture_velocity(
    law: PassiveLaw, at: CommandedState, x_d: Matrix, v_d: Matrix, gain: np.ndarray
) -> Matrix:
    """Return the velocities (n) that draw the joints to a posture x_d that moves with v_d.

    The gain (n) is their pace, 1/s.
    """
    unit, own = np.ones(len(law.joint_places)), law.places_in_joints
    e = joint_potentials(law.machine, law.joints, unit, at.state.x, x_d, v_d)
    return e.carried[own, :] - ca.DM(gain) * e.gradient[own, :]
