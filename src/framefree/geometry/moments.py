"""Moments: total, first and second moment of a distribution of points.

One type for mass (kg), stiffness (N/m) and damping (N s/m), see [Konz2024, sec. 3.3].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca
import numpy as np

from framefree.geometry.arrays import (
    GeometryError,
    Matrix,
    MatrixLike,
    as_matrix,
    as_shape,
    numbers_or_graph,
)
from framefree.geometry.operators import Vee, Wed

_overflow = np.errstate(over="ignore", invalid="ignore")
"""Huge numbers are refused by the constructor, by name; NumPy need not warn before."""

SYMMETRY_TOLERANCE = 1e-9
ROUNDING = 1e-12
"""Share of the second moment about the frame origin below which that about the center is lost."""


class MomentsError(GeometryError):
    """A distribution cannot be what it is said to be, such as a body of negative mass."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weights w_p at points h_p of a frame: their sum, first and second moment.

        total = sum w_p,    first = sum w_p h_p,    second = sum w_p h_p h_p^T

    The total may be zero (a torsion spring), and no sign is demanded: see `problems` and
    `validate_mass`. Numbers are kept as float and read-only NumPy arrays; if any entry is
    symbolic, all three are kept as `casadi.SX`. Properties and results are of the same kind.

    Attributes
    ----------
    total
        Zeroth moment: kg, N/m or N s/m. Below, "weight" stands for this unit.
    first
        First moment (3) about the frame origin, weight m.
    second
        Second moment (3x3), symmetric, about the frame origin, weight m^2.

    Examples
    --------
    >>> import numpy as np
    >>> rod = Moments.of_body(2.0, (0.5, 0, 0), np.diag([0, 1 / 6, 1 / 6]))  # 2 kg, 1 m
    >>> rod.total, rod.center.tolist()
    (2.0, [0.5, 0.0, 0.0])
    >>> rod.moment.diagonal().round(3).tolist()  # about its end: m l^2 / 3
    [0.0, 0.667, 0.667]
    """

    total: Any
    first: Any
    second: Any

    def __post_init__(self) -> None:
        total = numbers_or_graph(self.total, (1, 1), "total")
        first = numbers_or_graph(self.first, (3, 1), "first")
        second = numbers_or_graph(self.second, (3, 3), "second")
        parts = (total, first, second)
        if any(isinstance(part, ca.SX) for part in parts):
            values = tuple(ca.SX(part) for part in parts)
        else:
            values = _checked(total, first, second)
        for name, value in zip(("total", "first", "second"), values, strict=True):
            object.__setattr__(self, name, value)

    # ---- makers

    @staticmethod
    def of_points(points: MatrixLike, weights: MatrixLike) -> Moments:
        """Return the moments of `weights` (n) at `points` (n, 3), m."""
        w = as_matrix(weights)
        h = as_shape(points, (w.numel(), 3), "points") if w.numel() else ca.DM.zeros(0, 3)
        weighted = h * ca.repmat(ca.reshape(w, -1, 1), 1, 3)
        return Moments(ca.sum(w), ca.sum1(weighted).T, h.T @ weighted)

    @staticmethod
    def of(total: MatrixLike, center: MatrixLike, moment: MatrixLike) -> Moments:
        """Return the moments with this total, center (3), m, and moment (3x3), weight m^2.

        The moment is taken about the frame origin: sum w_p wed(h_p)^T wed(h_p) = Vee(second),
        for mass what is called the inertia tensor.
        """
        moment = as_shape(moment, (3, 3), "moment")
        return Moments(total, as_matrix(total) * as_shape(center, (3, 1), "center"), Wed(moment))

    @staticmethod
    @_overflow
    def of_body(mass: MatrixLike, center: MatrixLike, inertia_at_center: MatrixLike) -> Moments:
        """Return the moments of a body of this mass, kg, center of mass (3), m, and inertia (3x3).

        The inertia, kg m^2, is taken about the center of mass, in the axes of the frame.
        """
        mass = numbers_or_graph(mass, (1, 1), "mass")
        c = numbers_or_graph(center, (3, 1), "center")
        inertia = as_shape(inertia_at_center, (3, 3), "inertia_at_center")
        at_center = numbers_or_graph(Wed(inertia), (3, 3), "inertia_at_center")
        return Moments(mass, mass * c, at_center + mass * (c @ c.T))

    @staticmethod
    def zero() -> Moments:
        """Return the moments of nothing, the neutral element of +."""
        return Moments(0.0, np.zeros(3), np.zeros((3, 3)))

    # ---- what they say

    @property
    def symbolic(self) -> bool:
        """Whether the entries are `SX` rather than numbers."""
        return isinstance(self.total, ca.SX)

    @property
    def center(self) -> Any:
        """Center (3), m: first / total. A total of zero has none."""
        if not self.symbolic and self.total == 0.0:
            raise MomentsError("the total of these `Moments` is zero, so they have no `center`")
        return self.first / self.total

    @property
    def moment(self) -> Any:
        """Moment (3x3), weight m^2, about the frame origin: Vee(second)."""
        return self._like_self(Vee(self.second))

    @property
    def moment_at_center(self) -> Any:
        """Moment (3x3), weight m^2, about the center; for a body, its inertia."""
        c = as_matrix(self.center)
        return self._like_self(Vee(as_matrix(self.second) - self.total * (c @ c.T)))

    @property
    def matrix4(self) -> Any:
        """The 4x4 form [second, first; first^T, total] = sum w_p (h_p, 1) (h_p, 1)^T."""
        f = as_matrix(self.first)
        return self._like_self(ca.blockcat([[as_matrix(self.second), f], [f.T, self.total]]))

    @property
    def matrix6(self) -> Any:
        """The 6x6 form [total I, wed(first)^T; wed(first), moment] = Vee(matrix4).

        For twists xi = (v, w) of the frame: sum w_p |v + w x h_p|^2 = xi . matrix6 xi.
        """
        return self._like_self(Vee(self.matrix4))

    # ---- what can be done with them

    @_overflow
    def moved(self, G_ab: MatrixLike) -> Moments:
        """Return the same distribution seen from frame a, when these moments are given in frame b.

        Points h_b become h_a = R_ab h_b + r_ab, so matrix4 becomes G matrix4 G^T, and matrix6
        becomes Ad_G^-T matrix6 Ad_G^-1.
        """
        G = numbers_or_graph(G_ab, (4, 4), "G_ab")
        R, r = G[:3, :3], G[:3, 3:]
        total, first, second = self._parts()
        turned = R @ first
        cross = R @ second @ R.T / 2 + (turned + total * r / 2) @ r.T
        # Half plus its transpose: symmetric to the last bit, however the rotation rounds.
        return Moments(total, turned + total * r, cross + cross.T)

    @_overflow
    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        parts = zip(self._parts(), other._parts(), strict=True)
        return Moments(*(mine + theirs for mine, theirs in parts))

    def __radd__(self, other: object) -> Moments:
        # `sum` of several starts with the number 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @_overflow
    def __mul__(self, factor: Any) -> Moments:
        if isinstance(factor, Moments):
            return NotImplemented
        factor = numbers_or_graph(factor, (1, 1), "factor")
        return Moments(*(factor * part for part in self._parts()))

    __rmul__ = __mul__

    def __neg__(self) -> Moments:
        return -1.0 * self

    def __sub__(self, other: Moments) -> Moments:
        return self + (-other)

    def __eq__(self, other: object) -> bool:
        """Whether all entries are equal, exactly; symbolic ones if they are the same expression."""
        if not isinstance(other, Moments) or self.symbolic != other.symbolic:
            return False
        if self.symbolic:
            return bool(ca.is_equal(self.matrix4, other.matrix4, 1_000_000))
        return np.array_equal(self.matrix4, other.matrix4)

    def __hash__(self) -> int:
        return hash(str(self.total)) if self.symbolic else hash(self.total)

    # ---- what is wrong with them

    def problems(
        self, tolerance: float = 1e-9, form: Literal["4x4", "6x6"] = "4x4"
    ) -> tuple[str, ...]:
        """Return what is unphysical about these moments, in words; empty if nothing is.

        Parameters
        ----------
        tolerance
            How far below zero an eigenvalue at the center may lie, relative to the largest.
        form
            "6x6": that form must be positive semidefinite, so that no motion has negative energy.
            This is all that springs, dampers and prototype parameters need.
            "4x4": that form, too. Only then can positive weights at points make it up, as they
            make up a body. For the principal moments at the center it is the triangle inequality.

        Symbolic moments have no values to check, and no problems.
        """
        if self.symbolic:
            return ()
        problems = []
        if self.total < 0.0:
            problems.append(f"the total is negative, {self.total:.6g}")
        if self.total == 0.0 and self.first.any():
            problems.append(
                "the 6x6 form is not positive semidefinite: the total is zero, but not "
                f"the first moment, {self.first.tolist()}"
            )
        second, rounding = self._second_at_center
        values = np.linalg.eigvalsh(second)
        # Both forms, seen from the center, are made of the total and of a block of these.
        lowest = _lowest(values.sum() - values[::-1], tolerance, 2 * rounding)
        if lowest < 0.0:
            problems.append(
                "the 6x6 form is not positive semidefinite: the lowest principal moment at the "
                f"center is {lowest:.3g} of the largest"
            )
        lowest = _lowest(values, tolerance, rounding)
        if form == "4x4" and lowest < 0.0:
            problems.append(
                "the 4x4 form is not positive semidefinite (triangle inequality of the principal "
                f"moments): its lowest eigenvalue at the center is {lowest:.3g} of the largest"
            )
        return tuple(problems)

    def validate_mass(self, name: str, tolerance: float = 1e-9) -> None:
        """Raise `MomentsError` unless body `name` can have these moments as its mass distribution.

        That is: a positive total and a positive semidefinite 4x4 form.
        """
        if self.symbolic:
            return
        if not self.total > 0.0:
            raise MomentsError(f"body `{name}`: expected a positive mass, got {self.total:.6g}")
        problems = self.problems(tolerance)
        if problems:
            raise MomentsError(f"body `{name}`: impossible mass distribution: {problems[-1]}")

    # ---- helpers

    @property
    def _second_at_center(self) -> tuple[np.ndarray, float]:
        """Second moment (3x3) about the center, and what rounding may have made of it.

        Far from the frame origin the difference of two large moments is left. With a total of
        zero there is no center, and the second moment is the same about every point.
        """
        second = np.array(self.second)
        if self.total != 0.0:
            second -= np.outer(self.first, self.first / self.total)
        return second, ROUNDING * float(np.abs(self.second).max())

    def _parts(self) -> tuple[Any, Any, Any]:
        """Total, first moment as a column, and second moment: numbers or graphs."""
        first = self.first if self.symbolic else self.first.reshape(3, 1)
        return self.total, first, self.second

    def _like_self(self, matrix: Matrix) -> Any:
        return matrix if isinstance(matrix, ca.SX) else np.array(matrix)


def _checked(
    total: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return numbers as float and read-only arrays; refuse what is not finite or not symmetric."""
    values = float(total[0, 0]), first.ravel(), second
    for name, value in zip(("total", "first", "second"), values, strict=True):
        if not np.all(np.isfinite(value)):
            raise MomentsError(f"`{name}` of `Moments` must be finite, got {value}")
    with np.errstate(over="ignore", invalid="ignore"):
        at_center = np.outer(values[1], values[1] / values[0]) if values[0] else np.zeros(0)
    if not np.all(np.isfinite(at_center)):
        raise MomentsError(
            f"`first` of `Moments` is too large for its total {values[0]:.6g}, so that the second "
            f"moment about the center is beyond all numbers: got {values[1].tolist()}"
        )
    asymmetry = np.abs(values[2] - values[2].T).max()
    if asymmetry > SYMMETRY_TOLERANCE * np.abs(values[2]).max():
        raise MomentsError(f"`second` of `Moments` must be symmetric, got {values[2].tolist()}")
    symmetric = (values[2] + values[2].T) / 2
    for array in (values[1], symmetric):
        array.flags.writeable = False
    return values[0], values[1], symmetric


def _lowest(eigenvalues: np.ndarray, tolerance: float, rounding: float) -> float:
    """Return the lowest of ascending eigenvalues, relative to the largest; 0 if it may be zero.

    Relative to the largest, so that the answer does not depend on the units.
    """
    largest = float(np.abs(eigenvalues).max())
    negligible = tolerance * largest + rounding
    return float(eigenvalues[0] / largest) if abs(eigenvalues[0]) > negligible else 0.0
