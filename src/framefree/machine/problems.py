"""Problems of a machine, collected so that all of them are reported at once."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from framefree.errors import FramefreeError


class MachineError(FramefreeError):
    """A machine, or a part of one, cannot be as described.

    Attributes
    ----------
    problems : tuple of str
        One message per problem: what is wrong, what came, what would be right. The text of the
        error has them `grouped`.
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(_text(self.problems))

    def __reduce__(self) -> tuple:
        return type(self), (self.problems,)


class StateError(MachineError):
    """A configuration or velocity does not fit its machine."""


class Problems:
    """Collects messages; `raise_if_any` then raises them together.

    >>> problems = Problems()
    >>> with problems.at("robot.urdf, link `arm`, line 12"):
    ...     raise MachineError("the mass must be positive, got -1.0")
    >>> problems.messages
    ('robot.urdf, link `arm`, line 12: the mass must be positive, got -1.0',)
    """

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}

    @property
    def messages(self) -> tuple[str, ...]:
        """All messages so far."""
        return tuple(self._messages)

    def add(self, message: str, where: str = "") -> None:
        """Note one problem, optionally with its place (file, element, line); the same one once."""
        self._messages[f"{where}: {message}" if where else message] = None

    def extend(self, messages: Iterable[str], where: str = "") -> None:
        """Note several problems of one place."""
        for message in messages:
            self.add(message, where)

    @contextmanager
    def at(self, where: str = "") -> Iterator[None]:
        """Catch a `MachineError` raised inside and note its problems with their place."""
        try:
            yield
        except MachineError as error:
            self.extend(error.problems, where)

    def raise_if_any(self, error: type[MachineError] = MachineError) -> None:
        """Raise one error that lists all problems, if there are any."""
        if self._messages:
            raise error(self._messages)


def known_names(names: Iterable[str], limit: int = 12) -> str:
    """List of valid names for a message, shortened when long."""
    names = sorted(names)
    if not names:
        return "there are none"
    shown = ", ".join(f"`{name}`" for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


_NAME_OR_NUMBER = re.compile(r"`[^`]*`|'[^']*'|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?|\(-?inf\)")
_LINE = re.compile(r"\bline (\d+)")
ALIKE = 3
"""Messages that differ only in names and numbers are listed one by one up to this number."""


def grouped(messages: Iterable[str]) -> list[str]:
    """Return messages in their order, many that are alike as the first one with their number.

    Alike are messages that differ only in names (in back-ticks or quotes) and numbers.

    >>> grouped(f"joint `j{i}`, line {i}: no axis" for i in range(1, 7))
    ['joint `j1`, line 1: no axis (and 5 more of this kind, at lines 2, 3, 4, ...)']
    """
    kinds: dict[str, list[str]] = {}
    for message in messages:
        kinds.setdefault(_NAME_OR_NUMBER.sub("", message), []).append(message)
    result = []
    for alike in kinds.values():
        if len(alike) <= ALIKE:
            result += alike
            continue
        lines = [found.group(1) for found in map(_LINE.search, alike[1:]) if found]
        shown = ", ".join(dict.fromkeys(lines[:ALIKE]))
        at = f", at lines {shown}{', ...' if len(lines) > ALIKE else ''}" if lines else ""
        result.append(f"{alike[0]} (and {len(alike) - 1} more of this kind{at})")
    return result


def _text(problems: tuple[str, ...]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = [f"  {i}. {message}" for i, message in enumerate(grouped(problems), 1)]
    return "\n".join([f"{len(problems)} problems:", *lines])
