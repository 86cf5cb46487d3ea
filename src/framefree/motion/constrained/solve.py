"""Accelerations under constraints in numbers, with the rank found from the numbers themselves.

Minimise ``1/2 a . M a - Q . a`` subject to ``A a = b``. Three routes to the same answer:

    udwadia_kalaba   a = a_free + M^-1/2 (A M^-1/2)^+ (b - A a_free)         [Udwadia1992]
    gauss            a = A^+ b + Z y, with Z spanning the null space of A
    kkt              [M A^T; A 0] (a, -lam) = (Q, b) in the least-squares sense

All take a mass matrix M that is only positive semidefinite. The acceleration is then unique iff
[M; A] has full column rank. Where b is not in the range of A, ``A a = b`` holds in the sense of
least squares over the rows as they are given. Multipliers lam are the shortest with
``A^T lam = M a - Q``. Ranks do not depend on the units of rows: all rows are judged at unit length.

The compiled calls of `Constrained` use `framefree.motion.constrained.algebra` instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from framefree.motion.equations import EquationsError

RANK = 1e-9
"""Singular values below this, relative to the largest, count as zero."""


@dataclass(frozen=True)
class ConstrainedSolution:
    """An acceleration under constraints, with what certifies it.

    Attributes
    ----------
    a : (nv,)
    constraint_force : (nv,)
        Q_c = M a - Q.
    multipliers : (m,)
        The shortest lam with A^T lam = Q_c.
    rank : int
        Of A.
    residual : float
        Length of A a - b; not zero where the constraints contradict each other.
    unique : bool
        Whether the acceleration is the only one: [M; A] has full column rank.
    unique_multipliers : bool
        Whether the multipliers are the only ones: no row depends on others.
    """

    a: np.ndarray
    constraint_force: np.ndarray
    multipliers: np.ndarray
    rank: int
    residual: float
    unique: bool
    unique_multipliers: bool


def solve(
    M: np.ndarray, Q: np.ndarray, A: np.ndarray, b: np.ndarray, method: str = "udwadia-kalaba"
) -> ConstrainedSolution:
    """Return the acceleration by one of `METHODS`, with its force, multipliers and rank."""
    if method not in METHODS:
        raise EquationsError(f"there is no method `{method}`; choose one of: {', '.join(METHODS)}")
    a = METHODS[method](M, Q, A, b)
    force = M @ a - Q
    rank = numerical_rank(unit_rows(A))
    return ConstrainedSolution(
        a,
        force,
        row_pseudo_inverse(A).T @ force,
        rank,
        float(np.linalg.norm(A @ a - b)),
        unique_acceleration(M, A),
        rank == len(A),
    )


def unique_acceleration(M: np.ndarray, A: np.ndarray) -> bool:
    """Return whether [M; A] has full column rank, whatever the units of rows and coordinates."""
    diagonal = np.diag(M)
    units = np.where(diagonal > 0, diagonal, 1.0) ** -0.5
    stack = np.vstack([units[:, None] * M * units, unit_rows(A * units)])
    return numerical_rank(stack) == len(M)


def udwadia_kalaba(M: np.ndarray, Q: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a by the pseudo-inverse of A M^-1/2.

    A singular M is replaced by M + A^+ A, which is constant on ``A a = b``.
    """
    values, vectors = np.linalg.eigh(M)
    if len(M) and values[0] <= RANK * values[-1]:
        # [Udwadia2006]; the force is still that of M itself (errata E3-5), see `solve`.
        values, vectors = np.linalg.eigh(M + row_pseudo_inverse(A) @ A)
    root = vectors * np.maximum(values, np.finfo(float).tiny) ** -0.5
    free = root @ (root.T @ Q)
    return free + root @ (row_pseudo_inverse(A @ root) @ (b - A @ free))


def gauss(M: np.ndarray, Q: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a as a particular solution of A a = b and the best that the null space adds."""
    particular = row_pseudo_inverse(A) @ b
    Z = null_space(unit_rows(A))
    return particular + Z @ (pseudo_inverse(Z.T @ M @ Z) @ (Z.T @ (Q - M @ particular)))


def kkt(M: np.ndarray, Q: np.ndarray, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a from the saddle-point system, after b is brought into the range of A."""
    n, m, rows = len(M), len(A), unit_rows(A)
    matrix = np.block([[M, rows.T], [rows, np.zeros((m, m))]])
    right = np.concatenate([Q, rows @ (row_pseudo_inverse(A) @ b)])
    return np.linalg.lstsq(matrix, right, rcond=1e-13)[0][:n]


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "udwadia-kalaba": udwadia_kalaba,
    "gauss": gauss,
    "kkt": kkt,
}
"""Name to the function that gives the acceleration."""


def pseudo_inverse(A: np.ndarray) -> np.ndarray:
    """Return A^+, singular values below `RANK` dropped."""
    return np.linalg.pinv(A, rcond=RANK) if A.size else np.zeros(A.shape[::-1])


def null_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (columns) of the vectors that A maps to zero."""
    if not A.size:
        return np.eye(A.shape[1])
    _, values, rows = np.linalg.svd(A)
    return rows[int((values > RANK * values[0]).sum()) :].T


def numerical_rank(A: np.ndarray, tolerance: float = RANK) -> int:
    """Return the number of singular values above `tolerance` times the largest."""
    if not A.size:
        return 0
    values = np.linalg.svd(A, compute_uv=False)
    return int((values > tolerance * values[0]).sum())


def unit_rows(A: np.ndarray) -> np.ndarray:
    """Return A with every row at unit length; rows of zeros stay."""
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(lengths > 0, lengths, 1.0)


def row_pseudo_inverse(A: np.ndarray, rank: float = RANK) -> np.ndarray:
    """Return A^+ with the rank of A's rows at unit length: ``A^+ = V (A V)^+``.

    The columns of V span the rows. A V has full column rank, but its rows may differ by many
    orders; sorted by length, a pivoted factorisation keeps the digits of all of them [Cox1998].
    """
    if not A.any():
        return np.zeros(A.shape[::-1])
    _, values, rows = np.linalg.svd(unit_rows(A), full_matrices=False)
    V = rows[: int((values > rank * values[0]).sum())].T
    T = A @ V
    order = np.argsort(-np.abs(T).max(axis=1), kind="stable")
    factors: Any = scipy.linalg.qr(T[order], mode="economic", pivoting=True)
    Q, R, pivots = factors
    inverse = np.empty((V.shape[1], len(A)))
    inverse[np.ix_(pivots, order)] = scipy.linalg.solve_triangular(R, Q.T)
    return V @ inverse
