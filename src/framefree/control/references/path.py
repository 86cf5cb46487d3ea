"""Paths through configurations, piece by piece on the groups of joints, with exact derivatives.

Between the times t_k and t_(k+1), with s = (t - t_k) / h_k running from 0 to 1,

    x(t) = x_k (+) phi(s),    phi(s) = sum_j c_kj shape_j(s)

where (+) is `JointKind.integrate`. For plain coordinates this is a polynomial, for rotations the
canonical coordinates of the first kind about x_k. Velocity and acceleration are the derivatives of
this very expression, v = A^+ dx/dt. Before the first time and after the last the path rests.

A time that is a symbol selects the numbers of its piece by masks, one multiplication and addition
for each number and piece; so 20 waypoints stay a small graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine.joints.base import JointKind

Matrix = Any
Shapes = Callable[[Matrix], list[Matrix]]
"""From s to the values of the shape functions."""


def smooth_step(s: Matrix) -> Matrix:
    """Return 10 s^3 - 15 s^4 + 6 s^5: from 0 to 1 with the least integral of squared jerk.

    Its first two derivatives are zero at both ends [Flash1985].
    """
    return s * s * s * (10 + s * (6 * s - 15))


def powers(s: Matrix) -> list[Matrix]:
    """Return s, s^2, ..., s^5."""
    values = [s]
    for _ in range(4):
        values.append(values[-1] * s)
    return values


@dataclass(frozen=True, eq=False)
class Path:
    """A path of joints of these kinds, side by side in x and v.

    Attributes
    ----------
    kinds : tuple of JointKind
    times : (n + 1,)
    starts : (n, nx)
        x_k at the beginning of every piece.
    shapes : callable
        From s to the list of shape functions.
    coefficients : (n, shapes, nv)
    """

    kinds: tuple[JointKind, ...]
    times: np.ndarray
    starts: np.ndarray
    shapes: Shapes
    coefficients: np.ndarray

    @cached_property
    def function(self) -> ca.Function:
        """From t to x (nx), v (nv) and a (nv)."""
        t = ca.SX.sym("t")
        inside = ca.fmin(ca.fmax(t, self.times[0]), self.times[-1])
        pieces = Pieces(inside, self.times)
        pace = pieces.select(1 / np.diff(self.times))
        s = (inside - pieces.select(self.times[:-1])) * pace
        values, i, j = [], 0, 0
        for kind in self.kinds:
            own_x, own_v = slice(i, i + kind.nx), slice(j, j + kind.nv)
            start = pieces.select(self.starts[:, own_x])
            C = [pieces.select(column[:, own_v]) for column in self.coefficients.swapaxes(0, 1)]
            values.append(_moved(kind, self.shapes)(s, pace, start, ca.horzcat(*C)))
            i, j = i + kind.nx, j + kind.nv
        x, v, a = (ca.densify(ca.vertcat(ca.SX(0, 1), *p)) for p in zip(*values, strict=True))
        return ca.Function("path", [t], [x, v, a], ["t"], ["x", "v", "a"])


class Pieces:
    """Which piece a time belongs to, as masks that are 1 for it and 0 for all others."""

    def __init__(self, t: Matrix, times: np.ndarray) -> None:
        begun = [ca.SX(1), *(t >= time for time in times[1:-1])]
        self.masks = [one - following for one, following in pairwise([*begun, ca.SX(0)])]

    def select(self, numbers: np.ndarray) -> Matrix:
        """Return the numbers (n) of the piece, of (pieces,) or (pieces, n)."""
        table = numbers.reshape(len(self.masks), -1)
        return ca.vertcat(ca.SX(0, 1), *(self._entry(column) for column in table.T))

    def _entry(self, column: np.ndarray) -> Matrix:
        if (column == column[0]).all():
            return ca.SX(float(column[0]))
        total = ca.SX(0)
        for mask, value in zip(self.masks, column.tolist(), strict=True):
            if value:
                total = mask * value + total
        return total


def velocity(kind: JointKind, x: Matrix, x_rate: Matrix) -> Matrix:
    """Return v (nv) with ``A(x) v = dx/dt``: ``(A^T A)^-1 A^T dx/dt``."""
    if kind.vector:
        return x_rate
    A = kind.rate(x)
    gram = constant_gram(kind)
    if gram is None:
        return ca.solve(ca.densify(A.T @ A), A.T @ x_rate)
    return ca.DM(np.linalg.inv(gram)) @ (A.T @ x_rate)


def constant_gram(kind: JointKind) -> np.ndarray | None:
    """Return ``A^T A`` (nv x nv) where it is the same for all x, as it is for unit quaternions."""
    rng = np.random.default_rng(0)
    rates = [ca.DM(kind.rate(ca.DM(x))).full() for x in kind.sample(rng, 4)]
    first, *others = [A.T @ A for A in rates]
    same = all(np.allclose(gram, first, rtol=0, atol=1e-12) for gram in others)
    return np.round(first, 12) if same else None


def _moved(kind: JointKind, shapes: Shapes) -> ca.Function:
    """Return the function from s, ds/dt, x_k and coefficients (nv x shapes) to x, v, a."""
    s, pace, start = ca.SX.sym("s"), ca.SX.sym("pace"), ca.SX.sym("start", kind.nx)
    values = shapes(s)
    C = ca.SX.sym("C", kind.nv, len(values))
    phi = C @ ca.vertcat(*values)
    x = kind.integrate(start, phi)
    v = velocity(kind, x, ca.jtimes(x, s, 1) * pace)
    a = ca.jtimes(v, s, 1) * pace
    return ca.Function("piece", [s, pace, start, C], [x, v, a])


# ------------------------------------------------------------------------------ making paths


def minimum_jerk(kinds: Sequence[JointKind], times: Any, points: np.ndarray) -> Path:
    """Return the path that rests at every point and has the least jerk in between."""
    points, steps = _joined(kinds, points)
    kept = _moving(kinds)
    return Path(kept, np.asarray(times), points[:-1], lambda s: [smooth_step(s)], steps[:, None, :])


def spline(kinds: Sequence[JointKind], times: Any, points: np.ndarray) -> Path:
    """Return a path with continuous acceleration that rests only at its ends.

    For plain coordinates it is the cubic spline, its first and last piece raised to degree five so
    that it starts and ends without acceleration. On groups, velocities at the points are those of
    a cubic spline in canonical coordinates, and pieces of degree five join there with equal
    velocity and acceleration.
    """
    times = np.asarray(times)
    points, steps = _joined(kinds, points)
    parts, i, j = [], 0, 0
    for kind in kinds:
        own = points[:, i : i + kind.nx]
        parts.append(_Spline(kind, np.diff(times), own, steps[:, j : j + kind.nv]).coefficients)
        i, j = i + kind.nx, j + kind.nv
    coefficients = np.concatenate([np.zeros((len(steps), 5, 0)), *parts], axis=2)
    return Path(_moving(kinds), times, points[:-1], powers, coefficients)


def _moving(kinds: Sequence[JointKind]) -> tuple[JointKind, ...]:
    return tuple(kind for kind in kinds if kind.nx)


def _joined(kinds: Sequence[JointKind], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points, and the steps (n, nv) from each to the next.

    Where a point is another description of the configuration reached from the one before, such as
    the negative quaternion, it is replaced by that, so that x is continuous.
    """
    points, steps = np.array(points, dtype=float), []
    for k in range(len(points) - 1):
        i, own = 0, [np.zeros(0)]
        for kind in kinds:
            at = slice(i, i + kind.nx)
            x0, x1 = ca.DM(points[k, at]), ca.DM(points[k + 1, at])
            step = ca.DM(kind.difference(x0, x1))
            reached = ca.DM(kind.integrate(x0, step)).full().ravel()
            if np.abs(reached - points[k + 1, at]).max(initial=0.0) > 1e-6:
                points[k + 1, at] = reached
            own.append(step.full().ravel())
            i += kind.nx
        steps.append(np.concatenate(own))
    return points, np.array(steps)


class _Spline:
    """Coefficients of the spline of one joint through points, with h seconds from each to the next.

    In a piece, v = E(phi) dphi/dt and a = E d2phi/dt2 + bias(phi, dphi/dt), with E(0) = I.
    """

    def __init__(
        self, kind: JointKind, h: np.ndarray, points: np.ndarray, steps: np.ndarray
    ) -> None:
        self.kind, self.h, self.points, self.steps = kind, h, points, steps
        self.nv, self.pieces = kind.nv, len(steps)

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients (pieces, 5, nv) of s, ..., s^5."""
        if not self.nv:
            return np.zeros((self.pieces, 5, 0))
        v = self._velocities()
        a = self._accelerations(v)
        pieces = []
        for k in range(self.pieces):
            p0, p1 = self._ends(k, v)
            q0 = self._curvature(k, 0 * self.steps[k], p0, a[k])
            q1 = self._curvature(k, self.steps[k], p1, a[k + 1])
            pieces.append(_quintic(self.steps[k], p0, p1, q0, q1))
        C = np.array(pieces)
        if self.kind.vector:
            # Where the piece is cubic, what rounding leaves of higher powers would stay in graphs.
            size = np.abs(C).sum(axis=1, keepdims=True)
            C[np.abs(C) < 1e-13 * size] = 0.0
        return C

    def _velocities(self) -> np.ndarray:
        """Velocities (pieces + 1, nv) at which cubic pieces have equal accelerations, bias aside.

        The second derivatives of a cubic piece by s are 6 d - 4 p0 - 2 p1 at its start and
        -6 d + 2 p0 + 4 p1 at its end, with p0 = h v_k and p1 = h E^-1 v_(k+1).
        """
        n, nv, one = self.pieces - 1, self.nv, np.eye(self.nv)
        matrix, right = np.zeros((n * nv, (n + 2) * nv)), np.zeros(n * nv)
        for k in range(n):
            rows, at = (
                slice(k * nv, (k + 1) * nv),
                [slice(j * nv, (j + 1) * nv) for j in (k, k + 1, k + 2)],
            )
            h0, h1, (E0, E1) = self.h[k], self.h[k + 1], self._E[k : k + 2]
            matrix[rows, at[0]] = 2 / h0 * E0
            matrix[rows, at[1]] = 4 / h0 * one + 4 / h1 * one
            matrix[rows, at[2]] = 2 / h1 * np.linalg.inv(E1)
            right[rows] = 6 * (E0 @ self.steps[k] / h0**2 + self.steps[k + 1] / h1**2)
        inner = np.linalg.solve(matrix[:, nv : (n + 1) * nv], right) if n else right
        return np.vstack([np.zeros(nv), inner.reshape(n, nv), np.zeros(nv)])

    def _accelerations(self, v: np.ndarray) -> np.ndarray:
        """Accelerations (pieces + 1, nv): means of those of the cubic pieces on either side."""
        a = np.zeros((self.pieces + 1, self.nv))
        for k in range(self.pieces):
            d, h, (p0, p1) = self.steps[k], self.h[k], self._ends(k, v)
            before = (6 * d - 4 * p0 - 2 * p1) / h**2 + self._bias(k, 0 * d, p0 / h)
            after = (-6 * d + 2 * p0 + 4 * p1) / h**2
            a[k] += before / 2
            a[k + 1] += (self._E[k] @ after + self._bias(k, d, p1 / h)) / 2
        a[[0, -1]] = 0.0
        return a

    def _ends(self, k: int, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of phi by s at the ends of a piece."""
        return self.h[k] * v[k], self.h[k] * np.linalg.solve(self._E[k], v[k + 1])

    def _curvature(self, k: int, phi: np.ndarray, p: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Second derivative of phi by s, for acceleration a at slope p."""
        h = self.h[k]
        rest = h**2 * (a - self._bias(k, phi, p / h))
        return np.linalg.solve(self._E[k], rest) if phi.any() else rest

    @cached_property
    def _E(self) -> list[np.ndarray]:
        zero = np.zeros(self.nv)
        return [self._calculus(self.points[k], d, zero)[0] for k, d in enumerate(self.steps)]

    def _bias(self, k: int, phi: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return self._calculus(self.points[k], phi, rate)[1].ravel()

    def _calculus(self, *values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        E, bias = self._functions(*values)
        return E.full(), bias.full()

    @cached_property
    def _functions(self) -> ca.Function:
        """From x_k, phi and dphi/dt to E (nv x nv) and bias (nv)."""
        kind = self.kind
        start, phi = ca.SX.sym("start", kind.nx), ca.SX.sym("phi", kind.nv)
        rate = ca.SX.sym("rate", kind.nv)
        x = kind.integrate(start, phi)
        v = velocity(kind, x, ca.jtimes(x, phi, rate))
        outputs = [ca.jacobian(v, rate), ca.jtimes(v, phi, rate)]
        return ca.Function("calculus", [start, phi, rate], [ca.densify(out) for out in outputs])


def _quintic(
    d: np.ndarray, p0: np.ndarray, p1: np.ndarray, q0: np.ndarray, q1: np.ndarray
) -> np.ndarray:
    """Coefficients (5, nv) of s, ..., s^5: from 0 to d, slopes p0 to p1, curvatures q0 to q1."""
    return np.array(
        [
            p0,
            q0 / 2,
            10 * d - 6 * p0 - 4 * p1 - 1.5 * q0 + 0.5 * q1,
            -15 * d + 8 * p0 + 7 * p1 + 1.5 * q0 - q1,
            6 * d - 3 * p0 - 3 * p1 - 0.5 * q0 + 0.5 * q1,
        ]
    )
