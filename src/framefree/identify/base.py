"""Base parameters: the combinations of unknown numbers that forces depend on at all.

Columns of a stacked regressor Y (rows x n) that depend on others add nothing that can be told. A QR
with pivoting picks r independent ones, `chosen`, and says how the others follow from them,

    Y = Y_chosen B,    B (r x n),    beta = B pi

so that beta, one number for each chosen unknown with a share of the others, is all that data see.
The null space of B is what no motion tells.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

RANK = 1e-8
"""Share of the largest pivot below which a column depends on the others."""
SMALL = 1e-9
"""Share of the largest entry below which a coefficient is rounding."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """What can be told of some unknown numbers.

    Attributes
    ----------
    names : tuple of str
        Of all n unknown numbers.
    chosen : (r,)
        Places of the independent ones.
    B : (r, n)
        beta = B pi.
    scale : (n,)
        Length of each column of Y a row, by which columns are measured against each other.
    condition : float
        Of the scaled independent columns.
    """

    names: tuple[str, ...]
    chosen: np.ndarray
    B: np.ndarray
    scale: np.ndarray
    condition: float

    @property
    def rank(self) -> int:
        """Number of combinations that can be told."""
        return len(self.chosen)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name of each base parameter: that of the chosen unknown."""
        return tuple(self.names[k] for k in self.chosen)

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter in words: "link2.first.x - 0.2 link3.mass"."""
        return tuple(_sum(row, self.names, first) for row, first in zip(self.B, self.chosen,
                                                                        strict=True))  # fmt: skip

    @cached_property
    def null_space(self) -> np.ndarray:
        """Directions (n, n - r) of the unknowns that no force sees; columns are orthonormal."""
        return linalg.null_space(self.B)

    @cached_property
    def untold(self) -> tuple[str, ...]:
        """Names of unknowns of which the data see nothing at all."""
        return tuple(n for n, column in zip(self.names, self.B.T, strict=True) if not column.any())

    def scale_of_numbers(self, prior: np.ndarray) -> np.ndarray:
        """Return a size (n,) of every unknown number: its own, or what its column suggests."""
        finite = np.where(np.isfinite(self.scale), self.scale, 0.0)
        force = float(np.median((np.abs(prior) * finite)[prior != 0.0])) if prior.any() else 1.0
        suggested = np.divide(force, finite, out=np.ones(len(prior)), where=finite > 0)
        return np.where(prior != 0.0, np.abs(prior), suggested)

    @cached_property
    def alone(self) -> tuple[str, ...]:
        """Names of unknowns that are told by themselves, not only together with others."""
        if not self.null_space.shape[1]:
            return self.names
        told = np.isfinite(self.scale)
        sizes = np.where(told, self.scale, 1.0)[:, None]
        free = np.abs(self.null_space * sizes).max(axis=1)
        together = told & (free < 1e-9)
        return tuple(n for n, alone in zip(self.names, together, strict=True) if alone)


def base_parameters(
    names: tuple[str, ...], Y: np.ndarray, scale: np.ndarray | None = None, rank: float = RANK
) -> BaseParameters:
    """Return the base parameters of a stacked regressor (rows, n).

    Parameters
    ----------
    names : tuple of str
    Y : (rows, n)
    scale : (n,), optional
        Sizes by which columns are measured; by default their own lengths.
    rank : float
        See `RANK`.
    """
    n = Y.shape[1]
    own = np.linalg.norm(Y, axis=0) / np.sqrt(max(len(Y), 1))
    scale = own if scale is None else scale
    assert scale is not None
    scale = np.where(scale > 1e-12 * max(float(scale.max(initial=0.0)), 1e-300), scale, np.inf)
    scaled = Y / scale / np.sqrt(max(len(Y), 1))
    # Only R matters: a tall matrix is reduced first.
    small = np.linalg.qr(scaled, mode="r") if len(scaled) > n else scaled
    factors: Any = linalg.qr(small, mode="r", pivoting=True)
    R, order = factors[0], factors[1]
    pivots = np.abs(np.diag(R))
    r = int(np.sum(pivots > rank * max(float(pivots[:1].max(initial=0.0)), 1e-300)))
    R1, R2 = R[:r, :r], R[:r, r:]
    B = np.zeros((r, n))
    B[:, order[:r]] = np.eye(r)
    if r:
        follow = linalg.solve_triangular(R1, R2)
        finite = np.where(np.isfinite(scale), scale, 0.0)
        shares = follow * finite[order[r:]] / finite[order[:r], None]
        B[:, order[r:]] = np.where(np.abs(follow) < SMALL, 0.0, shares)
    sizes = np.linalg.svd(R1, compute_uv=False) if r else np.ones(1)
    arranged = np.argsort(order[:r])
    return BaseParameters(
        names, order[:r][arranged], B[arranged], scale, float(sizes[0] / sizes[-1])
    )


def _sum(row: np.ndarray, names: tuple[str, ...], first: int) -> str:
    text = names[first]
    for k in np.argsort(-np.abs(row)):
        if k == first or row[k] == 0.0:
            continue
        sign = "-" if row[k] < 0 else "+"
        size = abs(float(row[k]))
        factor = "" if abs(size - 1) < 1e-9 else f"{size:.4g} "
        text += f" {sign} {factor}{names[k]}"
    return text
