"""Recorded flights of a Crazyflie [NanoBench]: files NAME.npz at 100 Hz, aligned and checked.

Motion capture and the on-board log run on two clocks: each flight is aligned by the correlation of
gyroscope and rate of the attitude, and left out where that stays low. Rows on the ground, and those
just after take-off and before landing, are left out too.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framefree.errors import FramefreeError
from framefree.geometry import batch

PERIOD, STEPS = 0.01, 50
"""s, and steps of a prediction: half a second."""
COLUMNS = {"position": 3, "velocity": 3, "wxyz": 4, "gyro": 3, "pwm": 4, "battery": None}
"""What a file must hold, and how many columns of it; other entries are not read."""
CORRELATION, SHIFTS = 0.6, range(-8, 9)
"""Below which a flight is left out, and rows by which clocks may differ."""
FULL, SPINNING = 65535, 5000
"""Largest command of a motor, and one above which it flies."""
AFTER_START, BEFORE_LANDING = 50, 100
"""Rows."""


class Flight(NamedTuple):
    """One aligned flight at 100 Hz, in the air only.

    Attributes
    ----------
    position, velocity : (n, 3)
        World axes, m and m/s.
    wxyz : (n, 4)
    rate : (n, 3)
        Of the gyroscope, rad/s.
    voltage : (n, 4)
        Commands times battery, V; NaN where commands were logged wrongly.
    name : str
    """

    position: np.ndarray
    wxyz: np.ndarray
    velocity: np.ndarray
    rate: np.ndarray
    voltage: np.ndarray
    name: str = ""


def flights(folder: Path, pattern: str) -> tuple[list[Flight], dict[str, str]]:
    """Return the flights that can be used, and why others cannot, by name."""
    found, left_out = [], {}
    for path in sorted(folder.glob(pattern)):
        flight = aligned_flight(path)
        if isinstance(flight, str):
            left_out[path.stem] = flight
        else:
            found.append(flight)
    return found, left_out


def aligned_flight(path: Path) -> Flight | str:
    """Return the flight of a file, or why it cannot be used."""
    d = _read(path)
    for name, values in d.items():
        if not np.isfinite(values).all():
            return f"{name} is not a number in row {int(np.argwhere(~np.isfinite(values))[0][0])}"
    flying = np.flatnonzero(d["pwm"].min(axis=1) > SPINNING)[AFTER_START:-BEFORE_LANDING]
    if len(flying) < 4 * STEPS:
        return f"{len(flying)} rows in the air"
    quat = d["wxyz"] / np.linalg.norm(d["wxyz"], axis=1, keepdims=True)
    turned = np.einsum("nji,njk->nik", batch.rotation(quat[:-2]), batch.rotation(quat[2:]))
    rates = np.column_stack([turned[:, 2, 1] - turned[:, 1, 2], turned[:, 0, 2] - turned[:, 2, 0],
                             turned[:, 1, 0] - turned[:, 0, 1]]) / (4 * PERIOD)  # fmt: skip
    rates = _smooth(np.vstack([rates[:1], rates, rates[-1:]]))
    gyro = _smooth(d["gyro"])
    best = (-1.0, 0)
    for shift in SHIFTS:
        rows = flying[(flying + shift >= 0) & (flying + shift < len(quat))]
        pairs = zip(rates[rows + shift, :2].T, gyro[rows, :2].T, strict=True)
        likeness = float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in pairs]))
        best = max(best, (likeness, shift))
    likeness, shift = best
    if likeness < CORRELATION:
        return f"gyroscope and attitude correlate by {likeness:.2f} only"
    rows = flying[(flying + shift >= 0) & (flying + shift < len(quat))]
    seen = rows + shift
    # Commands beyond what the motors take were logged wrongly: no piece may hold them.
    duty = np.where(d["pwm"][rows] > FULL, np.nan, d["pwm"][rows] / FULL)
    volts = duty * d["battery"][rows, None]
    return Flight(
        d["position"][seen], quat[seen], d["velocity"][seen], d["gyro"][rows], volts, path.stem
    )


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as data:
            missing = [name for name in COLUMNS if name not in data]
            if missing:
                raise FramefreeError(f"`{path.name}` has no {', '.join(missing)}")
            d = {name: np.asarray(data[name], float) for name in COLUMNS}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise FramefreeError(f"`{path.name}` is not a recorded flight: {error}") from None
    rows = len(d["position"])
    for name, columns in COLUMNS.items():
        shape = (rows,) if columns is None else (rows, columns)
        if d[name].shape != shape:
            raise FramefreeError(
                f"`{name}` of `{path.name}` must have shape {shape}, got {d[name].shape}"
            )
    return d


def _smooth(values: np.ndarray) -> np.ndarray:
    """Return means of five rows: differences of attitudes are noisy."""
    kernel = np.ones(5) / 5
    return np.column_stack([np.convolve(column, kernel, "same") for column in values.T])
