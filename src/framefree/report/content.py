"""What a report shows, as plain data: figures of lines, and animations."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.simulate.run import Run


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
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    dashed: bool = False
    markers: bool = False

    def __post_init__(self) -> None:
        x, y = np.asarray(self.x, float), np.asarray(self.y, float)
        if x.ndim != 1 or x.shape != y.shape:
            raise FramefreeError(
                f"the line `{self.name}` needs x and y of one length, got {x.shape} and {y.shape}"
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)


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
    """

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    caption: str = ""
    logarithmic: bool = False
    equal: bool = False

    @classmethod
    def over_time(
        cls, title: str, y_label: str, t: Any, values: dict[str, Any], **options: Any
    ) -> "Figure":
        """Return a figure of arrays (n,) over the time in s; names that end in * are dashed."""
        lines = tuple(
            Line(name.rstrip("* "), t, y, dashed=name.endswith("*")) for name, y in values.items()
        )
        return cls(title, "time (s)", y_label, lines, **options)


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
