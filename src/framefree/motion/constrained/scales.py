"""Natural sizes of the rows and columns of loops and couplings, in which ranks are judged.

All rows are made lengths: those that block angles are multiplied by r, the longest link of their
loop. A joint's column would then have about the length of the joint's own twist, (v, r omega), if
the loop blocked all of it:

    w_i A_ij / l_j,     w_i = 1 or r,     l_j^2 = sum over loops of |v_j|^2 + r^2 |omega_j|^2

has no unit, and a column that is many orders shorter than 1 is a rounding error or comes of a
singular position. In couplings an angle counts as the machine's longest link. All this is constant:
links have the lengths that tunable numbers give by default.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import Frame, Joint, Loop, Machine

_POSITIONS = {"slider": 2, "distance": 1}
"""Number of rows, the first of a loop, that are positions; 3 for all other kinds."""


class Scales(NamedTuple):
    """Factors w of the rows (m), and lengths l of the columns (nv); 1 where no row is."""

    rows: np.ndarray
    columns: np.ndarray


def scales(machine: Machine) -> Scales:
    """Return the natural sizes of the rows of a machine's loops and couplings, in this order."""
    machine = machine.numeric
    length = machine_length(machine)
    rows: list[float] = []
    squares = np.zeros(machine.nv)
    for loop in machine.loops:
        r = _longest_link(machine, loop) or length
        positions = _POSITIONS.get(loop.kind, 3)
        rows += [1.0] * positions + [r] * (loop.size - positions)
        for joint in _joints_of(machine, loop):
            squares[machine.v_slice[joint.name]] += _twist_lengths(joint, r) ** 2
    units = velocity_units(machine)
    for coupling in machine.couplings:
        places = [_velocity(machine, name) for name in coupling.coordinates]
        rows.append(length / units[places[0]][0])
        for place in places:
            squares[place] += (length / units[place]) ** 2
    return Scales(np.array(rows), np.sqrt(np.where(squares > 0, squares, 1.0)))


def velocity_units(machine: Machine) -> np.ndarray:
    """Return the natural size (nv) of every coordinate: the machine's longest link, or 1 rad."""
    length, units = machine_length(machine), np.ones(machine.nv)
    for joint in machine.joints:
        straight = ~_twists(joint)[3:].any(axis=0)
        units[machine.v_slice[joint.name]] = np.where(straight, length, 1.0)
    return units


def machine_length(machine: Machine) -> float:
    """Return the longest link or loop (m) of a machine; 1 if there is none."""
    machine = machine.numeric
    ends = [_position(frame.pose) for frame in machine.frames]
    ends += [_position(joint.parent_pose) for joint in machine.joints]
    lengths = [float(np.linalg.norm(end)) for end in ends]
    lengths += [travel for joint in machine.joints for travel in _travels(joint)]
    lengths += [float(loop.length) for loop in machine.loops if loop.kind == "distance"]
    return max(lengths, default=0.0) or 1.0


def _longest_link(machine: Machine, loop: Loop) -> float:
    """Return the longest distance (m) between neighbouring joints of a loop, or travel of one."""
    branches = [machine.frame(name) for name in (loop.frame_a, loop.frame_b)]
    common = _shared(machine, loop)
    lengths = [0.0 if loop.rest is None else float(np.linalg.norm(_position(loop.rest)))]
    if loop.kind == "distance":
        lengths.append(float(loop.length))
    roots = []
    for frame in branches:
        end = _position(frame.pose)
        for joint in reversed(_way(machine, frame)[common:]):
            lengths += [float(np.linalg.norm(end - _position(joint.child_pose))), *_travels(joint)]
            end = _position(joint.parent_pose)
        roots.append(end)
    return max(*lengths, float(np.linalg.norm(roots[0] - roots[1])))


def _joints_of(machine: Machine, loop: Loop) -> list[Joint]:
    """Return the joints of a loop, without those that carry all of it."""
    common = _shared(machine, loop)
    frames = (machine.frame(name) for name in (loop.frame_a, loop.frame_b))
    return [joint for frame in frames for joint in _way(machine, frame)[common:]]


def _shared(machine: Machine, loop: Loop) -> int:
    """Return how many joints both frames of a loop have in common on their way to the world."""
    a, b = (_way(machine, machine.frame(name)) for name in (loop.frame_a, loop.frame_b))
    return sum(1 for p, q in zip(a, b, strict=False) if p is q)


def _way(machine: Machine, frame: Frame) -> list[Joint]:
    """Return the joints from the world to a frame."""
    way: list[Joint] = []
    index = machine.body_index[frame.body]
    while index >= 0:
        way.append(machine.joints[index])
        index = machine.body_index[machine.joints[index].parent]
    return way[::-1]


def _velocity(machine: Machine, coordinate: str) -> slice:
    """Return where the velocities of a coordinate's joint are, or the one of the same name."""
    if coordinate in machine.v_names:
        place = machine.v_names.index(coordinate)
        return slice(place, place + 1)
    (owner,) = (joint for joint in machine.joints if coordinate in joint.x_names)
    return machine.v_slice[owner.name]


def _twists(joint: Joint) -> np.ndarray:
    """Return the twists (6, nv) of a joint's unit velocities where it is neutral."""
    return np.array(ca.DM(joint.kind.jacobian(joint.kind.neutral)))


def _twist_lengths(joint: Joint, r: float) -> np.ndarray:
    twists = _twists(joint)
    return np.sqrt((twists[:3] ** 2).sum(axis=0) + r**2 * (twists[3:] ** 2).sum(axis=0))


def _travels(joint: Joint) -> list[float]:
    """Return how far from zero (m) the limits of a joint's plain lengths are."""
    if not joint.kind.vector:
        return []
    straight = ~_twists(joint)[3:].any(axis=0)
    limits = np.abs([joint.lower, joint.upper])[:, straight]
    return [float(limit) for limit in limits.ravel() if np.isfinite(limit)]


def _position(pose: Any) -> np.ndarray:
    return np.asarray(pose, float)[:3, 3]
