"""Joints that can move without moving any inertia of their own body: loops must hold them.

The elimination of `graph.py` divides by the inertia that a joint moves. Where the body that the
joint carries has none along it (a massless connector, a rod that turns about itself), that inertia
may be zero, and only the rows of loops and couplings then determine how the joint accelerates. Such
a joint is *idle*: the elimination takes it as held, and its accelerations z are found together with
the multipliers mu of the rows. After everything else is eliminated these two are left:

    M z + B^T mu = f                motors of the idle joints; M may be singular, or zero
    B z - H mu = -gap               rows of loops and couplings; H as well

The motion is unique iff M + B^T B is definite [Udwadia2006]. With any positive weights w, the
matrix ``M + B^T (H + 1/w)^-1 B`` is definite then too, also where H is singular; it stands for the
equations of the same motion with ``1/2 w |rows|^2`` added to Gauss' function, which does not change
the minimiser.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.motion.elimination import Directions
from framefree.motion.spatial import Inertia, Matrix, solve_symmetric, symmetric

RESISTED = 1e-9
"""A joint moves inertia of its own body if that is more than this share of the body's largest."""

UNDETERMINED = 1e-12
"""Share of an idle joint's inertia, and of what rows see of it, that counts as rounding.

Where no more is left, the motion is not unique."""


def may_be_idle(directions: Directions, inertia: Inertia, armature: Matrix) -> bool:
    """Tell whether some motion of a joint may meet no inertia of its own body, nor of a rotor.

    For subspaces that depend on the configuration the answer holds for all of them.
    """
    M, S = ca.SX(inertia.matrix), directions.S
    if not S.shape[1]:
        return False
    if not (M.is_constant() and armature.is_constant()):
        return bool(ca.SX(M).is_zero() and armature.is_zero())
    A = np.diag(ca.DM(armature).full())
    if (A > 0).all():
        return False
    M = ca.DM(M).full()
    sizes = np.repeat([np.trace(M[:3, :3]), np.trace(M[3:, 3:])], 3)
    if not sizes.any():
        return True
    if not S.is_constant():
        return not _definite(M, np.diag(sizes))
    S = ca.DM(S).full()
    return not _definite(S.T @ M @ S + np.diag(A), S.T @ np.diag(sizes) @ S + np.diag(A))


def _definite(matrix: np.ndarray, largest: np.ndarray) -> bool:
    """Whether a matrix is definite, seen beside the largest that it could be."""
    scale = np.sqrt(np.diag(largest))
    if not scale.all():
        return False
    return bool(np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] > RESISTED)


@dataclass(frozen=True)
class IdleJoints:
    """The system of idle joints and rows at a configuration; see the top of this file.

    Attributes
    ----------
    mass : k x k
        M, rotors included.
    rows : m x k
        B.
    responses : m x m
        H.
    softness : m
        1/w of the rows: about their mobility.
    mass_sizes, row_sizes : k and m x k
        What M's diagonal and the entries of B would be if nothing cancelled.
    """

    mass: Matrix
    rows: Matrix
    responses: Matrix
    softness: Matrix
    mass_sizes: Matrix
    row_sizes: Matrix

    @cached_property
    def _stiff(self) -> Matrix:
        return self.responses + ca.diag(self.softness)

    @cached_property
    def _definite(self) -> Matrix:
        return symmetric(self.mass + self.rows.T @ solve_symmetric(self._stiff, self.rows))

    def rates(self, force: Matrix, gap: Matrix, multipliers: Matrix | None = None) -> Matrix:
        """Return z; without the multipliers that close the gap, it is left to the weights.

        It is not a number where the motion is not unique.
        """
        if multipliers is not None:
            gap = gap + self.softness * multipliers
        right = force - self.rows.T @ solve_symmetric(self._stiff, gap)
        return solve_symmetric(self._definite, right) * self._unique

    def gap_of(self, force: Matrix, gap: Matrix) -> Matrix:
        """Return by how much the weights alone leave the rows open."""
        z = self.rates(force, gap)
        return self.softness * solve_symmetric(self._stiff, self.rows @ z + gap)

    @cached_property
    def mobility(self) -> Matrix:
        """Motion along the rows per force along them (m x m), of what the weights hold too."""
        softness = ca.diag(self.softness)
        others = softness @ solve_symmetric(self._stiff, self.responses)
        V = softness @ solve_symmetric(self._stiff, self.rows)
        return symmetric(others + V @ solve_symmetric(self._definite, V.T))

    @cached_property
    def _unique(self) -> Matrix:
        """1, or not a number where some idle joint meets neither inertia nor rows."""
        diagonal, k = ca.diag(self._definite), self.mass.shape[0]
        unseen = UNDETERMINED**2 * (self.row_sizes.T**2 @ (1 / ca.diag(self._stiff)))
        sizes = [ca.sqrt(ca.fmax(diagonal[i], self.mass_sizes[i])) for i in range(k)]
        pivots = pivots_with_errors(self._definite, sizes)
        unique = [pivot > ca.fmax(error, unseen[i]) for i, (pivot, error) in enumerate(pivots)]
        everywhere = unique[0]
        for one in unique[1:]:
            everywhere = ca.logic_and(everywhere, one)
        return ca.if_else(everywhere, 1, np.nan)


def pivots_with_errors(matrix: Matrix, sizes: Sequence[Matrix]) -> list[tuple[Matrix, Matrix]]:
    """Return the pivots of L D L^T, each with what it may be wrong by.

    Entries are taken to be wrong by `UNDETERMINED` times the sizes of their row and column, and
    errors to grow as they do to first order.
    """
    n = matrix.shape[0]
    rest = [[matrix[i, j] for j in range(i + 1)] for i in range(n)]
    error = [[UNDETERMINED * sizes[i] * sizes[j] for j in range(i + 1)] for i in range(n)]
    for k in range(n):
        factor = [rest[i][k] / rest[k][k] if i > k else ca.SX(0) for i in range(n)]
        size = [ca.fabs(one) for one in factor]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                rest[i][j] = rest[i][j] - factor[i] * rest[j][k]
                grown = size[i] * error[j][k] + size[j] * error[i][k]
                error[i][j] = error[i][j] + grown + size[i] * size[j] * error[k][k]
    return [(rest[k][k], error[k][k]) for k in range(n)]
