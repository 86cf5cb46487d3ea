"""Compile expression graphs to native code."""

from framefree.kernel.graph import CompileError
from framefree.kernel.kernel import Kernel, Precision, compile, compile_known

__all__ = ["CompileError", "Kernel", "Precision", "compile", "compile_known"]
