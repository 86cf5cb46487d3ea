"""Coriolis matrices C of a tree: C v = c, by recursion and, by name, in closed form.

Of the many C with C v = c, two here make dM/dt - 2C skew-symmetric (formulations, section 2):

    skew       sum_b J^T (M dJ + Gam(xi) J),  Gam(xi) = 1/2 (-W(M xi) - ad_xi^T M + M ad_xi)
    kirchhoff  sum_b J^T (M dJ - W(M xi) J),  W(p, l) = [0, wed(p); wed(p), wed(l)]

For rigid bodies Gam holds the Levi-Civita connection coefficients of the body. Valid factorisations
of c that are not skew, kept to show the difference:

    adjoint      sum_b J^T (M dJ - ad_xi^T M J)
    quasi        C_ij = (d_k M_ij + gam^l_ij M_lk - 1/2 d_i M_jk) v^k      [Konz2024, sec. 2.3]

and where all coordinates are plain numbers with dx/dt = v, `christoffel`, which is skew as well.
One that is not even valid, though skew: `printed`, eq. (22) of [From2010] as it stands there.
A C must pass two tests, dM/dt = C + C^T and C v = c; wrong matrices pass the first alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.motion.body_factors import BODY_FACTORS, kirchhoff_matrix
from framefree.motion.spatial import (
    Inertia,
    Matrix,
    Rigid,
    SpatialWrench,
    Step,
    Twist,
    plus_product,
    products,
    wed,
)
from framefree.motion.tree.kinematics import Jacobian
from framefree.motion.tree.links import Link
from framefree.motion.tree.recursion import LinkMotion, over_parents


class CoriolisFactor(NamedTuple):
    """The matrix ``Gam(xi) - M ad_xi = [0, -wed(p); 0, Q]`` of a rigid body, or of several.

    p is the linear momentum; the left half is zero because M is that of a rigid body.
    """

    p: Matrix
    Q: Matrix

    @classmethod
    def of(cls, inertia: Inertia, twist: Twist) -> "CoriolisFactor":
        """Factor of a rigid body, inertia ``[m I, -m wed(s); m wed(s), S]``."""
        S, second = inertia.C, ca.trace(inertia.C) / 2 * ca.DM.eye(3) - inertia.C
        p = inertia.times(twist).force
        turned = products((inertia.B, wed(twist.linear)), (-S, wed(twist.angular)))
        Q = wed(second @ twist.angular) + turned
        return cls(p, Q)

    def out(self, step: Step) -> "CoriolisFactor":
        """Return the same seen from the parent link."""
        p = step.out(self.p)
        return CoriolisFactor(p, step.conjugate(self.Q) - wed(step.r) @ wed(p))

    def plus(self, other: "CoriolisFactor") -> "CoriolisFactor":
        """Return the factor of two bodies that move as one."""
        return CoriolisFactor(self.p + other.p, self.Q + other.Q)

    def times(self, twist: Twist) -> SpatialWrench:
        """Return the matrix times k twists."""
        return SpatialWrench(-wed(self.p) @ twist.angular, self.Q @ twist.angular)

    def plus_times(self, wrench: SpatialWrench, twist: Twist) -> SpatialWrench:
        """Return ``wrench`` plus the matrix times k twists."""
        return SpatialWrench(
            plus_product(wrench.force, -wed(self.p), twist.angular),
            plus_product(wrench.moment, self.Q, twist.angular),
        )

    def transposed_times(self, twist: Twist) -> SpatialWrench:
        """Return the transposed matrix times k twists."""
        moment = products((wed(self.p), twist.linear), (self.Q.T, twist.angular))
        return SpatialWrench(ca.SX(*moment.shape), moment)


def recursive(
    links: Sequence[Link], state: LinkMotion, inertias: Sequence[Rigid], rates: Sequence[Matrix]
) -> Matrix:
    """Return the `skew` matrix of rigid bodies in O(n depth) operations.

    `inertias` are those of the links, or others that the joints cannot tell from them: C is made of
    M(x) alone, being its Levi-Civita connection.

    With composite inertia M_i and factor B_i of all that link i carries, and dS_i the rate of the
    joint's subspace seen from the world, in link axes (`rates`), for j on the way from i inwards:

        C_ji = S_j^T (M_i dS_i + B_i S_i),    C_ij = dS_j^T M_i S_i + S_j^T B_i^T S_i
    """
    steps, subspaces = state.steps, state.subspaces
    factors = [
        CoriolisFactor.of(inertia.full, twist)
        for inertia, twist in zip(inertias, state.twists, strict=True)
    ]
    composite = over_parents(
        links, inertias, lambda i, inertia: inertia.seen_from(steps[i]), Rigid.plus
    )
    factor = over_parents(links, factors, lambda i, value: value.out(steps[i]), CoriolisFactor.plus)
    nv = sum(S.shape[1] for S in subspaces)
    C = ca.SX(nv, nv)
    for i, link in enumerate(links):
        if not subspaces[i].shape[1]:
            continue
        S, dS = Twist.of(subspaces[i]), Twist.of(rates[i])
        column = factor[i].plus_times(composite[i].times(dS), S)
        inertial, turned = composite[i].times(S), factor[i].transposed_times(S)
        C[link.v, link.v] = subspaces[i].T @ ca.vertcat(*column)
        j = i
        while links[j].parent >= 0:
            column, inertial, turned = (steps[j].wrench_out(w) for w in (column, inertial, turned))
            j = links[j].parent
            C[links[j].v, link.v] = subspaces[j].T @ ca.vertcat(*column)
            row = products((rates[j].T, inertial.vector), (subspaces[j].T, turned.vector))
            C[link.v, links[j].v] = row.T
    return C


def subspace_rates(links: Sequence[Link], state: LinkMotion, x: Matrix, v: Matrix) -> list[Matrix]:
    """Return ``ad_xi S + dS/dt`` of every joint: the subspace's rate seen from the world."""
    rates = []
    for link, S, twist in zip(links, state.subspaces, state.twists, strict=True):
        rate = se3.little_adjoint(ca.vertcat(*twist)) @ S
        rates.append(rate if link.constant_subspace else rate + link.subspace_rate(x, v))
    return rates


def by_bodies(
    name: str, inertias: Sequence[Inertia], state: LinkMotion, jacobians: Sequence[Jacobian]
) -> Matrix:
    """Return ``sum_b J^T (M dJ + Gam J)`` with one of `BODY_FACTORS`."""
    total = 0
    for inertia, twist, J in zip(inertias, state.twists, jacobians, strict=True):
        M = inertia.matrix
        factor = BODY_FACTORS[name](M, ca.vertcat(*twist))
        total += J.value.T @ (M @ J.rate + factor @ J.value)
    return total


NAMES = (*BODY_FACTORS, "quasi", "christoffel", "euler", "printed")
"""What `coriolis:NAME` may be."""


def printed(
    inertias: Sequence[Inertia], state: LinkMotion, jacobians: Sequence[Jacobian]
) -> Matrix:
    """Return ``sum_b (dJ^T M J - J^T W(M xi) J)``: dM/dt = C + C^T, but C v is wrong."""
    total = 0
    for inertia, twist, J in zip(inertias, state.twists, jacobians, strict=True):
        M = inertia.matrix
        W = kirchhoff_matrix(M @ ca.vertcat(*twist))
        total += J.rate.T @ M @ J.value - J.value.T @ W @ J.value
    return total


def quasi(mass: Matrix, x: Matrix, v: Matrix, rate: Matrix) -> Matrix:
    """Return ``C_ij = (d_k M_ij + gam^l_ij M_lk - 1/2 d_i M_jk) v^k`` for dx/dt = rate(x) v."""
    nv = v.shape[0]
    momentum = mass @ v
    M_dot = ca.reshape(ca.jtimes(ca.vec(mass), x, rate @ v), nv, nv)
    gradient = ca.jacobian(momentum, x) @ rate  # row j, column i: d_i M_jk v^k
    # gam^l_ij p_l = (d_i A_j - d_j A_i) . Y^T p with Y the left inverse of A.
    pulled = rate @ ca.solve(rate.T @ rate, momentum)
    held = ca.SX.sym("held", x.shape[0])
    turning = ca.jacobian(rate.T @ held, x) @ rate  # row j, column i: held . d_i A_j
    bracket = ca.substitute(turning.T - turning, held, pulled)
    return M_dot + bracket - gradient.T / 2


def christoffel(mass: Matrix, x: Matrix, v: Matrix) -> Matrix:
    """Return ``C_ij = 1/2 (d_k M_ij + d_j M_ik - d_i M_jk) v^k`` for dx/dt = v."""
    nv = v.shape[0]
    M_dot = ca.reshape(ca.jtimes(ca.vec(mass), x, v), nv, nv)
    gradient = ca.jacobian(mass @ v, x)
    return (M_dot + gradient - gradient.T) / 2
