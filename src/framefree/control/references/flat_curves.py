"""Curves in time with as many derivatives as flat outputs need: moves, splines, manoeuvres.

To add one, subclass `Curve` and give ``at(t)``, from the time (casadi scalar, s) to a casadi
column, made of operations that casadi can differentiate; and ``times``, where it is not smooth.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError

Matrix = Any

REST_TO_REST = {
    5: (0.0, 0.0, 0.0, 10.0, -15.0, 6.0),
    7: (0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0),
    9: (0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0),
}
"""Coefficients, lowest first, of the polynomials from 0 to 1 with (degree - 1)/2 derivatives zero
at both ends."""


class Curve(ABC):
    """Base of all curves; see the contract at the top of this file."""

    @property
    def times(self) -> tuple[float, ...]:
        """Times (s) at which it is not smooth."""
        return ()

    @abstractmethod
    def at(self, t: Matrix) -> Matrix:
        """Return the point (column) at time t."""


@dataclass(frozen=True)
class ConstantCurve(Curve):
    """A point that stays."""

    value: Any

    def at(self, t: Matrix) -> Matrix:
        """Return the point."""
        return ca.SX(ca.DM(np.atleast_1d(np.asarray(self.value, float))))


class Move(NamedTuple):
    """To `target` within `duration` s from `start` s on."""

    start: float
    duration: float
    target: Any


@dataclass(frozen=True)
class Moves(Curve):
    """From rest to rest, one move after the other, along polynomials.

    Parameters
    ----------
    first : (n,)
        Where it rests before the first move.
    moves : sequence of Move
        In the order of time, none beginning before the one before has ended.
    degree : 5, 7 or 9
        Of the polynomials: 2, 3 or 4 derivatives are zero at rest.
    """

    first: Any
    moves: Sequence[Any]
    degree: int = 9

    def __post_init__(self) -> None:
        if self.degree not in REST_TO_REST:
            raise ControlError(f"`degree` must be 5, 7 or 9, got {self.degree}")
        moves = tuple(Move(*move) for move in self.moves)
        end = -np.inf
        for move in moves:
            if not (move.duration > 0 and move.start >= end - 1e-9):
                raise ControlError(
                    f"the move at {move.start} s must last some time and begin after the one "
                    f"before, which ends at {end} s"
                )
            end = move.start + move.duration
        object.__setattr__(self, "moves", moves)

    @property
    def times(self) -> tuple[float, ...]:
        """Beginnings and ends."""
        return tuple(x for m in self.moves for x in (m.start, m.start + m.duration))

    def at(self, t: Matrix) -> Matrix:
        """Return the point at time t."""
        last = np.atleast_1d(np.asarray(self.first, float))
        point = ca.SX(ca.DM(last))
        for move in self.moves:
            target = np.atleast_1d(np.asarray(move.target, float))
            share = polynomial(REST_TO_REST[self.degree], clipped((t - move.start) / move.duration))
            point += share * ca.DM(target - last)
            last = target
        return point


@dataclass(frozen=True)
class Manoeuvre:
    """A planar motion that ends where it began, at rest: forwards and up, over s in (-1, 1).

        forward = (1 - s^2)^5 s P(s^2),    up = (1 - s^2)^5 Q(s^2)

    Parameters
    ----------
    duration : float
        s.
    forward, up : (n,)
        Coefficients of P and Q, lowest first, m.
    """

    duration: float
    forward: tuple[float, ...]
    up: tuple[float, ...]

    def slowed(self, factor: float) -> "Manoeuvre":
        """Return the same manoeuvre in `factor` times the time, on its square times the way.

        Accelerations stay what they are, and so does the attitude of a craft on its thrust; rates
        of turning fall with the factor, and torques with its square.
        """
        if not (np.isfinite(factor) and factor > 0):
            raise ControlError(f"a manoeuvre is slowed by a positive factor, got {factor}")
        ways = (tuple(factor**2 * c for c in way) for way in (self.forward, self.up))
        return Manoeuvre(factor * self.duration, *ways)

    def at(self, s: Matrix) -> tuple[Matrix, Matrix]:
        """Return how far forwards and up."""
        rest, square = (1 - s * s) ** 5, s * s
        return rest * s * polynomial(self.forward, square), rest * polynomial(self.up, square)


LOOP = Manoeuvre(
    3.31,
    (-6.76891, 24.274, -154.73, 572.93, -1298.23, 1558.87, -786.402),
    (2.00604, -13.9922, 77.3206, -320.367, 766.815, -946.287, 454.45),
)
"""A vertical loop of 2 m: the one flown in [Konz2024, ch. 5], to 1.2 mm."""

FLIP = Manoeuvre(
    1.83,
    (-1.21502, 6.18796, -15.7451, 25.6789, -24.2048, 10.5924),
    (0.940598, -2.49543, 8.64436, -21.5506, 29.8713, -15.7779),
)
"""A flip within 1 m of height: the one flown in [Konz2024, ch. 5], to 0.2 mm."""


@dataclass(frozen=True)
class Manoeuvres(Curve):
    """One manoeuvre again and again, in several directions.

    Parameters
    ----------
    manoeuvre : Manoeuvre
    place : (3,)
        Where it begins and ends, m.
    starts : (n,)
        Times at which it begins, s.
    headings : (n,)
        Direction of "forwards" each time: angle from the world's x, rad.
    """

    manoeuvre: Manoeuvre
    place: Any
    starts: Sequence[float]
    headings: Sequence[float]

    def __post_init__(self) -> None:
        gaps = np.diff(np.asarray(self.starts, float))
        if len(self.starts) != len(self.headings) or (gaps < self.manoeuvre.duration).any():
            raise ControlError(
                "manoeuvres need a heading for every start, and starts at least "
                f"{self.manoeuvre.duration} s apart; got {list(self.starts)}"
            )

    @property
    def times(self) -> tuple[float, ...]:
        """Beginnings and ends."""
        return tuple(x for t in self.starts for x in (t, t + self.manoeuvre.duration))

    def heading(self, t: Matrix) -> Matrix:
        """Return the direction (2), cosine and sine, of the manoeuvre at time t."""
        directions = [ca.DM([np.cos(h), np.sin(h)]) for h in self.headings]
        heading = ca.SX(directions[0])
        for start, direction in zip(self.starts[1:], directions[1:], strict=True):
            heading = ca.if_else(t >= start, direction, heading)
        return heading

    def normal(self, t: Matrix) -> Matrix:
        """Return the horizontal normal (3) about which thrust turns forwards."""
        c, s = ca.vertsplit(self.heading(t))
        return ca.vertcat(-s, c, 0)

    def at(self, t: Matrix) -> Matrix:
        """Return the position (3) at time t."""
        done = sum(
            (clipped((t - start) / self.manoeuvre.duration) for start in self.starts), ca.SX(0)
        )
        forward, up = self.manoeuvre.at(2 * (done - ca.floor(done)) - 1)
        return ca.DM(np.asarray(self.place, float)) + ca.vertcat(self.heading(t) * forward, up)


@dataclass(frozen=True)
class Spline(Curve):
    """Through points at certain times, at rest before and after.

    Parameters
    ----------
    knots : (n,)
        Times, s, increasing.
    points : (n, m)
    degree : int
        Odd; the curve has degree - 1 continuous derivatives inside, and (degree - 1)/2 that are
        zero at both ends.
    """

    knots: Any
    points: Any
    degree: int = 9

    def __post_init__(self) -> None:
        knots, points = np.asarray(self.knots, float), np.atleast_2d(np.asarray(self.points, float))
        points = points.T if points.shape[0] != len(knots) else points
        if len(knots) < 2 or (np.diff(knots) <= 0).any() or len(points) != len(knots):
            raise ControlError(
                f"a spline needs increasing times and a point for each, got {len(knots)} times and "
                f"{len(points)} points"
            )
        if self.degree < 3 or self.degree % 2 == 0:
            raise ControlError(f"the degree of a spline must be odd, from 3 on, got {self.degree}")
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "_pieces", self._solved())

    @property
    def times(self) -> tuple[float, ...]:
        """The knots."""
        return tuple(self.knots.tolist())

    def _solved(self) -> np.ndarray:
        """Return the coefficients (pieces, degree + 1, m) over each piece's own share of time."""
        from scipy.interpolate import make_interp_spline

        ends = [(i, np.zeros(self.points.shape[1])) for i in range(1, (self.degree + 1) // 2)]
        spline = make_interp_spline(self.knots, self.points, self.degree, bc_type=(ends, ends))
        starts, widths = self.knots[:-1], np.diff(self.knots)
        rows = [
            spline.derivative(i)(starts) * (widths**i / math.factorial(i))[:, None]
            for i in range(self.degree + 1)
        ]
        return np.stack(rows, axis=1)

    def at(self, t: Matrix) -> Matrix:
        """Return the point at time t."""
        pieces: np.ndarray = self._pieces  # type: ignore[attr-defined]
        widths = np.diff(self.knots)
        coefficients = ca.SX(ca.DM(pieces[0]))
        start, width = ca.SX(self.knots[0]), ca.SX(widths[0])
        for k in range(1, len(pieces)):
            later = t >= self.knots[k]
            coefficients = ca.if_else(later, ca.DM(pieces[k]), coefficients)
            start = ca.if_else(later, self.knots[k], start)
            width = ca.if_else(later, widths[k], width)
        # Not a share clipped to (0, 1): the slope of a clipped value is halved right at a knot.
        within = ca.fmax(self.knots[0], ca.fmin(self.knots[-1], t))
        return polynomial(ca.vertsplit(coefficients), (within - start) / width).T


@dataclass(frozen=True)
class CircleCurve(Curve):
    """A circle at constant speed: center + cos(rate t) first + sin(rate t) second."""

    center: Any
    first: Any
    second: Any
    rate: float

    def at(self, t: Matrix) -> Matrix:
        """Return the point at time t."""
        center, first, second = (
            ca.DM(np.asarray(p, float)) for p in (self.center, self.first, self.second)
        )
        return center + ca.cos(self.rate * t) * first + ca.sin(self.rate * t) * second


def clipped(share: Matrix) -> Matrix:
    """Return a share of time within 0 and 1."""
    return ca.fmax(0, ca.fmin(1, share))


def polynomial(coefficients: Any, s: Matrix) -> Matrix:
    """Return the value at s of a polynomial, coefficients lowest first."""
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * s + c
    return value
