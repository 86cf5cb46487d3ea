"""Pieces of recorded flights: where predictions begin, what drives them, and where they should end.

Commands of propellers pass lags of several time constants T_j, row by row and from the beginning of
the flight on,

    y_j' = (s - y_j) / T_j,      s = (command / usual command)^2  for every propeller,

with the command held from row to row, so that y_j is exact. The shortest stands for the motors. The
longer ones tell what the vehicle was trimmed to before: trims differ from flight to flight. They
depend on inputs alone, so they are computed once and are no part of a prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from framefree.geometry import batch
from framefree.learn.errors import LearnError

STRIDE = 2
"""Rows of a record in one step of a prediction: inputs of the middle row stand for both."""


class RecordedFlight(NamedTuple):
    """One flight at an even rate.

    Attributes
    ----------
    position, velocity : (n, 3)
        In world axes, m and m/s.
    wxyz : (n, 4)
        Attitude, body to world.
    rate : (n, 3)
        Body axes, rad/s.
    commands : (n, k)
        Of propellers, in any unit whose square is proportional to thrust; NaN where they are not
        known.
    """

    position: np.ndarray
    velocity: np.ndarray
    wxyz: np.ndarray
    rate: np.ndarray
    commands: np.ndarray


@dataclass(frozen=True, eq=False)
class FlightPieces:
    """Pieces of flights, all of one length; motions have one row more than inputs.

    Attributes
    ----------
    position, velocity, rate : (pieces, steps + 1, 3)
    rotation : (pieces, steps + 1, 3, 3)
    inputs : (pieces, steps, lags, k)
        Squared commands of k propellers, lagging by time constants.
    flight : (pieces,)
        Number of the flight.
    dt : float
        s, of a step.
    """

    position: np.ndarray
    velocity: np.ndarray
    rotation: np.ndarray
    rate: np.ndarray
    inputs: np.ndarray
    flight: np.ndarray
    dt: float

    def __len__(self) -> int:
        return len(self.position)

    @property
    def steps(self) -> int:
        """Steps of a prediction."""
        return self.inputs.shape[1]

    def take(self, rows: Any) -> "FlightPieces":
        """Return some of the pieces."""
        return replace(
            self, **{f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "dt"}
        )

    def split(self, share: float, seed: int) -> tuple["FlightPieces", "FlightPieces"]:
        """Return pieces to learn from and pieces held out, of whole flights each."""
        names = np.random.default_rng(seed).permutation(np.unique(self.flight))
        if len(names) < 2:
            raise LearnError("one flight is too few: one more is held out to judge by")
        held = np.isin(self.flight, names[: min(max(1, round(share * len(names))), len(names) - 1)])
        return self.take(~held), self.take(held)

    def turned(self, R: Any) -> "FlightPieces":
        """Return the same flights in a world that is turned by R (3, 3)."""
        R = np.asarray(R, float)
        return replace(
            self, position=self.position @ R.T, velocity=self.velocity @ R.T,
            rotation=R @ self.rotation,
        )  # fmt: skip


def usual_command(flights: Sequence[RecordedFlight]) -> float:
    """Return the root mean square of the commands of flights that hover on the whole."""
    known = [one.commands[np.isfinite(one.commands)] for one in flights]
    return float(np.sqrt(np.mean(np.concatenate(known) ** 2)))


def flight_pieces(
    flights: Sequence[RecordedFlight],
    *,
    period: float,
    usual: float,
    lags: Sequence[float],
    rows: int = 50,
    every: int = 10,
    first: int = 100,
    settled: int = 30,
) -> FlightPieces:
    """Return pieces that begin at every so many rows of flights.

    Parameters
    ----------
    flights : sequence of RecordedFlight
    period : float
        s, from row to row.
    usual : float
        Command at which s is one; see `usual_command`.
    lags : sequence of float
        s, ascending.
    rows, every : int
        Rows of a piece, and from the beginning of one to that of the next.
    first : int
        Row of the first beginning: inputs before it fill the lags.
    settled : int
        Rows before a piece in which commands must be known.
    """
    if rows % STRIDE or rows < STRIDE:
        raise LearnError(f"pieces must have an even number of rows, got {rows}")
    if sorted(set(lags)) != list(lags) or not all(0 < one < np.inf for one in lags):
        raise LearnError(f"`lags` must be positive and ascending, got {tuple(lags)}")
    parts: dict[str, list] = {f.name: [] for f in fields(FlightPieces) if f.name != "dt"}
    for number, flight in enumerate(flights):
        _check(flight, number)
        lagging = lagging_inputs(flight.commands, period, usual, lags)
        R = batch.rotation(flight.wxyz)
        known = np.all(np.isfinite(flight.commands), axis=1)
        for k in range(first, len(R) - rows, every):
            if not known[k - min(k, settled) : k + rows].all():
                continue
            at = slice(k, k + rows + 1, STRIDE)
            values = {"position": flight.position, "velocity": flight.velocity, "rotation": R,
                      "rate": flight.rate}  # fmt: skip
            for name, value in values.items():
                parts[name].append(value[at])
            parts["inputs"].append(lagging[k + 1 : k + rows : STRIDE])
            parts["flight"].append(number)
    if not parts["flight"]:
        raise LearnError(
            f"no piece of {rows} rows with known commands lies in {len(flights)} flights of "
            f"{[len(one.rate) for one in flights]} rows, from row {first} on"
        )
    return FlightPieces(**{k: np.array(v) for k, v in parts.items()}, dt=STRIDE * period)


def lagging_inputs(
    commands: np.ndarray, period: float, usual: float, lags: Sequence[float]
) -> np.ndarray:
    """Return y (n, lags, k) at every row; unknown commands are taken to stay what they were."""
    from scipy.signal import lfilter

    known = np.isfinite(commands).all(axis=1)
    last = np.maximum.accumulate(np.where(known, np.arange(len(commands)), -1))
    s = (commands[np.where(last < 0, np.argmax(known), last)] / usual) ** 2
    result = []
    for lag in lags:
        fade = np.exp(-period / lag)
        result.append(s[0] + lfilter([0.0, 1 - fade], [1.0, -fade], s - s[0], axis=0))
    return np.stack(result, axis=1)


def _check(flight: RecordedFlight, number: int) -> None:
    n = len(flight.rate)
    for name, value in flight._asdict().items():
        columns = {"wxyz": 4, "commands": flight.commands.shape[-1]}.get(name, 3)
        if value.shape != (n, columns):
            raise LearnError(
                f"`{name}` of flight {number} must have shape {(n, columns)}, got {value.shape}"
            )
        if name != "commands" and not np.isfinite(value).all():
            row = int(np.argwhere(~np.isfinite(value))[0][0])
            raise LearnError(f"`{name}` of flight {number} is not a number in row {row}")
    if not np.isfinite(flight.commands).all(axis=1).any():
        raise LearnError(f"flight {number} has no row in which all commands are known")
