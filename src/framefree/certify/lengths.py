"""Bounds of the mass matrix by lengths and inertias alone: proved, but not sharp.

For body b, m_b its mass, I_b its moment of inertia about its mass center, v_b and w_b the velocity
of that center and its angular velocity,

    v^T M v = sum_b m_b |v_b|^2 + w_b^T I_b w_b + (rotors).

*From above.* Joint j gives |w_b| at most a_j |v_j|, and |v_b| at most (l_j + a_j R_jb) |v_j|: l and
a are what its velocity is worth in translation and rotation, R_jb is how far from joint j, or from
its axis, the mass center can be, along the links between. What slides along the axis does not count
as long as nothing between turns about another. Hence v^T M v <= |v|^T N |v| with a constant N >= 0
entry by entry, and d2 is the largest eigenvalue of N.

*From below.* Each joint velocity is a difference of two bodies' velocities. A turning joint has
|v_j| <= (|w_b| + |w_p|) / a_j. A sliding joint with direction s, d the way from the mass center of
p to the joint and c that from the joint to the mass center of b, both at zero displacement, has

    v_j = s . (v_b - v_p) - w_p . (d x s) - w_b . (c x s)

whatever its displacement, because w x (q s) is across s. So |v| <= B y for the vector y of all
|v_b|, |w_b|, and with E = diag(m_b, smallest eigenvalue of I_b)

    v^T v <= y^T B^T B y <= lam y^T E y <= lam v^T M v

with lam the largest eigenvalue of E^-1/2 B^T B E^-1/2, so that d1 = 1 / lam.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.certify.moves import added_inertias
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

PARALLEL = 1e-12
"""Sine of the angle up to which two axes of a description count as parallel."""

VANISHES = "a body that moves has no mass, or an inertia that vanishes about some axis"


@dataclass(frozen=True)
class LengthBounds:
    """Bounds ``low I <= M <= high I``; None where there is none, and why."""

    low: float | None
    high: float | None
    reason_low: str = ""
    reason_high: str = ""


@dataclass(frozen=True)
class _Group:
    """Velocities of a joint that count by their norm: what a unit of them is worth.

    `linear` is speed of the link's origin, `angular` its angular speed; `measured` is the least
    angular (or linear) speed that a unit of the velocities makes.
    """

    v: slice
    linear: float
    angular: float
    measured: float = 1.0


@dataclass(frozen=True)
class _LinkNumbers:
    """A link in numbers.

    Attributes
    ----------
    joint : str
        Its name.
    mass, center, moments
        Mass, mass center in link axes, eigenvalues of the moment of inertia about it.
    vanishing : bool
        Whether the smallest of these counts as zero.
    start : (4, 4)
        Pose of the joint seen from the parent link.
    travel : float
        How far the joint can slide, m.
    slide : (3,) or None
        Direction in which it slides, in link axes; None for none or several.
    axis : (3,) or None
        Axis about which it turns, in link axes; None for none or several.
    turns : bool
        Whether the joint turns the link.
    rotating : bool
        Whether the link turns at all, by its own joint or one that carries it.
    """

    link: Link
    joint: str
    mass: float
    center: np.ndarray
    moments: np.ndarray
    vanishing: bool
    start: np.ndarray
    travel: float
    slide: np.ndarray | None
    axis: np.ndarray | None
    turns: bool
    rotating: bool
    groups: tuple[_Group, ...]


class _Unproved(Exception):
    """There is no bound; the message says why."""


def bounds_by_lengths(machine: Machine, units: np.ndarray) -> LengthBounds:
    """Return both bounds for velocities in units (nv,) of their own."""
    unknown = [j.name for j in machine.joints if j.nv and _groups(j.kind) is None]
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        reason = f"the motion of {names} is known by a function only"
        return LengthBounds(None, None, reason, reason)
    parts = _numbers(machine)
    armature = np.concatenate([np.zeros(0), *(j.armature for j in machine.joints)]) * units**2
    low = high = None
    why_low = why_high = ""
    try:
        high = _from_above(machine, parts, units, armature)
    except _Unproved as error:
        why_high = str(error)
    try:
        low = _from_below(parts, units, armature)
    except _Unproved as error:
        why_low = str(error)
    return LengthBounds(low, high, why_low, why_high)


def _numbers(machine: Machine) -> list[_LinkNumbers]:
    joints = {machine.v_slice[j.name].start: j for j in machine.joints if j.nv}
    parts: list[_LinkNumbers] = []
    for link in moving_links(links_of(machine)):
        M = np.array(ca.DM(link.inertia.matrix).full())
        mass = M[0, 0]
        first = np.array([M[1, 5], M[2, 3], M[0, 4]])
        center = first / mass if mass > 0 else np.zeros(3)
        about = M[3:, 3:] - mass * (center @ center * np.eye(3) - np.outer(center, center))
        moments = np.linalg.eigvalsh(about)
        groups = _groups(link.kind) or ()
        turns = any(group.angular for group in groups)
        carried = link.parent >= 0 and parts[link.parent].rotating
        parts.append(
            _LinkNumbers(
                link,
                joints[link.v.start].name,
                mass,
                center,
                moments,
                bool(moments[0] <= 1e-13 * np.abs(M[3:, 3:]).max()),
                np.array(ca.DM(link.start).full()),
                _travel(joints[link.v.start]),
                _axis(link, Prismatic | Cylindrical | Helical),
                _axis(link, Revolute | Continuous | Cylindrical | Helical | Planar),
                turns,
                turns or carried,
                groups,
            )
        )
    return parts


def _axis(link: Link, kinds: object) -> np.ndarray | None:
    """Return the axis of a joint in link axes, if it is one of these kinds."""
    if not isinstance(link.kind, kinds):  # type: ignore[arg-type]
        return None
    if link.turned_to_z:
        return np.array([0.0, 0.0, 1.0])
    return np.asarray(link.kind.normal if isinstance(link.kind, Planar) else link.kind.axis)  # type: ignore[attr-defined]


def _groups(kind: object) -> tuple[_Group, ...] | None:
    """Return the groups of velocities of a joint kind; None for one defined by functions."""
    if isinstance(kind, Revolute | Continuous):
        return (_Group(slice(0, 1), 0.0, 1.0),)
    if isinstance(kind, Prismatic):
        return (_Group(slice(0, 1), 1.0, 0.0),)
    if isinstance(kind, Helical):
        return (_Group(slice(0, 1), abs(kind.pitch), 1.0),)
    if isinstance(kind, Cylindrical):
        return (_Group(slice(0, 1), 1.0, 0.0), _Group(slice(1, 2), 0.0, 1.0))
    if isinstance(kind, Spherical):
        return (_Group(slice(0, 3), 0.0, 1.0),)
    if isinstance(kind, Planar):
        return (_Group(slice(0, 2), 1.0, 0.0), _Group(slice(2, 3), 0.0, 1.0))
    if isinstance(kind, Free):
        return (_Group(slice(0, 3), 1.0, 0.0), _Group(slice(3, 6), 0.0, 1.0))
    if isinstance(kind, Universal):
        # Two axes at a constant angle: |S v|^2 lies between (1 -+ cos) |v|^2.
        cosine = abs(float(np.dot(kind.axis1, kind.axis2)))
        return (_Group(slice(0, 2), 0.0, np.sqrt(1 + cosine), np.sqrt(1 - cosine)),)
    return None


def _travel(joint: Joint) -> float:
    """Return how far a joint can take its child's origin from where it starts, m."""
    kind = joint.kind
    reach = np.maximum(np.abs(joint.lower), np.abs(joint.upper))
    if isinstance(kind, Prismatic | Cylindrical):
        return float(reach[0])
    if isinstance(kind, Helical):
        return float(reach[0] * abs(kind.pitch)) if kind.pitch else 0.0
    if isinstance(kind, Planar | Free):
        return float(np.linalg.norm(reach[: 2 if isinstance(kind, Planar) else 3]))
    return 0.0


def _path(parts: Sequence[_LinkNumbers], i: int) -> list[int]:
    """Return link i and all that carry it, from i inwards."""
    path = [i]
    while parts[path[-1]].link.parent >= 0:
        path.append(parts[path[-1]].link.parent)
    return path


def _across(point: np.ndarray, axis: np.ndarray | None) -> float:
    """Return the distance of a point from an axis through the origin; from the origin for None."""
    return float(np.linalg.norm(point if axis is None else np.cross(axis, point)))


def _reach(parts: Sequence[_LinkNumbers], chain: list[int]) -> tuple[float, float]:
    """Return how far the origin and the mass center of the last link of a chain can be.

    The distance is taken from the axis about which the first link's joint turns, or from its
    origin if it can turn about several.
    """
    axis, far = parts[chain[0]].axis, 0.0
    for k in chain[1:]:
        part = parts[k]
        R, r = part.start[:3, :3], part.start[:3, 3]
        far += _across(r, axis)
        axis = None if axis is None else R.T @ axis
        aside = 1.0
        if axis is not None and part.slide is not None:
            aside = _across(part.slide, axis)
        if part.travel and aside > PARALLEL:
            far += aside * part.travel
        if part.turns and (
            axis is None or part.axis is None or _across(part.axis, axis) > PARALLEL
        ):
            axis = None
    return far, far + _across(parts[chain[-1]].center, axis)


def _from_above(
    machine: Machine, parts: list[_LinkNumbers], units: np.ndarray, armature: np.ndarray
) -> float:
    index, count = _numbered(parts)
    N = np.zeros((count, count))
    added = _added(machine, parts)
    for b, part in enumerate(parts):
        speed, turning, origin = np.zeros(count), np.zeros(count), np.zeros(count)
        path = _path(parts, b)
        for place, j in enumerate(path):
            chain = path[place::-1]
            reach, arm = _reach(parts, chain)
            for k, group in zip(index[j], parts[j].groups, strict=True):
                unit = units[parts[j].link.v][group.v].max()
                if group.angular and not np.isfinite(arm):
                    far = [parts[i].joint for i in chain[1:] if not np.isfinite(parts[i].travel)]
                    raise _Unproved(_too_far(far, parts[j].joint))
                speed[k] = unit * (group.linear + (group.angular * arm if group.angular else 0))
                origin[k] = unit * (group.linear + (group.angular * reach if group.angular else 0))
                turning[k] = unit * group.angular
        N += part.mass * np.outer(speed, speed) + part.moments[-1] * np.outer(turning, turning)
        A, B, C = added[b]
        mixed = np.outer(origin, turning)
        N += A * np.outer(origin, origin) + B * (mixed + mixed.T) + C * np.outer(turning, turning)
    return float(np.linalg.norm(N, 2) + armature.max(initial=0)) if count else 0.0


def _too_far(sliding: Sequence[str], turning: str) -> str:
    names = ", ".join(f"`{name}`" for name in sliding)
    return f"{names} slides without limits and can carry its load any distance from `{turning}`"


def _from_below(parts: list[_LinkNumbers], units: np.ndarray, armature: np.ndarray) -> float:
    index, count = _numbered(parts)
    if not count:
        raise _Unproved("nothing moves")
    n = len(parts)
    energy = np.concatenate([[p.mass for p in parts], [p.moments[0] for p in parts]])
    energy[[i for i, p in enumerate(parts) if p.mass <= 0]] = 0.0
    energy[[n + i for i, p in enumerate(parts) if p.vanishing]] = 0.0
    B = np.zeros((count, 2 * n))
    for b, part in enumerate(parts):
        for k, group in zip(index[b], part.groups, strict=True):
            row = _speeds(parts, b, group)
            B[k] = row / (group.measured * units[part.link.v][group.v].min())
    used = B.any(axis=0)
    least = float(armature.min(initial=np.inf)) if len(armature) else 0.0
    infinite = np.isinf(B).max(axis=1)
    if infinite.any() or (energy[used] <= 0).any():
        if least > 0:
            return least
        if infinite.any():
            loose = next(b for b, own in enumerate(index) if infinite[own].any())
            raise _Unproved(_too_far([parts[loose].joint], parts[parts[loose].link.parent].joint))
        raise _Unproved(VANISHES)
    scaled = B[:, used] / np.sqrt(energy[used])
    return float(1 / np.linalg.norm(scaled, 2) ** 2 + least)


def _speeds(parts: list[_LinkNumbers], b: int, group: _Group) -> np.ndarray:
    """Return the row of B: a joint's speed is at most this many |v| and |w| of the bodies."""
    part, n = parts[b], len(parts)
    p = part.link.parent
    row = np.zeros(2 * n)
    if group.angular:
        row[n + b] = 1
        if p >= 0 and parts[p].rotating:
            row[n + p] = 1
        return row
    row[b] = 1
    if part.rotating:
        row[n + b] = _across(part.center, part.slide)
    if p >= 0:
        row[p] = 1
        if parts[p].rotating:
            R, r = part.start[:3, :3], part.start[:3, 3]
            way = R.T @ (r - parts[p].center)
            row[n + p] = _across(way, part.slide)
            if part.slide is None:
                row[n + p] += part.travel
    return row


def _numbered(parts: list[_LinkNumbers]) -> tuple[list[list[int]], int]:
    """Return the numbers of every link's groups, and how many there are."""
    index, count = [], 0
    for part in parts:
        index.append(list(range(count, count + len(part.groups))))
        count += len(part.groups)
    return index, count


def _added(machine: Machine, parts: list[_LinkNumbers]) -> list[tuple[float, float, float]]:
    """Return the norms of the blocks of added mass on every moving link, seen from its origin."""
    total = added_inertias(machine, [part.link for part in parts])
    return [(_norm(M[:3, :3]), _norm(M[:3, 3:]), _norm(M[3:, 3:])) for M in total]


def _norm(block: np.ndarray) -> float:
    return float(np.linalg.norm(block, 2))
