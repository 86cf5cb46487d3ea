"""C in double precision rewritten in single: types, constants and elementary functions.

The text is C that framefree has made: its only floating type is `double`, its constants are
decimal, and all functions that it calls beside its own are those of <math.h>.
"""

import re

from framefree.kernel.elementary_c import without_elementary
from framefree.rounding import in_single_precision

FUNCTIONS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos"),
    *("cosh", "erf", "erfc", "exp", "expm1", "fabs", "floor", "fma", "fmod", "hypot", "log"),
    *("log1p", "pow", "remainder", "sin", "sinh", "sqrt", "tan", "tanh"),
)
LEAST, MOST = 1.17549435e-38, 3.40282347e38
"""Smallest normal and largest number of single precision."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"(?<![\w.])(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])"
    r"|\b(?P<type>double)\b"
    rf"|\b(?P<call>{'|'.join(FUNCTIONS)})(?=\()"
)


def in_single(text: str) -> str:
    """Return C in double precision as the same in single precision.

    Constants beyond what single precision holds become its smallest or largest number, so that
    guards against zero stay guards; shares that count as rounding become those of single precision.
    Comments stay as they are.
    """
    text, parts, at = without_elementary(text), [], 0
    for comment in _COMMENT.finditer(text):
        parts += [_TOKEN.sub(_replaced, text[at : comment.start()]), comment.group()]
        at = comment.end()
    return "".join([*parts, _TOKEN.sub(_replaced, text[at:])])


def _replaced(match: re.Match) -> str:
    if match["type"]:
        return "float"
    if match["call"]:
        return f"{match['call']}f"
    value = float(match["number"])
    if in_single_precision(value) != value:
        return f"{in_single_precision(value)!r}f"
    if value and not LEAST <= value <= MOST:
        return f"{LEAST if value < 1 else MOST!r}f"
    return f"{match['number']}f"
