"""Least squares of a level's own rows, as routines: the step that makes its residuals smallest.

With the part Q_own of the basis that is new at this level, rows are y = F Q_own on what levels
above leave free, and a step d = c Q_own changes the residuals s by F c. It is the c of

    min |F c + s|^2 + damping^2 |c + h|^2

where h is how far the variables are from rest, along Q_own. The damping is zero as long as the
least singular value of F is above a threshold. Of it a lower bound is used,

    sigma = 1 / |L^-1|_F <= sigma_min(F),    L L^T = F^T F or F F^T, L triangular,

so that what the damping changes of the residuals is at most damping^2 / (sigma^2 + damping^2) of
what the rows ask for [Nakamura1986].
"""

from math import sqrt

from framefree.control.qp.vectors import add, dot, fill
from framefree.kernel.routines import Array, fma, routine


@routine
def triangular(F: Array, rows: int, own: int, width: int, L: Array, U: Array, spare: Array) -> None:
    """Write the columns of F as column_j = L[j] . U, with orthonormal U (own rows of length rows).

    Rows of U are padded to a multiple of four; `spare` has room for one of them.
    """
    height = (rows + 3) // 4 * 4
    for j in range(own):
        for a in range(height):
            spare[a] = F[a * width + j] if a < rows else 0.0
        fill(0.0, L[j * width :], j)
        for _ in range(2):
            for k in range(j):
                part = dot(U[k * height :], spare, height)
                L[j * width + k] += part
                add(-part, U[k * height :], spare, height)
        left = sqrt(dot(spare, spare, height))
        L[j * width + j] = left
        for a in range(height):
            U[j * height + a] = spare[a] / left


@routine
def inverse_length(L: Array, own: int, width: int, column: Array) -> float:
    """Return |L^-1|_F of a lower triangular matrix."""
    total = 0.0
    for k in range(own):
        for i in range(k, own):
            value = 1.0 if i == k else 0.0
            for j in range(k, i):
                value = fma(-L[i * width + j], column[j], value)
            column[i] = value / L[i * width + i]
            total = fma(column[i], column[i], total)
    return sqrt(total)


@routine
def damping_of(sigma: float, threshold: float, size: float) -> float:
    """Return the damping, squared: zero above the threshold, smooth, at most (threshold size)^2.

    `size` is that of the rows; threshold and sigma / size are shares of it.
    """
    share = sigma / (threshold * size)
    if share >= 1.0:
        return 0.0
    rise = (1.0 - share * share) * threshold * size
    return rise * rise


@routine
def plain_step(
    F: Array, s: Array, rows: int, own: int, width: int, L: Array, U: Array, c: Array
) -> None:
    """Write c of min |F c + s|; a square F is triangular, for others `triangular` was called."""
    if rows == own:
        for i in range(own):
            value = -s[i]
            for j in range(i):
                value = fma(-F[i * width + j], c[j], value)
            c[i] = value / F[i * width + i]
        return
    height = (rows + 3) // 4 * 4
    for k in range(own):
        i = own - 1 - k
        value = -dot(U[i * height :], s, height)
        for j in range(i + 1, own):
            value = fma(-L[j * width + i], c[j], value)
        c[i] = value / L[i * width + i]


@routine
def damped_step(
    F: Array,
    s: Array,
    h: Array,
    damping: float,
    rows: int,
    own: int,
    width: int,
    K: Array,
    c: Array,
) -> None:
    """Write c of (F^T F + damping) c = -F^T s - damping h, by Cholesky's factor in K."""
    for i in range(own):
        for j in range(i + 1):
            total = damping if i == j else 0.0
            for a in range(rows):
                total = fma(F[a * width + i], F[a * width + j], total)
            for k in range(j):
                total = fma(-K[i * width + k], K[j * width + k], total)
            K[i * width + j] = sqrt(max(total, 1e-300)) if i == j else total / K[j * width + j]
        value = -damping * h[i]
        for a in range(rows):
            value = fma(-F[a * width + i], s[a], value)
        for k in range(i):
            value = fma(-K[i * width + k], c[k], value)
        c[i] = value / K[i * width + i]
    for k in range(own):
        i = own - 1 - k
        value = c[i]
        for j in range(i + 1, own):
            value = fma(-K[j * width + i], c[j], value)
        c[i] = value / K[i * width + i]
