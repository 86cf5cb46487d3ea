"""Shares below which something counts as rounding, in double and in single precision.

What is left of a row that depends on others is some 1e-16 of it in double precision, and some 1e-7
in single. A number such as 1e-12, which tells it from a row that counts, is right for doubles only.
`rounding(1e-12)` is that number with a mark in its last bits, which is kept in graphs, in tables
and in text with all digits. Whoever writes single precision knows it by its mark, and takes the
same power of the coarser unit of rounding, but none larger than `COARSEST`:

    share = (unit of doubles)^p   ->   (unit of floats)^p,    p = log(share) / log(unit of doubles)

Shares that are larger than that stay as they are. Squares of lengths are compared with squares of
shares, which have a mark of their own.
"""

import math
import struct

BITS = 24
"""How many bits are a mark: the number changes by less than 4e-9 of itself."""
SHARE, SQUARE = 0x5EED51, 0x5EED52
COARSEST = 2.0**-14
POWER = math.log(2.0**-24) / math.log(2.0**-53)


def rounding(share: float) -> float:
    """Return a share below which something counts as rounding; zero stays zero."""
    return _marked(share, SHARE)


def rounding_square(square: float) -> float:
    """Return the square of a share, below which a square of a length counts as rounding."""
    return _marked(square, SQUARE)


def in_single_precision(value: float) -> float:
    """Return what a number is in single precision: itself, but for shares that count as rounding.

    >>> in_single_precision(1e-12), round(in_single_precision(rounding(1e-12)), 8)
    (1e-12, 3.68e-06)
    """
    mark = _whole(value) & (1 << BITS) - 1
    if mark not in (SHARE, SQUARE) or not 0.0 < value < COARSEST:
        return value
    return max(value, min(value**POWER, COARSEST if mark == SHARE else COARSEST**2))


def _marked(value: float, mark: int) -> float:
    return _number(_whole(value) >> BITS << BITS | mark) if 0.0 < value < COARSEST else value


def _whole(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


def _number(whole: int) -> float:
    return struct.unpack("<d", struct.pack("<q", whole))[0]
