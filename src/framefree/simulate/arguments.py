"""What people give `simulate`: brought to one form, or refused with what would be right."""

import inspect
from collections.abc import Iterable
from math import isfinite, nan
from numbers import Real
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from framefree.control.function_law import FunctionLaw
from framefree.control.law import AnyLaw
from framefree.control.references.base import Reference
from framefree.simulate.errors import SimulationError

Kind = TypeVar("Kind")


def checked_array(name: str, value: Any) -> np.ndarray:
    """Return a copy of the numbers that an argument holds; refuse what is no numbers."""
    try:
        if isinstance(value, str):
            raise TypeError
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise SimulationError(f"`{name}` must be numbers, got {_shown(value)}") from None


def checked_law(machine: Any, law: Any, reference: Any) -> AnyLaw | None:
    """Return the law; a plain function becomes one of the machine's inputs."""
    if law is None or isinstance(law, AnyLaw):
        return law
    if isinstance(law, Reference):
        raise SimulationError(
            f"`law` must be a law, got the reference {law.name}; a reference is given as "
            "`reference=...`, with the law that follows it"
        )
    if inspect.isclass(law):
        raise SimulationError(
            f"`law` must be a law, got the class {law.__name__}: make one, "
            f"`{law.__name__}(machine, ...)`"
        )
    if not callable(law):
        raise SimulationError(
            "`law` must be a law, or a function (t, x, v) -> u or (t, x, v, reference) -> u, got "
            f"{_shown(law)}"
        )
    made = FunctionLaw(machine, law)
    if made.reads_reference and reference is not None:
        made = FunctionLaw(machine, law, tuple(reference.at(ca.SX.sym("t"))))
    return made


def checked_reference(reference: Any) -> Reference | None:
    """Return the reference; refuse what is not one."""
    if reference is None or isinstance(reference, Reference):
        return reference
    if isinstance(reference, AnyLaw):
        raise SimulationError(
            f"`reference` must be a reference, got the law {reference.name}; the law comes first: "
            "`simulate(machine, law, reference, ...)`"
        )
    raise SimulationError(
        "`reference` must be a reference of `framefree.control.references`, such as "
        f"`Hold(machine, x)` or `MinimumJerk(machine, points=..., times=...)`, got "
        f"{_shown(reference)}"
    )


def checked_time(name: str, value: Any) -> float:
    """Return a positive time in s."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SimulationError(f"`{name}` must be a positive time in s, got {_shown(value)}")
    seconds = float(value)
    if not (isfinite(seconds) and seconds > 0):
        raise SimulationError(f"`{name}` must be a positive time in s, got {seconds:g}")
    return seconds


def checked_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number, `least` or more."""
    given: Any = value
    real = isinstance(given, Real) and not isinstance(given, bool)
    number = float(given) if real else nan
    if not (number >= least and number.is_integer()):
        raise SimulationError(
            f"`{name}` must be a whole number from {least} on, got {_shown(value)}"
        )
    return int(value)  # not of the float: it may have more digits


def checked_seed(seed: Any) -> int | tuple[int, ...]:
    """Return one seed, or one for each of many trajectories."""
    if isinstance(seed, Iterable) and not isinstance(seed, str):
        return tuple(checked_whole("seed", one, 0) for one in seed)
    return checked_whole("seed", seed, 0)


def checked_parts(name: str, value: Any, kind: type[Kind]) -> tuple[Kind, ...]:
    """Return parts of one kind: one of them alone, or several."""
    if isinstance(value, kind):
        return (value,)
    parts = tuple(value) if isinstance(value, Iterable) else (value,)
    for part in parts:
        if not isinstance(part, kind):
            raise SimulationError(
                f"`{name}` must be one {kind.__name__} or several, got {_shown(part)}"
            )
    return parts


def _shown(value: Any) -> str:
    """Return a value, shortened, and its type."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
