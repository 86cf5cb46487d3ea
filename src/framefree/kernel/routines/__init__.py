"""Algorithms with loops and branches, written once in Python, as native code and as C.

An expression graph has no loops: what iterates until it is done cannot be traced. Such algorithms
are functions in a small part of Python, marked by `routine`:

    @routine
    def dot(a: Array, b: Array, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += a[i] * b[i]
        return total

They run as they are on NumPy arrays, which is how they are examined, and are translated
(`translate.py`) to LLVM (`to_llvm.py`), for calls within a program of `framefree.kernel.loops`, and
to C (`to_c.py`), for a controller board. `language.py` says what this part of Python is.
"""

from framefree.kernel.routines.language import (
    Array,
    Desk,
    Layout,
    Routine,
    RoutineError,
    fma,
    routine,
)
from framefree.kernel.routines.procedure import Procedure

__all__ = ["Array", "Desk", "Layout", "Procedure", "Routine", "RoutineError", "fma", "routine"]
