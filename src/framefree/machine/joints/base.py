"""The contract of joint kinds, on which the equations of motion rely.

A joint lets its child joint frame move relative to its parent joint frame. A kind says how, in
coordinates x (nx numbers) and velocities v (nv numbers). To add one, subclass `JointKind` and give

1. ``nx``, ``nv``, and the names ``x_names``, ``v_names`` of coordinates and velocities;
2. ``pose(x)`` (4x4): the child joint frame seen from the parent joint frame;
3. ``jacobian(x)`` S (6 x nv): the relative body twist is xi = S v, so that
   d/dt pose(x) = pose(x) wed(S v) whenever dx/dt = rate(x) v;
4. ``rate(x)`` A (nx x nv): dx/dt = A(x) v;
5. ``integrate(x, dv)``: x moved by dv, integrate(x, 0) = x and d/dh integrate(x, h dv) = A(x) dv at
   h = 0; on a group it is the group's exponential;
6. ``difference(x0, x1)``: dv with integrate(x0, dv) = x1 (the shortest such dv);
7. ``neutral``: the x that the machine starts from, pose(neutral) = I for all kinds here;
8. ``sample(rng, count)``: random x (count, nx), spread over the joint's range.

Items 2 to 6 are pure functions over casadi `SX` and `DM`, traced by `framefree.motion`. They
must be right for every x, not only near the neutral one.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import casadi
import numpy as np

from framefree.machine.part import Part

Matrix = Any
"""A casadi SX or DM matrix."""


class JointKind(Part, ABC):
    """Base of all joint kinds; see the contract at the top of this file."""

    nx: int
    nv: int
    x_names: tuple[str, ...]
    v_names: tuple[str, ...]
    constant_jacobian: bool = True
    """Whether `jacobian` does not depend on x."""
    vector: bool = True
    """Whether x is a plain vector with dx/dt = v, so that x and v have the same names."""
    unit_blocks: ClassVar[tuple[slice, ...]] = ()
    """Parts of x that have unit length: quaternions and (cos, sin) pairs."""
    springy: bool = True
    """Whether the kind implements `difference_rate`, so that the joint can have a spring."""

    @property
    def additive(self) -> bool:
        """Whether d/dt difference(x0, x1) = v1 - v0 for both moving: `difference_rate` is 1."""
        return self.vector

    @property
    def locked(self) -> bool:
        """Whether this stands for a joint that could move but is held."""
        return False

    @abstractmethod
    def pose(self, x: Matrix) -> Matrix:
        """Pose (4x4) of the child joint frame seen from the parent joint frame."""

    @abstractmethod
    def jacobian(self, x: Matrix) -> Matrix:
        """Body Jacobian S (6 x nv) in the child joint frame, linear part first: xi = S v."""

    def rate(self, x: Matrix) -> Matrix:
        """Matrix A (nx x nv) with dx/dt = A v."""
        return casadi.DM.eye(self.nx)

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move x (nx) by dv (nv): the group exponential from x."""
        return x + dv

    def difference(self, x0: Matrix, x1: Matrix) -> Matrix:
        """Return the shortest dv (nv) with integrate(x0, dv) = x1."""
        return x1 - x0

    def difference_rate(self, x0: Matrix, x1: Matrix) -> Matrix:
        """Matrix E (nv x nv) with d/dt difference(x0, x1) = E v1 for x1 moving at v1."""
        return casadi.DM.eye(self.nv)

    def normalise(self, x: Matrix) -> Matrix:
        """Bring quaternions and (cos, sin) pairs back to unit length."""
        for block in self.unit_blocks:
            unit = x[block] / casadi.sqrt(casadi.sumsqr(x[block]))
            x = casadi.vertcat(x[: block.start], unit, x[block.stop :])
        return x

    @property
    def neutral(self) -> np.ndarray:
        """The configuration (nx) at which pose is the identity."""
        return np.zeros(self.nx)

    @abstractmethod
    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Return random configurations (count, nx), spread over the joint's range."""

    def random(self, rng: "np.random.Generator") -> np.ndarray:
        """Return one random configuration (nx)."""
        return self.sample(rng, 1)[0]
