"""From measured motions to samples: local polynomials on the groups of the joints.

Around every row k a polynomial is fitted to where the rows beside it lie, seen from row k,

    difference(x_k, x_(k+j)) = c_0 + c_1 t_j + c_2 t_j^2 / 2 + ...       |t_j| <= window / 2

by least squares, in coordinates of the joints' groups, so that no attitude is special. Then it is
fitted again around x_k (+) c_0, where c_0 is next to nothing: there v = c_1. Accelerations are the
slopes of these velocities, by the same polynomials. Inputs pass the same polynomials, evaluated
`delay` earlier: u_rec(t - delay) is what acts at t. What is left,

    y = M a + c - B u,

is the label. The delay is found by that of a basis which leaves the least (`estimate_delay`).
Single inputs that stand out from their neighbours are replaced; gaps, uneven rates and what is not
a number are refused with row and column, as `framefree.identify` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from framefree.identify import Recording
from framefree.identify.recording import checked
from framefree.identify.spikes import without_spikes
from framefree.learn.basis_fit import fit_basis, weighted_columns
from framefree.learn.errors import LearnError
from framefree.learn.library import Library
from framefree.learn.samples import Samples, joined
from framefree.machine import Machine
from framefree.motion import equations

DEGREE = 4
"""Of the local polynomials."""


@dataclass(frozen=True)
class LocalPolynomials:
    """Values and slopes of local polynomials, as weights of the rows around each row.

    Parameters
    ----------
    half : int
        Rows on either side.
    period : float
        s.
    degree : int
    """

    half: int
    period: float
    degree: int = DEGREE

    def weights(self, derivative: int = 0, at: float = 0.0) -> np.ndarray:
        """Return weights (2 half + 1) of the value, or a derivative, at a time beside the row."""
        t = np.arange(-self.half, self.half + 1) * self.period
        scale = self.half * self.period
        fitted = np.linalg.pinv(np.vander(t / scale, self.degree + 1, increasing=True))
        basis = np.polynomial.polynomial.Polynomial
        row = [
            basis(np.eye(self.degree + 1)[k]).deriv(derivative)(at / scale)
            if derivative
            else (at / scale) ** k
            for k in range(self.degree + 1)
        ]
        return np.asarray(row, float) @ fitted / scale**derivative

    def apply(self, values: np.ndarray, derivative: int = 0, at: float = 0.0) -> np.ndarray:
        """Return filtered columns; `half` rows shorter at either end."""
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * self.half + 1, axis=0)
        return windows @ self.weights(derivative, at)


@dataclass(frozen=True, eq=False)
class MeasuredMotion:
    """One recording, differentiated.

    Parameters
    ----------
    machine : Machine
    recording : Recording
    window : float
        Length of the local polynomials, s.
    """

    machine: Machine
    recording: Recording
    window: float

    @classmethod
    def of(cls, machine: Machine, recording: Recording, window: float) -> "MeasuredMotion":
        """Check a recording, and replace spikes."""
        clean = without_spikes(checked(recording, machine.numeric), machine.numeric)[0]
        return cls(machine.numeric, clean, window)

    @cached_property
    def polynomials(self) -> LocalPolynomials:
        """The filter of the motion and of the inputs."""
        period = self.recording.period
        half = round(self.window / 2 / period)
        if 2 * half < DEGREE + 2:
            raise LearnError(
                f"a window of {self.window:g} s holds {2 * half + 1} rows at {1 / period:g} Hz, "
                f"{DEGREE + 3} or more are needed"
            )
        if len(self.recording) < 6 * half:
            raise LearnError(
                f"{self.recording.source} is too short for a window of {self.window:g} s"
            )
        return LocalPolynomials(half, period)

    @cached_property
    def motion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, v and a; two half windows shorter at either end."""
        p, x = self.polynomials, self.recording.x
        h = p.half
        middle = x[h : len(x) - h]
        value, _ = self._around(x, middle)
        middle = self.machine.integrate(middle, value)
        _, v = self._around(x, middle)
        inside = slice(h, len(middle) - h)
        return middle[inside], v[inside], p.apply(v, 1)

    def _around(self, x: np.ndarray, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return c_0 and c_1 of the rows' differences from their middles."""
        p, n = self.polynomials, len(middle)
        values, slopes = p.weights(0), p.weights(1)
        c0 = np.zeros((n, self.machine.nv))
        c1 = np.zeros_like(c0)
        for j in range(2 * p.half + 1):
            d = self.machine.difference(middle, x[j : j + n])
            c0 += values[j] * d
            c1 += slopes[j] * d
        return c0, c1

    @cached_property
    def demanded(self) -> np.ndarray:
        """Force (n, nv) that the known equations need for this motion."""
        form = "constrained" if self.machine.closed else "tree"
        return equations(self.machine, form).inverse(*self.motion)

    def labels(self, delay: float = 0.0) -> np.ndarray:
        """Return y (n, nv), for inputs that act `delay` after they were recorded, s."""
        p, record = self.polynomials, self.recording
        inside = slice(p.half, len(record) - 3 * p.half)
        given = np.zeros_like(self.demanded)
        if record.force is not None:
            given = given + p.apply(record.force, at=-delay)[inside]
        if record.u is not None:
            x, v, _ = self.motion
            u = p.apply(record.u, at=-delay)[inside]
            given = given + self._effect(x, v, u)
        return self.demanded - given

    def _effect(self, x: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return B u and what actuators do at zero input (n, nv)."""
        form = "constrained" if self.machine.closed else "tree"
        eom = equations(self.machine, form)
        by_speed = len(eom.kernel("input_matrix").inputs) > 1
        state = (x, v) if by_speed else (x,)
        B = eom.kernel("input_matrix")(*state)
        bias = eom.kernel("input_bias")
        return np.einsum("nij,nj->ni", B, u) + bias(*(x, v)[: len(bias.inputs)])


def measured_samples(
    machine: Machine,
    recordings: Recording | Sequence[Recording],
    *,
    window: float,
    delay: float = 0.0,
    every: int = 1,
    bodies: Sequence[str] | None = None,
) -> Samples:
    """Return samples of recorded motions, each recording a motion of its own.

    Parameters
    ----------
    machine : Machine
        What is known.
    recordings : Recording or sequence of these
        x and inputs or forces at an even rate.
    window : float
        Length of the local polynomials, s: short against the motion, long against the noise.
    delay : float
        By which inputs act later than recorded, s; see `estimate_delay`.
    every : int
        Rows from one sample to the next.
    bodies : sequence of str, optional
        Bodies on which unknown wrenches act.
    """
    motions = _motions(machine, recordings, window)
    return _joined(motions, delay, every, bodies)


def estimate_delay(
    machine: Machine,
    recordings: Recording | Sequence[Recording],
    library: Library,
    *,
    window: float,
    longest: float = 0.1,
    every: int = 5,
    current: Any = None,
) -> float:
    """Return the delay (s) for which a basis leaves the least of the samples.

    The search goes from -`longest` to `longest`; a result at either end is refused.
    """
    from scipy.optimize import minimize_scalar

    motions = _motions(machine, recordings, window)
    delay = 0.0
    for _ in range(2):
        samples = _joined(motions, delay, every, None)
        fit = fit_basis(library, samples, current=current, threshold=False)
        A = weighted_columns(library, samples, fit.model.current)
        Q = np.linalg.svd(A, full_matrices=False)[0]

        def left(late: float, samples: Samples = samples, Q: np.ndarray = Q) -> float:
            labels = np.vstack([motion.labels(late)[::every] for motion in motions])
            b = samples.whiten(samples.along(labels)).ravel()
            return float(np.sum((b - Q @ (Q.T @ b)) ** 2))

        found = minimize_scalar(
            left, bounds=(-longest, longest), method="bounded", options={"xatol": 1e-5}
        )
        delay = float(found["x"])  # type: ignore[index]
    if longest - abs(delay) < 1e-3 * longest:
        raise LearnError(f"no delay within {longest:g} s explains the motions: {delay:.4g} s")
    return delay


def _motions(machine: Machine, recordings: Any, window: float) -> list[MeasuredMotion]:
    given = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not given:
        raise LearnError("there are no recordings to learn from")
    return [MeasuredMotion.of(machine, one, window) for one in given]


def _joined(
    motions: list[MeasuredMotion], delay: float, every: int, bodies: Sequence[str] | None
) -> Samples:
    parts = []
    for motion in motions:
        x, v, _ = motion.motion
        rows = slice(None, None, every)
        parts.append(
            Samples.of_states(
                motion.machine, x[rows], v[rows], motion.labels(delay)[rows], bodies=bodies
            )
        )
    return joined(parts)
