"""Semidefinite programs over symmetric matrices that are affine in variables, for clarabel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

PATIENCE = 60.0
"""Most time (s) that the solver takes for one program."""


class Variables:
    """A count of variables, given out in runs."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, number: int) -> slice:
        """Return the next few."""
        self.count += number
        return slice(self.count - number, self.count)


@dataclass(frozen=True)
class Affine:
    """A symmetric matrix (m, m) that is affine in variables: constant + sum value_k matrix_k."""

    constant: np.ndarray
    terms: tuple[tuple[int, np.ndarray], ...] = ()

    def plus(self, other: "Affine", factor: float = 1.0) -> "Affine":
        """Return the sum."""
        more = tuple((k, factor * matrix) for k, matrix in other.terms)
        return Affine(self.constant + factor * other.constant, (*self.terms, *more))

    def seen(self, T: np.ndarray) -> "Affine":
        """Return T^T (this) T."""
        own = tuple((k, T.T @ matrix @ T) for k, matrix in self.terms)
        return Affine(T.T @ self.constant @ T, own)

    def at(self, values: np.ndarray) -> np.ndarray:
        """Return the matrix in numbers."""
        return self.constant + sum(values[k] * matrix for k, matrix in self.terms)


class Gram:
    """A symmetric matrix of variables over a basis of monomials: (power, direction of m)."""

    def __init__(self, basis: list[tuple[int, int]], m: int, variables: Variables) -> None:
        self.basis, self.m, self.size = basis, m, len(basis)
        self.place = variables.take(self.size * (self.size + 1) // 2)

    def coefficient(self, k: int) -> Affine:
        """Return what stands before the power k."""
        terms = []
        rows, columns = _places(self.size)
        for at, (r, c) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            (p, i), (q, j) = self.basis[r], self.basis[c]
            if p + q == k:
                E = np.zeros((self.m, self.m))
                E[i, j] += 1.0
                if r != c:
                    E[j, i] += 1.0
                terms.append((self.place.start + at, E))
        return Affine(np.zeros((self.m, self.m)), tuple(terms))

    def least(self, values: np.ndarray) -> float:
        """Return the least eigenvalue."""
        rows, columns = _places(self.size)
        matrix = np.zeros((self.size, self.size))
        matrix[rows, columns] = matrix[columns, rows] = values[self.place]
        return float(np.linalg.eigvalsh(matrix)[0])


def _places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the upper triangle, column by column."""
    columns, rows = np.tril_indices(n)
    return rows, columns


def _vector(matrix: np.ndarray) -> np.ndarray:
    """Return the upper triangle with off-diagonal entries times sqrt(2)."""
    rows, columns = _places(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


class ConeRows:
    """Rows ``side - block y`` in a product of cones."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.blocks: list[Any] = []
        self.sides: list[np.ndarray] = []
        self.cones: list[Any] = []

    def definite(self, matrix: Affine, margin: float) -> None:
        """Ask for a matrix of at least the margin."""
        import clarabel

        n = len(matrix.constant)
        side = _vector(matrix.constant - margin * np.eye(n))
        self._add(matrix, side, clarabel.PSDTriangleConeT(n))

    def definite_variables(self, gram: Gram, margin: float) -> None:
        """Ask the same of a matrix of variables."""
        import clarabel

        place, (rows, columns) = gram.place, _places(gram.size)
        factor = np.where(rows == columns, 1.0, np.sqrt(2))
        self.blocks.append(
            sparse.csc_matrix(
                (-factor, (np.arange(len(rows)), np.arange(place.start, place.stop))),
                shape=(len(rows), self.size),
            )
        )
        self.sides.append(-margin * (rows == columns).astype(float))
        self.cones.append(clarabel.PSDTriangleConeT(gram.size))

    def zero(self, matrix: Affine) -> None:
        """Ask for a matrix of zeros."""
        import clarabel

        side = _vector(matrix.constant)
        self._add(matrix, side, clarabel.ZeroConeT(len(side)))

    def _add(self, matrix: Affine, side: np.ndarray, cone: Any) -> None:
        block = sparse.lil_matrix((len(side), self.size))
        for k, term in matrix.terms:
            block[:, k] = block[:, [k]] - _vector(term)[:, None]
        self.blocks.append(block.tocsc())
        self.sides.append(side)
        self.cones.append(cone)

    def minimise(self, objective: np.ndarray) -> np.ndarray | None:
        """Return values for the least of objective . y; None where the solver says there are none.

        Whatever else it says of itself: values are to be looked at again.
        """
        import clarabel

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.time_limit = PATIENCE
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        rows = sparse.vstack(self.blocks).tocsc(), np.concatenate(self.sides), self.cones
        nothing = sparse.csc_matrix((self.size, self.size))
        solution = clarabel.DefaultSolver(nothing, objective, *rows, settings).solve()
        values = np.array(solution.x)
        hopeless = "Infeasible" in str(solution.status)
        return None if hopeless or not np.isfinite(values).all() else values
