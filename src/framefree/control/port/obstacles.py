"""Obstacles: solids that bodies keep clear of.

To add one, subclass `Obstacle` (a frozen dataclass with a field `frame`) and give

1. ``distance(c)``: from a point (3, casadi, in the axes of `frame`) to the distance of the surface
   in m, negative inside;
2. ``gaps(start, end)``, where it is known: the distances from the points of a line to the surface,
   one expression or several, the least of which is the distance of the line. They must have
   continuous slopes. Without, the line is sampled.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import positive
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, unit_axis, vector
from framefree.motion.spatial import Matrix

SAMPLES = 5
"""Points of a line at which the distance of an obstacle of the user is taken."""
BLUNT = 1e-3
"""Share of a line's length that tells how gradually the nearest point moves along it."""
MIDDLE = 0.1
"""Share of a radius within which the direction from a center counts less and less."""
ASIDE = 1e-2 * np.sqrt([1 / 6, 2 / 6, 3 / 6])
"""Slope at a center itself, where no direction is nearer to the outside than another."""


class Obstacle(ABC):
    """A solid; see the top of this file."""

    frame: str = "world"

    @abstractmethod
    def distance(self, c: Matrix) -> Matrix:
        """Return the distance (m) from a point (3) to the surface."""

    @cached_property
    def distances(self) -> ca.Function:
        """From points (3 x n) to distances (1 x n)."""
        c = ca.SX.sym("c", 3)
        return ca.Function("distance", [c], [ca.SX(self.distance(c))])

    def gaps(self, start: Matrix, end: Matrix) -> list[Matrix]:
        """Return distances (m) of the line between two points (3 each); the least is its own."""
        shares = np.linspace(0.0, 1.0, SAMPLES)
        return [self.distance(start + share * (end - start)) for share in shares]

    # ------------------------------------------------------------------ where it is

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals that tell where the obstacle is."""
        return ()

    def motion(
        self, machine: Machine, reference: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return pose (4x4), twist (6) and its rate (6) of the axes of `distance`."""
        return ca.SX(constant_pose(machine.frame(self.frame).pose)), ca.SX(6, 1), ca.SX(6, 1)

    def check(self, machine: Machine) -> None:
        """Raise `ControlError` where the obstacle sits on a body of the machine."""
        frame = machine.frame(self.frame)
        if machine.body_index[frame.body] >= 0:
            raise ControlError(
                f"an obstacle must be fixed to the world, but its frame `{self.frame}` is on the "
                f"body `{frame.body}`; `pairs` of an Avoidance keep bodies clear of each other"
            )


@dataclass(frozen=True, eq=False)
class Sphere(Obstacle):
    """A ball about `center` (3), m, in a frame that is fixed to the world."""

    center: Any
    radius: float
    frame: str = "world"

    def __post_init__(self) -> None:
        set_field(self, "center", vector(self.center, "the center of a sphere"))
        positive(self.radius, "radius", "a sphere")

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        return blunt_length(c - ca.DM(self.center), self.radius) - self.radius

    def gaps(self, start: Matrix, end: Matrix) -> list[Matrix]:
        """Return the distance of the line."""
        return [blunt_length(foot(ca.DM(self.center), start, end), self.radius) - self.radius]


@dataclass(frozen=True, eq=False)
class Capsule(Obstacle):
    """All points within `radius` of the line from `start` to `end` (3 each), m.

    The curvature of its surface jumps where the round ends begin: references near it have
    accelerations that jump.
    """

    start: Any
    end: Any
    radius: float
    frame: str = "world"

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            set_field(self, name, vector(getattr(self, name), f"the {name} of a capsule"))
        positive(self.radius, "radius", "a capsule")
        if not np.linalg.norm(self.end - self.start) > 0:
            raise ControlError("`start` and `end` of a capsule must differ; use a sphere")

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        nearest = foot(c, ca.DM(self.start), ca.DM(self.end))
        return blunt_length(nearest, self.radius) - self.radius

    def gaps(self, start: Matrix, end: Matrix) -> list[Matrix]:
        """Return the distance of the line."""
        own = ca.SX(ca.DM(self.start)), ca.SX(ca.DM(self.end))
        return [line_distance(start, end, *own, self.radius) - self.radius]


@dataclass(frozen=True, eq=False)
class HalfSpace(Obstacle):
    """All points c with ``normal . c < offset``: a floor or a wall; the normal points out of it."""

    normal: Any
    offset: float = 0.0
    frame: str = "world"

    def __post_init__(self) -> None:
        set_field(self, "normal", unit_axis(self.normal, "the normal of a half-space"))

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        return ca.dot(ca.DM(self.normal), c) - self.offset

    def gaps(self, start: Matrix, end: Matrix) -> list[Matrix]:
        """Return the distances of both ends."""
        return [self.distance(start), self.distance(end)]


@dataclass(frozen=True, eq=False)
class Moving(Obstacle):
    """An obstacle that moves: reference signals tell pose, twist and acceleration of its frame.

    Parameters
    ----------
    shape : Obstacle
        In the axes of what moves; its own `frame` must be "world".
    name : str
        Of the signals NAME.pose, NAME.twist and NAME.acceleration.
    """

    shape: Obstacle
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Obstacle) or isinstance(self.shape, Moving):
            raise ControlError(f"what moves must be an obstacle at rest, got {self.shape!r}")
        if self.shape.frame != "world":
            raise ControlError(
                f"an obstacle that moves has the frame of its signals `{self.name}`, and cannot "
                f"have `{self.shape.frame}` as well"
            )

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        return self.shape.distance(c)

    def gaps(self, start: Matrix, end: Matrix) -> list[Matrix]:
        """Return distances of a line."""
        return self.shape.gaps(start, end)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals that tell where the obstacle is."""
        return frame_signals(self.name)

    def motion(
        self, machine: Machine, reference: Mapping[str, Matrix]
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return pose (4x4), twist (6) and its rate (6) from the reference signals."""
        pose, twist, rate = (reference[name] for name in self.needs)
        return pose, twist, rate

    def check(self, machine: Machine) -> None:
        """Do nothing: it is not fixed to the machine."""


# ---------------------------------------------------------------------------- lines


def foot(c: Matrix, start: Matrix, end: Matrix) -> Matrix:
    """Return the vector (3) from a point to the nearest point of a line."""
    along = end - start
    share = ca.dot(c - start, along) / ca.sumsqr(along)
    return start + ca.fmin(ca.fmax(share, 0), 1) * along - c


def blunt_length(c: Matrix, size: float, square: Any = None) -> Matrix:
    """Return |c| (m); within a small share of a size (m) a parabola, with slopes below 1.

    With eps = `MIDDLE` size it is (|c|^2 / eps + eps) / 2 there, which has the value and the slope
    of |c| at eps, and a little slope to one side at c = 0: a body in the very middle of an obstacle
    leaves it, too. `square` stands for |c|^2 where it is another one.
    """
    square = ca.sumsqr(c) if square is None else square
    least = ca.fmax(square, (MIDDLE * size) ** 2)
    within = 1 - square / least
    return (square / ca.sqrt(least) + ca.sqrt(least)) / 2 + ca.dot(ca.DM(ASIDE), c) * within**2


def pair_distance(one: Any, other: Any, size: float, points: tuple[bool, bool]) -> Matrix:
    """Return the distance (m) of two lines, each a pair of ends (3), of which some are points."""
    if all(points):
        return blunt_length(one[0] - other[0], size)
    if any(points):
        point, line = (one[0], other) if points[0] else (other[0], one)
        return blunt_length(foot(point, *line), size)
    (a, b), (c, d) = one, other
    return line_distance(a, b, c, d, size)


def line_distance(a: Matrix, b: Matrix, c: Matrix, d: Matrix, size: float) -> Matrix:
    """Return the distance (m) of two lines, a to b and c to d (3 each), with continuous slopes.

    With u and w along the lines it is the least of

        |a + s u - c - t w|^2 + blunt ((s - 1/2)^2 |u|^2 + (t - 1/2)^2 |w|^2),    s, t in [0, 1]

    which has one solution also where they are parallel; it is at most the true distance, and the
    two differ by at most half of blunt times the squares of the lengths.
    """
    u, w, r = b - a, d - c, a - c
    uu, ww = (1 + BLUNT) * ca.sumsqr(u), (1 + BLUNT) * ca.sumsqr(w)
    uw = ca.dot(u, w)
    p, q = BLUNT / 2 * ca.sumsqr(u) - ca.dot(u, r), BLUNT / 2 * ca.sumsqr(w) + ca.dot(w, r)

    # uu s - uw t = p,  ww t - uw s = q: solved for s, then t, then s again within their limits.
    s = _unit((p * ww + uw * q) / (uu * ww - uw**2))
    t = _unit((q + uw * s) / ww)
    s = _unit((p + uw * t) / uu)
    t = _unit((q + uw * s) / ww)
    lengths = ca.sumsqr(u) + ca.sumsqr(w)
    spread = ca.sumsqr(u) * (s - 0.5) ** 2 + ca.sumsqr(w) * (t - 0.5) ** 2 - lengths / 4
    apart = r + s * u - t * w
    return blunt_length(apart, size, ca.fmax(ca.sumsqr(apart) + BLUNT * spread, 0))


def _unit(share: Matrix) -> Matrix:
    return ca.fmin(ca.fmax(share, 0), 1)
