"""The same law in roll, pitch and yaw: kept to show where it fails."""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.passive.freedom import Whole
from framefree.control.passive.law import CommandedState, ReferenceVelocity
from framefree.control.passive.potentials import POSITIONS
from framefree.control.passive.tracking import PassivityControl
from framefree.machine import Machine
from framefree.machine.joints import Continuous, Free, Planar, Spherical
from framefree.motion.spatial import Matrix
from framefree.motion.tree.euler import velocity_map


@dataclass(frozen=True, eq=False)
class EulerPassivity(PassivityControl):
    """`PassivityControl` with the base's attitude as roll, pitch and yaw, for comparison.

        eta_r' = eta_d' - Lambda k (eta - eta_d),    s = T (eta' - eta_r'),    v = T(eta) eta'
        f = M dv_r/dt + C v_r + ... - T^-T K (eta' - eta_r')

    with C skew, so that V = 1/2 s^T M s falls as it should wherever T is regular. At pitch 90
    degrees T is not: commands grow without bound and angles jump. Differences of angles are taken
    the short way round.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.freedom, Whole):
            raise ControlError("EulerPassivity commands all joints: `freedom` must be Whole()")

    def follow(self, at: CommandedState) -> ReferenceVelocity:
        """Return the desired velocity, drawn towards the desired angles."""
        machine, wanted = self.machine, at.reference
        eta, eta_d = angles(machine, at.state.x), angles(machine, wanted["x"])
        rate_d = ca.solve(velocity_map(machine, eta_d), wanted["v"])
        gap = eta - eta_d
        turning = [k for k, turns in enumerate(_turning(machine)) if turns]
        gap[turning] = ca.atan2(ca.sin(gap[turning]), ca.cos(gap[turning]))
        pace = ca.DM(self.Lambda * self.stiffness)
        w_r = velocity_map(machine, eta) @ (rate_d - pace * gap)
        return ReferenceVelocity(w_r, ca.SX(machine.nv, 1), ca.SX(0), ca.SX(0), {})

    def damping(self, at: CommandedState, s: Matrix) -> Matrix:
        """Return T^-T K T^-1 s."""
        T = velocity_map(self.machine, angles(self.machine, at.state.x))
        return ca.solve(T.T, ca.DM(self.K) * ca.solve(T, s))


def angles(machine: Machine, x: Matrix) -> Matrix:
    """Return eta (nv): positions, roll, pitch and yaw, and the coordinates of plain joints."""
    parts = []
    for joint in machine.joints:
        own = x[machine.x_slice[joint.name], :]
        at = POSITIONS.get(type(joint.kind), 0)
        turn = _ANGLES.get(type(joint.kind), lambda plain: plain)
        parts += [own[:at, :], turn(own[at:, :])]
    return ca.SX(ca.vertcat(*parts))


def _turning(machine: Machine) -> list[bool]:
    """Tell of each entry of eta whether it is an angle that goes round."""
    return [
        type(joint.kind) in _ANGLES and k >= POSITIONS.get(type(joint.kind), 0)
        for joint in machine.joints
        for k in range(joint.nv)
    ]


def _roll_pitch_yaw(wxyz: Matrix) -> Matrix:
    """Return the angles of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    w, x, y, z = (wxyz[k] for k in range(4))
    return ca.vertcat(
        ca.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        ca.asin(2 * (w * y - x * z)),
        ca.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )


def _heading(pair: Matrix) -> Matrix:
    return ca.atan2(pair[1], pair[0])


_ANGLES: dict[type, Callable[[Matrix], Matrix]] = {
    Free: _roll_pitch_yaw,
    Spherical: _roll_pitch_yaw,
    Continuous: _heading,
    Planar: _heading,
}
"""From the turning part of x of a kind of joint to its angles."""
