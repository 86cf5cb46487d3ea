"""The scenario `attitude`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.prototype import APPROACHES, PrototypeControl
from framefree.control.references import JointPath
from framefree.gallery.machines.planar import tumbler
from framefree.gallery.scenarios.prototypes.flights import relative_quaternion
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import Moments, quaternion
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rate_error, rms, settling_time


def tumbling(machine: Machine) -> JointPath:
    """Return a motion that turns about all axes: two turns one after the other."""

    def path(t: Any) -> Any:
        one = quaternion.exp(ca.vertcat(0.3 * ca.sin(1.1 * t), 0, 1.7 * t))
        two = quaternion.exp(ca.vertcat(1.2 * t, 0.5 * ca.cos(0.7 * t), 0))
        return quaternion.product(one, two)

    return JointPath(machine, path)


@dataclass(frozen=True)
class Attitude(Scenario):
    """A body follows a tumbling reference from nearly upside down, by each approach.

    The prototype turns about the same point, with other moments of inertia, a spring and a damper
    against rotation. Its potential tr(Pi' (1 - R_E)) needs no angles and has no place where it
    fails; the error must not be a half turn exactly, where it is in (unstable) balance.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    error_deg : float
        First error of attitude, degrees.
    bandwidth : float
        Of the prototype, rad/s.
    damping : float
        Damping ratio of the prototype.

    Metrics
    -------
    *_model_energy_rate_error
        By how much the rate of W misses the one that the model has, for each approach.
    *_energy_rate_error
        By how much the rate of W misses what the damper takes, for each approach.
    *_rms_attitude_deg
        Error of attitude, root of the mean square, for each approach.
    *_end_attitude_deg
        Error of attitude in the end, for each approach.
    """

    name: ClassVar[str] = "attitude"

    duration: float = 6.0
    dt: float = 5e-4
    error_deg: float = 150.0
    bandwidth: float = 4.0
    damping: float = 0.8

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate all three approaches with ideal torques."""
        machine = tumbler()
        reference = tumbling(machine)
        x_R = np.array(reference.function(0.0)[0]).ravel()
        axis = np.array([0.6, -0.48, 0.64]) * np.deg2rad(self.error_deg)
        runs = {
            approach: simulate(
                machine,
                self._law(machine, approach),
                reference,
                machine.integrate(x_R, axis),
                np.zeros(3),
                duration=self.duration,
                dt=self.dt,
                record=("energy",),
                progress=progress,
            )
            for approach in APPROACHES
        }
        off = {name: _angle(run) for name, run in runs.items()}
        wrong = {name: rate_error(run.t, run["W"], -run["W_loss"]) for name, run in runs.items()}
        t = runs["energy"].t
        return Outcome(
            runs=runs,
            metrics={
                "rms_attitude_deg": rms(off["energy"]),
                "energy_rate_error": max(wrong["energy"], wrong["body"]),
                "settling_s": settling_time(t, off["energy"], 1.0),
                **{f"{name}_energy_rate_error": value for name, value in wrong.items()},
                **{f"{name}_rms_attitude_deg": rms(value) for name, value in off.items()},
                **{f"{name}_end_attitude_deg": float(v[-1]) for name, v in off.items()},
                **{f"{name}_model_energy_rate_error": rate_error(r.t, r["W"], r["W_rate"])
                   for name, r in runs.items()},
            },
            promises=(
                *(
                    Promise(
                        f"the error energy falls by what the damper takes ({name} approach), "
                        "relative error", wrong[name], 1e-6,
                    )
                    for name in ("energy", "body")
                ),
                *(
                    Promise(f"the body has found its reference in the end ({name} approach)",
                            float(off[name][-1]), 0.1, "°")
                    for name in ("energy", "body")
                ),
            ),
            figures=(
                Figure.over_time("Error of attitude", "angle (deg)", t, off),
                Figure.over_time(
                    "Error energy",
                    "energy (J)",
                    t,
                    {name: np.maximum(run["W"], 1e-14) for name, run in runs.items()},
                    logarithmic=True,
                    caption="It falls for the body and the energy approach, by what the damper "
                    "takes; the particle approach promises that for references at rest only.",
                ),
                Figure.over_time(
                    "Torque of the energy approach",
                    "torque (Nm)",
                    t,
                    dict(zip("xyz", runs["energy"].u.T, strict=True)),
                ),
            ),
            animations=(
                Animation(
                    "The body finds its reference",
                    runs["energy"],
                    trails=("tip",),
                    caption="From 150 degrees off at rest to the tumbling motion.",
                ),
            ),
        )  # fmt: skip

    def _law(self, machine: Machine, approach: str) -> PrototypeControl:
        theta = np.diag([0.03, 0.03, 0.045])
        w, zeta = self.bandwidth, self.damping
        kinds = (theta, 2 * zeta * w * theta, w * w * theta)
        gains = [{"body": Moments.of(0.0, (0, 0, 0), moment)} for moment in kinds]
        return PrototypeControl(machine, *gains, approach=approach)


def _angle(run: Run) -> np.ndarray:
    E = relative_quaternion(run.reference["x"], run.x)
    return np.rad2deg(2 * np.arctan2(np.linalg.norm(E[:, 1:], axis=1), np.abs(E[:, 0])))
