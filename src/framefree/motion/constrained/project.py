"""Bringing a state onto constraints: positions by damped Gauss-Newton steps, then velocities.

Each step minimises ``|gradient dv + phi|^2 + mu |dv|^2`` in a chosen metric, and x moves by dv on
the groups of its coordinates. mu is of the size of the error: far away this is a descent step, near
the solution a Newton step, at redundant rows too [Fan2005].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine.loop import TOLERANCE
from framefree.motion.constrained.solve import RANK, row_pseudo_inverse

CLOSED = TOLERANCE
"""Largest position error (m, rad) with which a projection counts as successful; loops may have
their own."""


SLOW = 5
"""Number of steps in a row that gain less than a percent after which it is given up."""


class ClosureError(FramefreeError):
    """Constraints could not be met.

    Attributes
    ----------
    errors : dict of str to float
        Largest remaining error of each row that is not met.
    """

    def __init__(self, message: str, errors: dict[str, float]) -> None:
        super().__init__(message)
        self.errors = errors


@dataclass(frozen=True)
class Projection:
    """A state on the constraints, and how well it is.

    Attributes
    ----------
    x : (nx,)
    v : (nv,)
    position_error, velocity_error : float
        Largest remaining entries of phi and eta.
    iterations : int
    """

    x: np.ndarray
    v: np.ndarray
    position_error: float
    velocity_error: float
    iterations: int


Errors = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From x (or v) to the errors (m) and their gradient (m, nv)."""


def position(
    x: np.ndarray,
    errors: Errors,
    metric: Callable[[np.ndarray], np.ndarray],
    integrate: Callable[[np.ndarray, np.ndarray], np.ndarray],
    free: Sequence[int],
    iterations: int = 100,
    rank: float = RANK,
) -> tuple[np.ndarray, float, int]:
    """Return x with errors as small as they get, the largest of them, and the number of steps.

    Only the velocities in `free` move; `metric(x)` is a root of the inverse weight of those:
    dv[free] = metric z with |z| minimal. Directions whose singular value, relative to the largest,
    is below `rank` do not move.
    """
    phi, gradient = errors(x)
    slow, caution = 0, 1.0
    for count in range(iterations):
        size = float(np.linalg.norm(phi))
        if size == 0.0 or slow > SLOW:
            return x, float(np.abs(phi).max(initial=0.0)), count
        root, step = metric(x), np.zeros(gradient.shape[1])
        shortest, held_back = _damped(gradient[:, free] @ root, phi, caution, rank)
        step[free] = root @ shortest
        x_new, phi_new, gradient_new, halvings = _shortened(x, step, size, errors, integrate)
        caution = caution / 4 if halvings == 0 else min(caution * 4**halvings, 1.0)
        new_size = float(np.linalg.norm(phi_new))
        if not new_size < size:
            return x, float(np.abs(phi).max()), count
        slow = slow + 1 if new_size > 0.99 * size and not held_back else 0
        x, phi, gradient = x_new, phi_new, gradient_new
    return x, float(np.abs(phi).max()), iterations


def velocity(
    v: np.ndarray, errors: Errors, root: np.ndarray, iterations: int = 10, rank: float = RANK
) -> tuple[np.ndarray, float]:
    """Return v with errors as small as they get, and the largest of them; nearest in the metric."""
    eta, A = errors(v)
    for _ in range(iterations):
        size = float(np.abs(eta).max(initial=0.0))
        if size == 0.0:
            break
        step = root @ (row_pseudo_inverse(A @ root, rank) @ eta)
        eta_new, A_new = errors(v - step)
        if float(np.abs(eta_new).max()) >= size:
            break
        v, eta, A = v - step, eta_new, A_new
    return v, float(np.abs(eta).max(initial=0.0))


def _damped(Y: np.ndarray, phi: np.ndarray, caution: float, rank: float) -> tuple[np.ndarray, bool]:
    """Return ``-Y^T (Y Y^T + mu)^-1 phi`` by singular values, and whether mu holds it back.

    mu is the square of the largest times |phi| (at most 1e-2) times `caution` (at most 1). In a
    metric of masses that differ by orders it exceeds the least square for many steps.
    """
    U, values, rows = np.linalg.svd(Y, full_matrices=False)
    if not values.size or values[0] == 0.0:
        return np.zeros(Y.shape[1]), False
    damping = values[0] ** 2 * min(float(np.linalg.norm(phi)), 1e-2) * caution
    kept = values > rank * values[0]
    weights = np.where(kept, values / (values**2 + damping), 0.0)
    return -rows.T @ (weights * (U.T @ phi)), bool(damping > values[kept].min() ** 2)


def _shortened(
    x: np.ndarray,
    step: np.ndarray,
    size: float,
    errors: Errors,
    integrate: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Take the step, halved until the errors fall; also return how often."""
    for halvings in range(12):
        x_new = integrate(x, step * 0.5**halvings)
        phi, gradient = errors(x_new)
        if np.isfinite(phi).all() and np.linalg.norm(phi) < size:
            break
    return x_new, phi, gradient, halvings


def weight_root(M: np.ndarray) -> np.ndarray:
    """Return W with W W^T the inverse of a weight."""
    values, vectors = np.linalg.eigh(M)
    # A direction without mass is free to move, but not infinitely more than the others.
    return vectors / np.sqrt(np.maximum(values, 1e-9 * values.max(initial=1e-300)))
