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
from scipy import linalg, sparse

from framefree.identify.errors import IdentifyError
from framefree.motion.regressor import moments_of_vector

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
    program = _ConicProgram(prior, scale, bounds)
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


class _ConicProgram:
    """The conic program in y: entries of L^-1 P L^-T - I for bodies, (p - prior) / scale else."""

    def __init__(self, prior: np.ndarray, scale: np.ndarray, bounds: Bounds) -> None:
        self.prior, self.bounds, n = prior, bounds, len(prior)
        self.T = np.diag(np.where(np.isfinite(scale) & (scale > 0), scale, 1.0))
        self.roots = []
        self.center = prior.copy()
        for places in bounds.bodies:
            P0 = _definite(moments_of_vector(prior[places]).matrix4)
            L = np.linalg.cholesky(P0)
            self.roots.append(L)
            self.center[places] = _vector(P0)
            self.T[np.ix_(places, places)] = np.column_stack(
                [_vector(L @ _unit(k) @ L.T) for k in range(10)]
            )
        self.n = n

    def solve(
        self, B: np.ndarray, beta: np.ndarray, covariance: np.ndarray | None
    ) -> np.ndarray | None:
        try:
            import clarabel
        except ImportError:
            raise IdentifyError(
                "possible bodies need the solver Clarabel: install framefree[identify]"
            ) from None

        count = len(self.bounds.bodies)
        # Variables: y (n), then for each body Z (10, lower triangle) and log Z_ii (4).
        size = self.n + 14 * count
        rows, right, cones = [], [], []

        def add(block: Any, side: Any, cone: Any) -> None:
            rows.append(sparse.csc_matrix(block))
            right.append(np.atleast_1d(np.asarray(side, float)))
            cones.append(cone)

        weight = 1.0 if covariance is None else PRIOR
        P, q = sparse.csc_matrix((size, size)), np.zeros(size)
        BT, gap = B @ self.T, beta - B @ self.center
        if covariance is None:
            sizes = np.linalg.norm(BT, axis=1)
            block = np.zeros((len(BT), size))
            block[:, : self.n] = BT / sizes[:, None]
            if len(BT):
                add(block, gap / sizes, clarabel.ZeroConeT(len(BT)))
        else:
            root = _inverse_root(covariance)
            A = root @ BT
            H = np.zeros((size, size))
            H[: self.n, : self.n] = A.T @ A
            P = sparse.csc_matrix(np.triu(H))
            q[: self.n] = -A.T @ (root @ gap)
        # Numbers of which nothing is known stay near where they were.
        others = np.setdiff1d(np.arange(self.n), np.concatenate([*self.bounds.bodies, []]))
        ridge = np.zeros(size)
        ridge[others.astype(int)] = 1e-6 * weight
        P = P + sparse.diags(ridge).tocsc()
        for b, places in enumerate(self.bounds.bodies):
            start = self.n + 14 * b
            q[places[:4]] += weight * np.array([1.0, 0.0, 0.0, 0.0])  # trace: see _unit
            q[places[[4, 7, 9]]] += weight
            q[start + 10 : start + 14] -= weight
            add(*self._determinant(places, start, size), clarabel.PSDTriangleConeT(8))
            add(*self._least(places, size), clarabel.PSDTriangleConeT(4))
            for i in range(4):
                block = np.zeros((3, size))
                block[0, start + 10 + i] = -1.0
                block[2, start + _LOWER.index((i, i))] = -1.0
                add(block, [0.0, 1.0, 0.0], clarabel.ExponentialConeT())
        self._linear(add, size, clarabel)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        A = sparse.vstack(rows).tocsc()
        # Sizes of the objective differ by many orders from those of the bodies, which are one.
        size_of_objective = max(1.0, float(np.abs(P).max()), float(np.abs(q).max()))
        P, q = (P / size_of_objective).tocsc(), q / size_of_objective
        for tolerance in (1e-10, 1e-8):
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
            solver = clarabel.DefaultSolver(P, q, A, np.concatenate(right), cones, settings)
            solution = solver.solve()
            if str(solution.status) == "Solved":
                break
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            return None
        return self.center + self.T @ np.array(solution.x)[: self.n]

    def _determinant(self, places: np.ndarray, start: int, size: int) -> tuple[Any, Any]:
        """Rows of [I + Y, Z; Z^T, diag Z] >= 0."""
        block, side = np.zeros((36, size)), np.zeros(36)
        for k, (i, j) in enumerate(_triangle(8)):
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

    def _least(self, places: np.ndarray, size: int) -> tuple[Any, Any]:
        """Rows of I + Y >= LEAST I."""
        block, side = np.zeros((10, size)), np.zeros(10)
        for k, (i, j) in enumerate(_triangle(4)):
            factor = 1.0 if i == j else np.sqrt(2)
            block[k, places[_PLACES[i, j]]] = -factor
            side[k] = (1.0 - LEAST) * (i == j)
        return block, side

    def _linear(self, add: Any, size: int, clarabel: Any) -> None:
        """Rows of p >= 0, and of |p| <= other."""
        block, side = [], []
        for k in self.bounds.positive:
            row = np.zeros(size)
            row[: self.n] = -self.T[k]
            block.append(row)
            side.append(self.center[k])
        for k, other in self.bounds.within:
            for sign in (1.0, -1.0):
                row = np.zeros(size)
                row[: self.n] = sign * self.T[k]
                limit = -sign * self.center[k]
                if isinstance(other, int):
                    row[: self.n] -= self.T[other]
                    limit += self.center[other]
                else:
                    limit += float(other)
                block.append(row)
                side.append(limit)
        if block:
            add(np.array(block), side, clarabel.NonnegativeConeT(len(side)))


_LOWER = [(i, j) for i in range(4) for j in range(i + 1)]
_ENTRIES = [(3, 3), (0, 3), (1, 3), (2, 3), (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
"""Entry of the 4x4 form that each of a body's ten numbers is."""
_PLACES = {entry: k for k, entry in enumerate(_ENTRIES)}


def _triangle(n: int) -> list[tuple[int, int]]:
    """Entries of an upper triangle, column by column."""
    return [(i, j) for j in range(n) for i in range(j + 1)]


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
