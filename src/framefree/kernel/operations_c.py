"""The operations of a graph as expressions in C."""

import math
from collections.abc import Sequence

from framefree.kernel.elementary_c import NAMES
from framefree.kernel.graph import BINARY, UNARY

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
INFIX |= {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}
LOGIC = {"and": "&&", "or": "||"}
FUSED = {"fma": "FMA({}, {}, {})", "fms": "FMA({}, {}, -{})", "fnma": "FMA(-{}, {}, {})"}
FUNCTIONS = {name: name for name in (*UNARY.values(), *BINARY.values())}
FUNCTIONS |= {"abs": "fabs", "min": "minimum", "max": "maximum"}
FUNCTIONS |= {"sign": "signum", "erfinv": "inverse_erf"} | NAMES


def operation_text(operation: str, values: Sequence[str], truths: Sequence[str]) -> str:
    """Write one operation; its operands as numbers, and as conditions."""
    if operation == "select":
        return f"{truths[0]} ? {values[1]} : {values[2]}"
    if operation == "not":
        return f"!{truths[0]}"
    if operation in LOGIC:
        return f" {LOGIC[operation]} ".join(truths)
    if operation in INFIX:
        return f" {INFIX[operation]} ".join(values)
    if operation == "neg":
        return f"-{values[0]}"
    if operation in FUSED:
        return FUSED[operation].format(*values)
    return f"{FUNCTIONS[operation]}({', '.join(values)})"


def literal(value: float) -> str:
    """Return a number as C reads it, all digits of it."""
    if math.isnan(value):
        return "NAN"
    text = "INFINITY" if math.isinf(value) else repr(abs(value))
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text
