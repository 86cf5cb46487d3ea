"""Which machines have a bounded mass matrix: the classes of [Ghorbel1998], for trees of joints.

M depends on how far masses lie from the axes that they turn about. It is bounded above over all
configurations unless some joint slides without limits across an axis about which something that
carries it turns: all-revolute and all-prismatic machines are in the class, and so are mixed ones
whose endless slides are parallel to all turning axes before them, a SCARA's for instance. Where
nothing turns before a slide, the slide does not change M at all.

The pose of a free or planar base does not enter M; its turning does.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.machine import Joint, Machine
from framefree.machine.joints import (
    Continuous,
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.motion.tree.links import Link, links_of
from framefree.motion.tree.slopes import moving_links

PARALLEL = 1e-9
"""Sine of the angle up to which two axes count as parallel."""


@dataclass(frozen=True)
class UnboundedSlide:
    """A coordinate that slides without limits across the axis of a joint that carries it."""

    coordinate: str
    turning: str


def unbounded_slides(machine: Machine) -> tuple[UnboundedSlide, ...]:
    """Return the coordinates along which M grows without bound; none for the bounded class.

    Loads without mass count like others. Joints known by a function only are left out.
    """
    found: list[UnboundedSlide] = []
    joints = {machine.v_slice[j.name].start: j for j in machine.joints if j.nv}
    links = moving_links(links_of(machine))
    for i, link in enumerate(links):
        for coordinate, direction in _endless(joints[link.v.start], link):
            axis, k = direction, i
            while links[k].parent >= 0:
                axis = np.array(ca.DM(links[k].start).full())[:3, :3] @ axis
                k = links[k].parent
                if _turns_across(links[k], axis):
                    found.append(UnboundedSlide(coordinate, joints[links[k].v.start].name))
                    break
                # A turn about the axis itself leaves it where it is.
    return tuple(found)


def _endless(joint: Joint, link: Link) -> list[tuple[str, np.ndarray]]:
    """Return names and directions, in axes before the move, of what slides without limits."""
    kind = link.kind
    if isinstance(kind, Prismatic):
        directions = np.array([[0.0, 0.0, 1.0]])
    elif isinstance(kind, Cylindrical) or (isinstance(kind, Helical) and kind.pitch):
        directions = np.array([kind.axis])
    elif isinstance(kind, Planar):
        directions = np.array(ca.DM(kind.jacobian(ca.DM(kind.neutral))).full())[:3, :2].T
    elif isinstance(kind, Free):
        directions = np.eye(3)
    else:
        return []
    return [
        (name, direction)
        for name, direction, low, high in zip(
            joint.x_names, directions, joint.lower, joint.upper, strict=False
        )
        if not (np.isfinite(low) and np.isfinite(high))
    ]


def _turns_across(link: Link, axis: np.ndarray) -> bool:
    """Whether a joint turns what it carries about an axis that is not parallel to this one."""
    kind = link.kind
    if isinstance(kind, Free | Spherical | Universal):
        return True
    if isinstance(kind, Revolute | Continuous):
        own = np.array([0.0, 0.0, 1.0])
    elif isinstance(kind, Cylindrical | Helical):
        own = np.asarray(kind.axis)
    elif isinstance(kind, Planar):
        own = np.asarray(kind.normal)
    else:
        return False
    return float(np.linalg.norm(np.cross(own, axis))) > PARALLEL
