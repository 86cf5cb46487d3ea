"""Tunable parameters: numbers of a machine that stay symbols when its equations are traced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.machine.problems import MachineError, Problems
from framefree.machine.tree import unknown


@dataclass(frozen=True, eq=False)
class Parameters:
    """The tunable numbers of a machine, in the order in which kernels take them.

    Attributes
    ----------
    names : tuple of str
        Paths such as "load.mass".
    symbols : casadi.SX, (n, 1)
        What stands for them in the machine's fields.
    defaults : (n,)
        Their values in the machine that they were made tunable in.
    """

    names: tuple[str, ...] = ()
    symbols: Any = None
    defaults: Any = ()

    def __post_init__(self) -> None:
        if self.symbols is None:
            object.__setattr__(self, "symbols", casadi.SX.sym("p", len(self.names)))
        defaults = np.array(self.defaults, dtype=float)
        defaults.setflags(write=False)
        object.__setattr__(self, "defaults", defaults)

    def __len__(self) -> int:
        return len(self.names)

    def only(self, names: Sequence[str]) -> "Parameters":
        """Return some of these parameters, with the same symbols and defaults."""
        places = [self.names.index(name) for name in names]
        return Parameters(tuple(names), self.symbols[places, 0], self.defaults[places])

    def values(self, settings: Mapping[str, float] | Sequence[float] | None = None) -> np.ndarray:
        """Return the values (n,): the defaults, changed by a mapping of names or a whole vector."""
        if settings is None:
            return self.defaults.copy()
        if not isinstance(settings, Mapping):
            vector = np.asarray(settings, dtype=float)
            if vector.shape != self.defaults.shape:
                raise MachineError(
                    f"expected {len(self)} parameter values, got shape {vector.shape}"
                )
            return vector.copy()
        values, problems = self.defaults.copy(), Problems()
        for name, value in settings.items():
            if name in self.names:
                values[self.names.index(name)] = value
            else:
                problems.add(unknown("parameter", name, self.names))
        problems.raise_if_any()
        return values
