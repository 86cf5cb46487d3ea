"""How far a frame is from its reference, and how that changes with the joints' acceleration.

With D the reference and E the frame, velocities v, w in world axes [Milioshin2024, sec. 3.4]:

    e = (p_D - p_E, log(R_E^T R_D)),    y = (v_D - v_E, R_D^T (w_D - w_E))
    de/dt = L y,    y = y_d - J v,    dy/dt = drift - J a
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.shared.frames import FrameMotion
from framefree.geometry import se3, so3

Matrix = Any


class FrameError(NamedTuple):
    """A frame beside its reference.

    Attributes
    ----------
    e, y : (6)
        Errors of pose and of velocity.
    y_d : (6)
        What the reference has in y.
    J : (6 x n)
    drift : (6)
        dy/dt at zero joint acceleration.
    """

    e: Matrix
    y: Matrix
    y_d: Matrix
    J: Matrix
    drift: Matrix

    @property
    def L(self) -> Matrix:
        """From y to de/dt (6 x 6)."""
        return ca.diagcat(ca.DM.eye(3), so3.right_jacobian_inverse(self.e[3:]))


def frame_signals(target: str) -> tuple[str, ...]:
    """Return the names of the reference signals of a frame: pose, twist and acceleration."""
    return tuple(f"{target}.{word}" for word in ("pose", "twist", "acceleration"))


def frame_error(E: FrameMotion, target: str, reference: Mapping[str, Matrix]) -> FrameError:
    """Return the error of a frame to "TARGET.pose", "TARGET.twist" and "TARGET.acceleration".

    Without an acceleration the reference is taken to have none.
    """
    pose, twist, acceleration = frame_signals(target)
    G, xi = ca.SX(reference[pose]), ca.SX(reference[twist])
    rate = ca.SX(reference.get(acceleration, ca.SX(6, 1)))
    p, R = se3.position(G), se3.rotation(G)
    v, w = R @ xi[:3], R @ xi[3:]
    dv, dw = R @ (rate[:3] + ca.cross(xi[3:], xi[:3])), R @ rate[3:]
    relative = w - E.w
    return FrameError(
        ca.vertcat(p - E.p, so3.log(E.R.T @ R)),
        ca.vertcat(v - E.v, R.T @ relative),
        ca.vertcat(v, xi[3:]),
        # The rotational rows turn with the reference, not with the frame (errata E3-10).
        ca.vertcat(E.Jv, R.T @ E.Jw),
        ca.vertcat(dv - E.dv, R.T @ (dw - E.dw - ca.cross(w, relative))),
    )
