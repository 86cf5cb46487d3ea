"""Subjects that every process makes for itself, and what is told where one cannot be sent."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from framefree.campaign.errors import CampaignError
from framefree.campaign.records import METRICS
from framefree.campaign.subject import CampaignSubject, Finished, Settings


@dataclass(frozen=True)
class SubjectFrom(CampaignSubject):
    """A subject by the function that makes it, for worker processes and clusters.

    Laws and machines hold expressions that cannot always be sent to another process. Each process
    calls the function instead, once.

    Parameters
    ----------
    make : callable
        A function of a module, without arguments, that returns `Simulations` or another subject.
    """

    make: Callable[[], CampaignSubject]
    _made: list[CampaignSubject] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": []}

    @property
    def subject(self) -> CampaignSubject:
        """What the function has made in this process."""
        if not self._made:
            self._made.append(self.make())
        return self._made[0]

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the subject is called."""
        return self.subject.name

    @property
    def keys(self) -> tuple[str, ...] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The settings that may vary."""
        return self.subject.keys

    def check(self, keys: Sequence[str]) -> None:
        """Refuse settings that cannot vary."""
        self.subject.check(keys)

    def whole(self, key: str) -> bool | None:
        """Whether a setting takes whole numbers, or any number."""
        return self.subject.whole(key)

    def check_value(self, key: str, value: Any) -> None:
        """Refuse a value that a setting cannot have."""
        self.subject.check_value(key, value)

    def check_metric(self, name: str) -> None:
        """Refuse a metric that runs will not have."""
        self.subject.check_metric(name)

    def together(self, keys: Sequence[str]) -> bool:
        """Whether these keys vary inside one compiled batch."""
        return self.subject.together(keys)

    def run(self, settings: Settings) -> dict[str, float] | Finished:
        """Return the metrics of one run."""
        return self.subject.run(settings)

    def run_many(
        self, rows: Sequence[Settings], *, keep: str = METRICS, threads: int = 1
    ) -> list[Finished]:
        """Return what comes of many runs."""
        return self.subject.run_many(rows, keep=keep, threads=threads)

    def describe(self) -> dict[str, Any]:
        """Return what it is, as data."""
        return self.subject.describe()

    def command(self, settings: Settings) -> str:
        """Return a line that repeats one run."""
        return self.subject.command(settings)


def sendable(subject: CampaignSubject, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """Return a subject as bytes for another process, or say what to do where there are none."""
    try:
        return dumps(subject)
    except Exception as error:  # pickling raises whatever the parts raise
        raise CampaignError(
            f"`{subject.name}` cannot be sent to other processes ({str(error).splitlines()[0]}): "
            "give `SubjectFrom(make)` with a function of a module that makes it there"
        ) from None
