"""References of craft that hang on their thrust: from a path to attitude, rates and all.

A craft with all its thrust along its own z, and drag d across z, moves as

    m r'' = m g + F z - d (1 - z z^T) r' - d_z z z^T r',

so that z is along r'' - g + (d/m) r' whatever d_z is [Konz2024, ch. 5; sign as derived]: the
position of its center of mass and a heading determine everything else, with four derivatives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.base import Reference
from framefree.control.references.flat_curves import Curve
from framefree.geometry import quaternion
from framefree.machine import Free, Machine

Matrix = Any


@dataclass(frozen=True)
class FlatReference(Reference):
    """State of a free body whose center of mass follows a path and whose z follows its thrust.

    Parameters
    ----------
    machine : Machine
        With one free body.
    position : Curve
        Of the center of mass (3), m.
    heading : Curve or float
        Angle, rad: the turn about z that is left when z is brought upright the short way.
    normal : callable, optional
        From the time to the horizontal normal (3) of a vertical plane in which the craft turns
        over. Then the heading is that of the upright craft, and z may pass through every
        direction of the plane; without, z must not point straight down.
    drag : float
        Linear drag across z by mass, d/m, 1/s.
    lean : Curve or float
        Share of acceleration and drag by which z leans; 1 is what a craft must that has thrust
        along z only, 0 keeps it level.
    tilt : Curve, optional
        Further first two components (2) of z.
    """

    machine: Machine
    position: Curve
    heading: Any = 0.0
    normal: Callable[[Matrix], Matrix] | None = None
    drag: float = 0.0
    lean: Any = 1.0
    tilt: Curve | None = None

    def __post_init__(self) -> None:
        joints = self.machine.joints
        if len(joints) != 1 or not isinstance(joints[0].kind, Free):
            raise ControlError(
                f"`{self.machine.name}` must be one free body for a flat reference; it has joints "
                + ", ".join(f"`{joint.name}`" for joint in joints)
            )

    @property
    def times(self) -> tuple[float, ...]:
        """Times at which one of the curves is not smooth."""
        curves = [c for c in (self.position, self.heading, self.lean, self.tilt) if c is not None]
        return tuple(sorted({t for c in curves if isinstance(c, Curve) for t in c.times}))

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return "x", "v" and "a" of the free joint."""
        return dict(zip("xva", self.function(t), strict=True))

    @cached_property
    def function(self) -> ca.Function:
        """From t to x, v and a."""
        t = ca.SX.sym("t")
        r = ca.SX(self.position.at(t))
        velocity = _rate(r, t)
        wxyz = self._attitude(t, self._thrust(t, velocity))
        R = quaternion.to_rotation(wxyz)
        center = ca.DM(np.asarray(self.machine.bodies[0].moments.center, float))
        turning = 2 * quaternion.product(quaternion.conjugate(wxyz), _rate(wxyz, t))[1:4]
        linear = R.T @ velocity - ca.cross(turning, center)
        twist = ca.vertcat(linear, turning)
        x = ca.vertcat(r - R @ center, wxyz)
        return ca.Function("flat", [t], [ca.densify(x), twist, ca.densify(_rate(twist, t))])

    def _thrust(self, t: Matrix, velocity: Matrix) -> Matrix:
        """Return the direction of z, not of unit length."""
        up = -ca.DM(np.asarray(self.machine.gravity, float))
        lean = self.lean.at(t) if isinstance(self.lean, Curve) else self.lean
        f = up + lean * (_rate(velocity, t) + self.drag * velocity)
        if self.tilt is not None:
            across = self.tilt.at(t)
            height = ca.sqrt(1 - ca.sumsqr(across))
            f = f + ca.norm_2(up) * ca.vertcat(across / height, 0)
        return f

    def _attitude(self, t: Matrix, f: Matrix) -> Matrix:
        angle = self.heading.at(t) if isinstance(self.heading, Curve) else ca.SX(self.heading)
        upright = ca.vertcat(ca.cos(angle / 2), 0, 0, ca.sin(angle / 2))
        if self.normal is None:
            z = f / ca.sqrt(ca.sumsqr(f))
            swing = ca.vertcat(1 + z[2], -z[1], z[0], 0)
            return quaternion.product(swing / ca.sqrt(2 * (1 + z[2])), upright)
        n = self.normal(t)
        # Turning about n takes upright thrust to the side n x e_z.
        half = ca.atan2(f[0] * n[1] - f[1] * n[0], f[2]) / 2
        return quaternion.product(ca.vertcat(ca.cos(half), ca.sin(half) * n), upright)


def _rate(value: Matrix, t: Matrix) -> Matrix:
    return ca.jacobian(ca.densify(value), t)
