"""A machine as a tree of single moves, each with what it can do and what it carries.

A move turns or slides its frame, whose z axis it turns about or slides along, or turns it about
its origin as a ball does. With y the twist of the frame before it, seen in it, and S v its own,

    y_after = X(q) y + S v,     X(q) of a turn, a slide, a ball, or fixed

Joints of several velocities are several moves, or one at the root of the tree, where y = 0 and no
X is needed. What a joint cannot do need not be left out: a helical joint's angle and displacement
count as independent, so that a bound over all moves is one over all configurations.

Twists are in units of the machine: y = (v / L, w) with L its length, so that all of M is in kg m^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

ROOT, TURN, SLIDE, BALL = "root", "turn", "slide", "ball"
SAME = 1e-12
"""Directions that differ by less than this are the same."""


@dataclass(frozen=True)
class SingleMove:
    """One move.

    Attributes
    ----------
    kind : "root", "turn", "slide" or "ball"
        A root has no y.
    parent : int
        The move that carries it; -1 for none.
    A : (6, 6)
        Twist of the parent's frame as seen in this frame before the move.
    S : (6, n)
        Its own motions, in its frame after the move.
    armature : (n,)
        Rotors on its velocities, kg m^2 in units of these.
    inertia : (6, 6)
        Of what is fixed to its frame, added mass included.
    lower, upper : float
        Range: rad, or lengths of the machine.
    """

    kind: str
    parent: int
    A: np.ndarray
    S: np.ndarray
    armature: np.ndarray
    inertia: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def ranged(self) -> bool:
        """Whether it is limited on both sides; a turn, to less than all the way round."""
        if self.kind == TURN:
            return bool(self.upper - self.lower < 2 * np.pi)
        return bool(np.isfinite(self.lower) and np.isfinite(self.upper))


@dataclass(frozen=True)
class _Step:
    """A move of a joint kind: its axis in link axes, columns of S there, and its range."""

    kind: str
    axis: np.ndarray
    S: np.ndarray
    columns: slice
    lower: float = -np.inf
    upper: float = np.inf


def moves_of(machine: Machine, units: np.ndarray, length: float) -> list[SingleMove] | None:
    """Return the moves of a machine without loops; None where a joint is not made of such.

    Parameters
    ----------
    machine : Machine
    units : (nv,)
        In which velocities count: M stands for units M units.
    length : float
        L, m.
    """
    joints = {machine.v_slice[j.name].start: j for j in machine.joints if j.nv}
    scale = np.repeat([1 / length, 1.0], 3)  # from twists to units of the machine
    moves: list[SingleMove] = []
    ends: list[tuple[int, np.ndarray]] = []  # of every link: its last move, link axes to its frame
    for link, inertia in _inertias(machine):
        steps = _steps(link, joints[link.v.start])
        if steps is None or (link.parent >= 0 and steps[0].kind == ROOT):
            return None
        parent, turned = ends[link.parent] if link.parent >= 0 else (-1, np.eye(3))
        start = np.array(ca.DM(link.start).full())
        own, armature = units[link.v], np.array(ca.DM(link.armature).full()).diagonal()
        for k, step in enumerate(steps):
            F = _z_along(step.axis)
            seen = np.array(se3.adjoint(np.linalg.inv(start))) if k == 0 else np.eye(6)
            A = _both(F) @ seen @ _both(turned.T)
            columns, last = own[step.columns], k == len(steps) - 1
            moves.append(
                SingleMove(
                    ROOT if parent < 0 else step.kind,
                    parent,
                    scale[:, None] * A / scale,
                    scale[:, None] * (_both(F) @ step.S) * columns,
                    armature[step.columns] * columns**2,
                    _both(F) @ inertia @ _both(F.T) / np.outer(scale, scale)
                    if last else np.zeros((6, 6)),
                    step.lower / (length if step.kind == SLIDE else 1.0),
                    step.upper / (length if step.kind == SLIDE else 1.0),
                )
            )  # fmt: skip
            parent, turned = len(moves) - 1, F
        ends.append((parent, turned))
    return moves


def carried(moves: Sequence[SingleMove]) -> list[np.ndarray]:
    """Return the inertia (6, 6) of all that each move carries, where nothing has moved."""
    total = [move.inertia for move in moves]
    for i in range(len(moves) - 1, -1, -1):
        if moves[i].parent >= 0:
            total[moves[i].parent] = total[moves[i].parent] + moves[i].A.T @ total[i] @ moves[i].A
    return total


def reached_twists(moves: Sequence[SingleMove]) -> list[np.ndarray]:
    """Return a basis (6, k) of the twists that each move may see, turned by it in any way.

    All that the moves before can give, in its frame; it is the identity where these are all. Where
    some are not moved by sliding along z, they come first. Roots see none.
    """
    seen: list[np.ndarray] = []
    after: list[np.ndarray] = []
    for move in moves:
        before = np.zeros((6, 0)) if move.kind == ROOT else move.A @ after[move.parent]
        U, size = _span(before), -1
        while U.shape[1] != size:
            size = U.shape[1]
            U = _span(np.hstack([U, *(g @ U for g in _generators(move))]))
        seen.append(U)
        after.append(_span(np.hstack([U, move.S])))
    return seen


def sliding() -> np.ndarray:
    """Return the slope (6, 6) of X by a displacement along z: v after = v before + w x (q z)."""
    E = np.zeros((6, 6))
    E[0, 4], E[1, 3] = 1.0, -1.0
    return E


def _generators(move: SingleMove) -> list[np.ndarray]:
    """Return slopes of X at rest: what it does to twists without end stays in their span."""
    x, y, z = _turning()
    turns = {TURN: [z], BALL: [x, y, z]}.get(move.kind, [])
    return [_both(turn) for turn in turns] + ([sliding()] if move.kind == SLIDE else [])


def _turning() -> list[np.ndarray]:
    """Return the slopes (3, 3) of turns about x, y and z."""
    return [np.cross(np.eye(3), axis) for axis in np.eye(3)]


def _span(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span; those that sliding along z does not move first."""
    sizes = np.linalg.norm(columns, axis=0)
    if not np.any(sizes):
        return np.zeros((6, 0))
    kept = sizes > SAME * sizes.max()  # smaller ones are rounding, and have no direction
    unit = columns[:, kept] / sizes[kept]
    U, values, _ = np.linalg.svd(unit)
    rank = int((values > SAME * values[0]).sum())
    if rank == 6:
        return np.eye(6)
    _, _, V = np.linalg.svd(sliding() @ U[:, :rank])
    return U[:, :rank] @ V.T[:, ::-1]


def _steps(link: Link, joint: Joint) -> list[_Step] | None:
    kind, z = link.kind, np.array([0.0, 0.0, 1.0])
    low, high = joint.lower, joint.upper
    whole = slice(0, kind.nv)
    if isinstance(kind, Continuous):
        return [_Step(TURN, z, _twist(0, z), whole)]
    if isinstance(kind, Revolute):
        return [_Step(TURN, z, _twist(0, z), whole, low[0], high[0])]
    if isinstance(kind, Prismatic):
        return [_Step(SLIDE, z, _twist(z, 0), whole, low[0], high[0])]
    if isinstance(kind, Cylindrical):
        axis = np.asarray(kind.axis)
        return [
            _Step(SLIDE, axis, _twist(axis, 0), slice(0, 1), low[0], high[0]),
            _Step(TURN, axis, _twist(0, axis), slice(1, 2), low[1], high[1]),
        ]
    if isinstance(kind, Helical):
        axis, pitch = np.asarray(kind.axis), float(kind.pitch)
        ends = sorted((low[0] * pitch, high[0] * pitch)) if pitch else (0.0, 0.0)
        return [
            _Step(SLIDE, axis, _twist(pitch * axis, axis), whole, *ends),
            _Step(TURN, axis, np.zeros((6, 0)), slice(0, 0), low[0], high[0]),
        ]
    if isinstance(kind, Universal):
        first, second = np.asarray(kind.axis1), np.asarray(kind.axis2)
        return [
            _Step(TURN, first, _twist(0, first), slice(0, 1), low[0], high[0]),
            _Step(TURN, second, _twist(0, second), slice(1, 2), low[1], high[1]),
        ]
    if isinstance(kind, Spherical):
        return [_Step(BALL, z, np.eye(6)[:, 3:], whole)]
    if isinstance(kind, Free | Planar):
        S = np.array(ca.DM(link.subspace(ca.DM(np.zeros(link.x.stop)))).full())
        return [_Step(ROOT, z, S, whole)]
    return None


def _twist(linear: object, angular: object) -> np.ndarray:
    return np.concatenate([np.zeros(3) + linear, np.zeros(3) + angular])[:, None]  # type: ignore[operator]


def _z_along(axis: np.ndarray) -> np.ndarray:
    """Return a rotation that takes an axis to z."""
    if axis[2] == 1.0:
        return np.eye(3)
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(helper, axis)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(axis, x), axis])


def _both(R: np.ndarray) -> np.ndarray:
    zero = np.zeros((3, 3))
    return np.block([[R, zero], [zero, R]])


def _inertias(machine: Machine) -> list[tuple[Link, np.ndarray]]:
    """Return the moving links, each with the 6x6 inertia of what is fixed to it, in its axes."""
    links = moving_links(links_of(machine))
    added = added_inertias(machine, links)
    bodies = [np.array(ca.DM(link.inertia.matrix).full()) for link in links]
    return [(link, M + extra) for link, M, extra in zip(links, bodies, added, strict=True)]


def added_inertias(machine: Machine, links: Sequence[Link]) -> list[np.ndarray]:
    """Return the added mass (6, 6) of a fluid on every moving link, seen from its origin."""
    total = [np.zeros((6, 6)) for _ in links]
    place: list[int] = []
    onto: list[np.ndarray] = []  # of every body: pose on its moving link
    moving = {link.v.start: k for k, link in enumerate(links)}
    for link, matrix in zip(links_of(machine), forces.added_masses(machine), strict=True):
        to_body = np.array(ca.DM(link.to_body).full())
        if link.kind.nv:
            place.append(moving[link.v.start])
            onto.append(np.eye(4))
        else:
            still = link.step(ca.SX(link.x.stop, 1))
            step = np.array(ca.DM(se3.pose(still.rotation, still.r)).full())
            held, pose = (
                (-1, np.eye(4)) if link.parent < 0 else (place[link.parent], onto[link.parent])
            )
            place.append(held)
            onto.append(pose @ step)
        if matrix is not None and place[-1] >= 0:
            X = np.array(ca.DM(se3.adjoint(np.linalg.inv(onto[-1] @ to_body))).full())
            total[place[-1]] += X.T @ np.array(ca.DM(matrix).full()) @ X
    return total


def whole_turns(moves: Sequence[SingleMove]) -> list[SingleMove]:
    """Return the moves with every turn allowed to go all the way round."""
    return [
        replace(m, lower=-np.inf, upper=np.inf) if m.kind == TURN else m for m in moves
    ]  # fmt: skip
