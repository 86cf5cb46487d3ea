"""Derivatives of a tree's inverse dynamics in closed form, without differentiating its graph.

All links of one tree are seen from its root link at one instant. There a twist carried along the
tree does not change, and with V_i, A_i the twist and acceleration of link i (gravity as an upward
acceleration of the world), S_i its joint's subspace and p its parent,

    V_i = V_p + S_i v_i,     A_i = A_p + S_i a_i + ad_{V_i} S_i v_i,     f_i = S_i^T F_i,
    F_i = sum over what i carries of (M A - ad_V^T M V)

Moving joint j by eps along its own directions, x (+) eps, turns and shifts all it carries by
S_j eps. In body axes the twists and accelerations of these links change by the same U_j eps and by
(Z_j - ad_V U_j) eps, so that their wrenches change by (M Z_j + B U_j) eps,

    U_j = ad_{V_p} S_j,  Z_j = ad_{A_p} S_j + ad_{V_p} U_j,  B = -M ad_V - ad_V^T M - W(M V)

with W(h) xi = ad_xi^T h; for the velocity of joint j, U = S_j and Z = ad_{V_p} S_j + ad_{V_j} S_j.
With M_i, B_i summed over what link i carries [Carpentier2018; Singh2022]

    df_i/dx_j = S_i^T (M_j Z_j + B_j U_j + S_j x* F_j)      i carries j
    df_i/dx_j = S_i^T (M_i Z_j + B_i U_j)                   j carries i, or i = j

and the same without the last term for dv_j. For joints whose subspace moves in link axes
(universal, custom) U and Z have further terms, which come from differentiating the joint's own
maps.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import casadi as ca

from framefree.geometry import se3
from framefree.motion.spatial import (
    Matrix,
    Rigid,
    SpatialWrench,
    Step,
    Twist,
    plus_product,
    products,
    wed,
)
from framefree.motion.tree.links import Link
from framefree.motion.tree.recursion import over_parents

T = TypeVar("T")


class Gyroscope(NamedTuple):
    """The matrix ``B/2 = -1/2 (M ad_V + ad_V^T M + W(M V)) = [0, -wed(p); 0, Q]`` of rigid bodies.

    p is the linear momentum. The left half vanishes because M is that of rigid bodies. For one
    body ``B/2 V = -ad_V^T M V``.
    """

    p: Matrix
    Q: Matrix

    @classmethod
    def of(cls, inertia: Rigid, V: Twist) -> "Gyroscope":
        """Return that of one body."""
        mass, h, S = inertia
        p = plus_product(mass * V.linear, wed(V.angular), h)
        turn = S @ wed(V.angular)
        drift = V.linear @ h.T
        spin = wed(products((S, V.angular), (-wed(V.linear), h)))
        even = turn + turn.T + drift + drift.T
        return cls(p, ca.dot(V.linear, h) * ca.DM.eye(3) - (even + spin) / 2)

    def plus(self, other: "Gyroscope") -> "Gyroscope":
        """Return that of both."""
        return Gyroscope(self.p + other.p, self.Q + other.Q)

    def times(self, twist: Twist) -> SpatialWrench:
        """Return ``B/2 twist`` of k twists."""
        return SpatialWrench(-wed(self.p) @ twist.angular, self.Q @ twist.angular)

    def plus_times(self, wrench: SpatialWrench, twist: Twist) -> SpatialWrench:
        """Return ``wrench + B/2 twist`` of k twists."""
        return SpatialWrench(
            plus_product(wrench.force, -wed(self.p), twist.angular),
            plus_product(wrench.moment, self.Q, twist.angular),
        )

    def transposed_times(self, twist: Twist) -> Matrix:
        """Return the angular half (3 x k) of ``B^T/2 twist``; the linear half is zero."""
        return products((wed(self.p), twist.linear), (self.Q.T, twist.angular))


def moving_links(links: Sequence[Link]) -> list[Link]:
    """Return the links with joints that move; what is fixed to them is added to their inertia."""
    moving: list[Link] = []
    place: list[tuple[int, Matrix]] = []  # of every link: moving link that holds it, pose on that
    for link in links:
        held, pose = (-1, ca.SX.eye(4)) if link.parent < 0 else place[link.parent]
        if link.kind.nv:
            place.append((len(moving), ca.SX.eye(4)))
            moving.append(replace(link, parent=held, start=ca.SX(se3.compose(pose, link.start))))
            continue
        step = link.step(ca.SX(link.x.stop, 1))
        pose = ca.SX(se3.compose(pose, se3.pose(step.rotation, step.r)))
        place.append((held, pose))
        if held >= 0:
            on = Step(se3.rotation(pose), se3.position(pose))
            inertia = moving[held].inertia.plus(on.inertia_out(link.inertia))
            moving[held] = replace(moving[held], inertia=inertia)
    return moving


class CarriedLink(NamedTuple):
    """A link seen from its tree's root: pose, joint subspace, twists, bias, inertia."""

    axes: Step
    S: Twist
    V_parent: Twist
    V: Twist
    bias: Twist
    inertia: Rigid


class RigidTree:
    """Rigid links of a tree in one state (x, v), each seen from the root of its tree.

    Parameters
    ----------
    links : sequence of Link
        Those of `moving_links`.
    """

    def __init__(self, links: Sequence[Link], x: Matrix, v: Matrix, gravity: Matrix) -> None:
        self.links, self.x, self.v, self.gravity = links, x, v, gravity
        self.at = _carried(links, x, v)

    def force(self, a: Matrix) -> Matrix:
        """Return the force (nv) for accelerations a."""
        force = ca.SX(self.v.shape[0], 1)
        for link, here, wrench in zip(self.links, self.at, self._wrenches(a)[1], strict=True):
            force[link.v] = dot(here.S, wrench)
        return force

    def slopes(self, a: Matrix) -> tuple[Matrix, Matrix]:
        """Return the slopes (nv x nv) of the force by x and by v at accelerations a.

        Entries between joints of different branches are structurally zero.
        """
        nv = self.v.shape[0]
        by_x, by_v = ca.SX(nv, nv), ca.SX(nv, nv)
        A_parents, wrenches = self._wrenches(a)
        columns = [
            carried_columns(link, here, A_p, self.x, self.v, a)
            for link, here, A_p in zip(self.links, self.at, A_parents, strict=True)
        ]
        for i, link in enumerate(self.links):
            S, (U, Z, Z_v), momentum = self.at[i].S, columns[i], self._momenta[i]
            M, B = self._inertias[i], self._gyroscopes[i]
            push = B.plus_times(M.times(Z), U.plus(U))
            push_v = B.plus_times(M.times(Z_v), S.plus(S))
            by_x[link.v, link.v] = dot(S, push) + _own(link, self.at[i], self.x, wrenches[i])
            by_v[link.v, link.v] = dot(S, push_v)
            turned = 2 * B.transposed_times(S)
            push = push.plus(cross_wrench(S, wrenches[i]))
            felt = ca.vertcat(*momentum, turned).T
            for j in _carriers(self.links, i):
                above, S_j, (U_j, Z_j, Z_vj) = self.links[j].v, self.at[j].S, columns[j]
                by_x[above, link.v] = dot(S_j, push)
                by_v[above, link.v] = dot(S_j, push_v)
                by_x[link.v, above] = felt @ ca.vertcat(*Z_j, U_j.angular)
                by_v[link.v, above] = felt @ ca.vertcat(*Z_vj, S_j.angular)
        return by_x, by_v

    def _wrenches(self, a: Matrix) -> tuple[list[Twist], list[SpatialWrench]]:
        """Return the acceleration of each link's parent, and what its joint passes to the link."""
        parents: list[Twist] = []
        accelerations: list[Twist] = []
        for link, here in zip(self.links, self.at, strict=True):
            if link.parent < 0:
                parents.append(Twist(-link.step(self.x).into(self.gravity), ca.SX(3, 1)))
            else:
                parents.append(accelerations[link.parent])
            joint = Twist(here.S.linear @ a[link.v, :], here.S.angular @ a[link.v, :])
            accelerations.append(parents[-1].plus(here.bias).plus(joint))
        own = [
            gyroscope.plus_times(here.inertia.times(acceleration), here.V)
            for here, acceleration, gyroscope in zip(
                self.at, accelerations, self._own_gyroscopes, strict=True
            )
        ]
        return parents, self._summed(own, SpatialWrench.plus)

    @cached_property
    def _inertias(self) -> list[Rigid]:
        """Of each link and all it carries."""
        return self._summed([here.inertia for here in self.at], Rigid.plus)

    @cached_property
    def _momenta(self) -> list[SpatialWrench]:
        return [M.times(here.S) for M, here in zip(self._inertias, self.at, strict=True)]

    @cached_property
    def _gyroscopes(self) -> list[Gyroscope]:
        """Of each link and all it carries."""
        return self._summed(self._own_gyroscopes, Gyroscope.plus)

    @cached_property
    def _own_gyroscopes(self) -> list[Gyroscope]:
        return [Gyroscope.of(here.inertia, here.V) for here in self.at]

    def _summed(self, own: list[T], add: Callable[[T, T], T]) -> list[T]:
        # Seen from the root nothing changes on the way from link to link.
        return over_parents(self.links, own, lambda _, value: value, add)


def _carried(links: Sequence[Link], x: Matrix, v: Matrix) -> list[CarriedLink]:
    found: list[CarriedLink] = []
    for link in links:
        found.append(carried_link(link, x, v, found[link.parent] if link.parent >= 0 else None))
    return found


def carried_link(link: Link, x: Matrix, v: Matrix, above: CarriedLink | None) -> CarriedLink:
    """Return a link seen from its tree's root, given its parent; None for the root itself."""
    if above is None:
        axes, V_parent = Step(ca.SX.eye(3), ca.SX.zeros(3)), Twist.zero()
    else:
        step, R = link.step(x), above.axes.R0
        axes, V_parent = Step(R @ step.rotation, above.axes.r + R @ step.r), above.V
    S = _carry(axes, Twist.of(link.subspace(x)))
    joint = Twist(S.linear @ v[link.v, :], S.angular @ v[link.v, :])
    bias = _cross(V_parent, joint)
    if not link.constant_subspace:
        bias = bias.plus(_carry(axes, link.subspace_bias(x, v)))
    inertia = Rigid.of(link.inertia).seen_from(axes)
    return CarriedLink(axes, S, V_parent, V_parent.plus(joint), bias, inertia)


def carried_columns(
    link: Link, here: CarriedLink, A_parent: Twist, x: Matrix, v: Matrix, a: Matrix
) -> tuple[Twist, Twist, Twist]:
    """Return U, Z for the joint's configuration, and Z for its velocity (U is then S)."""
    S, V_p, V = here.S, here.V_parent, here.V
    U = _cross(V_p, S)
    # With one velocity ad_V S is ad_{V_p} S, as S does not turn itself.
    S_rate = U if link.kind.nv == 1 else _cross(V, S)
    Z, Z_v = _cross(A_parent, S).plus(_cross(V_p, U)), U.plus(S_rate)
    if link.constant_subspace:
        return U, Z, Z_v
    moved_v, moved_a, bias_x, bias_v = (
        _carry(here.axes, Twist.of(part)) for part in _joint_slopes(link, x, v, a)
    )
    # The relative twist S v itself changes by moved_v, the joint's acceleration by the others.
    Z = Z.plus(_cross(V_p, moved_v)).plus(_cross(V, moved_v)).plus(moved_a).plus(bias_x)
    return U.plus(moved_v), Z, Z_v.plus(bias_v)


def _joint_slopes(
    link: Link, x: Matrix, v: Matrix, a: Matrix
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Return d_k (S v), d_k (S a), d_k (dS/dt v) and d(dS/dt v)/dv, 6 x nv each, in link axes."""
    q = ca.SX.sym("q", link.kind.nx)
    w, c = ca.SX.sym("w", link.kind.nv), ca.SX.sym("c", link.kind.nv)
    A = ca.SX(link.kind.rate(q))
    S = ca.SX(link.kind.jacobian(q))
    S_rate = ca.reshape(ca.jtimes(ca.vec(ca.densify(S)), q, A @ w), *S.shape)
    bias = S_rate @ w
    outputs = [
        ca.jacobian(S @ w, q) @ A,
        ca.jacobian(S @ c, q) @ A,
        ca.jacobian(bias, q) @ A,
        ca.jacobian(bias, w),
    ]
    function = ca.Function("slopes", [q, w, c], [ca.densify(out) for out in outputs])
    return function(x[link.x, :], v[link.v, :], a[link.v, :])


def _own(link: Link, here: CarriedLink, x: Matrix, wrench: SpatialWrench) -> Matrix:
    """Return ``(d_k S)^T F``: row of S, column k; zero for a constant subspace."""
    if link.constant_subspace:
        return ca.SX(link.kind.nv, link.kind.nv)
    q, F = ca.SX.sym("q", link.kind.nx), ca.SX.sym("F", 6)
    slope = ca.jacobian(ca.SX(link.kind.jacobian(q)).T @ F, q) @ ca.SX(link.kind.rate(q))
    R, r = here.axes.R0, here.axes.r
    local = ca.vertcat(R.T @ wrench.force, R.T @ (wrench.moment - ca.cross(r, wrench.force)))
    return ca.Function("own", [q, F], [slope])(x[link.x, :], local)


def _carriers(links: Sequence[Link], i: int) -> list[int]:
    found = []
    while links[i].parent >= 0:
        i = links[i].parent
        found.append(i)
    return found


def _carry(axes: Step, columns: Twist) -> Twist:
    """Return twists of a frame seen from where that frame has the pose `axes`: ``Ad_G``."""
    angular = axes.R0 @ columns.angular
    return Twist(products((axes.R0, columns.linear), (wed(axes.r), angular)), angular)


def _cross(V: Twist, columns: Twist) -> Twist:
    """Return ``ad_V`` of k twists."""
    v, w = wed(V.linear), wed(V.angular)
    linear = products((w, columns.linear), (v, columns.angular))
    return Twist(linear, w @ columns.angular)


def cross_wrench(columns: Twist, wrench: SpatialWrench) -> SpatialWrench:
    """Return ``-ad_S^T F`` of k twists S."""
    f, m = wed(wrench.force), wed(wrench.moment)
    moment = products((-m, columns.angular), (-f, columns.linear))
    return SpatialWrench(-f @ columns.angular, moment)


def dot(twists: Twist, wrenches: SpatialWrench) -> Matrix:
    """Return the powers (k x l) of l wrenches on k twists."""
    return ca.vertcat(*twists).T @ ca.vertcat(*wrenches)
