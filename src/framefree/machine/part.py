"""The base of all parts of a machine: immutable, equal by value, hashable, picklable."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar

import casadi
import numpy as np

from framefree.machine.problems import MachineError


class Part:
    """Base of the frozen dataclasses that make up a machine.

    Two parts are equal when they are of one class and all their fields are equal. Arrays are
    compared entry by entry, casadi functions by their graphs; other functions and casadi
    expressions only by identity.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that name a frame, a body or "world": one name each, or a sequence of names.

    In a sequence there may also be parts, which name frames themselves.
    """
    joint_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that name a joint."""
    coordinate_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that name a coordinate of a joint."""
    tendon_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that name a tendon."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._key())

    def __getstate__(self) -> dict[str, Any]:
        # Only fields travel: values cached on the instance may hold casadi objects.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def referred(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names in these fields, each of which holds one name or several."""
        return tuple(name for field in fields for name in _names_in(getattr(self, field)))

    def _key(self) -> tuple:
        return plain(self)


def with_names(value: Any, new_name: Callable[[str], str]) -> Any:
    """Return a name, or names in a sequence or in parts of it, each replaced by another."""
    if isinstance(value, str):
        return new_name(value)
    if isinstance(value, Part):
        fields = {f: with_names(getattr(value, f), new_name) for f in value.frame_fields}
        return replace(value, **fields) if fields else value  # type: ignore[type-var]
    return tuple(with_names(item, new_name) for item in value)


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Part):
        yield from value.referred(value.frame_fields)
    else:
        for item in value:
            yield from _names_in(item)


def plain(value: Any) -> Any:
    """Hashable stand-in of a field's value; equal exactly when the values are."""
    if isinstance(value, np.ndarray):
        return (value.shape, tuple(value.ravel().tolist()))
    if isinstance(value, casadi.SX | casadi.DM):
        return ("casadi", id(value)) if isinstance(value, casadi.SX) else plain(value.full())
    if isinstance(value, casadi.Function):
        return ("casadi", value.serialize())
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in fields(value) if field.compare)
        return (type(value).__name__, *(plain(getattr(value, name)) for name in names))
    return value


def set_field(part: Any, name: str, value: Any) -> None:
    """Store a checked value in a frozen dataclass; only for use in its `__post_init__`."""
    object.__setattr__(part, name, value)


def checked_name(name: Any, what: str) -> str:
    """Return a name that parts may carry: text that is not empty and has no space at its ends."""
    if not isinstance(name, str) or not name or name != name.strip():
        raise MachineError(
            f"the name of {what} must be text without spaces at its ends, got {name!r}"
        )
    return name
