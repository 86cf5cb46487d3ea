"""A recorded flight of the quadcopter beside its model: the logged inputs through our equations.

From attitude, velocity, angular rate and propeller speeds of the record the model gives the
accelerations; the record has them from its accelerometer, and by differences of its gyroscope. Over
short pieces the model's angular accelerations are also added up to angular rates. A constant offset
of each acceleration is fitted, as the flights did by a bias wrench: a few millimetres of center of
mass or grams of trim, which no two flights share.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters
from framefree.geometry import batch
from framefree.kernel import compile
from framefree.look.report import Figure
from framefree.motion import actuation
from framefree.motion.tree import Tree
from framefree.simulate.measures import rms

PERIOD = 0.005
GYROSCOPE, PROPELLERS = 0.005, 0.0075
"""s by which channels of the record are late, as in the author's evaluation."""
WINDOW, ORDER = 51, 5
"""Width and order of the filter that smooths and differentiates, as in the author's evaluation."""
PIECE = 50
"""Rows over which angular rates are predicted: 0.25 s."""


@dataclass(frozen=True)
class FlightComparison:
    """What was measured (n, ...) and what the model gives.

    Attributes
    ----------
    t : (n,)
    force, force_model : (n, 3)
        Specific force, m/s^2, in body axes.
    turning, turning_model : (n, 3)
        Angular acceleration, rad/s^2.
    rate, rate_model : (n, 3)
        Angular rate, rad/s, and what pieces of 0.25 s of the model give from their first value.
    offset : (6,)
        Constant that was added to the model's accelerations, m/s^2 and rad/s^2.
    """

    t: np.ndarray
    force: np.ndarray
    force_model: np.ndarray
    turning: np.ndarray
    turning_model: np.ndarray
    rate: np.ndarray
    rate_model: np.ndarray
    offset: np.ndarray

    def metrics(self) -> dict[str, float]:
        """Return rms residuals, and how much the measured values vary, for scale.

        By axis, residuals of force and turning are given as shares of that axis' own variation: all
        three together would be those of the axis that varies most.
        """
        metrics = {}
        for name, unit in (("force", "m_s2"), ("turning", "rad_s2"), ("rate", "rad_s")):
            measured, model = getattr(self, name), getattr(self, f"{name}_model")
            metrics[f"recorded_{name}_residual_{unit}"] = rms(measured - model)
            metrics[f"recorded_{name}_variation_{unit}"] = rms(measured - measured.mean(axis=0))
        for name in ("force", "turning"):
            measured, model = getattr(self, name), getattr(self, f"{name}_model")
            shares = (measured - model).std(axis=0) / measured.std(axis=0)
            for axis, share in zip("xyz", shares, strict=True):
                metrics[f"recorded_{name}_{axis}_residual_share"] = float(share)
        for axis, value in zip("xyz", self.offset[3:], strict=True):
            metrics[f"recorded_offset_turning_{axis}_rad_s2"] = float(value)
        return metrics

    def figures(self) -> tuple[Figure, ...]:
        """Return measured and predicted values over time."""
        shown = []
        for name, title, unit in (
            ("force", "Recorded flight: specific force", "m/s^2"),
            ("turning", "Recorded flight: angular acceleration", "rad/s^2"),
        ):
            measured, model = getattr(self, name), getattr(self, f"{name}_model")
            lines = {}
            for i, axis in enumerate("xyz"):
                lines[f"{axis} measured*"] = measured[:, i]
                lines[axis] = model[:, i]
            shown.append(Figure.over_time(title, f"{unit}", self.t, lines))
        return tuple(shown)


def compare(path: Any, start: float | None = None, stop: float | None = None) -> FlightComparison:
    """Return a recorded flight beside the quadcopter's model.

    Parameters
    ----------
    path : path
        Of an .npz file with t, quat_wxyz, angvel, vel (world axes), accel_imu and prop_speed.
    start, stop : float, optional
        Window on the record's own clock, s; by default the record's.
    """
    path = Path(path)
    if not path.is_file():
        raise FramefreeError(f"there is no recorded flight `{path.name}` at the given place")
    with np.load(path) as data:
        record = {name: np.asarray(data[name], float) for name in data}
    begin, end = record["window"] if start is None or stop is None else (start, stop)
    t = np.arange(begin, end, PERIOD)
    clock = record["t"]

    def at(name: str, late: float = 0.0) -> np.ndarray:
        columns = record[name].T
        return np.column_stack([np.interp(t, clock - late, column) for column in columns])

    rate = _filtered(at("angvel", GYROSCOPE))
    turning = _filtered(at("angvel", GYROSCOPE), 1)
    speed = _filtered(at("prop_speed", PROPELLERS))
    spin_up = _filtered(at("prop_speed", PROPELLERS), 1)
    quat = at("quat_wxyz")
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    velocity = np.einsum("nji,nj->ni", batch.rotation(quat), _filtered(at("vel")))
    force = _filtered(at("accel_imu", GYROSCOPE))
    model = _model()(quat, np.hstack([velocity, rate]), speed, spin_up)
    inside = slice(WINDOW, -WINDOW)
    offset = (np.hstack([force, turning]) - model)[inside].mean(axis=0)
    model = model + offset
    return FlightComparison(
        t[inside] - t[0],
        force[inside],
        model[inside, :3],
        turning[inside],
        model[inside, 3:],
        rate[inside],
        _added_up(rate[inside], model[inside, 3:]),
        offset,
    )


def _filtered(values: np.ndarray, derivative: int = 0) -> np.ndarray:
    from scipy.signal import savgol_filter

    smooth = savgol_filter(values, WINDOW, ORDER, deriv=derivative, delta=PERIOD, axis=0)
    return np.asarray(smooth, float)


def _added_up(rate: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """Return rates that begin anew with the measured one every `PIECE` rows."""
    rates = np.array(rate)
    steps = PERIOD * (turning[1:] + turning[:-1]) / 2
    for k in range(1, len(rates)):
        if k % PIECE:
            rates[k] = rates[k - 1] + steps[k - 1]
    return rates


def _model() -> Any:
    """Return the kernel from attitude, twist, propeller speeds and their rates to accelerations.

    The first three are the specific force v' + w x v - R^T g in body axes, the others w'.
    """
    machine = multicopters.quadcopter()
    wxyz, v = ca.SX.sym("wxyz", 4), ca.SX.sym("v", 6)
    speed, spin_up = ca.SX.sym("speed", 4), ca.SX.sym("spin_up", 4)
    state = Tree(machine).at(ca.vertcat(ca.SX(3, 1), wxyz), v)
    spins = ca.DM(multicopters.QUADCOPTER_SPINS)
    push = actuation.input_matrix(state) @ (multicopters.THRUST_COEFFICIENT * speed**2)
    push[5] -= multicopters.ROTOR_INERTIA * ca.dot(spins, spin_up)
    a = state.accelerate(push)
    R = ca.SX(state.poses[0])[:3, :3]
    specific = a[:3] + ca.cross(v[3:], v[:3]) - R.T @ ca.DM(np.asarray(machine.gravity, float))
    out = ca.densify(ca.vertcat(specific, a[3:]))
    return compile(ca.Function("recorded", [wxyz, v, speed, spin_up], [out]))
