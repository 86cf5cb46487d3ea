"""States in the layouts of other engines.

Pinocchio: quaternions xyzw; velocities as ours (its LOCAL convention). MuJoCo: quaternions wxyz as
ours; the linear velocity of a free joint is in world axes; angles instead of (cos, sin) pairs.

MuJoCo builds other kinds from slides and hinges: a planar joint from two slides and a hinge, a
cylindrical one from a slide and a hinge, a universal one from two hinges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.errors import hint
from framefree.machine.joints import Continuous, Custom, Free, Helical, Planar, Spherical
from framefree.machine.problems import MachineError, Problems, StateError
from framefree.machine.tree import unknown

_XYZW, _WXYZ = [1, 2, 3, 0], [3, 0, 1, 2]
_REFUSED = {"pinocchio": (Custom,), "mujoco": (Custom, Helical)}
_CONVERTED = {"pinocchio": (Free, Spherical), "mujoco": (Free, Planar, Continuous)}
"""Kinds of joints whose numbers differ from ours."""


@dataclass(frozen=True)
class _Segment:
    """A joint's kind, and where its numbers are here (x, v) and there (q, w)."""

    kind: Any
    x: slice
    v: slice
    q: slice
    w: slice


@dataclass(frozen=True)
class EngineLayout:
    """Conversion of states between a machine and another engine; arrays (n,) or (batch, n).

    Attributes
    ----------
    engine : "pinocchio" or "mujoco"
    nx, nq, nv : int
        Sizes of our configuration, of theirs, and of the velocity.
    """

    engine: str
    nx: int
    nq: int
    nv: int
    segments: tuple[_Segment, ...]

    @cached_property
    def same(self) -> bool:
        """Whether states and forces are the same numbers here and there, at the same places."""
        return all(
            s.x == s.q and s.v == s.w and not isinstance(s.kind, _CONVERTED[self.engine])
            for s in self.segments
        )

    def x_to(self, x: Any) -> np.ndarray:
        """Return the other engine's configuration."""
        x = _sized(x, self.nx, "x")
        q = np.zeros((*x.shape[:-1], self.nq))
        for s in self.segments:
            q[..., s.q] = self._theirs(s.kind, x[..., s.x])
        return q

    def x_from(self, q: Any) -> np.ndarray:
        """Return our configuration."""
        q = _sized(q, self.nq, "q")
        x = np.zeros((*q.shape[:-1], self.nx))
        for s in self.segments:
            x[..., s.x] = self._ours(s.kind, q[..., s.q])
        return x

    def v_to(self, x: Any, v: Any) -> np.ndarray:
        """Return the other engine's velocity at our configuration x; joint forces likewise."""
        x, v = _sized(x, self.nx, "x"), _sized(v, self.nv, "v")
        w = np.zeros((*np.broadcast_shapes(x.shape[:-1], v.shape[:-1]), self.nv))
        for s in self.segments:
            w[..., s.w] = self._turned(s.kind, x[..., s.x], v[..., s.v], 1.0)
        return w

    def v_from(self, x: Any, w: Any) -> np.ndarray:
        """Return our velocity from the other engine's, at our configuration x; forces likewise."""
        x, w = _sized(x, self.nx, "x"), _sized(w, self.nv, "v")
        v = np.zeros((*np.broadcast_shapes(x.shape[:-1], w.shape[:-1]), self.nv))
        for s in self.segments:
            v[..., s.v] = self._turned(s.kind, x[..., s.x], w[..., s.w], -1.0)
        return v

    def a_to(self, x: Any, v: Any, a: Any) -> np.ndarray:
        """Return the other engine's acceleration, the time derivative of `v_to`."""
        v, a = _sized(v, self.nv, "v"), _sized(a, self.nv, "a")
        return self.v_to(x, a + self._transport(v))

    def a_from(self, x: Any, v: Any, a: Any) -> np.ndarray:
        """Return our acceleration from the other engine's, at our x and v."""
        return self.v_from(x, a) - self._transport(_sized(v, self.nv, "v"))

    def _theirs(self, kind: Any, x: np.ndarray) -> np.ndarray:
        if self.engine == "pinocchio":
            return _reordered(kind, x, _XYZW)
        if isinstance(kind, Continuous):
            return np.arctan2(x[..., 1:], x[..., :1])
        if isinstance(kind, Planar):
            return np.concatenate([x[..., :2], np.arctan2(x[..., 3:], x[..., 2:3])], axis=-1)
        return x

    def _ours(self, kind: Any, q: np.ndarray) -> np.ndarray:
        if self.engine == "pinocchio":
            return _reordered(kind, q, _WXYZ)
        if isinstance(kind, Continuous | Planar):
            return np.concatenate([q[..., :-1], np.cos(q[..., -1:]), np.sin(q[..., -1:])], axis=-1)
        return q

    def _turned(self, kind: Any, x: np.ndarray, v: np.ndarray, sign: float) -> np.ndarray:
        """Turn linear velocities from child axes to parent axes, or back for sign -1."""
        if self.engine == "mujoco" and isinstance(kind, Free):
            linear = _rotated(x[..., 3:4], sign * x[..., 4:7], v[..., :3])
            return np.concatenate([linear, np.broadcast_to(v[..., 3:], linear.shape)], axis=-1)
        if self.engine == "mujoco" and isinstance(kind, Planar):
            c, s = x[..., 2], sign * x[..., 3]
            px, py = c * v[..., 0] - s * v[..., 1], s * v[..., 0] + c * v[..., 1]
            return np.stack([px, py, np.broadcast_to(v[..., 2], px.shape)], axis=-1)
        return v

    def _transport(self, v: np.ndarray) -> np.ndarray:
        """Return w x v of the linear velocities that MuJoCo has in parent axes."""
        result = np.zeros(v.shape)
        for s in self.segments if self.engine == "mujoco" else ():
            part = v[..., s.v]
            if isinstance(s.kind, Free):
                result[..., s.v][..., :3] = np.cross(part[..., 3:], part[..., :3])
            elif isinstance(s.kind, Planar):
                swing = np.stack([-part[..., 1], part[..., 0]], axis=-1)
                result[..., s.v][..., :2] = part[..., 2:] * swing
        return result


def layout(machine: Any, engine: str, order: Sequence[str] | None = None) -> EngineLayout:
    """Return the conversion to an engine that has our joints in this order, by default in ours.

    Joints without motion may be left out of `order`.
    """
    if engine not in _REFUSED:
        raise MachineError(
            f"the engine must be one of {', '.join(_REFUSED)}, got {engine!r}"
            + hint(engine, _REFUSED)
        )
    order = [joint.name for joint in machine.joints] if order is None else list(order)
    problems = Problems()
    _check_order(machine, order, problems)
    for joint in machine.joints:
        if isinstance(joint.kind, _REFUSED[engine]):
            kind = type(joint.kind).__name__
            problems.add(f"joint `{joint.name}`: {engine} has no {kind.lower()} joint")
    problems.raise_if_any()
    segments, q, w = [], 0, 0
    for name in order:
        kind = machine.joint(name).kind
        wide = kind.nx - (engine == "mujoco" and isinstance(kind, Continuous | Planar))
        segments.append(
            _Segment(
                kind,
                machine.x_slice[name],
                machine.v_slice[name],
                slice(q, q + wide),
                slice(w, w + kind.nv),
            )
        )
        q, w = q + wide, w + kind.nv
    return EngineLayout(engine, machine.nx, q, machine.nv, tuple(segments))


def _check_order(machine: Any, order: list[str], problems: Problems) -> None:
    for name in order:
        if name not in machine.joint_index:
            problems.add(unknown("joint", name, machine.joint_index))
    for joint in machine.joints:
        count = order.count(joint.name)
        if count > 1 or (joint.nv and count == 0):
            problems.add(f"joint `{joint.name}` must occur once in `order`, occurs {count} times")


def _reordered(kind: Any, values: np.ndarray, order: list[int]) -> np.ndarray:
    if isinstance(kind, Spherical):
        return values[..., order]
    if isinstance(kind, Free):
        return np.concatenate([values[..., :3], values[..., 3:][..., order]], axis=-1)
    return values


def _rotated(w: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Turn vectors v by the unit quaternions (w, q)."""
    twice = 2.0 * np.cross(q, v)
    return v + w * twice + np.cross(q, twice)


def _sized(values: Any, size: int, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise StateError(
            f"`{name}` must have shape ({size},) or (batch, {size}), got {array.shape}"
        )
    return array
