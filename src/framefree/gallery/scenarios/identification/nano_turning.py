"""Lag and inertia of the Crazyflie, from how it turns above the frequencies of trim and air.

    I_x dw_x/dt = sum_k y_k T_k(V_k) - d w_x + ...,     lag dV/dt = command - V,     T = c V^2

Trims differ from flight to flight and air acts slowly, so both sides pass one band-pass filter.
What is told is the turning that a volt gives, c over inertia; c is that of hovering at the usual
voltage, which the weight fixes. The lag is the one that leaves least; deviations are those of
leaving out one flight after another.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from framefree.gallery.machines import multicopters
from framefree.gallery.shared.nano_records import PERIOD, Flight

BAND = (3.0, 15.0)
"""Of the filter on both sides, Hz."""
LAGS = np.arange(0.01, 0.121, 0.005)
"""s, that are tried."""
EDGE = 100
"""Rows at either end of a flight that the filter spoils."""
WEIGHT = 9.81


class ToldTurning(NamedTuple):
    """What turning about x and y tells.

    Attributes
    ----------
    lag : float
        s.
    inertia, deviation : (2,)
        kg m^2.
    unexplained : (2,)
        Share of the variation of the turning that is left, on flights not used.
    """

    lag: float
    inertia: np.ndarray
    deviation: np.ndarray
    unexplained: np.ndarray


def turning(used: Sequence[Flight], judging: Sequence[Flight]) -> ToldTurning:
    """Return lag and inertia from some flights, judged on others."""
    used, judging = (_whole(one) for one in (used, judging))
    left = [_left(_sums([_rows(flight, lag) for flight in used])) for lag in LAGS]
    lag = float(LAGS[int(np.argmin(left))])
    rows = [_rows(flight, lag) for flight in used]
    inertia = _inertia(rows)
    without = np.array([_inertia(rows[:k] + rows[k + 1 :]) for k in range(len(rows))])
    count = len(rows)
    deviation = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    numbers = [np.linalg.solve(A, b) for A, b, _ in _sums(rows)]
    shares = []
    for axis, value in enumerate(numbers):
        parts = [_rows(flight, lag)[axis] for flight in judging]
        Y, b = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        shares.append(float((b - Y @ value).std() / b.std()))
    return ToldTurning(lag, inertia, deviation, np.array(shares))


def _whole(flights: Sequence[Flight]) -> list[Flight]:
    """Return the flights without commands that were logged wrongly."""
    return [one for one in flights if np.isfinite(one.voltage).all()]


def _rows(flight: Flight, lag: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, about x and y, moment and rate (rows, 2) and angular acceleration (rows,)."""
    from scipy.signal import butter, lfilter, sosfiltfilt

    machine = multicopters.crazyflie()
    body = machine.bodies[0].moments
    places = np.array([np.asarray(frame.pose)[:2, 3] for frame in machine.frames])
    fade = np.exp(-PERIOD / lag)
    first = flight.voltage[:1]
    volts = first + lfilter([0.0, 1 - fade], [1.0, -fade], flight.voltage - first, axis=0)
    coefficient = body.total * WEIGHT / (flight.voltage.mean(axis=0) ** 2).sum()
    thrust = coefficient * volts**2
    w, inertia = flight.rate, np.diag(body.moment)
    a = np.gradient(w, PERIOD, axis=0) + np.cross(w, w * inertia) / inertia
    sections = butter(3, BAND, btype="band", fs=1 / PERIOD, output="sos")

    def passed(values: np.ndarray) -> np.ndarray:
        return sosfiltfilt(sections, values, axis=0)[EDGE:-EDGE]

    # Differences over two periods are means over them: so must be what stands beside.
    thrust, felt = (_means(values) for values in (thrust, w))
    moments = (passed(thrust @ places[:, 1]), passed(-thrust @ places[:, 0]))
    a, w = passed(a), passed(felt)
    return [(np.column_stack([m, w[:, i]]), a[:, i]) for i, m in enumerate(moments)]


def _means(values: np.ndarray) -> np.ndarray:
    """Return the means over a period before and after every row, of values linear between rows."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4


def _sums(rows: Sequence[list]) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return Y'Y, Y'b and b'b of all flights, about x and y."""
    return [
        (
            sum(one[axis][0].T @ one[axis][0] for one in rows),
            sum(one[axis][0].T @ one[axis][1] for one in rows),
            float(sum(one[axis][1] @ one[axis][1] for one in rows)),
        )
        for axis in (0, 1)
    ]  # type: ignore[return-value]


def _left(sums: Sequence[tuple[np.ndarray, np.ndarray, float]]) -> float:
    return sum(float(total - b @ np.linalg.solve(A, b)) / total for A, b, total in sums)


def _inertia(rows: Sequence[list]) -> np.ndarray:
    return np.array([1 / np.linalg.solve(A, b)[0] for A, b, _ in _sums(rows)])
