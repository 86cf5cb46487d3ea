"""Files of flights in the format of the recorded ones, made by simulating the Crazyflie."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.control.prototype import PrototypeControl, tuning
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import Curve
from framefree.gallery.machines import multicopters
from framefree.geometry import batch
from framefree.simulate import simulate

PERIOD, ROWS, GROUND = 0.01, 650, 40
VOLTS = 3.2
"""Of a motor that hovers."""
GOOD = ("train_a", "train_b", "train_c", "train_d", "test_a", "test_b")
SPOILED = {
    "train_gyro": "correlate",
    "train_ground": "0 rows in the air",
    "test_broken": "position is not a number in row 7",
}
"""Files that cannot be used, and words of why."""


@dataclass(frozen=True)
class Sweep(Curve):
    """A path of sines, two along each axis."""

    def at(self, t):
        speeds = ((1.7, 2.61), (1.43, 2.93), (1.1, 2.2))
        sizes = ((0.4, 0.12), (0.35, 0.1), (0.1, 0.05))
        waves = [
            sum(
                size * ca.sin(speed * t + k)
                for k, (size, speed) in enumerate(zip(a, w, strict=True))
            )
            for a, w in zip(sizes, speeds, strict=True)
        ]
        return ca.vertcat(waves[0], waves[1], 1 + waves[2])


def write_flights(folder):
    """Write all files: one long flight, cut into pieces that each have trims of their own."""
    machine = multicopters.crazyflie()
    mass = machine.bodies[0].moments.total
    poles = tuning.characteristic((2.5, 0.9), (10.0, 0.9))
    gains = tuning.thrust_borne(mass, poles, (3.0, 1.0), 2.93e-5)
    reference = FlatReference(machine, Sweep())
    x, v = (np.array(one).ravel() for one in reference.function(0.0)[:2])
    names = (*GOOD, *SPOILED)
    run = simulate(
        machine, PrototypeControl(machine, **gains.on("body")), reference, x, v,
        duration=PERIOD * ROWS * len(names), dt=PERIOD / 5, control_dt=PERIOD, progress=False,
    )  # fmt: skip
    for number, name in enumerate(names):
        rows = slice(number * ROWS, (number + 1) * ROWS)
        entries = _entries(run.x[rows], run.v[rows], run.u[rows] / (mass * 9.81 / 4), number)
        if name == "train_gyro":
            np.random.default_rng(0).shuffle(entries["gyro"])
        if name == "train_ground":
            entries["pwm"][:] = 0
        if name == "test_broken":
            entries["position"][7, 2] = np.nan
        if name == "test_b":
            entries["pwm"][-200, 1] = 70000.0
        np.savez(folder / f"{name}.npz", **entries)


def _entries(x, v, share, seed):
    """Return what a file holds; the on-board clock is ahead by some rows."""
    rng = np.random.default_rng(seed)
    battery = np.linspace(4.1, 3.8, len(x))
    volts = VOLTS * (1 + 0.003 * rng.normal(size=4)) * np.sqrt(np.maximum(share, 0.0))
    d = {
        "position": x[:, :3],
        "velocity": np.einsum("nij,nj->ni", batch.rotation(x[:, 3:7]), v[:, :3]),
        "wxyz": x[:, 3:7],
        "gyro": v[:, 3:] + 0.01 * rng.normal(size=(len(x), 3)),
        "accelerometer": np.zeros((len(x), 3)),
        "pwm": volts / battery[:, None] * 65535,
        "battery": battery,
    }
    for name in ("gyro", "pwm"):
        d[name] = np.roll(d[name], -(seed % 4), axis=0)
    d = {name: np.pad(a, ((GROUND, GROUND), *((0, 0),) * (a.ndim - 1)), "edge")
         for name, a in d.items()}  # fmt: skip
    d["pwm"][:GROUND] = d["pwm"][-GROUND:] = 0
    return {**d, "t": PERIOD * np.arange(len(x) + 2 * GROUND)}
