"""Inertia that a joint cannot tell from its parent's, moved to the parent.

The part of a link's inertia that its joint does not move, or moves without effect, may as well
belong to the parent [Gautier1990]:

    fixed                   all of it
    revolute, about z       points on the axis: mass m, first moment (0, 0, m z), moment
                            diag(I_yy, I_yy, 0)
    prismatic               the moment: without relative rotation it acts on the parent's rate alone

Joint forces and the mass matrix stay exactly the same functions. What the links keep has more
zeros, and what reaches the world vanishes: a fifth fewer operations in inverse dynamics. Wrenches
of joints do change, so that they are computed from the links' own inertia.
"""

from collections.abc import Sequence

import casadi as ca

from framefree.geometry import se3
from framefree.machine.joints import Continuous, Prismatic, Revolute
from framefree.motion.spatial import Rigid, Step
from framefree.motion.tree.links import Link


def lumped(links: Sequence[Link]) -> list[Rigid]:
    """Return inertias of the links which give the same joint forces with fewer operations."""
    found = [Rigid.of(link.inertia) for link in links]
    for i in reversed(range(len(links))):
        link = links[i]
        moved = _untold(link, found[i])
        if moved is None:
            continue
        found[i] = _sparse(found[i].minus(moved))
        if link.parent >= 0:
            found[link.parent] = found[link.parent].plus(_on_parent(link, moved))
    return found


def _untold(link: Link, inertia: Rigid) -> Rigid | None:
    """Return the part of a link's inertia that its joint cannot tell, in the link's frame."""
    if not link.kind.nv:
        return inertia
    if isinstance(link.kind, Revolute | Continuous):
        across = inertia.moment[1, 1]
        first = ca.vertcat(0, 0, inertia.first[2])
        return Rigid(inertia.mass, first, ca.diag(ca.vertcat(across, across, 0)))
    if isinstance(link.kind, Prismatic):
        return Rigid(ca.SX(0), ca.SX(3, 1), inertia.moment)
    return None


def _on_parent(link: Link, moved: Rigid) -> Rigid:
    """Return that part in the parent's frame, where it does not depend on the configuration."""
    if not link.kind.nv:
        step = link.step(ca.SX(link.x.stop, 1))
        return moved.seen_from(Step(step.rotation, step.r))
    return moved.seen_from(Step(se3.rotation(link.start), se3.position(link.start)))


def _sparse(inertia: Rigid) -> Rigid:
    return Rigid(*(ca.sparsify(ca.SX(part)) for part in inertia))
