"""MuJoCo, where it is installed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import inf
from threading import Lock
from typing import Any

from framefree.errors import FramefreeWarning
from framefree.machine.formats.markup import ReadError

_listeners: list[list[str]] = []
_before: list[Any] = []
_listening = Lock()


def mujoco_module() -> Any:
    """Return the package `mujoco`, or say how to get it."""
    try:
        import mujoco
    except ImportError:
        raise ReadError(
            "MJCF is read through MuJoCo's compiler: install `framefree[models]`, or the package "
            "`mujoco`"
        ) from None
    return mujoco


@contextmanager
def mujoco_messages() -> Iterator[list[str]]:
    """Collect what MuJoCo warns of; left alone, it writes that to a file in the current folder."""
    mujoco, messages = mujoco_module(), []
    with _listening:
        if not _listeners:
            _before[:] = [mujoco.get_mju_user_warning()]
            mujoco.set_mju_user_warning(_hear)
        _listeners.append(messages)
    try:
        yield messages
    finally:
        with _listening:
            _listeners[:] = [other for other in _listeners if other is not messages]
            if not _listeners:
                mujoco.set_mju_user_warning(_before.pop())


def _hear(text: str) -> None:
    for messages in _listeners:
        messages.append(text)


@contextmanager
def mujoco_warnings() -> Iterator[None]:
    """Make what MuJoCo warns of warnings of ours: those that differ in numbers only, once."""
    messages: list[str] = []
    try:
        with mujoco_messages() as messages:
            yield
    finally:
        for text in {re.sub(r"\d+", "", text): text for text in reversed(messages)}.values():
            warnings.warn(f"MuJoCo: {text}", FramefreeWarning, stacklevel=3)


def enabled(model: Any, what: str) -> bool:
    """Whether a model leaves a part of the physics on.

    SPRING, DAMPER, FRICTIONLOSS, EQUALITY, ACTUATION, GRAVITY, CLAMPCTRL.
    """
    off = _disable_bits()[what]
    if what in ("FRICTIONLOSS", "EQUALITY"):
        off |= _disable_bits()["CONSTRAINT"]
    return not model.opt.disableflags & off


def value(enum: str, name: str) -> int:
    """Return the integer of a member of a MuJoCo enumeration; -1 if this MuJoCo lacks it."""
    member = getattr(getattr(mujoco_module(), enum), name, None)
    return -1 if member is None else int(member.value)


def part_names(model: Any, kind: str, count: int) -> list[str]:
    """Return the names of all parts of a kind; those without get their number, clear of others."""
    given = [getattr(model, kind)(i).name for i in range(count)]
    taken, names = set(given), []
    for i, name in enumerate(given):
        chosen = name or f"{kind}{i}"
        while not name and chosen in taken:
            chosen += "_"
        taken.add(chosen)
        names.append(chosen)
    return names


ENDLESS = 1e15
"""Ends of ranges beyond this are none: MuJoCo has both ends of a range or neither."""


def ends(bounds: Any) -> tuple[float, float]:
    """Return the two ends of a range, infinite where they are huge."""
    low, high = (float(bound) for bound in bounds)
    return (-inf if low <= -ENDLESS else low), (inf if high >= ENDLESS else high)


def column(model: Any, field: str, row: int, default: float = 0.0) -> Any:
    """Return an entry of a model's array, or the default if this MuJoCo lacks the array."""
    array = getattr(model, field, None)
    return default if array is None else array[row]


@cache
def _disable_bits() -> dict[str, int]:
    bits = mujoco_module().mjtDisableBit
    flags = {
        name.removeprefix("mjDSBL_"): int(getattr(bits, name).value)
        for name in dir(bits)
        if name.startswith("mjDSBL_")
    }
    passive = flags.get("PASSIVE", 0)  # springs and dampers were once switched off together
    return {"SPRING": passive, "DAMPER": passive, **flags}
