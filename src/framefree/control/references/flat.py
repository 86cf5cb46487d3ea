"""References of craft that hang on their thrust: from a path to attitude, rates and all.

A craft with all its thrust along one axis z of its body, and drag d across z, moves as

    m r'' = m g + F z - d (1 - z z^T) r' - d_z z z^T r',

so that z is along r'' - g + (d/m) r' whatever d_z is [Konz2024, ch. 5; sign as derived]: the
position of its center of mass and a heading determine everything else, with four derivatives.
Joints that are driven change nothing of that, if r is the center of all mass: how they move is
chosen freely beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.base import Reference
from framefree.control.references.flat_curves import Curve
from framefree.control.references.joints import JointPath
from framefree.control.references.thrust import (
    attitude,
    center_of_mass,
    flying_coordinates,
    flying_joint,
    held_joints,
    moments_of_change,
    thrust_axis,
    value_at,
)
from framefree.machine import Machine

Matrix = Any


@dataclass(frozen=True)
class FlatReference(Reference):
    """State of a craft whose center of mass follows a path and whose z follows its thrust.

    Parameters
    ----------
    machine : Machine
        A tree on one free joint; inputs push its body along one axis, with any torques, and drive
        all other joints. `framefree.control.prototype.feasible.feasibility` tells what lacks.
    position : Curve
        Of the center of all mass (3), m.
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
    joints : mapping of joint name to Curve or numbers
        How the other joints move; those that are not named rest at their neutral place.
    """

    machine: Machine
    position: Curve
    heading: Any = 0.0
    normal: Callable[[Matrix], Matrix] | None = None
    drag: float = 0.0
    lean: Any = 1.0
    tilt: Curve | None = None
    joints: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self._held, self._axis

    @property
    def times(self) -> tuple[float, ...]:
        """Times at which one of the curves is not smooth."""
        return moments_of_change(
            self.position, self.heading, self.lean, self.tilt, *self.joints.values()
        )

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return "x", "v" and "a" of all joints."""
        return dict(zip("xva", self.function(t), strict=True))

    @cached_property
    def function(self) -> ca.Function:
        """From t to x, v and a."""
        return JointPath(self.machine, self._configuration, self.times).function

    @cached_property
    def _base(self) -> str:
        return flying_joint(self.machine).name

    @cached_property
    def _axis(self) -> np.ndarray:
        return thrust_axis(self.machine)

    @cached_property
    def _held(self) -> Callable[[Matrix], Matrix]:
        return held_joints(self.machine, self.joints, apart=(self._base,))

    def _configuration(self, t: Matrix) -> Matrix:
        r = value_at(self.position, t, 3, "`position`")
        heading = value_at(self.heading, t, 1, "`heading`")
        normal = None if self.normal is None else self.normal(t)
        wxyz = attitude(self._thrust(t, r), heading, self._axis, normal)
        x = self._held(t)
        inside = center_of_mass(self.machine, x)
        x[self.machine.x_slice[self._base]] = flying_coordinates(self.machine, wxyz, r, inside)
        return x

    def _thrust(self, t: Matrix, r: Matrix) -> Matrix:
        """Return the direction of z, not of unit length."""
        up = -ca.DM(np.asarray(self.machine.gravity, float))
        lean = self.lean.at(t) if isinstance(self.lean, Curve) else self.lean
        velocity = ca.jacobian(r, t)
        f = up + lean * (ca.jacobian(velocity, t) + self.drag * velocity)
        if self.tilt is not None:
            across = self.tilt.at(t)
            height = ca.sqrt(1 - ca.sumsqr(across))
            f = f + ca.norm_2(up) * ca.vertcat(across / height, 0)
        return f
