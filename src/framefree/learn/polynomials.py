"""Polynomials that respect a symmetry: invariants, and wrenches that turn along with the body.

A polynomial map p of z = (v, w, d, inputs) to a wrench commutes with a group if

    p(g z) = g p(z)      for all g;      then      p = mean over g of  g^-1 p(g z).

The mean is a linear map of the coefficients and a projector; a basis of its range, brought to
echelon form so that its entries are few and plain, is all there is up to the degree. Invariants
are the same with p(g z) = p(z). Every function that commutes with the group can be written with
them, up to what their degree leaves out:

    f(z) = sum_k c_k(invariants(z)) p_k(z)
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.symmetry import GroupElement, Symmetry

KINDS = ("velocity", "rate", "down", "inputs")
"""What a model may look at, in the order of z = (v, w, d, inputs)."""
PLAIN = 12.0
"""Coefficients are snapped to multiples of one over this, where they are that to rounding."""

Matrix = Any


@dataclass(frozen=True)
class Polynomials:
    """Polynomial maps of z, all of one shape.

    Attributes
    ----------
    monomials : tuple of tuples of int
        Places in z whose entries are multiplied: () is the constant 1.
    matrix : (maps, rows, monomials)
        Coefficients.
    """

    monomials: tuple[tuple[int, ...], ...]
    matrix: np.ndarray

    def __len__(self) -> int:
        return len(self.matrix)

    def __call__(self, z: Matrix) -> Matrix:
        """Return the maps at z, casadi (rows x maps)."""
        products = [ca.SX(1) if not m else _product(z, m) for m in self.monomials]
        columns = []
        for own in self.matrix:
            rows = []
            for row in own:
                places = np.flatnonzero(row)
                terms = [_times(float(row[j]), products[j]) for j in places]
                rows.append(sum(terms[1:], terms[0]) if terms else ca.SX(1, 1))
            columns.append(ca.vertcat(*rows))
        return ca.horzcat(*columns) if columns else ca.SX(self.matrix.shape[1], 0)


@dataclass(frozen=True, eq=False)
class SymmetricPolynomials:
    """Invariants and equivariant wrenches of a symmetry.

    Parameters
    ----------
    symmetry : Symmetry
    features : tuple of str
        Which of `KINDS` they look at.
    degree : int
        Of the wrenches, 1 or 2; invariants have degree 2.
    """

    symmetry: Symmetry
    features: tuple[str, ...] = ("velocity", "rate", "down")
    degree: int = 1

    def __post_init__(self) -> None:
        wrong = [name for name in self.features if name not in KINDS]
        if wrong or not self.features:
            raise LearnError(f"`features` must be some of {KINDS}, got {self.features}")
        if self.degree not in (1, 2):
            raise LearnError(f"`degree` must be 1 or 2, got {self.degree}")

    @cached_property
    def places(self) -> np.ndarray:
        """Places in z of the features, in the order of z."""
        sizes = (3, 3, 3, self.symmetry.inputs)
        starts = np.cumsum([0, *sizes])
        return np.concatenate(
            [
                np.arange(starts[i], starts[i + 1])
                for i, kind in enumerate(KINDS)
                if kind in self.features
            ]
        ).astype(int)

    @cached_property
    def invariants(self) -> Polynomials:
        """All invariants of degree 1 and 2."""
        return self._fixed(2, 1, lambda element: np.eye(1), constant=False)

    @cached_property
    def wrenches(self) -> Polynomials:
        """All wrenches (6) that commute with the group, of degree 0 to `degree`."""
        return self._fixed(self.degree, 6, lambda element: element.on_wrench, constant=True)

    def _fixed(self, degree: int, rows: int, output: Any, constant: bool) -> Polynomials:
        n = len(self.places)
        first = 0 if constant else 1
        monomials = [
            m for k in range(first, degree + 1) for m in combinations_with_replacement(range(n), k)
        ]
        elements = self.symmetry.elements
        mean = np.zeros((rows * len(monomials),) * 2)
        for element in elements:
            lift = _lifted(self._motion(element), monomials)
            # (g^-1 C L)[i, j] with C stored by rows: g is orthogonal.
            mean += np.kron(output(element).T, lift.T) / len(elements)
        basis = _echelon(mean.T)
        return Polynomials(
            tuple(tuple(int(self.places[i]) for i in m) for m in monomials),
            basis.reshape(len(basis), rows, len(monomials)),
        )

    def _motion(self, element: GroupElement) -> np.ndarray:
        return element.on_motion[np.ix_(self.places, self.places)]


def _lifted(rho: np.ndarray, monomials: list[tuple[int, ...]]) -> np.ndarray:
    """Return L with ``monomials(rho z) = L monomials(z)``."""
    place = {m: j for j, m in enumerate(monomials)}
    lift = np.zeros((len(monomials),) * 2)
    for i, m in enumerate(monomials):
        if not m:
            lift[i, i] = 1.0
        elif len(m) == 1:
            for a in np.flatnonzero(rho[m[0]]):
                lift[i, place[(int(a),)]] += rho[m[0], a]
        else:
            for a in np.flatnonzero(rho[m[0]]):
                for b in np.flatnonzero(rho[m[1]]):
                    key = (int(min(a, b)), int(max(a, b)))
                    lift[i, place[key]] += rho[m[0], a] * rho[m[1], b]
    return lift


def _echelon(rows: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """Return the reduced echelon form of the span of some rows, in plain numbers."""
    work = np.array(rows)
    done: list[int] = []
    for column in range(work.shape[1]):
        free = [i for i in range(len(work)) if i not in done]
        if not free:
            break
        pivot = free[int(np.argmax(np.abs(work[free, column])))]
        if abs(work[pivot, column]) < tolerance:
            continue
        work[pivot] /= work[pivot, column]
        factors = work[:, column].copy()
        factors[pivot] = 0.0
        work -= np.outer(factors, work[pivot])
        done.append(pivot)
    basis = work[done]
    plain = np.round(basis * PLAIN) / PLAIN
    return np.where(np.abs(basis - plain) < tolerance, plain, basis)


def _product(z: Matrix, places: tuple[int, ...]) -> Matrix:
    result = z[places[0]]
    for i in places[1:]:
        result = result * z[i]
    return result


def _times(factor: float, value: Matrix) -> Matrix:
    return value if factor == 1.0 else factor * value
