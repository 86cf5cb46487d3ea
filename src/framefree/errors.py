"""The exceptions and the warning of framefree, and the question after a mistyped name."""

from collections.abc import Iterable
from typing import Any


class FramefreeError(Exception):
    """Root of every exception that framefree raises on purpose."""


class FramefreeWarning(UserWarning):
    """Something doubtful that does not forbid to go on."""


def near(name: Any, known: Iterable[str]) -> str:
    """Return a question that offers the known names nearest to a mistyped one, or nothing."""
    from difflib import get_close_matches  # most starts need none of it

    words = get_close_matches(name, list(known), n=3) if isinstance(name, str) else []
    return f"did you mean {' or '.join(f'`{word}`' for word in words)}? " if words else ""


def hint(name: Any, known: Iterable[str]) -> str:
    """Return the same question for the end of a message, after a semicolon, or nothing."""
    question = near(name, known).strip()
    return f"; {question}" if question else ""
