"""Spatial algebra in 3x3 blocks, arranged so that traced graphs stay small.

The recursions of `framefree.motion.tree.recursion` are written with these types. Each works on
CasADi SX and DM. A zero or one of the particular machine vanishes from the graph by itself, and of
a symmetric matrix only one half is ever computed.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import casadi as ca

Matrix = Any
"""A casadi SX or DM matrix; vectors are columns."""


def wed(a: Matrix) -> Matrix:
    """Skew matrix with ``wed(a) @ b = cross(a, b)``."""
    return ca.blockcat([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def plus_product(c: Matrix, a: Matrix, b: Matrix) -> Matrix:
    """Return ``c + a b``; sums begin with c, so that every product is fused into one."""
    return ca.mac(a, b, ca.densify(c))


def products(*pairs: tuple[Matrix, Matrix]) -> Matrix:
    """Return the sum of ``a b`` of several pairs, in one row of fused products."""
    return ca.horzcat(*(a for a, _ in pairs)) @ ca.vertcat(*(b for _, b in pairs))


def symmetric(a: Matrix) -> Matrix:
    """Return the symmetric matrix whose lower half is that of ``a``; the upper half is not used."""
    return ca.tril2symm(ca.tril(a))


class _SixNumbers:
    """What twists and wrenches share: three and three numbers, k columns of them side by side."""

    __slots__ = ()

    @classmethod
    def zero(cls: Any) -> Any:
        """Return the zero vector."""
        return cls(ca.SX(3, 1), ca.SX(3, 1))

    @classmethod
    def of(cls: Any, vector: Matrix) -> Any:
        """Split 6 x k numbers."""
        return cls(vector[:3, :], vector[3:6, :])

    @property
    def vector(self: Any) -> Matrix:
        """All 6 x k numbers."""
        return ca.densify(ca.vertcat(*self))

    def plus(self: Any, other: Any) -> Any:
        """Return the sum (``+`` of a tuple would join)."""
        return type(self)(self[0] + other[0], self[1] + other[1])

    def minus(self: Any, other: Any) -> Any:
        """Return the difference."""
        return type(self)(self[0] - other[0], self[1] - other[1])


class _LinearAngular(NamedTuple):
    linear: Matrix
    angular: Matrix


class Twist(_SixNumbers, _LinearAngular):
    """Linear and angular velocity (or acceleration) in the axes of a link, linear first.

    Each is 3 x k: k twists side by side, mostly one.
    """

    __slots__ = ()

    def cross(self, other: "Twist") -> "Twist":
        """Return ``ad_self other``."""
        v, w = wed(self.linear), wed(self.angular)
        return Twist(products((w, other.linear), (v, other.angular)), w @ other.angular)

    def cross_wrench(self, wrench: "SpatialWrench") -> "SpatialWrench":
        """Return ``-ad_self^T wrench``: the rate of a wrench (or momentum) carried along."""
        v, w = wed(self.linear), wed(self.angular)
        return SpatialWrench(w @ wrench.force, products((w, wrench.moment), (v, wrench.force)))


class _ForceMoment(NamedTuple):
    force: Matrix
    moment: Matrix


class SpatialWrench(_SixNumbers, _ForceMoment):
    """Force and moment (or momentum) in the axes of a link, force first; each 3 x k."""

    __slots__ = ()


class Inertia(NamedTuple):
    """Symmetric 6x6 inertia ``[A, B; B^T, C]`` by its blocks: linear, mixed, angular."""

    A: Matrix
    B: Matrix
    C: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> Self:
        """Split a symmetric 6x6 matrix."""
        return cls(matrix[:3, :3], matrix[:3, 3:], matrix[3:, 3:])

    @property
    def matrix(self) -> Matrix:
        """The 6x6 matrix."""
        return ca.blockcat([[self.A, self.B], [self.B.T, self.C]])

    def plus(self, other: "Inertia") -> "Inertia":
        """Return the inertia of two bodies that move as one."""
        return Inertia(symmetric(self.A + other.A), self.B + other.B, symmetric(self.C + other.C))

    def seen_from(self, step: "Step") -> "Inertia":
        """Return the same seen from the parent of a link with the pose `step`."""
        return step.inertia_out(self)

    def times(self, twist: Twist) -> SpatialWrench:
        """Return the momentum (or wrench) of k twists."""
        return SpatialWrench(
            products((self.A, twist.linear), (self.B, twist.angular)),
            products((self.B.T, twist.linear), (self.C, twist.angular)),
        )


class Step(NamedTuple):
    """Pose of a link seen from its parent link: ``R = R0 Rz(c, s)``, or ``R0`` alone; position r.

    Keeping the turn about z apart from the constant rotation R0 saves a third of the operations.
    """

    R0: Matrix
    r: Matrix
    turn: tuple[Matrix, Matrix] | None = None

    @property
    def rotation(self) -> Matrix:
        """R (3x3)."""
        if self.turn is None:
            return self.R0
        c, s = self.turn
        return self.R0 @ ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    def into(self, a: Matrix) -> Matrix:
        """Parent axes to link axes: ``R^T a``."""
        b = self.R0.T @ a
        if self.turn is None:
            return b
        c, s = self.turn
        return ca.vertcat(c * b[0, :] + s * b[1, :], c * b[1, :] - s * b[0, :], b[2, :])

    def out(self, a: Matrix) -> Matrix:
        """Link axes to parent axes: ``R a``."""
        if self.turn is not None:
            c, s = self.turn
            a = ca.vertcat(c * a[0, :] - s * a[1, :], s * a[0, :] + c * a[1, :], a[2, :])
        return self.R0 @ a

    def twist_into(self, twist: Twist) -> Twist:
        """Twist of the parent, carried to the link: ``Ad_{G^-1}``."""
        at_link = plus_product(twist.linear, -wed(self.r), twist.angular)
        return Twist(self.into(at_link), self.into(twist.angular))

    def wrench_out(self, wrench: SpatialWrench) -> SpatialWrench:
        """Wrench on the link, carried to the parent: ``Ad_{G^-1}^T``."""
        force = self.out(wrench.force)
        return SpatialWrench(force, plus_product(self.out(wrench.moment), wed(self.r), force))

    def inertia_out(self, inertia: Inertia) -> Inertia:
        """Inertia of the link seen from the parent: ``Ad_{G^-1}^T I Ad_{G^-1}``."""
        A = self.conjugate_symmetric(inertia.A)
        B = self.conjugate(inertia.B)
        C = self.conjugate_symmetric(inertia.C)
        W = wed(self.r)
        H = plus_product(B, -A, W)
        return Inertia(A, H, symmetric(plus_product(plus_product(C, W, H), B.T, W.T)))

    def conjugate(self, a: Matrix) -> Matrix:
        """Return ``R a R^T`` of a 3x3 matrix."""
        if self.turn is not None:
            c, s = self.turn
            Rz = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            a = Rz @ a @ Rz.T
        return self.R0 @ a @ self.R0.T

    def conjugate_symmetric(self, a: Matrix) -> Matrix:
        """Return ``R a R^T`` of a symmetric 3x3 matrix."""
        if self.turn is not None:
            c, s = self.turn
            # By the double angle: fewer products than Rz a Rz^T.
            cs, ss = c * s, s * s
            t = ss * (a[1, 1] - a[0, 0]) - 2 * cs * a[1, 0]
            b = cs * (a[0, 0] - a[1, 1]) + (1 - 2 * ss) * a[1, 0]
            x = c * a[2, 0] - s * a[2, 1]
            y = s * a[2, 0] + c * a[2, 1]
            a = ca.blockcat([[a[0, 0] + t, b, x], [b, a[1, 1] - t, y], [x, y, a[2, 2]]])
        return symmetric(self.R0 @ a @ self.R0.T)


class Rigid(NamedTuple):
    """Inertia of rigid bodies: mass, first moment (3), moment (3x3, symmetric) about the origin.

    Ten numbers where `Inertia` has 21, and fewer operations to carry them along.
    """

    mass: Matrix
    first: Matrix
    moment: Matrix

    @classmethod
    def of(cls, inertia: Inertia) -> Self:
        """Return what a 6x6 inertia of rigid bodies holds."""
        A, B, C = inertia
        return cls(A[0, 0], ca.vertcat(B[1, 2], B[2, 0], B[0, 1]), symmetric(C))

    @property
    def full(self) -> Inertia:
        """The same by 3x3 blocks."""
        return Inertia(self.mass * ca.SX.eye(3), -wed(self.first), self.moment)

    def plus(self, other: "Rigid") -> "Rigid":
        """Return the inertia of both."""
        return Rigid(
            self.mass + other.mass,
            self.first + other.first,
            symmetric(self.moment + other.moment),
        )

    def minus(self, other: "Rigid") -> "Rigid":
        """Return the inertia without that of another."""
        return Rigid(
            self.mass - other.mass,
            self.first - other.first,
            symmetric(self.moment - other.moment),
        )

    def times(self, twist: Twist) -> SpatialWrench:
        """Return the momentum (or wrench) of k twists."""
        h = wed(self.first)
        return SpatialWrench(
            plus_product(self.mass * twist.linear, -h, twist.angular),
            products((h, twist.linear), (self.moment, twist.angular)),
        )

    def seen_from(self, step: Step) -> "Rigid":
        """Return the same seen from the parent, where the bodies' link has the pose `step`."""
        first, r = step.out(self.first), step.r
        arm = first + self.mass * r / 2
        cross = arm @ r.T
        spread = 2 * ca.dot(arm, r) * ca.DM.eye(3) - cross - cross.T
        moment = symmetric(step.conjugate_symmetric(self.moment) + spread)
        return Rigid(self.mass, first + self.mass * r, moment)


def solve_symmetric(matrix: Matrix, right: Matrix) -> Matrix:
    """Solve ``matrix @ y = right`` for a small positive definite matrix by L D L^T, unrolled."""
    n = matrix.shape[0]
    L = [[ca.SX(0)] * n for _ in range(n)]
    LD = [[ca.SX(0)] * n for _ in range(n)]
    reciprocal = [ca.SX(0)] * n
    for j in range(n):
        reciprocal[j] = 1 / (matrix[j, j] - _sum(LD[j][k] * L[j][k] for k in range(j)))
        for i in range(j + 1, n):
            LD[i][j] = matrix[i, j] - _sum(L[i][k] * LD[j][k] for k in range(j))
            L[i][j] = LD[i][j] * reciprocal[j]
    rows: list[Matrix] = []
    for i in range(n):
        rows.append(right[i, :] - _sum(L[i][k] * rows[k] for k in range(i)))
    for i in reversed(range(n)):
        rows[i] = rows[i] * reciprocal[i] - _sum(L[k][i] * rows[k] for k in range(i + 1, n))
    return ca.vertcat(*rows) if rows else ca.SX(0, right.shape[1])


def cholesky(matrix: Matrix) -> Matrix:
    """Return the lower triangular C with ``C C^T = matrix``, for a small definite matrix."""
    n = matrix.shape[0]
    C = ca.SX(n, n)
    for j in range(n):
        C[j, j] = ca.sqrt(matrix[j, j] - _sum(C[j, k] ** 2 for k in range(j)))
        for i in range(j + 1, n):
            C[i, j] = (matrix[i, j] - _sum(C[i, k] * C[j, k] for k in range(j))) / C[j, j]
    return C


def _sum(terms: Iterable[Matrix]) -> Matrix:
    return sum(terms, ca.SX(0))
