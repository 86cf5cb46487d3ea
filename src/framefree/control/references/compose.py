"""References made of references: several together, or one at another time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framefree.control.law import AnyLaw, ControlError
from framefree.control.references.base import Matrix, Reference
from framefree.control.references.checks import checked_number
from framefree.machine.part import set_field


class Together(Reference):
    """Several references as one, with all their signals; names must differ.

    Parameters
    ----------
    *references : Reference
    """

    def __init__(self, *references: Reference) -> None:
        for item in references:
            if not isinstance(item, Reference):
                laws = "; for laws there is `LawsTogether(machine, {name: law, ...})`"
                raise ControlError(
                    f"Together takes references, got {type(item).__name__}"
                    f"{laws if isinstance(item, AnyLaw) else ''}"
                )
        self.references = references
        self.times = tuple(sorted({time for item in references for time in item.times}))
        units: dict[str, str] = {}
        for item in references:
            units |= item.units
        self.units: Mapping[str, str] = units
        self.at(0.0)

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the signals of all references at time t."""
        signals: dict[str, Matrix] = {}
        for item in self.references:
            own = item.at(t)
            twice = sorted(set(own) & set(signals))
            if twice:
                raise ControlError(f"two references of Together give a signal `{twice[0]}`")
            signals |= own
        return signals


@dataclass(frozen=True, eq=False)
class Shifted(Reference):
    """A reference that happens later by a time `by` in s, or earlier where that is negative."""

    reference: Reference
    by: Any

    def __post_init__(self) -> None:
        set_field(self, "by", checked_number(self.by, f"`by` of {self.name}"))
        set_field(self, "times", tuple(time + self.by for time in self.reference.times))
        set_field(self, "units", self.reference.units)

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the signals of the reference at time t - by."""
        return self.reference.at(t - self.by)


@dataclass(frozen=True, eq=False)
class Named(Reference):
    """A reference for one of several laws: its signals are called "LAW.SIGNAL".

    Parameters
    ----------
    law : str
        Name of the law among those of `LawsTogether`.
    reference : Reference
    """

    law: str
    reference: Reference

    def __post_init__(self) -> None:
        if not isinstance(self.reference, Reference):
            raise ControlError(f"Named takes a reference, got {type(self.reference).__name__}")
        units = {f"{self.law}.{name}": unit for name, unit in self.reference.units.items()}
        set_field(self, "times", self.reference.times)
        set_field(self, "units", units)

    def at(self, t: Matrix) -> dict[str, Matrix]:
        """Return the signals under their names for the law."""
        return {f"{self.law}.{name}": value for name, value in self.reference.at(t).items()}
