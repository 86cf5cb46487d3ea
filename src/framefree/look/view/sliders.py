"""The numbers of joints that sliders move: angles and lengths, whatever their coordinates are.

Coordinates that are numbers are moved as they are. A pair (cos, sin) has one slider, its angle; a
quaternion has three, the rotation vector r of its rotation exp(r).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from framefree.geometry import batch
from framefree.machine import Free, Machine
from framefree.machine.joint import Joint
from framefree.machine.units import translations

TURN, SLIDE = 3.14, 1.0
"""Half the way of a slider where a joint has no limits: rad, m."""
DIGITS = 1e-3
"""To which limits are rounded inwards: longer numbers have no room below a slider."""
NAMES = {1: ("",), 2: ("angle",), 4: ("turn x", "turn y", "turn z")}
"""Names of the numbers of coordinates that belong together, by the count of these."""


@dataclass(frozen=True)
class JointNumber:
    """One number of a joint, for a slider from `low` to `high`.

    Attributes
    ----------
    joint : Joint
    part : int
        Which of the numbers of its joint.
    index : int
        A coordinate of x that it moves; each number has its own.
    name, unit : str
    low, high : float
    """

    joint: Joint
    part: int
    index: int
    name: str
    unit: str
    low: float
    high: float


def numbers_of(machine: Machine, x: np.ndarray) -> list[JointNumber]:
    """Return the numbers of all joints, with ends that include x (nx); floating bases come last."""
    lengths, numbers = translations(machine), []
    for joint in sorted(machine.joints, key=lambda joint: isinstance(joint.kind, Free)):
        first, values = machine.x_slice[joint.name].start, values_at(machine, joint, x)
        for part, (index, name) in enumerate(_named(joint)):
            slides = bool(lengths[first + index])
            way, now = SLIDE if slides else TURN, float(values[part])
            plain = name == joint.x_names[index]
            low = float(joint.lower[index]) if plain else -np.inf
            high = float(joint.upper[index]) if plain else np.inf
            low = np.ceil(low / DIGITS) * DIGITS if np.isfinite(low) else min(-way, now)
            high = np.floor(high / DIGITS) * DIGITS if np.isfinite(high) else max(way, now)
            ends = float(np.round(low, 6)), float(np.round(high, 6))
            if low < high:
                unit = "m" if slides else "rad"
                numbers.append(JointNumber(joint, part, first + index, name, unit, *ends))
    return numbers


def values_at(machine: Machine, joint: Joint, x: np.ndarray) -> np.ndarray:
    """Return the numbers of a joint at x (nx): `coordinates_at` gives its part of x back."""
    own, values = x[machine.x_slice[joint.name]], []
    for piece in _pieces(joint):
        kept = own[piece]
        if len(kept) == 1:
            values += kept.tolist()
        elif len(kept) == 2:
            values.append(float(np.arctan2(kept[1], kept[0])))
        else:
            values += batch.rotation_log(batch.rotation(kept)).tolist()
    return np.array(values, float)


def coordinates_at(joint: Joint, values: np.ndarray) -> np.ndarray:
    """Return the coordinates of a joint with given numbers."""
    own, left = np.zeros(joint.nx), list(values)
    for piece in _pieces(joint):
        count = len(NAMES[piece.stop - piece.start])
        part, left = np.array(left[:count]), left[count:]
        if piece.stop - piece.start == 1:
            own[piece] = part
        elif count == 1:
            own[piece] = np.cos(part[0]), np.sin(part[0])
        else:
            own[piece] = batch.wxyz(batch.rotation_exp(part))
    return own


def _pieces(joint: Joint) -> Iterator[slice]:
    """Give the coordinates that belong together: single ones, pairs and quaternions."""
    blocks = {block.start: block for block in joint.kind.unit_blocks}
    index = 0
    while index < joint.nx:
        piece = blocks.get(index, slice(index, index + 1))
        yield piece
        index = piece.stop


def _named(joint: Joint) -> Iterator[tuple[int, str]]:
    """Give a coordinate within its joint, and the name, of each number of a joint."""
    for piece in _pieces(joint):
        names = NAMES[piece.stop - piece.start]
        for k, name in enumerate(names):
            if not name:
                yield piece.start, joint.x_names[piece.start]
            else:
                alone = joint.nx == 2
                # Of a quaternion wxyz the vector's part.
                yield piece.stop - len(names) + k, joint.name if alone else f"{joint.name} {name}"
