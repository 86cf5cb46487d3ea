"""Bodies that can exist: unknown numbers nearest to what the data say, and possible.

A body's ten numbers belong to some distribution of mass if and only if its 4x4 form P is positive
semidefinite [Wensing2018]. Data fix some combinations, beta = B pi. Of all possible pi with that
beta the one nearest to what was known before is taken, in the distance

    d(P | P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4

which does not depend on the frame in which a body is described. If no possible pi has that beta,
because of noise, beta gives way by as little as its covariance allows. Both are one conic program,
solved by Clarabel (extra `identify`). In coordinates L^-1 P L^-T with P0 = L L^T all bodies are of
size one; log det is held by [P Z; Z^T diag Z] >= 0 with Z triangular and exponential cones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from framefree.identify.errors import IdentifyError
from framefree.motion.regressor import moments_of_vector
from framefree.solve.cones import ConicProgram, clarabel, triangle

LEAST = 1e-6
"""P >= LEAST P0: every body keeps this share of what was known of it, in all directions."""
PRIOR = 1e-2
"""Weight of the distances beside the squared error of beta in standard deviations."""


@dataclass(frozen=True)
class Bounds:
    """What the unknown numbers must obey beside being bodies.

    Attributes
    ----------
    bodies : tuple of (10,) arrays of int
        Places of each body's ten numbers.
    positive : tuple of int
        Places of numbers that are not negative: friction, inertia of drives.
    within : tuple of (int, int or float)
        Places of numbers whose size is at most another number, by its place, or a constant.
    """

    bodies: tuple[np.ndarray, ...]
    positive: tuple[int, ...]
    within: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, eq=False)
class Possible:
    """Unknown numbers that can be.

    Attributes
    ----------
    value : (n,)
    moved : bool
        Whether beta had to give way.
    """

    value: np.ndarray
    moved: bool


def nearest(
    B: np.ndarray,
    beta: np.ndarray,
    covariance: np.ndarray,
    prior: np.ndarray,
    scale: np.ndarray,
    bounds: Bounds,
) -> Possible:
    """Return possible numbers with ``B pi = beta``, or as near to it as there are.

    Parameters
    ----------
    B, beta, covariance : (r, n), (r,), (r, r)
        What the data say.
    prior : (n,)
        What was known before.
    scale : (n,)
        Sizes of the numbers that are not of bodies.
    bounds : Bounds
    """
    program = _PossibleProgram(prior, scale, bounds)
    exact = program.solve(B, beta, None)
    if exact is not None:
        # The solver meets the equations to its tolerance: the last digits are put in.
        T = program.T
        BT = B @ T
        step = np.linalg.lstsq(BT, beta - B @ exact, rcond=None)[0]
        return Possible(exact + T @ step, False)
    found = program.solve(B, beta, covariance)
    if found is None:
        raise IdentifyError("no possible bodies were found for these data")
    return Possible(found, True)


class _PossibleProgram:
    """The conic program in y: entries of L^-1 P L^-T - I for bodies, (p - prior) / scale else."""

    def __init__(self, prior: np.ndarray, scale: np.ndarray, bounds: Bounds) -> None:
        self.prior, self.bounds, n = prior, bounds, len(prior)
        self.T = np.diag(np.where(np.isfinite(scale) & (scale > 0), scale, 1.0))
        self.center = prior.copy()
        for places in bounds.bodies:
            P0 = _definite(moments_of_vector(prior[places]).matrix4)
            L = np.linalg.cholesky(P0)
            self.center[places] = _vector(P0)
            self.T[np.ix_(places, places)] = np.column_stack(
                [_vector(L @ _unit(k) @ L.T) for k in range(10)]
            )
        # Variables: y (n), then for each body Z (10, lower triangle) and log Z_ii (4).
        self.n, self.size = n, n + 14 * len(bounds.bodies)

    def solve(
        self, B: np.ndarray, beta: np.ndarray, covariance: np.ndarray | None
    ) -> np.ndarray | None:
        """Return the nearest pi with ``B pi = beta``, or near it as its covariance allows."""
        cones = ConicProgram(self.size)
        P, q = np.zeros((self.size, self.size)), np.zeros(self.size)
        BT, gap = B @ self.T, beta - B @ self.center
        if covariance is None:
            lengths = np.linalg.norm(BT, axis=1)
            cones.equal(BT / lengths[:, None], gap / lengths)
        else:
            root = _inverse_root(covariance)
            A = root @ BT
            P[: self.n, : self.n] = A.T @ A
            q[: self.n] = -A.T @ (root @ gap)
        self._add_distances(P, q, 1.0 if covariance is None else PRIOR)
        for b, places in enumerate(self.bounds.bodies):
            self._add_body(cones, places, self.n + 14 * b)
        self._add_bounds(cones)
        y = cones.minimise(P, q)
        return None if y is None else self.center + self.T @ y[: self.n]

    def _add_distances(self, P: np.ndarray, q: np.ndarray, weight: float) -> None:
        """Add d(P | P0) of the bodies; other numbers of which nothing is known stay near."""
        bodies = np.concatenate([*self.bounds.bodies, []]).astype(int)
        others = np.setdiff1d(np.arange(self.n), bodies)
        P[others, others] += 1e-6 * weight
        for b, places in enumerate(self.bounds.bodies):
            q[places[[0, 4, 7, 9]]] += weight  # the trace
            start = self.n + 14 * b
            q[start + 10 : start + 14] -= weight

    def _add_body(self, cones: ConicProgram, places: np.ndarray, start: int) -> None:
        """Add that a body is possible, and that its four logarithms are at most those of diag Z."""
        solver = clarabel()
        cones.add(*self._determinant(places, start), solver.PSDTriangleConeT(8))
        cones.add(*self._least(places), solver.PSDTriangleConeT(4))
        for i in range(4):
            block = np.zeros((3, self.size))
            block[0, start + 10 + i] = -1.0
            block[2, start + _LOWER.index((i, i))] = -1.0
            cones.add(block, np.array([0.0, 1.0, 0.0]), solver.ExponentialConeT())

    def _determinant(self, places: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of [I + Y, Z; Z^T, diag Z] >= 0."""
        block, side = np.zeros((36, self.size)), np.zeros(36)
        for k, (i, j) in enumerate(triangle(8)):
            factor = 1.0 if i == j else np.sqrt(2)
            if j < 4:
                block[k, places[_PLACES[min(i, j), max(i, j)]]] = -factor
                side[k] = factor * (i == j)
            elif i < 4:
                if i >= j - 4:
                    block[k, start + _LOWER.index((i, j - 4))] = -factor
            elif i == j:
                block[k, start + _LOWER.index((i - 4, i - 4))] = -1.0
        return block, side

    def _least(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of I + Y >= LEAST I."""
        block, side = np.zeros((10, self.size)), np.zeros(10)
        for k, (i, j) in enumerate(triangle(4)):
            factor = 1.0 if i == j else np.sqrt(2)
            block[k, places[_PLACES[i, j]]] = -factor
            side[k] = (1.0 - LEAST) * (i == j)
        return block, side

    def _add_bounds(self, cones: ConicProgram) -> None:
        """Add p >= 0, and |p| <= other."""
        rows = [-self.T[k] for k in self.bounds.positive]
        sides = [self.center[k] for k in self.bounds.positive]
        for k, other in self.bounds.within:
            for sign in (1.0, -1.0):
                row, side = sign * self.T[k], -sign * self.center[k]
                if isinstance(other, int):
                    row, side = row - self.T[other], side + self.center[other]
                else:
                    side += float(other)
                rows.append(row)
                sides.append(side)
        if rows:
            cones.below(np.array(rows), np.array(sides))


_LOWER = [(i, j) for i in range(4) for j in range(i + 1)]
_ENTRIES = [(3, 3), (0, 3), (1, 3), (2, 3), (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
"""Entry of the 4x4 form that each of a body's ten numbers is."""
_PLACES = {entry: k for k, entry in enumerate(_ENTRIES)}


def _unit(k: int) -> np.ndarray:
    matrix = np.zeros((4, 4))
    i, j = _ENTRIES[k]
    matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def _vector(P: np.ndarray) -> np.ndarray:
    return np.array([P[i, j] for i, j in _ENTRIES])


def _definite(P: np.ndarray) -> np.ndarray:
    """Return a 4x4 form that is safely positive definite: rods and points get a little width."""
    P = (P + P.T) / 2
    total, first = P[3, 3], P[:3, 3]
    second = P[:3, :3] - np.outer(first, first) / total
    values, axes = np.linalg.eigh(second)
    reach = max(float(values.max()), 1e-4 * total * 1e-2)
    second = axes @ np.diag(np.maximum(values, 1e-2 * reach)) @ axes.T
    P[:3, :3] = second + np.outer(first, first) / total
    return P


def _inverse_root(covariance: np.ndarray) -> np.ndarray:
    """Return a root of the inverse of a covariance."""
    scale = np.sqrt(np.diag(covariance))
    L = np.linalg.cholesky(covariance / np.outer(scale, scale) + 1e-12 * np.eye(len(scale)))
    return linalg.solve_triangular(L, np.diag(1 / scale), lower=True)
