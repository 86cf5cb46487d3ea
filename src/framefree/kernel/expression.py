"""A casadi function as a program: like `framefree.kernel.loops.Calls`, for one without loops."""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from framefree.kernel.c_source import CSource
from framefree.kernel.kernel import Kernel, Precision, compile, function_c_source, function_jax


@dataclass(frozen=True)
class ExpressionProgram:
    """A function that can be compiled, written as C and handed to JAX.

    Attributes
    ----------
    expression : casadi.Function
    scalars : tuple of str
        Inputs and outputs (1 x 1) whose NumPy shape is ().
    """

    expression: ca.Function
    scalars: tuple[str, ...] = ()

    def function(self) -> ca.Function:
        """Return the `casadi.Function`."""
        return self.expression

    def compile(self, precision: Precision = "double") -> Kernel:
        """Compile to native code."""
        shapes = dict.fromkeys(self.scalars, ())
        return compile(self.expression, shapes=shapes, precision=precision)

    def c_source(self, name: str | None = None) -> CSource:
        """Return it as C99 with a header."""
        return function_c_source(self.expression, self.scalars, name)

    def jax(self) -> Callable:
        """Return it as a JAX function."""
        return function_jax(self.expression, self.scalars)
