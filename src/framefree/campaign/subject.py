"""What a campaign runs: something with settings that gives metrics.

A subject is picklable, so that worker processes and clusters can have it, and gives

1. ``name``, and ``keys``: the settings that may vary (None where any name may); ``check(keys)``
   refuses others;
2. ``run(settings)``: the metrics of one run, numbers by name, or a `Finished` that also holds a
   record of it. A run that cannot be finished raises;
3. ``run_many(rows)``, where ``together`` says that these keys vary inside one compiled batch: the
   `Finished` of many runs, the same numbers bit by bit as one by one;
4. ``describe()``: what it is, as data, by which a campaign is told from another;
5. ``command(settings)``: a line that repeats one run and shows it;
6. where it can tell before a run: ``whole(key)``, whether a setting takes whole numbers, and
   ``check_value(key, value)`` and ``check_metric(name)``, which refuse what it does not know.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from framefree.campaign.errors import CampaignError
from framefree.campaign.records import KEEP, METRICS, Record, thinned
from framefree.errors import near

Settings = Mapping[str, Any]


class Finished(NamedTuple):
    """What came of one run.

    Attributes
    ----------
    metrics : dict of str to number
        Empty where the run has failed.
    cause : str
        Why it has failed; empty where it has not.
    record : Record or None
        Columns over time, where they are kept.
    """

    metrics: dict[str, float]
    cause: str = ""
    record: Record | None = None

    def check_metric(self, name: str) -> None:
        """Refuse a metric that the run does not have, unless it has failed."""
        if name and not self.cause and name not in self.metrics:
            raise unknown_metric("a run", name, self.metrics)


def cause_of(error: Exception) -> str:
    """Return why a run has failed, in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def unknown_metric(what: str, name: str, known: Iterable[str]) -> CampaignError:
    """Return the error that says which metrics there are."""
    names = sorted(known)
    return CampaignError(
        f"{what} has no metric `{name}`; {near(name, names)}it has: "
        + ", ".join(f"`{one}`" for one in names)
    )


class CampaignSubject(ABC):
    """Base of what campaigns run; see the contract at the top of this file."""

    name: str
    keys: tuple[str, ...] | None = None

    @abstractmethod
    def run(self, settings: Settings) -> dict[str, float] | Finished:
        """Return the metrics of one run."""

    def check(self, keys: Sequence[str]) -> None:
        """Refuse settings that cannot vary."""
        known = self.keys
        for key in keys:
            if known is not None and key not in known:
                raise CampaignError(
                    f"`{self.name}` has nothing called `{key}` that may vary; {near(key, known)}"
                    "it has: " + ", ".join(f"`{name}`" for name in known)
                )

    def whole(self, key: str) -> bool | None:
        """Whether a setting takes whole numbers, or any number; None where it cannot be told."""
        return None

    def check_value(self, key: str, value: Any) -> None:
        """Refuse a value that a setting cannot have, where it can be told."""
        return None

    def check_metric(self, name: str) -> None:
        """Refuse a metric that runs will not have, where it can be told."""
        return None

    def together(self, keys: Sequence[str]) -> bool:
        """Whether runs that differ in these settings alone are made in one compiled batch."""
        return False

    def run_many(
        self, rows: Sequence[Settings], *, keep: str = METRICS, threads: int = 1
    ) -> list[Finished]:
        """Return what comes of many runs, one after the other; `keep` is one of `KEEP`."""
        return [self.finished(row, keep) for row in rows]

    def finished(self, settings: Settings, keep: str = METRICS) -> Finished:
        """Return what comes of one run; an error becomes its cause."""
        try:
            result = self.run(settings)
        except (CampaignError, MemoryError):  # a mistake of all runs; a worker to be replaced
            raise
        except Exception as error:  # whatever ends one run must not end the campaign
            return Finished({}, cause_of(error))
        if not isinstance(result, Finished):
            return Finished(dict(result))
        return result._replace(record=thinned(result.record, keep))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what it is, as data."""

    def command(self, settings: Settings) -> str:
        """Return a line that repeats one run; empty where there is none."""
        return ""


def checked_keep(keep: str) -> str:
    """Return what is kept of each run, or refuse it."""
    if keep not in KEEP:
        raise CampaignError(f"`keep` must be one of {', '.join(KEEP)}, got `{keep}`")
    return keep
