"""Numbers that do not enter linearly, by the error of predictions over pieces of a motion.

A model advances its state by one period, z_(k+1) = f(z_k, u_k, p), and says what is measured, y_k =
g(z_k, u_k, p). Pieces of a record begin at states that are known up to their own deviations, which
are found too (multiple shooting without continuity), and

    sum over pieces  |y - y(p, z_0)|^2 / sigma_y^2 + |z_0 - z_0 measured|^2 / sigma_z^2  -> min

by the method of Levenberg and Marquardt. Slopes are exact: they advance with the state,

    S_(k+1) = (df/dz) S_k + df/d(p, z_0)

in one compiled roll-out over all pieces at once. States z_0 are eliminated piece by piece. A number
at a bound that the slope pushes outwards takes no part in a step: what is left is solved for the
others (an active set), and where one ends at its bound the data do not tell it. Numbers that stay
constant over a piece but differ between pieces, such as a trim, are states with rate zero.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.identify.errors import IdentifyError
from framefree.kernel import compile

ROUNDS = 40
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class RecordedPieces:
    """Pieces of records, all of one length.

    Attributes
    ----------
    z : (pieces, nz)
        Measured states at their beginnings.
    u : (pieces, steps, nu)
    y : (pieces, steps, ny)
        What was measured at the beginning of every step.
    """

    z: np.ndarray
    u: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Shot:
    """The result of a fit by prediction errors.

    Attributes
    ----------
    value : (n,)
    covariance : (n, n)
        Of the numbers that are free; zero where one of two is not.
    free : (n,) of bool
        Whether a number was found: neither held nor stopped by a bound.
    z : (pieces, nz)
        States at the beginnings, as found.
    residual : (pieces, steps, ny)
    cost, first_cost : float
        Mean square of the weighted residual, and what it was.
    """

    value: np.ndarray
    covariance: np.ndarray
    free: np.ndarray
    z: np.ndarray
    residual: np.ndarray
    cost: float
    first_cost: float

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations (n,); infinite for numbers that were not found."""
        return np.where(self.free, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations (n, n) of the numbers that were found; zero elsewhere."""
        size = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        return self.covariance / np.outer(size, size)


class PredictionModel:
    """A model in discrete time with its slopes, compiled.

    Parameters
    ----------
    step : casadi.Function
        (z, u, p) to the next z.
    output : casadi.Function
        (z, u, p) to y.
    """

    def __init__(self, step: ca.Function, output: ca.Function) -> None:
        nz, nu, n = (step.size1_in(i) for i in range(3))
        self.nz, self.n, self.ny = nz, n, output.size1_out(0)
        z, u, p = ca.SX.sym("z", nz), ca.SX.sym("u", nu), ca.SX.sym("p", n)
        S = ca.SX.sym("S", nz, n + nz)
        after, y = ca.densify(ca.SX(step(z, u, p))), ca.densify(ca.SX(output(z, u, p)))
        unit = ca.horzcat(ca.SX.eye(n), ca.SX(n, nz))
        S_after = ca.jacobian(after, z) @ S + ca.jacobian(after, p) @ unit
        slope = ca.jacobian(y, z) @ S + ca.jacobian(y, p) @ unit
        function = ca.Function(
            "prediction",
            [z, ca.vec(S.T), u, p],
            [after, ca.densify(ca.vec(S_after.T)), y, ca.densify(ca.vec(slope.T))],
            ["z", "S", "u", "p"],
            ["z_next", "S_next", "y", "slope"],
        )
        self.kernel = compile(function)

    def predict(self, z: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y (pieces, steps, ny) and its slopes by p and z_0 (pieces, steps, ny, n + nz)."""
        count, steps = u.shape[:2]
        S = np.hstack([np.zeros((self.nz, self.n)), np.eye(self.nz)])
        rolled = self.kernel.rollout(
            z=z,
            S=np.tile(S.ravel(), (count, 1)),
            p=np.tile(p, (count, 1)),
            steps=steps,
            sequences={"u": u},
        )
        y, slope = rolled.signals["y"], rolled.signals["slope"]
        return y, slope.reshape(count, steps, self.ny, self.n + self.nz)


def shoot(
    model: PredictionModel, pieces: RecordedPieces, p: Any, *, sigma_y: Any, sigma_z: Any,
    bounds: tuple[Any, Any] = (-np.inf, np.inf),
) -> Shot:  # fmt: skip
    """Return the numbers that predict the pieces best.

    Parameters
    ----------
    model : PredictionModel
    pieces : RecordedPieces
    p : (n,)
        Where to begin.
    sigma_y, sigma_z : (ny,), (nz,)
        Standard deviations of measurements, and of the measured first states. A first state that is
        to be taken as measured has a deviation near zero.
    bounds : two of (n,)
        Least and largest numbers, such as zero for a time constant; infinite for none. Where both
        are the same a number is held.

    Raises
    ------
    IdentifyError
        If sizes do not fit, data or bounds make no sense, or predictions are not finite.
    """
    p, sigma_y, sigma_z, least, most = _checked(model, pieces, p, sigma_y, sigma_z, bounds)
    z, damping = pieces.z.copy(), 1e-3
    state = _linearised(model, pieces, z, p, sigma_y, sigma_z)
    first = state.cost
    for _ in range(ROUNDS):
        trial = p + _step(*state.reduced, p, least, most, damping)
        moved = z + state.first_states(trial - p)
        other = _linearised(model, pieces, moved, trial, sigma_y, sigma_z)
        if np.isfinite(other.cost) and other.cost <= state.cost:
            gained = state.cost - other.cost
            p, z, state, damping = trial, moved, other, max(damping / 5, 1e-12)
            if gained <= TOLERANCE * state.cost:
                break
        else:
            damping *= 10
            if damping > 1e10:
                break
    if not np.isfinite(state.cost):
        raise IdentifyError("the model's predictions are not finite from the first numbers on")
    H, g = state.reduced
    free = ~_stopped(p, g, least, most)
    freedom = max(state.residual.size - int(free.sum()), 1)
    variance = state.cost * state.residual.size / freedom
    covariance = np.zeros_like(H)
    covariance[np.ix_(free, free)] = np.linalg.pinv(H[np.ix_(free, free)]) * variance
    residual = state.residual.reshape(pieces.y.shape) * sigma_y
    return Shot(p, covariance, free, z, residual, state.cost, first)


def _stopped(p: np.ndarray, g: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Tell which numbers a bound holds: they are there, and the slope pushes them outwards."""
    return ((p <= least) & (g <= 0)) | ((p >= most) & (g >= 0)) | (least == most)


def _step(
    H: np.ndarray, g: np.ndarray, p: np.ndarray, least: np.ndarray, most: np.ndarray, damping: float
) -> np.ndarray:
    """Return a damped step of ``H dp = g`` that stays within bounds.

    Numbers that the step would take beyond their bounds go to them, and the others are solved for
    anew with that.
    """
    scale = np.sqrt(np.maximum(np.diag(H), 1e-30))
    A = H / np.outer(scale, scale) + damping * np.eye(len(p))
    step, free = np.zeros_like(p), ~_stopped(p, g, least, most)
    while free.any():
        right = g / scale - A[:, ~free] @ (step * scale)[~free]
        step[free] = np.linalg.solve(A[np.ix_(free, free)], right[free]) / scale[free]
        beyond = free & ((p + step < least) | (p + step > most))
        if not beyond.any():
            break
        step[beyond] = np.clip(p + step, least, most)[beyond] - p[beyond]
        free &= ~beyond
    return np.clip(p + step, least, most) - p


def _checked(
    model: PredictionModel, pieces: RecordedPieces, p: Any, sigma_y: Any, sigma_z: Any, bounds: Any
) -> tuple[np.ndarray, ...]:
    """Return numbers, deviations and bounds as arrays, or say what does not fit."""
    p = np.array(p, float)
    deviations = []
    for name, given, size in (("sigma_y", sigma_y, model.ny), ("sigma_z", sigma_z, model.nz)):
        value = np.asarray(given, float)
        if value.shape != (size,) or not (value > 0).all():
            raise IdentifyError(f"`{name}` must be {size} positive numbers, got {value.shape}")
        deviations.append(value)
    if p.shape != (model.n,):
        raise IdentifyError(f"the model has {model.n} numbers, got {p.shape} to begin with")
    least, most = (np.broadcast_to(np.asarray(end, float), p.shape) for end in bounds)
    outside = np.flatnonzero(~((least <= p) & (p <= most)))
    if outside.size:
        k = int(outside[0])
        raise IdentifyError(
            f"number {k} begins at {p[k]:g}, outside its bounds {least[k]:g} .. {most[k]:g}"
        )
    shapes = {"z": (model.nz,), "u": (-1, -1), "y": (-1, model.ny)}
    for name, shape in shapes.items():
        value = getattr(pieces, name)
        fits = value.ndim == len(shape) + 1 and shape[-1] in (-1, value.shape[-1])
        if not fits or len(value) != len(pieces.z):
            raise IdentifyError(f"`{name}` of the pieces has the shape {value.shape}")
        if not np.isfinite(value).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
            raise IdentifyError(f"`{name}` of the pieces is not finite at {where}")
    return p, *deviations, least, most


@dataclass(frozen=True, eq=False)
class _Linearised:
    """Weighted residuals and slopes at some numbers, and the step in p with z_0 eliminated."""

    residual: np.ndarray
    by_p: np.ndarray
    by_z: np.ndarray
    off: np.ndarray
    cost: float

    @property
    def _inner(self) -> np.ndarray:
        nz = self.by_z.shape[-1]
        return np.einsum("bki,bkj->bij", self.by_z, self.by_z) + np.eye(nz)

    @property
    def reduced(self) -> tuple[np.ndarray, np.ndarray]:
        """Return H and g of ``H dp = g``."""
        cross = np.einsum("bki,bkj->bij", self.by_z, self.by_p)
        right = np.einsum("bki,bk->bi", self.by_z, self.residual) - self.off
        solved = np.linalg.solve(self._inner, np.concatenate([cross, right[:, :, None]], axis=2))
        H = np.einsum("bki,bkj->ij", self.by_p, self.by_p)
        H -= np.einsum("bji,bjk->ik", cross, solved[:, :, :-1])
        g = np.einsum("bki,bk->i", self.by_p, self.residual)
        g -= np.einsum("bji,bj->i", cross, solved[:, :, -1])
        return H, g

    def first_states(self, dp: np.ndarray) -> np.ndarray:
        """Return how first states move with a step of p, in their own units."""
        left = self.residual - self.by_p @ dp
        right = np.einsum("bki,bk->bi", self.by_z, left) - self.off
        return np.linalg.solve(self._inner, right[:, :, None])[:, :, 0] * self.sigma_z

    sigma_z: Any = None


def _linearised(
    model: PredictionModel,
    pieces: RecordedPieces,
    z: np.ndarray,
    p: np.ndarray,
    sigma_y: np.ndarray,
    sigma_z: np.ndarray,
) -> _Linearised:
    y, slope = model.predict(z, pieces.u, p)
    count = len(y)
    residual = (pieces.y - y) / sigma_y
    slope = slope / sigma_y[:, None]
    by_p = slope[..., : model.n].reshape(count, -1, model.n)
    by_z = (slope[..., model.n :] * sigma_z).reshape(count, -1, model.nz)
    off = (z - pieces.z) / sigma_z
    with np.errstate(over="ignore", invalid="ignore"):  # predictions may run away: cost infinite
        total = float((residual**2).sum() + (off**2).sum())
    flat = residual.reshape(count, -1)
    return _Linearised(flat, by_p, by_z, off, total / residual.size, sigma_z)
