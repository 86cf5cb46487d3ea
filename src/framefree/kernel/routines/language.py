"""The part of Python in which routines are written.

- Arguments and results are `float`, `int` or `Array` (numbers in memory), as annotated; a routine
  may also return nothing. A variable keeps the kind that it was first given.
- An argument that is a `Desk` has everything that a procedure works on: arrays, constant numbers
  and lists of whole numbers by name, ``desk.basis[i]``, ``desk.width``, ``desk.ends[k]``.
- Statements: assignments to variables and elements, several at once, also with `+=`,
  `-=`, `*=` and `/=`; `for` over `range`; `while`, `if`, `break`, `continue`,
  `return`, and calls of other routines.
- Expressions: arithmetic (of whole numbers also `//` and `%`, for such as are not negative),
  comparisons, `and`, `or`, `not`, choices `a if c else b`, elements `a[i]`, the rest `a[i:]` of an
  array, `abs`, `sqrt`, `min` and `max` of two numbers, `float`, `int` and `fma`.
- Names from outside are numbers or routines.
- Arrays of one call must not overlap where one of them is written to.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from framefree.errors import FramefreeError

Array = np.ndarray
"""Numbers in memory: an argument of a routine."""


class Desk(SimpleNamespace):
    """What a procedure works on: arrays and numbers by name."""


class RoutineError(FramefreeError, ValueError):
    """A routine uses more than its part of Python."""


def fma(a: float, b: float, c: float) -> float:
    """Return a b + c, with one rounding where it is compiled and the machine can."""
    return a * b + c


class Routine:
    """A function in the part of Python that is translated; see the top of the file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.name = function, function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        """Run as Python."""
        return self.function(*arguments)

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The function's syntax."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise RoutineError(f"`{self.name}` is not a function")
        return tree

    def outside(self, name: str) -> Any:
        """Return what a name means that the function does not define."""
        try:
            return self.function.__globals__[name]
        except KeyError:
            raise RoutineError(f"`{self.name}` uses `{name}`, which is not defined") from None

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kinds of the arguments by name: "float", "int", "array" or "desk"."""
        return {one.arg: self._kind(one.annotation) for one in self.tree.args.args}

    @cached_property
    def returns(self) -> str:
        """Kind of the result: "float", "int" or "nothing"."""
        note = self.tree.returns
        if note is None or (isinstance(note, ast.Constant) and note.value is None):
            return "nothing"
        return self._kind(note)

    def _kind(self, note: ast.expr | None) -> str:
        kinds = {"float": "float", "int": "int", "Array": "array", "Desk": "desk"}
        if isinstance(note, ast.Name) and note.id in kinds:
            return kinds[note.id]
        raise RoutineError(f"arguments of `{self.name}` must be float, int, Array or Desk")


class Layout:
    """Where the parts of a desk lie in one piece of memory.

    Parameters
    ----------
    parts : dict of str to int
        Sizes of the arrays.
    numbers : dict of str to int or float
    tables : dict of str to tuple of int, optional
        Lists of whole numbers.
    """

    def __init__(
        self,
        parts: dict[str, int],
        numbers: dict[str, int | float],
        tables: dict[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.parts, self.numbers, self.tables = dict(parts), dict(numbers), dict(tables or {})
        self.places: dict[str, int] = {}
        self.size = 0
        for name, size in parts.items():
            self.places[name] = self.size
            # Not a power of two: a cache would keep the same places of all arrays in few lines.
            self.size += -(-size // 4) * 4 + 4

    def desk(self) -> Desk:
        """Return a desk of NumPy arrays."""
        arrays = {name: np.zeros(size) for name, size in self.parts.items()}
        return Desk(**arrays, **self.numbers, **self.tables)


def routine(function: Callable[..., Any]) -> Routine:
    """Mark a function as one that can be translated."""
    return Routine(function)
