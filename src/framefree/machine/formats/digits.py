"""How finely the numbers of a model file are rounded, and what gap of its loops that explains."""

from __future__ import annotations

import re

import numpy as np

from framefree.machine.formats.markup import Element
from framefree.machine.loop import TOLERANCE

_DECIMALS = re.compile(r"(?<![\w.])[+-]?\d*\.(\d+)(?:[eE]([+-]?\d{1,3}))?(?![\w.])", re.ASCII)
ROUNDED = 4
"""Numbers with fewer decimals are taken as exact: 0.25 is no rounded number."""

COARSEST = 1e-5


def loop_tolerance(root: Element) -> float:
    """Return the gap (m, rad) of a loop that rounding explains: ten units of the last decimal.

    The last decimal is the typical one (the median) of the numbers that look rounded.
    """
    decimals: list[int] = []
    stack = [root]
    while stack:
        element = stack.pop()
        stack.extend(element.children)
        for text in (*element.attributes.values(), element.text):
            for digits, exponent in _DECIMALS.findall(text):
                count = len(digits) - int(exponent or 0)
                if count >= ROUNDED:
                    decimals.append(count)
    if not decimals:
        return TOLERANCE
    return min(max(10.0 ** (1 - float(np.median(decimals))), TOLERANCE), COARSEST)
