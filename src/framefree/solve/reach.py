"""Bound the reach of a frame, whatever the angles of the joints."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import Joint, Machine
from framefree.machine.joints import (
    Continuous,
    Cylindrical,
    Helical,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)


class Reach(NamedTuple):
    """A ball that a frame's origin never leaves: around a joint, with center and radius in m."""

    joint: str
    center: np.ndarray
    radius: float


def reach(machine: Machine, frame: str, *, limits: bool = True) -> Reach | None:
    """Return the ball around the first moving joint that holds all positions of a frame's origin.

    Its radius is the sum of the distances from joint to joint and of what sliding joints add, so it
    is right for all angles, and infinite where a joint is free or slides without limits. None where
    no joint moves the frame.
    """
    end = machine.frame(frame)
    chain, i = [], machine.body_index[end.body]
    while i >= 0:
        chain.append(machine.joints[i])
        i = machine.parent[i]
    first, radius, G = None, 0.0, np.eye(4)
    center = np.zeros(3)
    for joint in reversed(chain):
        G = G @ np.asarray(joint.parent_pose)
        if joint.nv == 0:
            G = G @ ca.DM(joint.kind.pose(ca.DM.zeros(0, 1))).full()
        elif first is None:
            first, center, G = joint.name, G[:3, 3], np.eye(4)
            radius += travel(joint, limits=limits)
        else:
            radius += float(np.linalg.norm(G[:3, 3])) + travel(joint, limits=limits)
            G = np.eye(4)
        G = G @ np.linalg.inv(joint.child_pose)
    if first is None:
        return None
    tip = G @ np.asarray(end.pose)
    return Reach(first, center, radius + float(np.linalg.norm(tip[:3, 3])))


def travel(joint: Joint, *, limits: bool = True) -> float:
    """Return how far (m) a joint's two frames can get from each other; infinite if not known."""
    kind = joint.kind
    if isinstance(kind, Revolute | Continuous | Universal | Spherical) or joint.nv == 0:
        return 0.0
    if isinstance(kind, Helical) and kind.pitch == 0.0:
        return 0.0  # a hinge
    if not (limits and isinstance(kind, Prismatic | Cylindrical | Helical)):
        return np.inf
    furthest = float(max(abs(joint.lower[0]), abs(joint.upper[0])))
    return abs(kind.pitch) * furthest if isinstance(kind, Helical) else furthest
