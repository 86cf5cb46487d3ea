"""Conic programs: a quadratic objective over linear rows in cones, solved by Clarabel.

Rows are ``side - block y`` in a cone. Symmetric matrices enter by the upper triangle, column by
column, entries off the diagonal times sqrt(2), as Clarabel has them.
"""

from typing import Any

import numpy as np
from scipy import sparse

from framefree.errors import FramefreeError

SOLVED, ALMOST = "Solved", "AlmostSolved"


def clarabel() -> Any:
    """Return the solver's module, or say how to get it."""
    try:
        import clarabel
    except ImportError:
        raise FramefreeError(
            "semidefinite programs need the solver Clarabel: install framefree[identify]"
        ) from None
    return clarabel


def triangle(n: int) -> list[tuple[int, int]]:
    """Return the entries of an upper triangle, column by column."""
    return [(i, j) for j in range(n) for i in range(j + 1)]


def stacked(matrices: Any) -> np.ndarray:
    """Return symmetric matrices (k, n, n) as columns (n (n + 1)/2, k) that keep their products."""
    matrices = np.asarray(matrices, float)
    rows = [
        matrices[:, i, j] * (1.0 if i == j else np.sqrt(2)) for i, j in triangle(len(matrices[0]))
    ]
    return np.array(rows)


class ConicProgram:
    """Rows of ``side - block y`` in a product of cones, and the program over them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._blocks: list[Any] = []
        self._sides: list[np.ndarray] = []
        self._cones: list[Any] = []

    def add(self, block: np.ndarray, side: np.ndarray, cone: Any) -> None:
        """Add rows; columns that a block lacks are zero."""
        if len(side):
            wide = np.zeros((len(block), self.size))
            wide[:, : block.shape[1]] = block
            self._blocks.append(sparse.csc_matrix(wide))
            self._sides.append(np.asarray(side, float))
            self._cones.append(cone)

    def equal(self, block: np.ndarray, side: np.ndarray) -> None:
        """Add ``block y = side``."""
        self.add(block, side, clarabel().ZeroConeT(len(side)))

    def below(self, block: np.ndarray, side: np.ndarray) -> None:
        """Add ``block y <= side``, row by row."""
        self.add(block, side, clarabel().NonnegativeConeT(len(side)))

    def semidefinite(self, matrices: Any, constant: np.ndarray) -> None:
        """Add that ``constant + sum_k y_k matrices_k`` (n x n) is positive semidefinite."""
        cone = clarabel().PSDTriangleConeT(len(constant))
        self.add(-stacked(matrices), stacked([constant])[:, 0], cone)

    def minimise(self, P: np.ndarray, q: np.ndarray) -> np.ndarray | None:
        """Return the least of 1/2 y^T P y + q^T y in the cones; None if it is not found."""
        solver = clarabel()
        settings = solver.DefaultSettings()
        settings.verbose = False
        # Sizes of the objective differ by many orders from those in the cones, which are one.
        scale = max(1.0, float(np.abs(P).max()), float(np.abs(q).max()))
        objective = sparse.csc_matrix(np.triu(P) / scale), q / scale
        rows = sparse.vstack(self._blocks).tocsc(), np.concatenate(self._sides), self._cones
        for tolerance in (1e-10, 1e-8):
            settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
            solution = solver.DefaultSolver(*objective, *rows, settings).solve()
            if str(solution.status) == SOLVED:
                return np.array(solution.x)
        return np.array(solution.x) if str(solution.status) == ALMOST else None
