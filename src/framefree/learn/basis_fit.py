"""Fitting a basis: linear least squares inside, the current outside (variable projection).

    min over c, a   sum_n | L_n^-1 (y_n - sum_b J_b^T Phi(xi_b - R_b^T c, d) a) |^2

For a given current c the coefficients a follow by linear least squares; what is left is a function
of three numbers, minimised by Gauss and Newton [Golub1973]. Directions of a that the samples do not
tell (small singular values of scaled columns) are named and set to zero. Terms are then dropped one
by one, the least missed first, as long as Bayes' criterion

    n log(sum of squares / n) + k log n

falls, so that the few that stay can be read.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel import Kernel, compile
from framefree.learn.errors import LearnError
from framefree.learn.learned import LearnedModel
from framefree.learn.library import Library
from framefree.learn.model import BodyMotion
from framefree.learn.samples import Samples, check_enough

UNTOLD = 1e-7
"""Singular values of scaled columns below this share of the largest are not told."""
STARTS = 0.5
"""Currents from which the search also starts, relative to the usual speed."""


@dataclass(frozen=True)
class BasisFit:
    """A fitted basis, and how far the samples told it.

    Attributes
    ----------
    model : LearnedModel
    untold : tuple of str
        Terms that the samples cannot tell, alone or from each other.
    dropped : tuple of str
        Terms that were not needed.
    residual : float
        What the fit leaves of the samples, relative, in the metric.
    """

    model: LearnedModel
    untold: tuple[str, ...]
    dropped: tuple[str, ...]
    residual: float


def fit_basis(
    library: Library, samples: Samples, *, current: Any = None, threshold: bool = True
) -> BasisFit:
    """Fit a basis to samples.

    Parameters
    ----------
    library : Library
        Terms to choose from.
    samples : Samples
    current : None, or (3,)
        A current that is known, m/s, such as zeros; None finds it.
    threshold : bool
        Whether terms that are not needed are dropped.

    Raises
    ------
    LearnError
        If there are too few samples, or no motion in them.
    """
    check_enough(samples, len(library) + 3)
    problem = _Projection(library, samples)
    known = np.zeros(3) if current is None else np.asarray(current, float)
    if known.shape != (3,) or not np.isfinite(known).all():
        raise LearnError(f"`current` must be three finite numbers, got {current!r}")
    kept = list(range(len(library)))
    c = problem.search(kept) if current is None else known
    A = problem.columns(c)
    untold = _untold(A, library.names)
    dropped: list[str] = []
    if threshold:
        kept = _thresholded(A, problem.b)
        dropped = [name for i, name in enumerate(library.names) if i not in kept]
        if current is None:
            c = problem.search(kept, start=c)
    a = np.zeros(len(library))
    a[kept] = _solve(problem.columns(c)[:, kept], problem.b)
    values = np.concatenate([a, c])
    spread = problem.deviations(kept, a, c, moving=current is None)
    left = np.linalg.norm(problem.columns(c) @ a - problem.b) / np.linalg.norm(problem.b)
    model = LearnedModel(library, values, deviations=spread)
    return BasisFit(model, untold, tuple(dropped), float(left))


class _Projection:
    """The linear problem A(c) a = b of some samples, for any current."""

    def __init__(self, library: Library, samples: Samples) -> None:
        self.library, self.samples = library, samples
        self.kernel = _columns_kernel(library)
        self.b = samples.whiten(samples.labels).ravel()

    def columns(self, c: np.ndarray) -> np.ndarray:
        """Return A(c) (rows, terms), whitened."""
        Phi = evaluate(self.kernel, self.samples, c)[0]
        projected = self.samples.whiten(self.samples.project(Phi))
        return projected.reshape(-1, len(self.library))

    def search(self, kept: list[int], start: np.ndarray | None = None) -> np.ndarray:
        """Return the best current (3,), m/s."""
        from scipy.optimize import least_squares

        def left(c: np.ndarray) -> np.ndarray:
            A = self.columns(c)[:, kept]
            return A @ _solve(A, self.b) - self.b

        speed = float(np.sqrt(np.mean(np.sum(self.samples.twist[..., :3] ** 2, axis=-1))))
        if start is None:
            trials = STARTS * speed * np.vstack([np.zeros(3), np.eye(3), -np.eye(3)])
            start = trials[int(np.argmin([np.sum(left(c) ** 2) for c in trials]))]
        scale = max(speed, 1e-6)
        result = least_squares(left, start, x_scale=scale, xtol=1e-12, ftol=1e-14, gtol=1e-14)
        return result.x

    def deviations(
        self, kept: list[int], a: np.ndarray, c: np.ndarray, *, moving: bool
    ) -> np.ndarray:
        """Return standard deviations of (a, c), zero for what was not fitted."""
        A = self.columns(c)
        left = A @ a - self.b
        rows = [A[:, kept]]
        if moving:
            step = 1e-6
            slopes = [
                (self.columns(c + step * e) - self.columns(c - step * e)) @ a / (2 * step)
                for e in np.eye(3)
            ]
            rows.append(np.column_stack(slopes))
        J = np.hstack(rows)
        free = max(len(self.b) - J.shape[1], 1)
        covariance = np.linalg.pinv(J.T @ J) * float(left @ left) / free
        result = np.zeros(len(a) + 3)
        places = [*kept, *(range(len(a), len(a) + 3) if moving else ())]
        result[places] = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return result


def evaluate(kernel: Kernel, samples: Samples, current: np.ndarray) -> list[np.ndarray]:
    """Return a kernel's outputs at all bodies of samples, (n, bodies, ...) each."""
    n, count = samples.twist.shape[:2]
    result = kernel(
        samples.twist.reshape(-1, 6),
        samples.rotation.reshape(-1, 3, 3),
        samples.down.reshape(-1, 3),
        samples.inputs.reshape(n * count, samples.inputs.shape[-1]),
        current,
    )
    outputs = result if isinstance(result, tuple) else (result,)
    return [one.reshape(n, count, *one.shape[1:]) for one in outputs]


def relative_kernel(name: str, inputs: int, outputs: Any) -> Kernel:
    """Return a kernel of a body's motion, but for its place, and a current.

    `outputs` gives expressions by name from (v, w, d, inputs) relative to the current.
    """
    motion, c = BodyMotion.symbols(inputs), ca.SX.sym("current", 3)
    xi = motion.relative(c)
    made = {key: ca.SX(value) for key, value in
            outputs(xi[:3], xi[3:], motion.down, motion.inputs).items()}  # fmt: skip
    function = ca.Function(
        name, [*motion[:4], c], [ca.densify(value) for value in made.values()],
        [*BodyMotion._fields[:4], "current"], list(made),
    )  # fmt: skip
    shapes = {k: v.shape if v.shape[1] > 1 else (v.shape[0],) for k, v in made.items()}
    return compile(function, shapes=shapes)


def _columns_kernel(library: Library) -> Kernel:
    def outputs(*arguments: Any) -> dict[str, Any]:
        return {"columns": library.columns(*arguments)}

    return relative_kernel("columns", library.symmetry.inputs, outputs)


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the shortest least-squares solution with columns scaled to one."""
    sizes = np.linalg.norm(A, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return np.linalg.lstsq(A / sizes, b, rcond=UNTOLD)[0] / sizes


def _untold(A: np.ndarray, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the terms that take part in combinations which the rows do not show."""
    sizes = np.linalg.norm(A, axis=0)
    largest = sizes.max(initial=0.0)
    silent = sizes <= 1e-12 * largest
    scaled = A[:, ~silent] / sizes[~silent]
    values, Vt = np.linalg.svd(scaled, full_matrices=False)[1:]
    unseen = np.abs(Vt[values < UNTOLD * values.max(initial=0.0)]).max(axis=0, initial=0.0) > 0.1
    own = np.flatnonzero(~silent)[unseen]
    return tuple(name for i, name in enumerate(names) if silent[i] or i in own)


def _thresholded(A: np.ndarray, b: np.ndarray) -> list[int]:
    """Return the terms that Bayes' criterion keeps, dropping the least missed first."""
    rows = len(b)

    def criterion(kept: list[int]) -> float:
        left = b - A[:, kept] @ _solve(A[:, kept], b) if kept else b
        square = max(float(left @ left), 1e-28 * float(b @ b))
        return rows * np.log(square / rows) + len(kept) * np.log(rows)

    kept = [i for i in range(A.shape[1]) if np.any(A[:, i])]
    best = criterion(kept)
    while kept:
        trials = [[j for j in kept if j != i] for i in kept]
        values = [criterion(trial) for trial in trials]
        least = int(np.argmin(values))
        if values[least] > best:
            break
        kept, best = trials[least], values[least]
    return kept


def weighted_columns(library: Library, samples: Samples, current: np.ndarray) -> np.ndarray:
    """Return the whitened T^T Phi (rows, terms) of a library at samples."""
    return _Projection(library, samples).columns(np.asarray(current, float))
