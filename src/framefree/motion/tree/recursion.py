"""The three recursions over the tree of links: articulated body, Newton-Euler, composite inertia.

    articulated_body   acceleration from force        [Featherstone2008, ch. 7]
    newton_euler       force from acceleration        [Featherstone2008, ch. 5]
    composite_inertia  mass matrix                    [Featherstone2008, ch. 6]

All work in link frames, on casadi SX or DM, in O(n) operations (the mass matrix: O(n depth)).
Gravity enters as an upward acceleration of the world. A *load* is what acts on a link besides its
joints and gravity, in the link's frame, gyroscopic wrenches included: external - gyroscopic.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import casadi as ca

from framefree.motion.spatial import (
    Inertia,
    Matrix,
    Rigid,
    SpatialWrench,
    Step,
    Twist,
    plus_product,
    solve_symmetric,
    symmetric,
)
from framefree.motion.tree.links import Link


class LinkMotion(NamedTuple):
    """Kinematics of all links: steps from the parent, joint subspaces, twists, bias accelerations.

    ``bias[i] = ad(twist_i) S v + (dS/dt) v`` is the part of link i's acceleration, beside that of
    its parent, which does not depend on the joint accelerations.
    """

    steps: list[Step]
    subspaces: list[Matrix]
    twists: list[Twist]
    biases: list[Twist]


T = TypeVar("T")


def over_children(links: Sequence[Link], visit: Callable[[int, T | None], T]) -> list[T]:
    """Visit links from the base outwards; `visit` gets the index and the parent's result."""
    results: list[T] = []
    for i, link in enumerate(links):
        results.append(visit(i, results[link.parent] if link.parent >= 0 else None))
    return results


def over_parents(
    links: Sequence[Link], start: Sequence[T], visit: Callable[[int, T], T | None], add: Callable
) -> list[T]:
    """Visit links from the tips inwards; what `visit` gives is added to the parent's value."""
    values = list(start)
    for i in reversed(range(len(links))):
        given = visit(i, values[i])
        parent = links[i].parent
        if parent >= 0 and given is not None:
            values[parent] = add(values[parent], given)
    return values


def motion(links: Sequence[Link], x: Matrix, v: Matrix) -> LinkMotion:
    """Return twists of all links and what the recursions need beside them."""
    steps = [link.step(x) for link in links]
    subspaces = [link.subspace(x) for link in links]
    biases: list[Twist] = []

    def visit(i: int, parent: Twist | None) -> Twist:
        twist, bias = link_motion(links[i], steps[i], subspaces[i], x, v, parent)
        biases.append(bias)
        return twist

    return LinkMotion(steps, subspaces, over_children(links, visit), biases)


def link_motion(
    link: Link, step: Step, S: Matrix, x: Matrix, v: Matrix, parent: Twist | None
) -> tuple[Twist, Twist]:
    """Return a link's twist, and its bias as in `LinkMotion`, for the twist of its parent."""
    joint = Twist.of(S @ v[link.v, :])
    carried = step.twist_into(parent) if parent is not None else Twist.zero()
    bias = carried.cross(joint)
    if not link.constant_subspace:
        bias = bias.plus(link.subspace_bias(x, v))
    return carried.plus(joint), bias


def gyroscopic(
    inertias: Sequence[Inertia] | Sequence[Rigid], twists: Sequence[Twist]
) -> list[SpatialWrench]:
    """Return ``-ad_xi^T M xi`` of every link: the rate of its momentum at constant twist."""
    return [
        twist.cross_wrench(inertia.times(twist))
        for inertia, twist in zip(inertias, twists, strict=True)
    ]


def articulated_body(
    links: Sequence[Link],
    state: LinkMotion,
    force: Matrix,
    loads: Sequence[SpatialWrench],
    inertias: Sequence[Inertia],
    gravity: Matrix,
) -> Matrix:
    """Return the joint accelerations (nv) under joint forces and loads.

    `inertias` are those of the links, added mass included.
    """
    solved: dict[int, EliminatedLink] = {}

    def inward(
        i: int, value: tuple[Inertia, SpatialWrench]
    ) -> tuple[Inertia, SpatialWrench] | None:
        link, step = links[i], state.steps[i]
        solved[i], felt = eliminated(link, state.subspaces[i], force[link.v, :], *value)
        if link.parent < 0:
            return None
        passed = felt.passed(state.biases[i])
        return step.inertia_out(Inertia.of(felt.inertia)), step.wrench_out(passed)

    over_parents(
        links,
        [
            (inertia, SpatialWrench.zero().minus(load))
            for inertia, load in zip(inertias, loads, strict=True)
        ],
        inward,
        lambda a, b: (a[0].plus(b[0]), a[1].plus(b[1])),
    )
    accelerations: list[Matrix] = []

    def outward(i: int, parent: Twist | None) -> Twist:
        above = _world(gravity) if parent is None else parent
        carried = state.steps[i].twist_into(above).plus(state.biases[i])
        acceleration, total = solved[i].outward(links[i], state.subspaces[i], carried)
        accelerations.append(acceleration)
        return total

    over_children(links, outward)
    return _stack(accelerations)


class EliminatedLink(NamedTuple):
    """What the way inwards leaves at a link for the way outwards: ``a = offset - K a_carried``."""

    K: Matrix
    offset: Matrix

    def outward(self, link: Link, S: Matrix, twist: Twist) -> tuple[Matrix, Twist]:
        """Return the joint's acceleration (nv) and the link's, for what is carried to here."""
        rows, carried = link.free_rows, ca.densify(ca.vertcat(*twist))
        if not rows:
            acceleration = plus_product(self.offset, -self.K, carried)
            return acceleration, Twist.of(carried + S @ acceleration)
        # Along a unit direction of S the link's acceleration does not depend on the parent's.
        others = _others(rows)
        along = plus_product(self.offset, -self.K[:, others], carried[others])
        total = ca.SX(carried)
        total[rows] = along
        return along - carried[rows], Twist.of(total)


class FeltByParent(NamedTuple):
    """What the parent feels of a link and all it carries, in link axes: ``inertia a + wrench``.

    `along` are rows of the wrench that are known exactly, in directions that the joint frees.
    """

    inertia: Matrix
    wrench: Matrix
    along: tuple[list[int], Matrix]

    def passed(self, bias: Twist) -> SpatialWrench:
        """Return the wrench that does not depend on the parent's acceleration."""
        passed, (rows, exact) = plus_product(self.wrench, self.inertia, bias.vector), self.along
        if rows:
            passed[rows] = exact
        return SpatialWrench.of(passed)


def eliminated(
    link: Link, S: Matrix, tau: Matrix, inertia: Inertia, resistance: SpatialWrench
) -> tuple[EliminatedLink, FeltByParent]:
    """Eliminate a link with its joint force tau [Featherstone2008, eq. 7.21 to 7.25].

    `inertia` and `resistance` are those of the link and of all that it carries.
    """
    U = inertia.matrix @ S
    D = symmetric(S.T @ U) + link.armature
    free = tau - S.T @ ca.vertcat(*resistance)
    K = _gain(link, D, U)
    projected = _blocked(link, inertia.matrix - U @ K)
    wrench = plus_product(ca.vertcat(*resistance), K.T, free)
    felt = FeltByParent(projected, wrench, (link.free_rows, tau))
    return EliminatedLink(K, solve_symmetric(D, free)), felt


def _gain(link: Link, D: Matrix, U: Matrix) -> Matrix:
    """Return ``D^-1 U^T`` (nv x 6), with the identity exact in directions that S frees."""
    if not link.free_rows:
        return solve_symmetric(D, U.T)
    others = _others(link.free_rows)
    K = ca.SX(U.shape[1], 6)
    K[:, others] = solve_symmetric(D, U[others, :].T)
    K[:, link.free_rows] = ca.DM.eye(U.shape[1])
    return K


def _blocked(link: Link, projected: Matrix) -> Matrix:
    """Set to exactly zero what the projection leaves as rounding error in the freed directions.

    Long chains of ball joints lose all digits without this.
    """
    if link.free_rows:
        others = _others(link.free_rows)
        kept = ca.SX(6, 6)
        kept[others, others] = projected[others, others]
        projected = kept
    return symmetric(projected)


def _others(rows: Sequence[int]) -> list[int]:
    return [k for k in range(6) if k not in rows]


def newton_euler(
    links: Sequence[Link],
    state: LinkMotion,
    acceleration: Matrix,
    loads: Sequence[SpatialWrench],
    inertias: Sequence[Inertia] | Sequence[Rigid],
    gravity: Matrix,
) -> tuple[Matrix, list[SpatialWrench]]:
    """Return joint forces (nv) and the wrench that each joint passes from parent to child.

    Loads as in `articulated_body`. The wrenches are in link frames.
    """

    def outward(i: int, parent: Twist | None) -> Twist:
        carried = state.steps[i].twist_into(_world(gravity) if parent is None else parent)
        joint = Twist.of(state.subspaces[i] @ acceleration[links[i].v, :])
        return carried.plus(state.biases[i]).plus(joint)

    needed = [
        inertia.times(a).minus(load)
        for inertia, a, load in zip(inertias, over_children(links, outward), loads, strict=True)
    ]
    wrenches = over_parents(
        links, needed, lambda i, wrench: state.steps[i].wrench_out(wrench), SpatialWrench.plus
    )
    forces = [
        state.subspaces[i].T @ ca.vertcat(*wrench) + links[i].armature @ acceleration[links[i].v, :]
        for i, wrench in enumerate(wrenches)
    ]
    return _stack(forces), wrenches


def composite_inertia(
    links: Sequence[Link],
    steps: Sequence[Step],
    subspaces: Sequence[Matrix],
    inertias: Sequence[Inertia] | Sequence[Rigid],
) -> Matrix:
    """Return the mass matrix (nv x nv); blocks between joints on different branches stay zero.

    `inertias` are those of the links, or others that the joints cannot tell from them.
    """
    composite = over_parents(
        links,
        inertias,
        lambda i, inertia: inertia.seen_from(steps[i]),
        lambda a, b: a.plus(b),
    )
    nv = sum(S.shape[1] for S in subspaces)
    mass = ca.SX(nv, nv)
    for i, link in enumerate(links):
        if not subspaces[i].shape[1]:
            continue
        wrench = composite[i].times(Twist.of(subspaces[i]))
        diagonal = subspaces[i].T @ ca.vertcat(*wrench) + link.armature
        mass[link.v, link.v] = symmetric(diagonal)
        j = i
        while links[j].parent >= 0:
            wrench = steps[j].wrench_out(wrench)
            j = links[j].parent
            block = subspaces[j].T @ ca.vertcat(*wrench)
            mass[links[j].v, link.v] = block
            mass[link.v, links[j].v] = block.T
    return mass


def _world(gravity: Matrix) -> Twist:
    """Acceleration of the world that stands for gravity."""
    return Twist(-gravity, ca.SX(3, 1))


def _stack(parts: Sequence[Matrix]) -> Matrix:
    return ca.densify(ca.vertcat(*parts)) if parts else ca.SX(0, 1)
