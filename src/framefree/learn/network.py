"""Networks that commute with a symmetry: invariant coefficients times equivariant wrenches.

    f(z) = F sum_k c_k(i(z)) p_k(z / s_0),       c = W_3 tanh(W_2 tanh(W_1 i + b_1) + b_2) + b_3

The p_k are all polynomial wrenches of the symmetry (`polynomials.py`), the i its invariants of
v / s, l w / s and d, and the logarithm of the speed s = sqrt(s_1^2 + |v|^2 + l^2 |w|^2) itself: the
direction of the motion enters apart from how fast it is. Whatever the weights are, f(g z) = g f(z).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.kernel.layers import layers
from framefree.learn.errors import LearnError
from framefree.learn.polynomials import SymmetricPolynomials
from framefree.learn.symmetry import Symmetry, symmetry_of
from framefree.machine.part import set_field

REST = 0.1
"""Speed below which directions fade out, relative to the usual speed."""

Matrix = Any


@dataclass(frozen=True, eq=False)
class SymmetricNetwork:
    """A network of the wrench on a body; see the top of this file.

    Parameters
    ----------
    symmetry : Symmetry
    features : tuple of str
        What it looks at: some of "velocity", "rate", "down", "inputs".
    length, speed, force : float
        l of the body (m), the usual speed s_0 (m/s) and force F (N).
    layers : tuple of (W, b)
        Weights; the last has a row for every polynomial.
    means, widths : (i,)
        By which the invariants are shifted and divided.
    degree : int
        Of the polynomials, 1 or 2.
    """

    symmetry: Symmetry
    features: tuple[str, ...]
    length: float
    speed: float
    force: float
    layers: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    means: Any = None
    widths: Any = None
    degree: int = 1

    def __post_init__(self) -> None:
        for name in ("length", "speed", "force"):
            if not 0 < getattr(self, name) < np.inf:
                raise LearnError(f"the {name} of a network must be positive")
        set_field(self, "features", tuple(self.features))
        for W, b in self.layers:
            if not (np.isfinite(W).all() and np.isfinite(b).all()):
                raise LearnError("weights of a network must be finite")

    @cached_property
    def polynomials(self) -> SymmetricPolynomials:
        """Invariants and wrenches of its symmetry."""
        return SymmetricPolynomials(self.symmetry, self.features, self.degree)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of invariants and of wrenches."""
        return len(self.polynomials.invariants) + 1, len(self.polynomials.wrenches)

    @property
    def weights(self) -> np.ndarray:
        """All weights in one row."""
        return flat(self.layers)

    def with_weights(self, weights: Any) -> "SymmetricNetwork":
        """Return the network with other weights, in the order of `weights`."""
        return replace(self, layers=unflat(np.asarray(weights, float), self.layers))

    def invariants(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return what the first layer takes (i), before it is shifted and divided."""
        l, rest = self.length, REST * self.speed
        s = ca.sqrt(ca.dot(v, v) + l**2 * ca.dot(w, w) + rest**2)
        z = ca.vertcat(v / s, l * w / s, d, inputs)
        return ca.vertcat(self.polynomials.invariants(z).T, ca.log(s / self.speed))

    def wrenches(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return F p_k (6 x k), N and Nm."""
        z = ca.vertcat(v / self.speed, self.length * w / self.speed, d, inputs)
        columns = self.polynomials.wrenches(z)
        scale = ca.vertcat(ca.DM.ones(3), self.length * ca.DM.ones(3)) * self.force
        return columns * ca.repmat(scale, 1, columns.shape[1])

    def wrench(
        self,
        v: Matrix,
        w: Matrix,
        d: Matrix,
        inputs: Matrix,
        weights: Matrix | None = None,
        last: Matrix | None = None,
    ) -> Matrix:
        """Return f (6); with a column of weights these are inputs, else constants.

        `last` is a column of weights of the last layer alone, in the order of `flat`.
        """
        own = self.layers if weights is None else unflat(weights, self.layers)
        shifted = (self.invariants(v, w, d, inputs) - ca.DM(self.means)) / ca.DM(self.widths)
        if last is None:
            h = layers(shifted, own)
        else:
            ((W, b),) = unflat(last, self.layers[-1:])
            h = W @ ca.tanh(layers(shifted, own[:-1])) + b
        return self.wrenches(v, w, d, inputs) @ h

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        plain = {name: getattr(self, name) for name in ("length", "speed", "force", "degree")}
        arrays = {f"W{k}": W for k, (W, _) in enumerate(self.layers)}
        arrays |= {f"b{k}": b for k, (_, b) in enumerate(self.layers)}
        return {
            "symmetry": self.symmetry.parts(),
            "features": list(self.features),
            **plain,
            **arrays,
            "means": np.asarray(self.means),
            "widths": np.asarray(self.widths),
        }

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "SymmetricNetwork":
        """Return the network that `parts` describes."""
        count = sum(1 for key in parts if key.startswith("W"))
        return cls(
            symmetry_of(parts["symmetry"]),
            tuple(parts["features"]),
            parts["length"],
            parts["speed"],
            parts["force"],
            tuple((parts[f"W{k}"], parts[f"b{k}"]) for k in range(count)),
            parts["means"],
            parts["widths"],
            parts["degree"],
        )


def flat(layers: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """Return all weights of layers in one row, W by columns before b."""
    pieces = [part for W, b in layers for part in (np.asarray(W).ravel(order="F"), np.asarray(b))]
    return np.concatenate([*pieces, np.zeros(0)])


def unflat(weights: Any, like: Sequence[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Return layers shaped like others from weights in one row, or from a casadi column."""
    layers, at = [], 0
    symbolic = isinstance(weights, ca.SX | ca.DM)
    total = sum(np.size(W) + np.size(b) for W, b in like)
    given = weights.shape[0]
    if given != total:
        raise LearnError(f"the network has {total} weights, got {given}")
    for W, _ in like:
        rows, columns = W.shape
        own = weights[at : at + rows * columns]
        at += rows * columns
        matrix = (
            ca.reshape(own, rows, columns) if symbolic else own.reshape(rows, columns, order="F")
        )
        layers.append((matrix, weights[at : at + rows]))
        at += rows
    return tuple(layers)
