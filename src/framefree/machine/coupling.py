"""Couplings: one coordinate as a function of others, q_hat = Xi(q)."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import casadi
import numpy as np

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
        values, what = self.coefficients, "the coefficients of a coupling"
        count = values.numel() if isinstance(values, casadi.SX) else len(values)
        set_field(self, "coefficients", numbers(values, (count,), what))
        set_field(self, "at", scalar(self.at, "`at` of a coupling"))

    def __call__(self, source: Any) -> Any:
        """Return the target's value."""
        value = 0.0
        for k in reversed(range(self.coefficients.shape[0])):
            value = value * (source - self.at) + self.coefficients[k]
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
        A callable takes one casadi scalar per source and returns one. It must be smooth. Where it
        is a dataclass, as these two are, its fields that are numbers or vectors can be tuned.
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

    def number(self, path: str) -> tuple[float, tuple] | None:
        """Return value and place of a number of the law: FIELD, or FIELD.k of a vector."""
        name, _, index = path.partition(".")
        if name not in self._law_fields:
            return None
        value = np.atleast_1d(self._law_fields[name])
        single = np.ndim(self._law_fields[name]) == 0 or len(value) == 1
        if not index:
            return (float(value[0]), ("law", name, 0)) if single else None
        if not index.isdecimal() or int(index) >= len(value):
            return None
        return float(value[int(index)]), ("law", name, int(index))

    @property
    def number_words(self) -> list[str]:
        """The paths of all numbers of the law."""
        return [
            name if np.size(value) == 1 else f"{name}.<0 to {np.size(value) - 1}>"
            for name, value in self._law_fields.items()
        ]

    def with_numbers(self, changes: dict[tuple, Any]) -> "Coupling":
        """Return the coupling with numbers of its law set, to floats or symbols."""
        new: dict[str, Any] = {}
        for (_, name, index), value in changes.items():
            old = new.get(name, getattr(self.law, name))
            if np.ndim(self._law_fields[name]) == 0:
                new[name] = value
            else:
                entries = casadi.SX(constant(old))
                entries[index] = value
                new[name] = entries if not entries.is_constant() else np.array(casadi.DM(entries))
        law: Any = self.law
        return replace(self, law=replace(law, **{k: _plain(value) for k, value in new.items()}))

    @property
    def _law_fields(self) -> dict[str, Any]:
        """Fields of the law that are numbers or vectors."""
        law: Any = self.law
        if not is_dataclass(law) or isinstance(law, type):
            return {}
        values = {f.name: getattr(law, f.name) for f in fields(law) if f.init}
        return {name: value for name, value in values.items() if _is_numbers(value)}

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


def _is_numbers(value: Any) -> bool:
    plain = isinstance(value, int | float | np.ndarray) and not isinstance(value, bool)
    return plain and np.ndim(value) < 2


def _plain(value: Any) -> Any:
    """Return a vector without a second index."""
    return value.ravel() if isinstance(value, np.ndarray) else value
