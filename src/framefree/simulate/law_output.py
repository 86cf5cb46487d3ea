"""The output of a law in numbers: one column with inputs, signals and memory."""

from itertools import pairwise
from math import prod
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import Command, NumericCommand, NumericLaw
from framefree.simulate.errors import SimulationError

Matrix = Any


class LawOutput:
    """The column in which a `NumericLaw` hands its command to the loop."""

    def __init__(self, law: NumericLaw) -> None:
        self.law = law
        self.shapes = dict(law.signals)
        self._sizes = (law.machine.nu, *map(prod, self.shapes.values()), len(law.memory))
        self.size = sum(self._sizes)

    def check(self, ratio: int) -> None:
        """Refuse what a law that is evaluated in Python cannot do."""
        if not ratio:
            raise SimulationError(
                f"the law {self.law.name} is evaluated in Python, once a control period: give "
                "`control_dt`"
            )
        if len(self.law.machine.parameters) and not self.law.tunable:
            raise SimulationError(
                f"the law {self.law.name} does not take values of tunable numbers (`tunable`), but "
                "its machine has some; give it `machine.numeric`"
            )

    def column(self, command: NumericCommand, memory: np.ndarray) -> np.ndarray:
        """Return a command as a column."""
        if not isinstance(command, NumericCommand):
            raise SimulationError(
                f"`command` of the law {self.law.name} must return a "
                "`framefree.control.NumericCommand(u, signals, memory)`, got "
                f"{type(command).__name__}"
            )
        if set(command.signals) != set(self.shapes):
            raise SimulationError(
                f"the law {self.law.name} must give the signals {sorted(self.shapes)}, got "
                f"{sorted(command.signals)}"
            )
        signals = [np.broadcast_to(command.signals[k], shape) for k, shape in self.shapes.items()]
        kept = memory if command.memory is None else command.memory
        parts = [np.ravel(np.asarray(part, float)) for part in (command.u, *signals, kept)]
        sizes = tuple(part.size for part in parts)
        if sizes != self._sizes:
            raise SimulationError(
                f"the law {self.law.name} must give inputs, signals and memory of sizes "
                f"{self._sizes}, got {sizes}"
            )
        return np.concatenate(parts)

    def command(self, column: Matrix) -> Command:
        """Return the command in a column of symbols."""
        ends = np.cumsum((0, *self._sizes)).tolist()
        u, *signals, memory = (column[a:b, :] for a, b in pairwise(ends))
        pairs = zip(self.shapes.items(), signals, strict=True)
        return Command(u, {name: _shaped(part, shape) for (name, shape), part in pairs}, memory)


def _shaped(part: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Return row-major numbers as a matrix of a shape."""
    return ca.reshape(part, shape[1], shape[0]).T if len(shape) == 2 else part
