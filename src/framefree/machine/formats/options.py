"""Options of the readers of model files."""

from __future__ import annotations

from dataclasses import dataclass

from framefree.errors import hint
from framefree.machine.formats.markup import ReadError
from framefree.machine.joint import FRICTION_WIDTH

LEAVE_OUT = ("actuator", "equality", "fluid", "gravcomp", "tendon")
"""Features that `without` may name."""

ONE_ACTUATOR = "actuator:"
"""Before the name of a single actuator that `without` leaves out."""

_CHOICES = {"base": (None, "free", "fixed"), "mimic": ("coupled", "independent")}


@dataclass(frozen=True)
class ReadOptions:
    """The checked options of `framefree.read`, which documents them."""

    base: str | None = None
    strict: bool = False
    mimic: str = "coupled"
    keep_fixed: bool = False
    motors: bool | tuple[str, ...] = True
    without: tuple[str, ...] = ()
    friction_width: float = FRICTION_WIDTH
    closed: bool = False
    """Whether loops come from another file."""

    def __post_init__(self) -> None:
        if not 0 < self.friction_width < float("inf"):
            raise ReadError(f"`friction_width` must be positive, got {self.friction_width!r}")
        for name, valid in _CHOICES.items():
            value = getattr(self, name)
            if value not in valid:
                words = ", ".join(repr(choice) for choice in valid)
                names = [choice for choice in valid if choice is not None]
                raise ReadError(
                    f"`{name}` must be one of {words}, got {value!r}{hint(value, names)}"
                )
        for name in self.without:
            if name not in LEAVE_OUT and not name.startswith(ONE_ACTUATOR):
                words = ", ".join(f"`{choice}`" for choice in (*LEAVE_OUT, f"{ONE_ACTUATOR}NAME"))
                raise ReadError(f"`without` may name {words}; got {name!r}")

    @property
    def without_actuators(self) -> tuple[str, ...]:
        """Names of single actuators to leave out."""
        marked = (name for name in self.without if name.startswith(ONE_ACTUATOR))
        return tuple(name.removeprefix(ONE_ACTUATOR) for name in marked)
