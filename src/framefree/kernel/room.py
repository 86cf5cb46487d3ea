"""Memory for large results, used again once nobody holds them.

The system takes back the memory of large arrays as soon as they are freed, and fills it with zeros
page by page when the next ones are made: of the derivatives of a humanoid at 1,024 states that is a
third of all time. A few such pieces of memory are kept here instead. A result is a view of one; as
long as it, or a view of it, is held by anyone, its memory is not given to another.
"""

import math
import sys
import threading

import numpy as np

LARGE = 4 << 20
"""Bytes from which memory is kept; what is smaller the allocator keeps by itself."""
KEPT = 128 << 20
"""Bytes that are kept at most."""
LINE = 8
"""Doubles of a line of the cache."""
SPARE = 1.25
"""How much larger than needed a piece may be."""

_pieces: list[np.ndarray] = []
_lock = threading.Lock()
_UNUSED = 3  # references to a piece that nobody holds: the list, a variable, an argument


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of doubles of this shape whose values are undefined, as `numpy.empty`.

    Large ones begin where a line of the cache does: a vector that is stored across two lines costs
    twice the time.
    """
    count = math.prod(shape)
    if count * 8 < LARGE:
        return np.empty(shape)
    with _lock:
        for index in reversed(range(len(_pieces))):  # the latest may still be in the cache
            piece = _pieces[index]
            fits = count + LINE <= piece.size <= SPARE * (count + LINE)
            if fits and sys.getrefcount(piece) == _UNUSED:
                _pieces.append(_pieces.pop(index))
                return _aligned(piece, count).reshape(shape)
        piece = np.empty(count + LINE)
        if count * 8 <= KEPT:
            _pieces.append(piece)
            while sum(one.nbytes for one in _pieces) > KEPT:
                _pieces.pop(0)
    return _aligned(piece, count).reshape(shape)


def _aligned(piece: np.ndarray, count: int) -> np.ndarray:
    first = -piece.__array_interface__["data"][0] // 8 % LINE
    return piece[first : first + count]
