"""How far two runs are apart: the quantities that both recorded, and their differences."""

from dataclasses import dataclass

import numpy as np

from framefree.look.report.prose import number
from framefree.look.report.scene import one_trajectory
from framefree.simulate.columns import Channel
from framefree.simulate.run import Run

OF_SPAN, OF_SIZE = 1e-9, 1e-12
"""What differs by less than this of its span, or of its size and of 1, is equal but for rounding.

The second is there for what is itself rounding, such as the error of a loop, and for what stands
still far from zero.
"""
ROUNDING = (
    f"Differences below {number(OF_SPAN)} of the span of a quantity over both runs count as "
    f"rounding, as do those below {number(OF_SIZE)} of its size or of 1."
)
"""The rule in words, for the page."""


@dataclass(frozen=True)
class Entry:
    """One column of both runs: its name and how far they are apart.

    Attributes
    ----------
    column : str
        As in the tables of runs: "x.j0 [rad]".
    name : str
        Of the entry: "j0"; empty where the quantity is a single number.
    values : (array, array)
        Of both runs, in the trajectory in which they differ most.
    apart : float
        Largest difference in all trajectories; not a number where no time has both.
    """

    column: str
    name: str
    values: tuple[np.ndarray, np.ndarray]
    apart: float


@dataclass(frozen=True)
class ComparedQuantity:
    """What was recorded under one name and in one unit.

    Attributes
    ----------
    name, symbol, unit : str
        "Configuration", "x" and "rad".
    entries : tuple of Entry
    span, size : float
        Of all values of both runs: from least to largest, and the largest by magnitude.
    trajectory : int
        Which one the values are of.
    """

    name: str
    symbol: str
    unit: str
    entries: tuple[Entry, ...]
    span: float
    size: float
    trajectory: int = 0

    @property
    def rounding(self) -> float:
        """The largest difference that counts as rounding."""
        return max(OF_SPAN * self.span, OF_SIZE * max(self.size, 1.0))

    @property
    def differing(self) -> tuple[Entry, ...]:
        """The entries that differ by more than rounding, or of which that is not known."""
        return tuple(entry for entry in self.entries if not entry.apart <= self.rounding)

    @property
    def farthest(self) -> Entry:
        """The entry that differs most; one of which that is not known, if there is such a one."""
        return max(self.entries, key=lambda entry: np.nan_to_num(entry.apart, nan=np.inf))

    @property
    def share(self) -> float:
        """The largest difference by the span; one that is not known counts most."""
        apart = self.farthest.apart
        if np.isnan(apart):
            return np.inf
        return apart / self.span if self.span > 0 else 0.0

    @property
    def same(self) -> bool:
        """Whether both runs have the very same numbers."""
        return all(entry.apart == 0.0 for entry in self.entries)


def trajectories(a: Run, b: Run) -> list[tuple[Run, Run]]:
    """Return the trajectories of two runs in pairs, as many as both have."""
    count = min(a.batch or 1, b.batch or 1)
    return [(one_trajectory(a, k), one_trajectory(b, k)) for k in range(count)]


def quantities(pairs: list[tuple[Run, Run]]) -> list[ComparedQuantity]:
    """Return what both runs recorded, given their trajectories in pairs."""
    return [quantity for channel in _shared(*pairs[0]) for quantity in _of_channel(channel, pairs)]


# ---------------------------------------------------------------------- parts


def _shared(a: Run, b: Run) -> list[Channel]:
    shapes = {channel.key: channel.columns for channel in b.channels}
    return [
        channel
        for channel in a.channels
        if channel.group != "reference" and shapes.get(channel.key) == channel.columns
    ]


def _of_channel(channel: Channel, pairs: list[tuple[Run, Run]]) -> list[ComparedQuantity]:
    """Return the quantities of a channel, one for each of its units."""
    arrays = [[_array(channel, run).reshape(len(run), -1) for run in pair] for pair in pairs]
    columns: dict[str, list[int]] = {}
    for i, column in enumerate(channel.columns):
        columns.setdefault(column.partition(" [")[2].rstrip("]"), []).append(i)
    found = []
    for unit, mine in columns.items():
        apart = np.array(
            [
                [_apart(a.t, b.t, first[:, i], second[:, i]) for i in mine]
                for (a, b), (first, second) in zip(pairs, arrays, strict=True)
            ]
        )
        worst = int(np.argmax(np.nan_to_num(apart, nan=-1.0).max(axis=1, initial=-1.0)))
        largest = np.fmax.reduce(apart, axis=0)
        values = np.concatenate([part[:, mine].ravel() for pair in arrays for part in pair])
        values = values[np.isfinite(values)]
        entries = tuple(
            Entry(
                channel.columns[i],
                channel.entry_names[i] if channel.shape else "",
                (arrays[worst][0][:, i], arrays[worst][1][:, i]),
                float(largest[k]),
            )
            for k, i in enumerate(mine)
        )
        span = float(np.ptp(values)) if len(values) else 0.0
        size = float(np.abs(values).max(initial=0.0))
        name = _name(channel) + (f" ({unit})" if unit and len(columns) > 1 else "")
        found.append(ComparedQuantity(name, channel.name, unit, entries, span, size, worst))
    return found


def _array(channel: Channel, run: Run) -> np.ndarray:
    if channel.group == "state":
        return {"x": run.x, "v": run.v, "u": run.u}[channel.name]
    return run.signals[channel.name]


def _name(channel: Channel) -> str:
    """Return the name of a channel for people."""
    if channel.group == "state":
        return {"x": "Configuration", "v": "Velocity", "u": "Input"}[channel.name]
    known = {"V": "Lyapunov function", "V_rate": "Rate of the Lyapunov function"}
    words = known.get(channel.name, channel.name.replace("_", " ").replace(".", " "))
    return words[:1].upper() + words[1:]


def _apart(t: np.ndarray, s: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return the largest difference at times of the first that lie within the second.

    Where neither has a value at any time they do not differ.
    """
    common = (t >= s[0]) & (t <= s[-1]) if len(s) else np.zeros(len(t), bool)
    if not common.any():
        return float("nan")
    if not np.isfinite(first[common]).any() and not np.isfinite(second).any():
        return 0.0
    difference = first[common] - np.interp(t[common], s, second)
    finite = np.abs(difference[np.isfinite(difference)])
    return float(finite.max()) if len(finite) else float("nan")
