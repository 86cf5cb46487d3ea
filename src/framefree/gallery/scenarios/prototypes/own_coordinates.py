"""The scenario `own-coordinates`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control import ComputedTorque
from framefree.control.references import MinimumJerk
from framefree.gallery.machines.planar import tumbler
from framefree.gallery.machines.systems import (
    TOP,
    nine_numbers,
    pendulum,
    shaken_lagrangian,
    sleigh,
)
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import batch
from framefree.look.report import Animation, Figure
from framefree.machine import Machine, motors
from framefree.simulate import Run, simulate


@dataclass(frozen=True)
class OwnCoordinates(Scenario):
    """A pendulum, a top and a sleigh in coordinates that the user has chosen.

    Nothing but coordinates x with phi(x) = 0, velocities by dx/dt = A(x) v and poses of bodies are
    written down. The top's attitude is nine numbers that must stay a rotation, the pendulum is
    given twice (by poses on a shaken pivot, and by its Lagrangian), and the sleigh's blade forbids
    velocities, not places. A law drives the pendulum up.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    shake_m : float
        Amplitude of the pivot, m.
    shake_rad_s : float
        Its frequency, rad/s.

    Metrics
    -------
    lagrangian_gap
        Largest difference of cosine and sine between the pendulum by poses and by its
        Lagrangian.
    rotation_gap
        Largest difference of an entry of the rotation by nine numbers and by a quaternion.
    rotation_drift
        How far the nine numbers are from a rotation at most: R R^T less the identity.
    sleigh_energy_drift
        How far the sleigh's energy moves, J.
    driven_error
        How far cosine and sine of the driven pendulum are from upright in the end.
    """

    name: ClassVar[str] = "own-coordinates"

    duration: float = 5.0
    dt: float = 1e-3
    shake_m: float = 0.08
    shake_rad_s: float = 21.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate all systems, each against something that does not share its coordinates."""
        options = {"duration": self.duration, "dt": self.dt, "progress": progress}
        shake = self.shake_m, self.shake_rad_s
        start = np.array([np.cos(0.9), np.sin(0.9)])
        spin = np.array([1.0, -0.6, 4.0])
        runs = {
            "shaken": simulate(pendulum(*shake), x0=start, **options),
            "lagrangian": simulate(shaken_lagrangian(*shake), x0=start, **options),
            "nine_numbers": simulate(nine_numbers(), v0=spin, **options),
            "quaternion": simulate(_ball(), v0=spin, **options),
            "sleigh": simulate(sleigh(), v0=[0.5, 2.0], **options),
            "driven": self._driven(options),
        }
        gaps = {
            "lagrangian_gap": _largest(runs["shaken"].x - runs["lagrangian"].x),
            "rotation_gap": _largest(
                _rotations(runs["nine_numbers"]) - batch.rotation(runs["quaternion"].x)
            ),
            "rotation_drift": _drift(runs["nine_numbers"]),
            "sleigh_energy_drift": float(np.ptp(runs["sleigh"]["kinetic"])),
            "driven_error": _largest(runs["driven"].x[-1] - UPRIGHT),
        }
        names = {
            "lagrangian_gap": ("poses and Lagrangian give one motion", 1e-9, ""),
            "rotation_gap": ("nine numbers and a quaternion give one rotation", 1e-8, ""),
            "rotation_drift": ("nine numbers stay a rotation", 1e-12, ""),
            "sleigh_energy_drift": ("the blade does no work: the energy stays", 1e-9, "J"),
            "driven_error": ("the law brings the pendulum up", 1e-6, ""),
        }
        t = runs["shaken"].t
        return Outcome(
            runs=runs,
            metrics=gaps,
            promises=tuple(
                Promise(text, gaps[key], bar, unit) for key, (text, bar, unit) in names.items()
            ),
            figures=(
                Figure.over_time(
                    "The pendulum on its shaken pivot",
                    "cosine and sine",
                    t,
                    {"cosine": runs["shaken"].x[:, 0], "sine": runs["shaken"].x[:, 1]},
                ),
                Figure.over_time(
                    "Lyapunov function of the law",
                    "V (J)",
                    runs["driven"].t,
                    {"V": np.maximum(runs["driven"]["V"], 1e-16)},
                    logarithmic=True,
                ),
            ),
            animations=(
                Animation("The sleigh", runs["sleigh"], caption="It turns into its run."),
                Animation("The top by nine numbers", runs["nine_numbers"]),
                Animation("The pendulum is driven up", runs["driven"]),
            ),
        )

    def _driven(self, options: dict) -> Run:
        system: Any = pendulum(actuators=motors(pendulum().joints))
        law = ComputedTorque(system, stiffness=64.0, damping=16.0)
        path = MinimumJerk(system, points=[[1.0, 0.0], [0.0, 1.0], UPRIGHT], times=[0.0, 1.0, 2.0])
        off = np.array([np.cos(0.2), -np.sin(0.2)])
        return simulate(system, law, path, x0=off, **options)


UPRIGHT = np.array([-1.0, 0.0])
"""Cosine and sine of the pendulum above its pivot."""


def _ball() -> Machine:
    """Return the same top on a ball joint."""
    machine = tumbler()
    body = machine.bodies[0].name
    bare = machine.detach(*(actuator.name for actuator in machine.actuators))
    return bare.replace(body, inertia=TOP).replace(gravity=(0.0, 0.0, -9.81))


def _rotations(run: Run) -> np.ndarray:
    return run.x.reshape(-1, 3, 3).transpose(0, 2, 1)


def _drift(run: Run) -> float:
    R = _rotations(run)
    return _largest(R @ R.transpose(0, 2, 1) - np.eye(3))


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max())
