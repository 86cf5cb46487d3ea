"""Problems of a machine, collected so that all of them are reported at once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from framefree.errors import FramefreeError


class MachineError(FramefreeError):
    """A machine, or a part of one, cannot be as described.

    Attributes
    ----------
    problems : tuple of str
        One message per problem: what is wrong, what came, what would be right.
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
        self._messages: list[str] = []

    @property
    def messages(self) -> tuple[str, ...]:
        """All messages so far."""
        return tuple(self._messages)

    def add(self, message: str, where: str = "") -> None:
        """Note one problem, optionally with its place (file, element, line)."""
        self._messages.append(f"{where}: {message}" if where else message)

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


def _text(problems: tuple[str, ...]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = [f"  {i}. {message}" for i, message in enumerate(problems, 1)]
    return "\n".join([f"{len(problems)} problems:", *lines])
