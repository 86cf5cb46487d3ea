"""The scenario `two-arms`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.control.tasks import RigidCoupling, TaskControl
from framefree.gallery.machines.dual_arm import six_joint_arm
from framefree.gallery.scenarios.cooperation.arm_pose import decay
from framefree.gallery.shared.metrics import OscillatorScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure
from framefree.simulate import Run, simulate


@dataclass(frozen=True)
class TwoArms(OscillatorScenario):
    """Two arms that fall, coupled as if they held one body.

    Nothing but the coupling acts on the arms: their motors give the forces of the constraint, and
    no others. First these pull the hands to where they belong, with the closed form of an
    oscillator; from then on they do no work, and the arms swing with constant energy.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    Kp : float
        Stiffness of the error's oscillator, 1/s^2.
    Kd : float
        Its damping, 1/s.

    Metrics
    -------
    coupling_error
        Largest error of the coupling, m and rad together, once it has settled.
    energy_drift_j
        How far the energy moves once the coupling has settled.
    """

    name: ClassVar[str] = "two-arms"

    duration: float = 5.0
    dt: float = 1e-3
    Kp: float = 1000.0
    Kd: float = 100.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Run from the arms' zero configuration."""
        arm, held = six_joint_arm(), np.eye(4)
        held[:3, 3] = 0, 1.2, 0.2
        arms = arm.merge(arm, "second_", pose=(0, 1, 0))
        coupling = RigidCoupling("gripper", "second_gripper", held, self.Kp, self.Kd)
        run = simulate(
            arms,
            TaskControl(arms, [[coupling]], fastest=np.inf),  # joints fall freely, and fast
            duration=self.duration,
            dt=self.dt,
            every=max(round(0.005 / self.dt), 1),
            record=("energy",),
            progress=progress,
        )
        error = run["coupling.error"]
        closed = np.outer(decay(run.t, self.Kp, self.Kd), error[0, :3])
        late = run.t > _settled(self.Kp, self.Kd)
        metrics = {
            "coupling_error": float(np.linalg.norm(error[late], axis=1).max()),
            "closed_form_error_m": float(np.abs(error[:, :3] - closed).max()),
            "energy_drift_j": float(np.ptp(run.energy[late])),
        }
        return Outcome(
            {"run": run},
            metrics,
            (
                Promise(
                    "the hands stay as if they held one body",
                    metrics["coupling_error"],
                    1e-6,
                    "m, rad",
                ),
                Promise.of(
                    metrics, "closed_form_error_m", "errors decay as the closed form says", 1e-6
                ),
                Promise.of(
                    metrics, "energy_drift_j", "the coupling does no work: energy stays", 1e-3
                ),
            ),
            _figures(run, error, closed),
            (Animation("The arms", run, ("gripper", "second_gripper")),),
        )


def _settled(Kp: float, Kd: float) -> float:
    """Return the time in s after which less than a millionth is left of an error."""
    slowest = min(abs(np.roots([1.0, Kd, Kp]).real))
    return float(15.0 / slowest)


def _figures(run: Run, error: np.ndarray, closed: np.ndarray) -> tuple[Figure, ...]:
    sizes = {
        "position": np.linalg.norm(error[:, :3], axis=1),
        "attitude": np.linalg.norm(error[:, 3:], axis=1),
        "position, closed form *": np.linalg.norm(closed, axis=1),
    }
    return (
        Figure.over_time("Coupling error", "norm (m, rad)", run.t, sizes, logarithmic=True),
        Figure.over_time(
            "Energy",
            "energy (J)",
            run.t,
            {"kinetic": run["kinetic"], "potential": run["potential"], "sum": run.energy},
            caption="Forces of the coupling do no work once it is fulfilled.",
        ),
    )
