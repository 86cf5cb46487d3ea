"""Tendons at one state: their lengths, rates, and what forces along them do."""

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca

from framefree.machine import Frame, Machine
from framefree.machine.tendon import Tendon, TendonReach
from framefree.motion.spatial import Matrix

if TYPE_CHECKING:
    from framefree.motion.forces import Bodies


class TendonMotion(NamedTuple):
    """A tendon at one state.

    Attributes
    ----------
    length, rate : scalars
    on_joints : column (nv of the machine) or None
        Joint forces that a unit force along the tendon amounts to, of a tendon over coordinates.
    on_frames : list of (Frame, wrench)
        Wrenches (6, frame axes) that it puts on frames.
    """

    length: Matrix
    rate: Matrix
    on_joints: Matrix | None
    on_frames: list[tuple[Frame, Matrix]]


def over_joints(machine: Machine, tendon: Tendon, x: Matrix, v: Matrix) -> TendonMotion:
    """Return the motion of a tendon over coordinates, from those of the machine's joints."""
    places = [_place(machine, name) for name in tendon.coordinates]
    reach = tendon.reach([x[k] for k, _ in places], [])
    on_joints = ca.SX(machine.nv, 1)
    for (_, k), share in zip(places, reach.on_coordinates, strict=True):
        on_joints[k] += share
    return TendonMotion(reach.length, ca.dot(on_joints, v), on_joints, [])


def over_frames(bodies: "Bodies", tendon: Tendon) -> TendonMotion:
    """Return the motion of a tendon over frames, from poses and twists of the bodies."""
    frames = [bodies.machine.frame(name) for name in tendon.frames]
    reach: TendonReach = tendon.reach([], [bodies.pose(frame) for frame in frames])
    on_frames = list(zip(frames, reach.on_frames, strict=True))
    rate = ca.SX(0)
    for frame, wrench in on_frames:
        rate += ca.dot(bodies.twist(frame), wrench)
    return TendonMotion(reach.length, rate, None, on_frames)


def motion(tendon: Tendon, bodies: "Bodies", x: Matrix, v: Matrix) -> TendonMotion:
    """Return the motion of any tendon; x and v are those of the machine's joints."""
    if tendon.coordinates:
        return over_joints(bodies.machine, tendon, x, v)
    return over_frames(bodies, tendon)


def resistance(tendon: Tendon, at: TendonMotion) -> Matrix:
    """Return the force along a tendon that stands on the left: spring, damping and friction."""
    total = tendon.lost_force(at.length, at.rate) if tendon.lossy else ca.SX(0)
    return total + tendon.spring_force(at.length) if tendon.has_spring else total


def acts(tendon: Tendon) -> bool:
    """Whether a tendon resists by itself."""
    return tendon.has_spring or tendon.lossy


def _place(machine: Machine, coordinate: str) -> tuple[int, int]:
    """Return the places of a plain coordinate in x, and of its velocity in v."""
    for joint in machine.joints:
        if coordinate in joint.x_names:
            own = joint.x_names.index(coordinate)
            return machine.x_slice[joint.name].start + own, machine.v_slice[joint.name].start + own
    raise KeyError(coordinate)
