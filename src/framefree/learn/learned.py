"""`LearnedModel`: a readable basis, a network on what it leaves, or either alone.

    tau_b = Phi(xi_rel, R^T d) a + scale f(xi_rel, R^T d),       xi_rel = (v - R^T c, w)

with the coefficients a of a library, a network f that commutes with the body's symmetry, and a
current c that is constant in the world. Its adjustable numbers are a, the scale of the network and
the current; with `last_layer` also the weights of the network's last layer, "last.I.J" from unit J
to wrench I and "last.I" its own, in which f is linear.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.errors import LearnError
from framefree.learn.library import Library, library_of
from framefree.learn.model import BodyMotion, WrenchModel, checked_numbers, named
from framefree.learn.network import SymmetricNetwork, flat
from framefree.machine.part import set_field

CURRENT = named("current", "xyz")
SCALE = "network.scale"
LAST = "last."
NO_LAYER = "a model without a network has no last layer"

Matrix = Any


@dataclass(frozen=True, eq=False)
class LearnedModel(WrenchModel):
    """A basis, a network, or their sum; see the top of this file.

    Parameters
    ----------
    library : Library or None
        Terms of the basis.
    coefficients : (size,)
        Of the terms, then the last layer (if it is adjustable) and the scale of the network if
        there is one, then the current (m/s).
    network : SymmetricNetwork or None
    deviations : (size,), optional
        Standard deviations of the numbers, as far as the data told them.
    last_layer : bool
        Whether weights of the network's last layer are among the numbers; `with_last_layer` makes
        such a model.
    """

    library: Library | None
    coefficients: Any  # type: ignore[assignment]
    network: SymmetricNetwork | None = None
    deviations: Any = None
    last_layer: bool = False

    def __post_init__(self) -> None:
        if self.library is None and self.network is None:
            raise LearnError("a learned model needs a library of terms, a network, or both")
        if self.last_layer and self.network is None:
            raise LearnError(NO_LAYER)
        terms = () if self.library is None else self.library.names
        units = () if self.library is None else self.library.units
        scale = () if self.network is None else (*self._last_names(), SCALE)
        set_field(self, "names", (*terms, *scale, *CURRENT))
        set_field(self, "units", (*units, *("" for _ in scale), *("m/s",) * 3))
        set_field(self, "linear", (*terms, *scale))
        counts = [one.symmetry.inputs for one in (self.library, self.network) if one is not None]
        if len(set(counts)) > 1:
            raise LearnError(f"library and network take different inputs: {counts}")
        set_field(self, "inputs", counts[0])
        what = "the numbers of a learned model"
        set_field(self, "coefficients", checked_numbers(self.coefficients, self.size, what))

    def _last_names(self) -> tuple[str, ...]:
        """Return names of the last layer's weights, W by columns before b, as in `flat`."""
        if not self.last_layer or self.network is None:
            return ()
        rows, columns = self.network.layers[-1][0].shape
        units = [f"last.{i}.{j}" for j in range(columns) for i in range(rows)]
        return (*units, *(f"last.{i}" for i in range(rows)))

    def with_last_layer(self) -> "LearnedModel":
        """Return the same model with its network's last layer among its numbers."""
        if self.last_layer:
            return self
        if self.network is None:
            raise LearnError(NO_LAYER)
        weights, place = flat(self.network.layers[-1:]), self.size - 4
        spread = self.deviations
        return replace(
            self,
            coefficients=np.insert(self.coefficients, place, weights),
            deviations=None if spread is None else np.insert(spread, place, 0 * weights),
            last_layer=True,
        )

    @property
    def current(self) -> np.ndarray:
        """The current (3,) in world axes, m/s."""
        return np.array(self.coefficients[-3:])

    @property
    def terms(self) -> dict[str, float]:
        """Coefficients of the basis by name, those that are not zero."""
        count = 0 if self.library is None else len(self.library)
        pairs = zip(self.names[:count], self.coefficients[:count], strict=True)
        return {name: float(value) for name, value in pairs if value}

    def wrench(
        self, motion: BodyMotion, numbers: Matrix | None = None, weights: Matrix | None = None
    ) -> Matrix:
        """Return the wrench (6); terms whose coefficient is the constant zero are left out."""
        given = self.constants(numbers)
        xi = motion.relative(given[-3:])
        arguments = (xi[:3], xi[3:], motion.down, motion.inputs)
        total = ca.SX(6, 1)
        if self.library is not None:
            a = given[: len(self.library)]
            total = total + self.library.columns(*arguments) @ ca.sparsify(a)
        if self.network is not None:
            last = None
            if self.last_layer:
                first = 0 if self.library is None else len(self.library)
                last = given[first:-4]
            total = total + given[-4] * self.network.wrench(*arguments, weights, last)
        return total

    def turned(self, R: Any) -> "LearnedModel":
        """Return the model with its current turned."""
        values = np.array(self.coefficients)
        values[-3:] = np.asarray(R, float) @ values[-3:]
        return self.with_coefficients(values)

    def with_coefficients(self, values: Any) -> "LearnedModel":
        """Return the model with other numbers."""
        return replace(self, coefficients=values)

    def formula(self) -> str:
        """Return the basis as text, a line for every term, with units and deviations."""
        rows = []
        for i, name in enumerate(self.names):
            value = self.coefficients[i]
            if not value or name == SCALE or name.startswith(LAST):
                continue
            spread = None if self.deviations is None else self.deviations[i]
            told = f"{value:.4g}" + (f" ± {spread:.2g}" if spread else "")
            what = "in world axes"
            if self.library is not None and name in self.library.names:
                what = self.library.formulas[self.library.names.index(name)]
            rows.append((name, f"{told} {self.units[i]}", what))
        widths = [max((len(row[k]) for row in rows), default=0) for k in (0, 1)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
        if self.network is not None:
            lines.append(f"and a network of {self.network.weights.size} weights on the rest")
        return "\n".join(lines)

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        return {
            "kind": "LearnedModel",
            "library": None if self.library is None else self.library.parts(),
            "network": None if self.network is None else self.network.parts(),
            "coefficients": np.asarray(self.coefficients),
            "deviations": None if self.deviations is None else np.asarray(self.deviations),
            "last_layer": self.last_layer,
        }

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "LearnedModel":
        """Return the model that `parts` describes."""
        library, network = parts["library"], parts["network"]
        return cls(
            None if library is None else library_of(dict(library)),
            parts["coefficients"],
            None if network is None else SymmetricNetwork.of_parts(network),
            parts["deviations"],
            parts.get("last_layer", False),
        )
