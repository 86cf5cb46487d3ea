"""What a report shows, as plain data: figures of lines, animations, promises, and the page."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.look.report.prose import metric_name, number
from framefree.simulate.run import Run


class ReportError(FramefreeError):
    """Something that cannot be shown as asked."""


@dataclass(frozen=True)
class Line:
    """One line of a figure.

    Attributes
    ----------
    name : str
        For the legend.
    x, y : (n,)
        Points; a value that is not finite leaves a gap.
    dashed : bool
        For references, bounds and published values beside the computed ones.
    markers : bool
        Points without a line between them.
    area : bool
        A closed line whose inside is filled: see `Line.band`.
    z : (n,), optional
        The third coordinate, in a figure in space.
    faint : bool
        Thin and grey: what is there to see others by.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    dashed: bool = False
    markers: bool = False
    area: bool = False
    z: np.ndarray | None = None
    faint: bool = False

    @classmethod
    def band(cls, name: str, x: Any, low: Any, high: Any) -> "Line":
        """Return what lies between two lines over x, where both are finite."""
        x, low, high = (np.asarray(values, float) for values in (x, low, high))
        there = np.isfinite(low) & np.isfinite(high)
        x, low, high = x[there], low[there], high[there]
        return cls(name, np.append(x, x[::-1]), np.append(high, low[::-1]), area=True)

    def __post_init__(self) -> None:
        x, y = np.asarray(self.x, float), np.asarray(self.y, float)
        if x.ndim != 1 or x.shape != y.shape:
            raise ReportError(
                f"the line `{self.name}` needs x and y of one length, got {x.shape} and {y.shape}"
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        if self.z is not None:
            z = np.asarray(self.z, float)
            if z.shape != x.shape:
                raise ReportError(
                    f"the line `{self.name}` needs z of the length of x, got {z.shape} and "
                    f"{x.shape}"
                )
            object.__setattr__(self, "z", z)

    @classmethod
    def in_space(cls, name: str, points: Any, **options: Any) -> "Line":
        """Return the line through points (n, 3)."""
        x, y, z = np.asarray(points, float).T
        return cls(name, x, y, z=z, **options)


@dataclass(frozen=True)
class Figure:
    """Lines over a common axis; labels carry units: "error (m)".

    Attributes
    ----------
    title, x_label, y_label : str
    lines : tuple of Line
    caption : str
        What to see in it, in a sentence.
    logarithmic : bool
        Whether the y axis is.
    equal : bool
        Whether both axes have one scale, as for paths in a plane.
    z_label : str
        Of a figure in space, whose lines have a third coordinate: all axes have one scale.
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    caption: str = ""
    logarithmic: bool = False
    equal: bool = False
    z_label: str = ""

    def __post_init__(self) -> None:
        flat = [line.name for line in self.lines if (line.z is None) == bool(self.z_label)]
        if flat:
            what = "needs z, as the figure has a `z_label`" if self.z_label else "needs a `z_label`"
            raise ReportError(f"the line `{flat[0]}` of the figure `{self.title}` {what}")

    @classmethod
    def over_time(
        cls, title: str, y_label: str, t: Any, values: Mapping[str, Any], **options: Any
    ) -> "Figure":
        """Return a figure of arrays (n,) over the time in s; names that end in * are dashed."""
        lines = tuple(
            Line(name.rstrip("* "), t, y, dashed=name.endswith("*")) for name, y in values.items()
        )
        return cls(title, TIME_LABEL, y_label, lines, **options)


TIME_LABEL = "time (s)"
"""The x label of figures over time: they follow the animation."""


@dataclass(frozen=True)
class Animation:
    """The machine of a run in motion.

    Attributes
    ----------
    title : str
    run : Run
        Of one trajectory.
    trails : tuple of str
        Frames whose paths are drawn.
    paths : dict of str to (n, 3)
        Further curves fixed in the world, such as the path to follow.
    spheres : tuple of ((3,), float)
        Center and radius of obstacles, m.
    caption : str
    """

    title: str
    run: Run
    trails: tuple[str, ...] = ()
    paths: dict[str, np.ndarray] | None = None
    spheres: tuple[tuple[Any, float], ...] = ()
    caption: str = ""


@dataclass(frozen=True)
class Promise:
    """Something that must hold, with the figure that decides it.

    ``Promise(text, value, bound)`` promises a value of at most the bound; `Promise.at_least` one
    that is at least as large, and `Promise.that` a fact that is true or not. `Promise.of` takes
    value and unit from a metric, and `Promise.share` writes a share in percent.

    Attributes
    ----------
    text : str
        "the end follows its pose", as a sentence or a part of one.
    value, bound : float
        What was measured, and how large it may be or must be.
    unit : str
        Of both, as in "mm".
    least : bool
        Whether the bound is a least value.
    fact : bool
        Whether the value is 1 for what is true and 0 for what is not.
    """

    text: str
    value: float
    bound: float
    unit: str = ""
    least: bool = False
    fact: bool = False

    @classmethod
    def at_least(cls, text: str, value: float, bound: float, unit: str = "") -> "Promise":
        """Return the promise of a value that is the bound or larger."""
        return cls(text, value, bound, unit, least=True)

    @classmethod
    def of(
        cls, metrics: Mapping[str, Any], key: str, text: str, bound: float, *, least: bool = False
    ) -> "Promise":
        """Return the promise on a metric, in the unit that its key ends in."""
        return cls(text, float(metrics[key]), bound, metric_name(key)[1], least)

    @classmethod
    def share(
        cls, text: str, value: float, bound: float = 1.0, *, least: bool = False
    ) -> "Promise":
        """Return the promise on a share of something, which is written in percent."""
        return cls(text, 100 * value, 100 * bound, "%", least)

    @classmethod
    def that(cls, text: str, holds: Any) -> "Promise":
        """Return the promise of a fact."""
        return cls(text, float(bool(holds)), 1.0, least=True, fact=True)

    @property
    def holds(self) -> bool:
        """Whether the value is a number on the right side of the bound."""
        return bool(self.value >= self.bound if self.least else self.value <= self.bound)

    @property
    def measured(self) -> str:
        """What was measured, in words: "0.42 mm", or yes or no."""
        if self.fact:
            return "yes" if self.holds else "no"
        return "none" if self.value == 0 and self._none else self._with_unit(self.value)

    @property
    def limit(self) -> str:
        """The bound in words: "at most 1 mm", or nothing for a fact."""
        if self.fact:
            return ""
        if self._none:
            return "none may be"
        return f"{'at least' if self.least else 'at most'} {self._with_unit(self.bound)}"

    @property
    def _none(self) -> bool:
        """Whether there must be none of what is measured."""
        return self.bound == 0 and not self.least and self.value >= 0

    def _with_unit(self, value: float) -> str:
        """Return a number in so many digits that value and bound can be told apart."""
        pair = float(self.value), float(self.bound)
        for digits in (4, 6, 9, 12, 15):
            if pair[0] == pair[1] or number(pair[0], digits) != number(pair[1], digits):
                break
        return f"{number(float(value), digits)} {self.unit}".rstrip()


@dataclass(frozen=True)
class Setting:
    """One setting of what was simulated: its value and what it means."""

    name: str
    value: Any
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of text or numbers under headings; the first column names, the others hold values.

    A `folded` one is opened by who wants to see it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    folded: bool = False

    def without(self, column: str) -> "Table":
        """Return the table without a column, where it has it."""
        kept = [i for i, name in enumerate(self.columns) if name != column]
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)


@dataclass(frozen=True)
class Page:
    """All that one report tells.

    Attributes
    ----------
    title : str
    text : str
        What was simulated and why: a docstring, whose first line is the headline.
    runs : dict of str to Run
        The runs whose machines, laws, options and versions the page lists.
    promises : tuple of Promise
    metrics : dict of str to number
    meanings : dict of str to str
        A sentence on each metric.
    settings : tuple of Setting
    tables : tuple of Table
    figures : tuple of Figure
    animations : tuple of Animation
    notes : tuple of str
        Paragraphs.
    trouble : str
        Why the page tells less than it should: that a run was interrupted or failed.
    """

    title: str
    text: str = ""
    runs: Mapping[str, Run] = field(default_factory=dict)
    promises: tuple[Promise, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    animations: tuple[Animation, ...] = ()
    notes: tuple[str, ...] = ()
    trouble: str = ""
