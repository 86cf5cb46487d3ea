"""The groups that configurations live on, as the integrators need them."""

from typing import Any, Protocol

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Free, Machine
from framefree.machine.joint import Joint
from framefree.machine.joints import JointKind
from framefree.motion.maximal.kinematics import Kinematics, MaximalModel

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


class BodyGroup:
    """N bodies that move freely, each with position and quaternion: the maximal formulation.

    The joint coordinates that x keeps beside them are plain numbers.
    """

    def __init__(self, model: MaximalModel) -> None:
        self.model, self.bodies = model, len(model.links)
        self._kind = Free()

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return v, and the rates of the joint coordinates that x keeps."""
        return ca.vertcat(v, Kinematics(self.model, x, v).kept_rates)

    def integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """Move every body by its part of dv, and add the rest to the coordinates that x keeps."""
        kept = x[7 * self.bodies :] + dv[6 * self.bodies :]
        return self._each(lambda i: self._kind.integrate(_part(x, i, 7), _part(dv, i, 6)), kept)

    def normalise(self, x: Matrix) -> Matrix:
        """Bring every quaternion to unit length, also those among coordinates that x keeps."""
        kept = [
            self.model.links[i].kind.normalise(x[place])
            if place.stop - place.start == self.model.links[i].kind.nx
            else x[place]
            for i, place in self.model.kept.items()
        ]
        return self._each(
            lambda i: self._kind.normalise(_part(x, i, 7)), ca.vertcat(ca.SX(0, 1), *kept)
        )

    def bracket(self, a: Matrix, b: Matrix) -> Matrix:
        """Bracket of body twists; zero for plain numbers."""
        kept = ca.SX(a.shape[0] - 6 * self.bodies, 1)
        return self._each(lambda i: se3.little_adjoint(_part(a, i, 6)) @ _part(b, i, 6), kept)

    def _each(self, part: Any, kept: Matrix) -> Matrix:
        return ca.vertcat(ca.SX(0, 1), *(part(i) for i in range(self.bodies)), kept)


def _part(values: Matrix, i: int, size: int) -> Matrix:
    return values[size * i : size * (i + 1)]


class Extended:
    """A group whose velocities v come in one column with other numbers, v first."""

    def __init__(self, group: Group, nv: int) -> None:
        self.group, self.nv = group, nv
        self.integrate, self.bracket = group.integrate, group.bracket
        self.normalise = group.normalise

    def velocity(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the velocity of the first part."""
        return self.group.velocity(x, v[: self.nv, :])
