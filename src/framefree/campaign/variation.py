"""What varies in a campaign: ranges and distributions, and samples of them.

To add a distribution, subclass `Variation` and give ``quantile(p)``, from shares p in [0, 1] to
values. Samples of several variations are then points of the unit cube, taken through it. With a
``count`` it has so many values, those of ``on_grid(count)``, however it is sampled.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.campaign.extras import needed
from framefree.errors import hint

SALTELLI = "saltelli"
SAMPLES = ("sobol", "random", "grid", SALTELLI)
"""Ways to sample."""


class Variation(ABC):
    """Values that a setting takes; see the contract at the top of this file."""

    count: int | None = None
    """How many values there are, where they are counted."""

    @abstractmethod
    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return the values below which the shares p of all values lie."""

    def at(self, p: np.ndarray) -> np.ndarray:
        """Return the values for shares p, one of the counted ones where they are counted."""
        return self.quantile(p) if self.count is None else self._counted(p, self.count)

    def _counted(self, p: np.ndarray, count: int) -> np.ndarray:
        places = np.minimum((np.asarray(p) * count).astype(int), count - 1)
        return self.on_grid(count)[places]

    def on_grid(self, count: int) -> np.ndarray:
        """Return values on a grid, from the least to the largest."""
        return self.quantile((np.arange(count) + 0.5) / count)

    def within(self, p: np.ndarray) -> np.ndarray:
        """Return values for a search, from p in [0, 1]: all finite."""
        return self.at(p)


@dataclass(frozen=True)
class Uniform(Variation):
    """Numbers from `low` to `high`, all equally likely."""

    low: float
    high: float
    count: int | None = None

    def __post_init__(self) -> None:
        numbers = all(isinstance(end, Real) and math.isfinite(end) for end in (self.low, self.high))
        if not (numbers and self.low <= self.high):
            raise CampaignError(f"a range must go from low to high, got {self.low}:{self.high}")

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return low + p (high - low)."""
        return self.low + np.asarray(p) * (self.high - self.low)

    def on_grid(self, count: int) -> np.ndarray:
        """Return `count` numbers, both ends among them."""
        return np.linspace(self.low, self.high, count)


@dataclass(frozen=True)
class LogUniform(Variation):
    """Positive numbers whose logarithms are equally likely, from `low` to `high`."""

    low: float
    high: float
    count: int | None = None

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.high < math.inf):
            raise CampaignError(f"a log range must be positive, got {self.low}:{self.high}")

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return low (high / low)^p."""
        return self.low * (self.high / self.low) ** np.asarray(p)

    def on_grid(self, count: int) -> np.ndarray:
        """Return `count` numbers, both ends among them."""
        return np.geomspace(self.low, self.high, count)


@dataclass(frozen=True)
class Normal(Variation):
    """Numbers with a mean and a standard deviation."""

    mean: float
    deviation: float
    count: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.deviation < math.inf):
            raise CampaignError(
                f"a normal distribution needs a mean and a positive deviation, got "
                f"{self.mean} and {self.deviation}"
            )

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return the quantiles of the normal distribution."""
        from scipy.special import ndtri

        return self.mean + self.deviation * ndtri(np.asarray(p))

    def within(self, p: np.ndarray) -> np.ndarray:
        """Return values for a search: all but the outermost thousandth on either side."""
        return self.at(1e-3 + np.asarray(p) * (1 - 2e-3))


@dataclass(frozen=True)
class Integers(Variation):
    """Whole numbers from `low` up to, but without, `high`: seeds, numbers of bodies."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise CampaignError(f"no whole number from {self.low} up to {self.high}")

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.high - self.low

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return the numbers by their order."""
        steps = np.floor(np.asarray(p) * (self.high - self.low))
        return (self.low + np.minimum(steps, self.high - self.low - 1)).astype(int)

    def on_grid(self, count: int) -> np.ndarray:
        """Return all numbers, or `count` of them."""
        every = np.arange(self.low, self.high)
        return every if count >= len(every) else super().on_grid(count)


@dataclass(frozen=True)
class Choice(Variation):
    """Some values, all equally likely."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise CampaignError("a choice needs values")

    @property
    def count(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How many values there are."""
        return len(self.values)

    def quantile(self, p: np.ndarray) -> np.ndarray:
        """Return the values by their order."""
        return self._counted(p, self.count)

    def on_grid(self, count: int) -> np.ndarray:
        """Return all values."""
        return np.array(self.values)


def parsed(text: str, whole: bool | None = None) -> tuple[str, Variation]:
    """Return the key and the variation of "KEY=LOW:HIGH[:COUNT]" and its like.

    "seed=0:1000" with whole numbers are `Integers`, "gain=log:1:100" a `LogUniform`,
    "mass=normal:2:0.1" a `Normal`, and "plant=native,mujoco" a `Choice`.

    Parameters
    ----------
    text : str
    whole : bool or None
        Whether the key takes whole numbers, or any; None where that follows from how they are
        written.
    """
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not (key and equals and value):
        raise CampaignError(f"`--vary` takes KEY=LOW:HIGH[:COUNT], got `{text}`")
    words = value.split(":")
    kinds = {"normal": Normal, "log": LogUniform, "uniform": Uniform}
    if len(words) == 1:
        return key, Choice(tuple(value_of(word) for word in value.split(",")))
    kind: Any = kinds.get(words[0])
    numbers = [_number(word, text) for word in (words if kind is None else words[1:])]
    if not 2 <= len(numbers) <= 3:
        raise CampaignError(f"`--vary` takes KEY=LOW:HIGH[:COUNT], got `{text}`")
    count = _count(numbers[2], text) if len(numbers) == 3 else None
    written_whole = all(isinstance(number, int) for number in numbers[:2])
    if kind is None and count is None and written_whole and whole is not False:
        return key, Integers(int(numbers[0]), int(numbers[1]))
    made = (kind or Uniform)(float(numbers[0]), float(numbers[1]), count)
    return key, _whole_values(key, made, text) if whole else made


def _whole_values(key: str, made: Variation, text: str) -> Variation:
    """Return the counted values of a key that takes whole numbers, or refuse others."""
    values = np.zeros(1) + 0.5 if made.count is None else made.on_grid(made.count)
    if not np.array_equal(values, np.rint(values)):
        raise CampaignError(
            f"`{key}` takes whole numbers, and those of `--vary {text}` are not: give LOW:HIGH in "
            "whole numbers, or A,B,C"
        )
    return Choice(tuple(int(value) for value in values))


def sampled(
    variations: Mapping[str, Variation], how: str, runs: int | None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return `runs` values of every variation, by name.

    "sobol" fills the space evenly (scrambled by the seed), "random" draws, and "grid" takes all
    combinations of values: COUNT of each where it is given, else as many of each as `runs` allow
    (without `runs` all of whole numbers, and of ranges such that there are about 1000 runs).
    "saltelli" is the design from which Sobol indices follow: 2^k (keys + 2) runs, as many as `runs`
    allow.
    """
    if how not in SAMPLES:
        raise CampaignError(
            f"`sample` must be one of {', '.join(SAMPLES)}, got `{how}`{hint(how, SAMPLES)}"
        )
    if not variations:
        raise CampaignError("a campaign needs something that varies: give `vary`")
    if runs is not None and not (isinstance(runs, int | np.integer) and runs >= 1):
        raise CampaignError(f"`runs` must be a whole number from 1 on, got {runs}")
    if how == "grid":
        return _grid(variations, runs)
    if runs is None:
        raise CampaignError(
            f"a sample `{how}` needs the number of runs: give `runs` (`--runs N`), or take all "
            "combinations with the sample `grid`"
        )
    n = len(variations)
    if how == SALTELLI:
        points = _saltelli(n, runs, seed)
    elif how == "random":
        points = np.random.default_rng(seed).random((runs, n))
    else:
        from scipy.stats import qmc

        points = qmc.Sobol(n, rng=np.random.default_rng(seed)).random_base2(
            max(math.ceil(math.log2(runs)), 0)
        )[:runs]
    columns = zip(variations.items(), points.T, strict=True)
    return {key: variation.at(p) for (key, variation), p in columns}


def _saltelli(n: int, runs: int, seed: int) -> np.ndarray:
    base = 2 ** int(math.log2(max(runs // (n + 2), 1)))
    if runs < 2 * (n + 2):
        raise CampaignError(f"`saltelli` needs {2 * (n + 2)} runs or more for {n} keys, got {runs}")
    names = [str(k) for k in range(n)]
    problem = {"num_vars": n, "names": names, "bounds": [[0.0, 1.0]] * n}
    sample = needed("SALib.sample.sobol", "the sample `saltelli`").sample
    return sample(problem, base, calc_second_order=False, seed=seed)


def _grid(variations: Mapping[str, Variation], runs: int | None) -> dict[str, np.ndarray]:
    counts = {key: one.count for key, one in variations.items()}
    if runs is None:
        counts |= {k: one.size for k, one in variations.items() if isinstance(one, Integers)}
    fixed = math.prod(count for count in counts.values() if count is not None)
    if runs is not None and fixed > runs:
        raise CampaignError(
            f"the grid has {fixed} combinations of counted values, more than `runs` ({runs}): "
            "leave `runs` (`--runs`) out to make them all"
        )
    free = sum(count is None for count in counts.values())
    each = int(max((runs or 1000) / fixed, 1.0) ** (1 / max(free, 1)) + 1e-9)
    axes = [one.on_grid(counts[key] or each) for key, one in variations.items()]
    mesh = np.meshgrid(*axes, indexing="ij")
    return {key: axis.ravel() for key, axis in zip(variations, mesh, strict=True)}


def value_of(word: str) -> Any:
    """Return a whole number, a number or a text."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word.strip()


def _number(word: str, text: str) -> int | float:
    number = value_of(word)
    if isinstance(number, str) or not math.isfinite(number):
        raise CampaignError(f"`{word}` in `--vary {text}` is not a number")
    return number


def _count(number: int | float, text: str) -> int:
    if number != int(number) or number < 1:
        raise CampaignError(f"COUNT in `--vary {text}` must be a whole number from 1 on")
    return int(number)
