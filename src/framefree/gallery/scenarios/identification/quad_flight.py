"""The recorded quadcopter: from its log to a recording, and a model with all that is unknown.

The log has attitude, velocity, gyroscope, accelerometer and propeller speeds. A flight tells mass
over thrust and inertia over thrust, not each of them: mass and inertia are held, and the gains of
thrust, roll, pitch and yaw are found. That also puts what is noisy, the accelerations, on the right
side of the equations. Beside these there are a wrench that is constant in body axes, thrust that is
tilted or off the center, rotors that speed up or turn with the vehicle and flap as it turns, the
height of the accelerometer over the center of mass, and drag. Air that flows across the propellers
turns the vehicle too, by a moment about x that goes with the velocity along y and the other way
round. The controller holds against it, so without it in the model thrusts and turning seem to have
less to do with each other than they have, and inertia comes out too large.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters
from framefree.geometry import batch
from framefree.identify import Fit, Recording
from framefree.identify.rows import Prepared
from framefree.machine import Fluid, Immersed, JointForce, Machine
from framefree.motion.tree import Tree

PERIOD = 0.005
LATE = 0.005
"""s by which gyroscope and accelerometer are late, as in the author's evaluation."""
AXES = ("force_x", "force_y", "force_z", "turning_x", "turning_y", "turning_z")

# Inputs: name, direction among (force x, y, z, moment x, y, z), gain of the published model.
_BIAS = tuple(
    (f"bias_{axis}", i, 0.0) for i, axis in enumerate(("fx", "fy", "fz", "mx", "my", "mz"))
)
_ROTORS = (("rotor_acceleration", 5), ("rotor_gyro_x", 3), ("rotor_gyro_y", 4))
_THRUST = (
    *(("thrust", 2, 1.0), ("roll", 3, 1.0), ("pitch", 4, 1.0), ("yaw", 5, 1.0)),
    *(("lean_x", 0, 0.0), ("lean_y", 1, 0.0), ("off_center_y", 3, 0.0), ("off_center_x", 4, 0.0)),
    *(("sensor_height_x", 0, 0.0), ("sensor_height_y", 1, 0.0)),
    *(("flapping_x", 0, 0.0), ("flapping_y", 1, 0.0)),
    *(("airflow_x", 3, 0.0), ("airflow_y", 4, 0.0)),
)
BIAS = tuple(f"{name}.gain" for name, *_ in _BIAS)
"""What is unknown of the published model: no two flights share their trim."""
UNKNOWN = (*BIAS, *(f"{name}.gain" for name, *_ in (*_ROTORS, *_THRUST)), "drag")


def model(*, published: bool) -> Machine:
    """Return the quadcopter: as published, or with unknown gains and drag."""
    machine = multicopters.quadcopter(drag=published)
    inertia = -multicopters.ROTOR_INERTIA
    inputs = [*_BIAS, *((name, i, inertia) for name, i in _ROTORS)]
    kept = machine.actuators if published else ()
    inputs += [] if published else [*_THRUST]
    more = [JointForce(name, "base", gear=np.eye(6)[i], gain=gain) for name, i, gain in inputs]
    machine = replace(machine, actuators=(*kept, *more))
    if published:
        return machine
    # The fluid has drag only: neither weight nor added mass.
    return replace(machine, fluid=Fluid((Immersed("body", linear_drag=0.1),), density=0.0))


def recordings(path: Any, start: float, stop: float) -> dict[bool, Recording]:
    """Return a stretch of the log at an even rate, for the published model and for the new one."""
    path = Path(path)
    if not path.is_file():
        raise FramefreeError(f"there is no recorded flight `{path}`")
    with np.load(path) as data:
        record = {name: np.asarray(data[name], float) for name in data}
    t = np.arange(start, stop, PERIOD)

    def at(name: str, late: float = 0.0) -> np.ndarray:
        columns = record[name].T
        return np.column_stack([np.interp(t, record["t"] - late, column) for column in columns])

    quat = at("quat_wxyz")
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    R = batch.rotation(quat)
    rate, specific, speed = at("angvel", LATE), at("accel_imu", LATE), at("prop_speed")
    velocity = np.einsum("nji,nj->ni", R, at("vel"))
    gravity = np.asarray(multicopters.quadcopter().gravity, float)
    linear = specific - np.cross(rate, velocity) + np.einsum("nji,j->ni", R, gravity)
    x = np.hstack([np.zeros((len(t), 3)), quat])
    a = np.hstack([linear, np.gradient(rate, PERIOD, axis=0)])
    inputs = _inputs(speed, rate, velocity)
    return {
        published: Recording(
            t, x, np.hstack([velocity, rate]), a, u=inputs[published], source=f"`{path.name}`"
        )
        for published in (True, False)
    }


def _inputs(speed: np.ndarray, rate: np.ndarray, velocity: np.ndarray) -> dict[bool, np.ndarray]:
    """Return the inputs of the published and of the new model."""
    spins = np.array(multicopters.QUADCOPTER_SPINS)
    angles = np.array(multicopters.QUADCOPTER_AZIMUTHS)
    thrust = multicopters.THRUST_COEFFICIENT * speed**2
    spin, total = speed @ spins, thrust.sum(axis=1)
    rotors = [np.gradient(spin, PERIOD), rate[:, 1] * spin, -rate[:, 0] * spin]
    moments = [
        multicopters.ARM * thrust @ np.sin(angles),
        -multicopters.ARM * thrust @ np.cos(angles),
        -multicopters.TORQUE_RATIO * thrust @ spins,
    ]
    common = [*np.ones((6, len(speed))), *rotors]
    new = [*common, total, *moments, total, total, total, total]
    turning = np.gradient(rate, PERIOD, axis=0)
    new += [turning[:, 1], -turning[:, 0], rate[:, 1], -rate[:, 0]]
    new += [velocity[:, 1], -velocity[:, 0]]
    return {True: np.column_stack([thrust, *common]), False: np.column_stack(new)}


def residual_shares(fit: Fit, data: Recording) -> dict[str, float]:
    """Return what is not explained of specific force and turning, as a share of their variation."""
    prepared = Prepared.of(fit.model, data, fit.cutoff)
    Y, b = prepared.rows(fit.delay)
    M = Tree(fit.machine).mass(np.hstack([np.zeros(3), [1.0, 0, 0, 0]]))
    left = np.linalg.solve(M, (Y @ fit.value - b).T).T
    shares = left.std(axis=0) / _measured(prepared, data).std(axis=0)
    return dict(zip(AXES, (float(share) for share in shares), strict=True))


def _measured(prepared: Prepared, data: Recording) -> np.ndarray:
    """Return specific force and angular acceleration at the rows, through the same filters."""
    R = batch.rotation(data.x[:, 3:7])
    gravity = np.asarray(multicopters.quadcopter().gravity, float)
    specific = data.a[:, :3] + np.cross(data.v[:, 3:], data.v[:, :3])
    specific = specific - np.einsum("nji,j->ni", R, gravity)
    return prepared.filtered(np.hstack([specific, data.a[:, 3:]]))
