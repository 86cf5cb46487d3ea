"""The groups that configurations live on, as the integrators need them."""

from collections.abc import Callable
from typing import Any, Protocol

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.joint import Joint
from framefree.machine.joints import JointKind

Matrix = Any
"""A casadi SX or DM matrix."""


class Group(Protocol):
    """Configurations x on a group, moved by vectors of its algebra."""

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the rate of x as a vector of the algebra: x moves by dt velocity(x, v)."""
        ...

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move x by dv: x times the group's exponential of dv."""
        ...

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Lie bracket [a, b] of two vectors of the algebra: ad_a b."""
        ...

    def normalise(self, x: Matrix) -> Matrix:
        """Bring x back onto the group after rounding."""
        ...


class JointGroup:
    """The product of the groups of a machine's joints."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return v itself."""
        return v

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move every joint by its part of dv."""
        return self.machine.integrate(x, dv)

    def normalise(self, x: Matrix) -> Matrix:
        """Bring quaternions and (cos, sin) pairs to unit length."""
        return self.machine.normalise(x)

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Bracket joint by joint; zero for joints whose coordinates are plain numbers."""
        parts = [self._of_joint(joint, a, b) for joint in self.machine.joints]
        return ca.vertcat(ca.SX(0, 1), *parts)

    def _of_joint(self, joint: Joint, a: Matrix, b: Matrix) -> Matrix:
        span = self.machine.v_slice[joint.name]
        return kind_bracket(joint.kind, a[span, :], b[span, :])


def kind_bracket(kind: JointKind, a: Matrix, b: Matrix) -> Matrix:
    """Bracket on one joint's group: S [a, b] = ad_{S a} S b, with S its constant subspace."""
    if kind.vector or kind.nv < 2 or not kind.constant_jacobian:
        return ca.SX(kind.nv, 1)
    S = ca.DM(kind.jacobian(kind.neutral))
    return ca.solve(S.T @ S, S.T) @ (se3.little_adjoint(S @ a) @ (S @ b))


def inverse_differential(group: Group, theta: Matrix, w: Matrix) -> Matrix:
    """Rate of theta where x = x0 exp(theta) moves at w.

    It is ``w + [theta, w]/2 + [theta, [theta, w]]/12``. The next term of the series has the power 4
    of theta; as theta is dt w to first order, stopping
    here serves methods up to order 5.
    """
    first = group.bracket(theta, w)
    return w + first / 2 + group.bracket(theta, first) / 12


class Extended:
    """A group whose velocities v come in one column with other numbers, v first."""

    def __init__(self, group: Group, nv: int) -> None:
        self.group, self.nv = group, nv
        self.integrate, self.bracket = group.integrate, group.bracket
        self.normalise = group.normalise

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the velocity of the first part."""
        return self.group.velocity(x, v[: self.nv, :])


class CoordinateGroup:
    """Any coordinates with dx/dt = A(x) v, moved as plain numbers: x moves by A v dt."""

    def __init__(self, rate: Callable[[Matrix], Matrix]) -> None:
        self.rate = rate

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return A(x) v."""
        return self.rate(x) @ v

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Return the sum."""
        return x + dv

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Return zero: plain numbers commute."""
        return ca.SX(*a.shape)

    def normalise(self, x: Matrix) -> Matrix:
        """Return x; phi is met by `Equations.restore`."""
        return x
