"""Rows of errors that are functions: of poses of frames, or of the whole configuration.

With e = phi(...) the velocity error is s = d/dt phi, found by differentiating, so that the error
equation is linear,

    d2/dt2 e + Kd d/dt e + Kp e = 0.

A task may have e follow numbers of the reference: e = phi - TARGET.value.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from framefree.control.references.signals import ORDERS
from framefree.control.shared.frames import FrameMotion, Frames
from framefree.control.tasks.base import TaskRows
from framefree.geometry import so3

Matrix = Any
Place = tuple[Matrix, Matrix]
"""Position (3) and rotation (3x3) of a frame."""


def rows_of_frames(value: Callable[..., Matrix], motions: Sequence[FrameMotion]) -> TaskRows:
    """Return the rows of phi = value((p, R), ...) of frames.

    With Y all velocities (v, w) of the frames, d/dt phi = D Y and d2/dt2 phi = D dY/dt + rest.
    """
    places: list[Place] = []
    moved, rates, velocities = [], [], []
    for _ in motions:
        p, R = ca.SX.sym("p", 3), ca.SX.sym("R", 3, 3)
        v, w = ca.SX.sym("v", 3), ca.SX.sym("w", 3)
        places.append((p, R))
        moved += [p, ca.vec(R)]
        rates += [v, ca.vec(so3.wed(w) @ R)]
        velocities += [v, w]
    X, rate, Y = (ca.vertcat(*parts) for parts in (moved, rates, velocities))
    phi = ca.vertcat(value(*places))
    slope = ca.jtimes(phi, X, rate)
    function = ca.Function(
        "phi", [X, Y], [phi, slope, ca.jacobian(slope, Y), ca.jtimes(slope, X, rate)]
    )
    at = ca.vertcat(*(part for m in motions for part in (m.p, ca.vec(m.R))))
    moving = ca.vertcat(*(part for m in motions for part in (m.v, m.w)))
    e, s, D, rest = function(at, moving)
    J = ca.vertcat(*(part for m in motions for part in (m.Jv, m.Jw)))
    bias = ca.vertcat(*(part for m in motions for part in (m.dv, m.dw)))
    return TaskRows(D @ J, D @ bias + rest, s, e)


def rows_of_state(value: Callable[[Matrix], Any], frames: Frames) -> TaskRows:
    """Return the rows of phi(x), x the coordinates of all joints."""
    x, v, rate = _moving(frames)
    phi = _column(value(x))
    s = ca.jtimes(phi, x, rate)
    parts = [ca.jacobian(s, v), ca.jtimes(s, x, rate), s, phi]
    return TaskRows(*_evaluated(frames, x, v, parts))


def rows_of_velocity(value: Callable[[Matrix, Matrix], Any], frames: Frames) -> TaskRows:
    """Return the rows of eta(x, v), an error of velocity without one of position."""
    x, v, rate = _moving(frames)
    eta = _column(value(x, v))
    parts = [ca.jacobian(eta, v), ca.jtimes(eta, x, rate), eta, ca.SX(eta.shape[0], 1)]
    return TaskRows(*_evaluated(frames, x, v, parts))


def _moving(frames: Frames) -> tuple[Matrix, Matrix, Matrix]:
    """Return symbols of x, v and dx/dt: a state may be made of expressions."""
    x, v = ca.SX.sym("x", frames.machine.nx), ca.SX.sym("v", frames.machine.nv)
    return x, v, frames.state.equations.rate_matrix(x) @ v


def _evaluated(frames: Frames, x: Matrix, v: Matrix, parts: list[Matrix]) -> list[Matrix]:
    known = frames.machine.parameters.symbols
    symbols = [x, v, *ca.symvar(known)] if len(frames.machine.parameters) else [x, v]
    function = ca.Function("rows", symbols, [ca.SX(part) for part in parts])
    return list(function(frames.state.x, frames.state.v, *symbols[2:]))


def _column(value: Any) -> Matrix:
    return ca.vertcat(*value) if isinstance(value, list | tuple) else ca.SX(value)


# ---------------------------------------------------------------------------- following numbers


def signal_shapes(target: str, size: int) -> dict[str, tuple[int, int]]:
    """Return the signals of a target of numbers, none without a target."""
    return {f"{target}.{order}": (size, 1) for order in ORDERS} if target else {}


def following(rows: TaskRows, target: str, reference: Mapping[str, Matrix]) -> TaskRows:
    """Return the rows of errors to numbers of the reference, or to zero without a target."""
    if not target:
        return rows
    value, rate, second = (ca.SX(reference[f"{target}.{order}"]) for order in ORDERS)
    return TaskRows(rows.A, rows.rate - second, rows.velocity_error - rate, rows.pose_error - value)
