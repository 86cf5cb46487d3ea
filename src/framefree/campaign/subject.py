"""What a campaign runs: something with settings that gives metrics.

A subject is picklable, so that worker processes and clusters can have it, and gives

1. ``name``, and ``keys``: the settings that may vary (None where any name may);
2. ``run(settings)``: the metrics of one run, numbers by name. A run that cannot be finished raises;
3. ``run_many(rows)``, where ``together`` says that these keys vary inside one compiled batch: the
   `Finished` of many runs, the same numbers bit by bit as one by one;
4. ``describe()``: what it is, as data, by which a campaign is told from another;
5. ``command(settings)``: a line that repeats one run and shows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Settings = Mapping[str, Any]


class Finished(NamedTuple):
    """What came of one run.

    Attributes
    ----------
    metrics : dict of str to number
        Empty where the run has failed.
    cause : str
        Why it has failed; empty where it has not.
    """

    metrics: dict[str, float]
    cause: str = ""


class CampaignSubject(ABC):
    """Base of what campaigns run; see the contract at the top of this file."""

    name: str
    keys: tuple[str, ...] | None = None

    @abstractmethod
    def run(self, settings: Settings) -> dict[str, float]:
        """Return the metrics of one run."""

    def together(self, keys: Sequence[str]) -> bool:
        """Whether runs that differ in these settings alone are made in one compiled batch."""
        return False

    def run_many(self, rows: Sequence[Settings]) -> list[Finished]:
        """Return what comes of many runs, one after the other."""
        return [self.finished(row) for row in rows]

    def finished(self, settings: Settings) -> Finished:
        """Return what comes of one run; an error becomes its cause."""
        try:
            return Finished(dict(self.run(settings)))
        except Exception as error:  # whatever ends one run must not end the campaign
            return Finished({}, f"{type(error).__name__}: {error}")

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what it is, as data."""

    def command(self, settings: Settings) -> str:
        """Return a line that repeats one run; empty where there is none."""
        return ""
