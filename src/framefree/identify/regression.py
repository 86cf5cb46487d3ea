"""Robust least squares for rows in time: outliers, noise that is coloured, noise joints share.

    sum_k rho(W_k (Y_k beta - b_k)) -> min

W whitens what is left: autoregressive in time for each equation, then a square root of the
covariance between the equations of one row. rho is Huber's: quadratic up to `HUBER` standard
deviations, linear beyond, so that a wrong row pulls no more than a large one.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from framefree.identify.errors import IdentifyError

HUBER = 2.5
"""Standard deviations beyond which a residual counts linearly."""
ORDER, ROWS = 6, 60
"""Largest order of the autoregression, and rows that each order needs."""
ROUNDS = 8
LAGS = 12
"""Rows over which errors may be alike beyond what the autoregression takes out."""


@dataclass(frozen=True, eq=False)
class Regressed:
    """The result of a regression.

    Attributes
    ----------
    value : (n,)
    covariance : (n, n)
    residual : (rows, equations)
        b - Y beta, not whitened.
    outliers : (rows, equations) of bool
        What was weighed down.
    deviation : (equations,)
        Standard deviation of the whitened residual of each equation, in the unit of b.
    """

    value: np.ndarray
    covariance: np.ndarray
    residual: np.ndarray
    outliers: np.ndarray
    deviation: np.ndarray


def regress(Y: np.ndarray, b: np.ndarray, *, coloured: bool, whiten: bool = True) -> Regressed:
    """Solve ``Y_k beta = b_k`` over all rows k.

    Parameters
    ----------
    Y : (rows, equations, n)
    b : (rows, equations)
    coloured : bool
        Whether rows follow each other in time, so that their errors may be alike.
    whiten : bool
        Whether errors are made white and independent: best where they are noise. Where they are
        what the model lacks, the plain sum of squares predicts better; deviations count how rows
        are alike all the same.
    """
    rows, m, n = Y.shape
    if rows * m < 2 * n:
        raise IdentifyError(
            f"{rows} rows of {m} equations are too few for {n} numbers: record a longer motion"
        )
    spread = b.std(axis=0)
    # An equation whose right side vanishes is not exact for that.
    spread = np.maximum(spread, 1e-2 * max(float(spread.max()), 1e-12 * float(np.abs(b).max())))
    spread = np.where(spread > 0, spread, 1.0)
    filters = np.zeros((m, 0))
    root = np.diag(1 / spread)
    weight = np.ones((rows, m))
    value = np.zeros(n)
    for turn in range(ROUNDS):
        Yw, bw = _whitened(Y, b, filters, root)
        sw = np.sqrt(weight[len(weight) - len(bw) :])
        value, R = _solve(Yw * sw[:, :, None], bw * sw)
        residual = b - Y @ value
        last = turn == ROUNDS - 1
        if not last and turn % 2 == 1 and not _rounding(residual, b):
            filters, root = _noise(residual, coloured and whiten)
            root = root if whiten else np.diag(1 / residual.std(axis=0))
        if not last:
            weight = np.ones((rows, m))
            Yw, bw = _whitened(Y, b, filters, root)
            weight[rows - len(bw) :] = _huber(bw - Yw @ value)
    left = (bw - Yw @ value) * sw
    freedom = max(left.size - n - filters.size, 1)
    inverse = linalg.solve_triangular(R, np.eye(n))
    covariance = inverse @ inverse.T * (left**2).sum() / freedom
    scores = np.einsum("kmn,km->kn", Yw * sw[:, :, None], left, optimize=True)
    covariance = _widened(covariance, scores @ (inverse @ inverse.T), LAGS if coloured else 0)
    deviation = np.sqrt(np.diag(np.linalg.inv(root.T @ root)))
    return Regressed(value, covariance, residual, weight < 0.5, deviation)


def _widened(covariance: np.ndarray, influence: np.ndarray, lags: int) -> np.ndarray:
    """Return the covariance with deviations at least those that the rows themselves show.

    `influence` (rows, n) is how each row moves the result. Where what is left is neither white nor
    independent of the regressor, because noise drives the motion too, their sum varies more than
    the residuals alone tell [Newey1987].
    """
    shown = influence.T @ influence
    for lag in range(1, lags + 1):
        cross = influence[lag:].T @ influence[:-lag]
        shown += (1 - lag / (lags + 1)) * (cross + cross.T)
    factor = np.sqrt(np.maximum(np.diag(shown) / np.diag(covariance), 1.0))
    return covariance * np.outer(factor, factor)


def _solve(Y: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the solution of least squares, and R of the columns, each in its own scale."""
    n = Y.shape[-1]
    A, right = Y.reshape(-1, n), b.ravel()
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Q, R = np.linalg.qr(A / scale)
    beta = linalg.solve_triangular(R, Q.T @ right)
    # One step of refinement: digits that the size of the right side takes away come back.
    beta += linalg.solve_triangular(R, Q.T @ (right - A @ (beta / scale)))
    return beta / scale, R * scale


def _rounding(residual: np.ndarray, b: np.ndarray) -> bool:
    return float(np.abs(residual).max()) < 1e-9 * max(float(np.abs(b).max()), 1e-300)


def _whitened(
    Y: np.ndarray, b: np.ndarray, filters: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides through the autoregressive filters of the equations and `root`."""
    if filters.size:
        start = filters.shape[1]
        Yf, bf = Y[start:].copy(), b[start:].copy()
        for lag in range(1, start + 1):
            part = filters[:, lag - 1]
            Yf -= part[:, None] * Y[start - lag : len(Y) - lag]
            bf -= part * b[start - lag : len(b) - lag]
        Y, b = Yf, bf
    return np.einsum("ij,kjn->kin", root, Y, optimize=True), b @ root.T


def _noise(residual: np.ndarray, coloured: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the autoregression of each equation, and the root of the inverse covariance."""
    m = residual.shape[1]
    filters = np.zeros((m, 0))
    limit = 6 * 1.4826 * np.median(np.abs(residual), axis=0)
    clipped = np.clip(residual, -limit, limit)
    order = min(ORDER, len(residual) // ROWS) if coloured else 0
    if order:
        filters = np.array([_autoregression(column, order) for column in clipped.T])
    _, white = _whitened(np.zeros((*residual.shape, 0)), clipped, filters, np.eye(m))
    # Robust deviations, and the correlation of what is not extreme.
    sizes = 1.4826 * np.median(np.abs(white), axis=0)
    sizes = np.maximum(sizes, 1e-6 * max(float(sizes.max()), 1e-300))
    standard = np.clip(white / sizes, -3, 3)
    correlation = standard.T @ standard / len(standard)
    diagonal = np.sqrt(np.diag(correlation))
    correlation = 0.999 * correlation / np.outer(diagonal, diagonal) + 0.001 * np.eye(m)
    L = np.linalg.cholesky(correlation)
    return filters, linalg.solve_triangular(L, np.diag(1 / sizes), lower=True)


def _autoregression(e: np.ndarray, order: int) -> np.ndarray:
    """Return the coefficients of the best prediction of e_k from the rows before (Yule-Walker)."""
    e = e - e.mean()
    r = np.array([e[: len(e) - lag] @ e[lag:] for lag in range(order + 1)]) / len(e)
    if r[0] <= 0:
        return np.zeros(order)
    r[0] *= 1 + 1e-4
    return linalg.solve_toeplitz(r[:-1], r[1:])


def _huber(standard: np.ndarray) -> np.ndarray:
    return HUBER / np.maximum(np.abs(standard), HUBER)
