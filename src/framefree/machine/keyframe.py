"""A named state of a machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.values import frozen


@dataclass(frozen=True, eq=False)
class Keyframe(Part):
    """A state by joint and actuator name; what is not named is neutral or zero.

    Parameters
    ----------
    name : str
    x, v : mapping of joint name to numbers
    u : mapping of actuator name to numbers
    """

    name: str
    x: Any = ()
    v: Any = ()
    u: Any = ()

    def __post_init__(self) -> None:
        checked_name(self.name, "a keyframe")
        for part in ("x", "v", "u"):
            set_field(self, part, _pairs(getattr(self, part)))


def _pairs(values: Any) -> tuple:
    items = values.items() if isinstance(values, Mapping) else values
    return tuple((str(name), frozen(numbers).reshape(-1)) for name, numbers in items)
