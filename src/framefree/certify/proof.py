"""Bounds of the mass matrix that hold at every configuration, by lengths and inertias alone.

For body b, m_b its mass, I_b its moment of inertia about its mass center, v_b and w_b the velocity
of that center and its angular velocity,

    v^T M v = sum_b m_b |v_b|^2 + w_b^T I_b w_b + (rotors).

*From above.* Joint j gives |w_b| at most a_j |v_j|, and |v_b| at most (l_j + a_j R_jb) |v_j|: l and
a are what its velocity is worth in translation and rotation, R_jb is how far from joint j the mass
center can be, along the links between. Hence v^T M v <= |v|^T N |v| with a constant N >= 0 entry
by entry, and d2 is the largest eigenvalue of N.

*From below.* Each joint velocity is a difference of two bodies' velocities,
|v_j| <= (|w_b| + |w_p|) / a_j, and for sliding joints likewise with |v_b|. So |v| <= B y for the
vector y of all |v_b|, |w_b|, and with E = diag(m_b, smallest eigenvalue of I_b)

    v^T v <= y^T B^T B y <= lam y^T E y <= lam v^T M v

with lam the largest eigenvalue of E^-1/2 B^T B E^-1/2, so that d1 = 1 / lam. Neither is sharp; both
are proved. Velocities (nv) may be measured in units of their own, `scale`: then M stands for
scale M scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.geometry import se3
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
from framefree.motion import forces
from framefree.motion.tree.links import Link, links_of
from framefree.motion.tree.slopes import moving_links


@dataclass(frozen=True)
class Proved:
    """Bounds ``low I <= M <= high I`` that hold everywhere; None where there is no proof, and why.

    Attributes
    ----------
    low, high : float or None
    reason_low, reason_high : str
        Why there is none.
    """

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
class _Part:
    """A link in numbers: mass center, eigenvalues of the moment about it, travel of its joint."""

    link: Link
    mass: float
    center: np.ndarray
    moments: np.ndarray
    start: np.ndarray
    travel: float
    groups: tuple[_Group, ...]


ROUNDING = 1e-12
"""Share by which the bounds are widened, for the rounding in their own computation."""

_FAR = "a sliding joint without limits can take its load as far as it likes"


def proved_bounds(machine: Machine, scale: np.ndarray | None = None) -> Proved:
    """Return what can be proved about the eigenvalues of M at all configurations in the limits."""
    unknown = [j.name for j in machine.joints if j.nv and _groups(j.kind) is None]
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        return Proved(None, None, *(f"the motion of {names} is known by a function only",) * 2)
    units = np.ones(machine.nv) if scale is None else np.asarray(scale, float)
    parts = _parts(machine)
    armature = np.concatenate([np.zeros(0), *(j.armature for j in machine.joints)]) * units**2
    high, why_high = _from_above(machine, parts, units, armature)
    low, why_low = _from_below(parts, units, armature)
    return Proved(
        None if low is None else low * (1 - ROUNDING),
        None if high is None else high * (1 + ROUNDING),
        why_low,
        why_high,
    )


def linear_velocities(machine: Machine) -> np.ndarray:
    """Return which velocities (nv,) are translations, m/s."""
    linear = np.zeros(machine.nv, bool)
    for joint in machine.joints:
        for group in _groups(joint.kind) or ():
            start = machine.v_slice[joint.name].start
            place = slice(start + group.v.start, start + group.v.stop)
            linear[place] = not group.angular
    return linear


def _parts(machine: Machine) -> list[_Part]:
    travels = {j.name: _travel(j) for j in machine.joints}
    names = {machine.v_slice[j.name].start: j.name for j in machine.joints if j.nv}
    found = []
    for link in moving_links(links_of(machine)):
        M = np.array(ca.DM(link.inertia.matrix).full())
        mass = M[0, 0]
        first = np.array([M[1, 5], M[2, 3], M[0, 4]])
        center = first / mass if mass > 0 else np.zeros(3)
        about = M[3:, 3:] - mass * (center @ center * np.eye(3) - np.outer(center, center))
        found.append(
            _Part(
                link,
                mass,
                center,
                np.linalg.eigvalsh(about),
                np.array(ca.DM(se3.position(link.start)).full()).ravel(),
                travels[names[link.v.start]],
                _groups(link.kind) or (),
            )
        )
    return found


def _groups(kind: object) -> tuple[_Group, ...] | None:
    """Return the groups of velocities of a joint kind; None for one given by functions."""
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


def _path(parts: Sequence[_Part], i: int) -> list[int]:
    """Return link i and all that carry it, from i inwards."""
    path = [i]
    while parts[path[-1]].link.parent >= 0:
        path.append(parts[path[-1]].link.parent)
    return path


def _across(part: _Part, point: np.ndarray) -> float:
    """Distance of a point of a link from its joint's axis, or from its origin."""
    if isinstance(part.link.kind, Revolute | Continuous):
        return float(np.hypot(point[0], point[1]))
    return float(np.linalg.norm(point))


def _from_above(
    machine: Machine, parts: list[_Part], units: np.ndarray, armature: np.ndarray
) -> tuple[float | None, str]:
    index, count = _numbered(parts)
    N = np.zeros((count, count))
    added = _added(machine, parts)
    for b, part in enumerate(parts):
        speed, turning, origin = np.zeros(count), np.zeros(count), np.zeros(count)
        path = _path(parts, b)
        for place, j in enumerate(path):
            beyond = [parts[k] for k in path[: max(place - 1, 0)]]
            reach = sum(np.linalg.norm(p.start) + p.travel for p in beyond)
            if place:
                inner = parts[path[place - 1]]
                reach += _across(parts[j], inner.start) + inner.travel
            arm = reach + np.linalg.norm(part.center) if place else _across(part, part.center)
            for k, group in zip(index[j], parts[j].groups, strict=True):
                unit = units[parts[j].link.v][group.v].max()
                speed[k] = unit * (group.linear + (group.angular * arm if group.angular else 0))
                origin[k] = unit * (group.linear + (group.angular * reach if group.angular else 0))
                turning[k] = unit * group.angular
        if not np.isfinite(speed).all():
            return None, _FAR
        N += part.mass * np.outer(speed, speed) + part.moments[-1] * np.outer(turning, turning)
        A, B, C = added[b]
        mixed = np.outer(origin, turning)
        N += A * np.outer(origin, origin) + B * (mixed + mixed.T) + C * np.outer(turning, turning)
    return float(np.linalg.norm(N, 2) + armature.max(initial=0)) if count else 0.0, ""


def _from_below(
    parts: list[_Part], units: np.ndarray, armature: np.ndarray
) -> tuple[float | None, str]:
    index, count = _numbered(parts)
    n = len(parts)
    energy = np.concatenate([[p.mass for p in parts], [p.moments[0] for p in parts]])
    B = np.zeros((count, 2 * n))
    for b, part in enumerate(parts):
        p = part.link.parent
        for k, group in zip(index[b], part.groups, strict=True):
            row = np.zeros(2 * n)
            if group.angular:
                row[n + b] = 1
                if p >= 0:
                    row[n + p] = 1
            else:
                row[b], row[n + b] = 1, np.linalg.norm(part.center)
                if p >= 0:
                    gap = np.linalg.norm(part.start - parts[p].center) + part.travel
                    row[p], row[n + p] = 1, gap
            B[k] = row / (group.measured * units[part.link.v][group.v].min())
    if not count:
        return None, "nothing moves"
    used = B.any(axis=0)
    least = armature.min(initial=np.inf) if len(armature) else 0.0
    if not np.isfinite(B).all() or (energy[used] <= 1e-14 * energy.max(initial=0)).any():
        reason = "a body that moves has no mass, or an inertia that vanishes about some axis"
        if not np.isfinite(B).all():
            reason = _FAR
        return (float(least), "") if least > 0 else (None, reason)
    scaled = B[:, used] / np.sqrt(energy[used])
    return float(1 / np.linalg.norm(scaled, 2) ** 2 + least), ""


def _numbered(parts: list[_Part]) -> tuple[list[list[int]], int]:
    """Return the numbers of every link's groups, and how many there are."""
    index, count = [], 0
    for part in parts:
        index.append(list(range(count, count + len(part.groups))))
        count += len(part.groups)
    return index, count


def _added(machine: Machine, parts: list[_Part]) -> list[tuple[float, float, float]]:
    """Return the norms of the blocks of added mass on every moving link, seen from its origin."""
    total = [np.zeros((6, 6)) for _ in parts]
    place: list[int] = []
    onto: list[np.ndarray] = []  # of every body: twist of its frame from that of its moving link
    moving = {part.link.v.start: k for k, part in enumerate(parts)}
    for link, matrix in zip(links_of(machine), forces.added_masses(machine), strict=True):
        to_body = np.array(ca.DM(link.to_body).full())
        if link.kind.nv:
            place.append(moving[link.v.start])
            onto.append(np.eye(4))
        else:
            step = np.array(ca.DM(link.start).full())
            held, pose = (
                (-1, np.eye(4)) if link.parent < 0 else (place[link.parent], onto[link.parent])
            )
            place.append(held)
            onto.append(pose @ step)
        if matrix is not None and place[-1] >= 0:
            X = np.array(ca.DM(se3.adjoint(np.linalg.inv(onto[-1] @ to_body))).full())
            total[place[-1]] += X.T @ np.array(ca.DM(matrix).full()) @ X
    return [(_norm(M[:3, :3]), _norm(M[:3, 3:]), _norm(M[3:, 3:])) for M in total]


def _norm(block: np.ndarray) -> float:
    return float(np.linalg.norm(block, 2))
