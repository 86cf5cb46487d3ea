"""What a run has recorded beside its state: numbers that change, for figures, and the others."""

from dataclasses import dataclass, replace

import numpy as np

from framefree.look.report.content import Table
from framefree.look.report.prose import number
from framefree.simulate.columns import Channel
from framefree.simulate.run import Run

RESTS = 1e-9
"""By how much, in sizes of its group, a number may change that is said not to."""


@dataclass(frozen=True)
class SignalGroup:
    """Entries that are shown together: of one array, or numbers whose names begin alike.

    Attributes
    ----------
    channel : Channel
    values : (rows, n)
    """

    channel: Channel
    values: np.ndarray

    def part(self, chosen: np.ndarray) -> "SignalGroup":
        """Return some of the entries (n,)."""
        channel = self.channel
        units = channel.units if len(channel.units) == len(chosen) else ()
        kept = replace(
            channel,
            shape=(int(chosen.sum()),),
            entries=tuple(np.array(self.names)[chosen].tolist()),
            units=tuple(np.array(units)[chosen].tolist()) if units else channel.units,
        )
        return SignalGroup(kept, self.values[:, chosen])

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each entry."""
        channel, count = self.channel, self.values.shape[1]
        if len(channel.entries) == count:
            return channel.entries
        return channel.entry_names if channel.shape else (channel.name,)

    @property
    def rests(self) -> np.ndarray:
        """Which entries (n,) do not change, or are only the time itself."""
        good = np.where(np.isfinite(self.values), self.values, np.nan)
        missing = ~np.isfinite(self.values).all(axis=0)
        with np.errstate(invalid="ignore"):
            spans = np.nanmax(good, axis=0, initial=-np.inf) - np.nanmin(
                good, axis=0, initial=np.inf
            )
        size = float(np.nanmax(np.abs(good), initial=0.0))
        return ~missing & (spans <= RESTS * size)


def groups(run: Run, known: set[str]) -> list[SignalGroup]:
    """Return the signals of a run but those that are known otherwise, in groups."""
    found: list[SignalGroup] = []
    singles: dict[str, list[tuple[Channel, np.ndarray]]] = {}
    for channel in run.channels:
        if channel.group != "signals" or channel.name not in run.signals or channel.name in known:
            continue
        values = run.signals[channel.name].reshape(len(run), -1)
        prefix, _, entry = channel.name.partition(".")
        if channel.size == 1 and entry:
            singles.setdefault(prefix, []).append((channel, values))
        elif channel.size:
            found.append(SignalGroup(channel, values))
    for prefix, parts in singles.items():
        # The time of a reference that restarts with every command is no signal of its own.
        kept = [part for part in parts if not _is_time(part[1][:, 0], run.t)]
        if not kept:
            continue
        entries = tuple(channel.name.partition(".")[2] for channel, _ in kept)
        units = tuple((channel.units or ("",))[0] for channel, _ in kept)
        like = Channel("signals", prefix, (len(kept),), entries, units)
        found.append(SignalGroup(like, np.hstack([values for _, values in kept])))
    return found


def changing(found: list[SignalGroup]) -> list[SignalGroup]:
    """Return what changes of groups of signals."""
    return [one if not one.rests.any() else one.part(~one.rests) for one in found
            if not one.rests.all()]  # fmt: skip


def resting(found: list[SignalGroup]) -> tuple[Table, ...]:
    """Return a folded table of the signals that do not change; none where all do."""
    rows = []
    for one in found:
        units = one.channel.units
        units = units if len(units) == len(one.names) else units[:1] * len(one.names)
        units = units or ("",) * len(one.names)
        for name, unit, rests, value in zip(
            one.names, units, one.rests, one.values[0] if len(one.values) else (), strict=False
        ):
            if rests:
                label = name if name == one.channel.name else f"{one.channel.name} {name}"
                rows.append((label, f"{number(float(value), 4)} {unit}".rstrip()))
    if not rows:
        return ()
    return (Table("Recorded numbers that did not change", ("name", "value"), tuple(rows), True),)


def _is_time(values: np.ndarray, t: np.ndarray) -> bool:
    """Whether a number is the time, to within a few rows."""
    step = float(np.diff(t).max(initial=0.0))
    return len(t) > 2 and bool((np.abs(values - t) <= 3 * step).all())
