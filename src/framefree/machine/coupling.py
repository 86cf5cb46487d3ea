"""Couplings: one coordinate as a function of others, q_hat = Xi(q)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, numbers, scalar


@dataclass(frozen=True, eq=False)
class Linear(Part):
    """offset + sum of multipliers times sources: mimic joints, gears and differentials."""

    multipliers: Any = (1.0,)
    offset: Any = 0.0

    def __post_init__(self) -> None:
        values = self.multipliers
        count = values.numel() if isinstance(values, casadi.SX) else len(values)
        set_field(self, "multipliers", numbers(values, (count,), "the multipliers of a coupling"))
        set_field(self, "offset", scalar(self.offset, "the offset of a coupling"))

    def __call__(self, *sources: Any) -> Any:
        """Return the target's value."""
        return casadi.dot(constant(self.multipliers), casadi.vertcat(*sources)) + self.offset


@dataclass(frozen=True, eq=False)
class Polynomial(Part):
    """Sum of coefficients[k] (q - at)^k of one source q."""

    coefficients: Any
    at: Any = 0.0

    def __post_init__(self) -> None:
        size = len(self.coefficients)
        what = "the coefficients of a coupling"
        set_field(self, "coefficients", numbers(self.coefficients, (size,), what))
        set_field(self, "at", scalar(self.at, "`at` of a coupling"))

    def __call__(self, source: Any) -> Any:
        """Return the target's value."""
        value = 0.0
        for coefficient in reversed(self.coefficients.tolist()):
            value = value * (source - self.at) + coefficient
        return value


@dataclass(frozen=True, eq=False)
class Coupling(Part):
    """Makes one coordinate a function of others: target = law(sources).

    Parameters
    ----------
    name : str
    target : str
        A coordinate, as named in `machine.x_names`; a joint's name where it has only one. Its joint
        must be one whose coordinates are a plain vector (`JointKind.vector`).
    sources : str or sequence of str
        Coordinates, in the order of the law's arguments.
    law : Linear, Polynomial, or callable
        A callable takes one casadi scalar per source and returns one. It must be smooth.
    """

    name: str
    target: str
    sources: tuple[str, ...]
    law: Callable = Linear()

    coordinate_fields = ("target", "sources")

    def __post_init__(self) -> None:
        checked_name(self.name, "a coupling")
        sources = (self.sources,) if isinstance(self.sources, str) else tuple(self.sources)
        set_field(self, "sources", sources)
        if not sources:
            raise MachineError(f"coupling `{self.name}` needs at least one source")
        if self.target in sources:
            raise MachineError(f"coupling `{self.name}`: `{self.target}` cannot be its own source")
        self._check_law()

    @classmethod
    def mimic(
        cls, name: str, target: str, source: str, multiplier: Any = 1.0, offset: Any = 0.0
    ) -> "Coupling":
        """Return the coupling target = multiplier source + offset."""
        return cls(name, target, (source,), Linear((multiplier,), offset))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The target and the sources."""
        return self.referred(self.coordinate_fields)

    def value(self, *sources: Any) -> Any:
        """Return the target's value for these values of the sources."""
        return self.law(*sources)

    def _check_law(self) -> None:
        if not callable(self.law):
            raise MachineError(
                f"the law of coupling `{self.name}` must be callable, got {self.law!r}"
            )
        symbols = [casadi.SX.sym(source) for source in self.sources]
        try:
            value = casadi.SX(self.law(*symbols))
        except TypeError as error:
            raise MachineError(
                f"the law of coupling `{self.name}` must take {len(symbols)} sources: {error}"
            ) from None
        except (RuntimeError, NotImplementedError) as error:
            raise MachineError(
                f"the law of coupling `{self.name}` cannot be evaluated for "
                f"{len(symbols)} sources: {str(error).splitlines()[0]}"
            ) from None
        if value.shape != (1, 1):
            raise MachineError(
                f"the law of coupling `{self.name}` must return one number, got shape {value.shape}"
            )
