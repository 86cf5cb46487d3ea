"""Errors of frames from their targets, as compiled functions of the configuration.

With G the pose of a frame, G_d its target and xi = J v the body twist, the errors and their rates
are, in the frame's own axes,

    position   e = R^T (r_d - r),      de/dt = -v - w x e
    attitude   e = log(R^T R_d),       de/dt = -left_jacobian_inverse(e) w

so that lengths and angles stay apart. Loops, couplings, and limits of coordinates that are not
plain (the position of a free joint) add rows that must be zero too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.geometry import se3, so3
from framefree.kernel import Kernel, compile
from framefree.machine import Machine
from framefree.machine.values import pose
from framefree.motion.constrained import Constrained
from framefree.motion.tree import Tree
from framefree.solve.errors import SolveError

Matrix = Any

_SHAPES = {"position": (3,), "attitude": (3, 3), "pose": (4, 4)}


@lru_cache(maxsize=16)
def constrained(machine: Machine) -> Constrained:
    """Return the constrained equations of a machine, made once for each machine."""
    return Constrained(machine)


@dataclass(frozen=True)
class Targets:
    """Targets by frame, checked: what each is, and its values (1 or batch, ...)."""

    kinds: tuple[tuple[str, str], ...]
    values: tuple[np.ndarray, ...]
    batch: int | None

    @classmethod
    def of(cls, machine: Machine, targets: Mapping[str, Any]) -> "Targets":
        """Return the targets of a mapping from frame to pose, attitude or position."""
        if not isinstance(targets, Mapping) or not targets:
            raise SolveError(f"`targets` must map frames to poses or positions, got {targets!r}")
        kinds, values, batch = [], [], None
        for frame, target in targets.items():
            machine.frame(frame)
            kind, value = _kind(frame, target)
            if value.ndim > len(_SHAPES[kind]):
                if batch not in (None, len(value)):
                    raise SolveError(
                        f"all batches of targets must have one size, got {batch} and {len(value)}"
                    )
                batch = len(value)
            else:
                value = value[None]
            for k, one in enumerate(value):
                _check(kind, one, f"target {k} of `{frame}`" if len(value) > 1 else f"`{frame}`")
            kinds.append((frame, kind))
            values.append(value)
        return cls(tuple(kinds), tuple(values), batch)

    @property
    def count(self) -> int:
        """Number of problems."""
        return 1 if self.batch is None else self.batch

    def at(self, problems: np.ndarray) -> list[np.ndarray]:
        """Return the values of some of the problems."""
        return [v[problems] if len(v) > 1 else v[np.zeros_like(problems)] for v in self.values]


def _kind(frame: str, target: Any) -> tuple[str, np.ndarray]:
    try:
        value = np.asarray(target, dtype=float)
    except (TypeError, ValueError):
        raise SolveError(f"the target of `{frame}` must be numbers, got {target!r}") from None
    for kind in ("pose", "attitude", "position"):
        shape = _SHAPES[kind]
        if value.ndim in (len(shape), len(shape) + 1) and value.shape[-len(shape) :] == shape:
            return kind, value
    raise SolveError(
        f"the target of `{frame}` must be a pose (4, 4), an attitude (3, 3) or a position (3,), or "
        f"a batch of those, got shape {value.shape}"
    )


def _check(kind: str, value: np.ndarray, what: str) -> None:
    G = np.eye(4)
    if kind == "pose":
        G = value
    elif kind == "attitude":
        G[:3, :3] = value
    else:
        G[:3, 3] = value
    try:
        pose(G, what)
    except FramefreeError as error:
        raise SolveError(f"the target: {error}") from None


class FrameErrors:
    """Rows of all errors of some frames of a machine, see the top of this file.

    Attributes
    ----------
    rows : dict of str to (slice or None, slice or None)
        Rows of position and of attitude of every frame.
    others : slice
        Rows of loops, couplings and limits.
    """

    def __init__(self, machine: Machine, kinds: tuple[tuple[str, str], ...]) -> None:
        self.machine, self.kinds = machine, kinds
        self.rows: dict[str, tuple[slice | None, slice | None]] = {}
        n = 0
        for frame, kind in kinds:
            linear = slice(n, n + 3) if kind != "attitude" else None
            n += 3 if linear else 0
            angular = slice(n, n + 3) if kind != "position" else None
            n += 3 if angular else 0
            self.rows[frame] = (linear, angular)
        self.others = slice(n, None)

    @cached_property
    def kernel(self) -> Kernel:
        """From x and the targets to all errors (m,) and their slopes (m, nv)."""
        machine = self.machine
        x = ca.SX.sym("x", machine.nx)
        symbols = [
            ca.SX.sym(f"target{k}", *_SHAPES[kind]) for k, (_, kind) in enumerate(self.kinds)
        ]
        state = Tree(machine.tree).at(x)
        parts = [
            _errors(kind, state.frame_pose(frame), state.jacobian(frame).value, target)
            for (frame, kind), target in zip(self.kinds, symbols, strict=True)
        ]
        parts += [self._closure(x), self._limits(x)]
        e, J = (ca.densify(ca.vertcat(*part)) for part in zip(*parts, strict=True))
        names = [f"target{k}" for k in range(len(symbols))]
        function = ca.Function("frame_errors", [x, *symbols], [e, J], ["x", *names], ["e", "J"])
        return compile(function, shapes={"e": (e.shape[0],), "J": J.shape})

    @cached_property
    def moved(self) -> Kernel:
        """From x (nx,) and a step (nv,) to x moved by it."""
        x, step = ca.SX.sym("x", self.machine.nx), ca.SX.sym("step", self.machine.nv)
        moved = self.machine.normalise(self.machine.integrate(x, step))
        function = ca.Function(
            "moved", [x, step], [ca.densify(ca.SX(moved))], ["x", "step"], ["moved"]
        )
        return compile(function, shapes={"moved": (self.machine.nx,)})

    def _closure(self, x: Matrix) -> tuple[Matrix, Matrix]:
        machine = self.machine
        if not (machine.loops or machine.couplings):
            return ca.SX(0, 1), ca.SX(0, machine.nv)
        quantity = constrained(machine).quantity("constraint")
        rows = quantity.trace(x=x, v=ca.SX(machine.nv, 1))
        return rows["position"].value, rows["gradient"].value

    def _limits(self, x: Matrix) -> tuple[Matrix, Matrix]:
        """Return how far coordinates are beyond limits that bounds on steps cannot keep."""
        rows = []
        for joint in self.machine.joints:
            if joint.kind.vector:
                continue
            own = x[self.machine.x_slice[joint.name], :]
            for i in np.flatnonzero(np.isfinite(joint.lower) | np.isfinite(joint.upper)):
                rows.append(
                    ca.fmin(own[i] - joint.lower[i], 0) + ca.fmax(own[i] - joint.upper[i], 0)
                )
        e = ca.vertcat(ca.SX(0, 1), *rows)
        return e, ca.jacobian(e, x) @ self.machine.rate_matrix(x)


@lru_cache(maxsize=32)
def frame_errors(machine: Machine, kinds: tuple[tuple[str, str], ...]) -> FrameErrors:
    """Return the errors of some frames, compiled once for each machine."""
    return FrameErrors(machine, kinds)


def _errors(kind: str, G: Matrix, J: Matrix, target: Matrix) -> tuple[Matrix, Matrix]:
    R, r = se3.rotation(G), se3.position(G)
    e, slopes = [], []
    if kind != "attitude":
        to_go = target if kind == "position" else se3.position(target)
        e.append(R.T @ (to_go - r))
        slopes.append(so3.wed(e[0]) @ J[3:, :] - J[:3, :])
    if kind != "position":
        R_d = target if kind == "attitude" else se3.rotation(target)
        turn = so3.log(R.T @ R_d)
        e.append(turn)
        slopes.append(-so3.left_jacobian_inverse(turn) @ J[3:, :])
    return ca.vertcat(*e), ca.vertcat(*slopes)
