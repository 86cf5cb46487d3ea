"""How a craft that is borne by its thrust gets across: it leans.

No input pushes it across its thrust. Where its thrust carries its weight, the horizontal
acceleration of the whole is f where the thrust points along (f, gravity). So an outer loop asks for

    f_c = a_d - damping (dr - dr_d) - stiffness (r - r_d) - z,     dz/dt = integral (r - r_d)

of the origin r of a frame, not larger than what the largest lean gives, and the attitude that is
followed is that of the reference, turned the shortest way from upright to (f, gravity), with

    d2f/dt2 = pace^2 (f_c - f) - 2 pace df/dt

As f and df/dt are states, velocity and acceleration of that attitude are known exactly, and what a
passivity law states of its V holds. What is left to stability is a cascade: the attitude follows by
the law's own proof, and r by

    (d/dt + pace)^2 r'' = pace^2 (-damping r' - stiffness r - z)

for small errors, whose roots `HorizontalLean` looks at when it is made. That r comes to its place
is so shown near hover only.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.geometry import quaternion, se3
from framefree.motion.spatial import Matrix
from framefree.motion.state import State


class LeaningAttitude(NamedTuple):
    """An attitude, its velocity in its own axes (3) and how far its thrust is from upright, rad."""

    R: Matrix
    w: Matrix
    angle: Matrix


@dataclass(frozen=True)
class HorizontalLean:
    """Leans so that a frame comes to its horizontal place; see the top of this file.

    Parameters
    ----------
    frame : str
        Whose attitude leans and whose place is kept, the body of a multicopter for instance. Its z
        axis is that of the thrust.
    stiffness, damping, integral : float
        1/s^2, 1/s and 1/s^3.
    pace : float
        Of the lean, 1/s; well below that of the attitude.
    largest : float
        Largest lean, rad.
    """

    frame: str = "body"
    stiffness: float = 4.0
    damping: float = 4.0
    integral: float = 1.5
    pace: float = 12.0
    largest: float = 0.5

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "pace", "largest"):
            positive(getattr(self, name), name, "HorizontalLean")
        positive(self.integral, "integral", "HorizontalLean", zero=True)
        if self.largest >= np.pi / 2:
            raise ControlError(
                f"`largest` of HorizontalLean must be below pi/2, got {self.largest:g} rad"
            )
        if np.real(self.roots).max() >= 0:
            raise ControlError(
                "the gains of HorizontalLean do not make a stable loop: its roots are "
                + ", ".join(f"{root:.2g}" for root in self.roots)
                + " 1/s; take a larger `pace` or smaller gains"
            )

    @property
    def roots(self) -> np.ndarray:
        """Roots of the horizontal motion near hover, 1/s, with an attitude that follows at once."""
        w2 = self.pace**2
        polynomial = [1, 2 * self.pace, w2, w2 * self.damping, w2 * self.stiffness]
        return np.roots([*polynomial, w2 * self.integral] if self.integral else polynomial)

    @property
    def first(self) -> np.ndarray:
        """First values of its states: f (2), df/dt (2) and z (2), upright."""
        return np.zeros(6)

    def rate(
        self, state: State, pose: Matrix, twist: Matrix, acceleration: Matrix, own: Matrix
    ) -> Matrix:
        """Return the rates (6) of its states beside the reference of its frame."""
        f, f_rate, _ = ca.vertsplit(own, 2)
        e = (se3.position(state.frame_pose(self.frame)) - se3.position(pose))[:2, :]
        wanted = self.wanted(state, pose, twist, acceleration, own)
        share = self._share(state, wanted)
        jerk_rate = self.pace**2 * (share * wanted - f) - 2 * self.pace * f_rate
        return ca.vertcat(f_rate, jerk_rate, self.integral * share * e)

    def wanted(
        self, state: State, pose: Matrix, twist: Matrix, acceleration: Matrix, own: Matrix
    ) -> Matrix:
        """Return the horizontal acceleration (2) that is asked for, before it is limited."""
        G, xi = state.frame_pose(self.frame), state.jacobian(self.frame).value @ state.v
        R_d = se3.rotation(pose)
        e = se3.position(G) - se3.position(pose)
        speed = se3.rotation(G) @ xi[:3] - R_d @ twist[:3]
        a_d = R_d @ (acceleration[:3] + ca.cross(twist[3:], twist[:3]))
        return (a_d - self.damping * speed - self.stiffness * e)[:2, :] - own[4:, :]

    def attitude(self, state: State, own: Matrix, R_d: Matrix, w_d: Matrix) -> LeaningAttitude:
        """Return a desired attitude and its velocity (in its own axes), leaning."""
        turn = _upright_to(own[:2, :], self._gravity(state))
        turn_rate = ca.jtimes(turn, own[:2, :], own[2:4, :])
        Q = quaternion.to_rotation(turn)
        conjugate = ca.vertcat(turn[0], -turn[1:])
        w_Q = 2 * quaternion.product(turn_rate, conjugate)[1:, :]
        R = Q @ R_d
        angle = ca.atan2(ca.norm_2(own[:2, :]), self._gravity(state))
        return LeaningAttitude(R, R.T @ w_Q + w_d, angle)

    def _share(self, state: State, wanted: Matrix) -> Matrix:
        most = self._gravity(state) * np.tan(self.largest)
        return 1 / ca.sqrt(1 + ca.sumsqr(wanted) / most**2)

    def _gravity(self, state: State) -> Matrix:
        return -ca.SX(state.machine.gravity[2])


def _upright_to(f: Matrix, gravity: Matrix) -> Matrix:
    """Return the quaternion wxyz of the shortest turn from z to (f, gravity)."""
    along = ca.vertcat(f, gravity)
    z = along / ca.sqrt(ca.sumsqr(along))
    return ca.vertcat(1 + z[2], -z[1], z[0], 0) / ca.sqrt(2 * (1 + z[2]))
