"""The scenario `chain-velocity`."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from framefree.control.port import VelocityControl, misfits
from framefree.control.references import JointPath
from framefree.control.references.bodies import BodyPoses, BodyVelocities
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.beside_printed import BesidePrinted
from framefree.gallery.scenarios.ports.chain_measures import velocity_errors
from framefree.gallery.scenarios.ports.chain_pictures import traced
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.metrics import ChainScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Pulse
from framefree.simulate.measures import rate, rms


@dataclass(frozen=True)
class ChainVelocity(ChainScenario):
    """All bodies of a floating chain follow velocities that do not quite fit its joints.

    Law I by a virtual port. The velocities are those of a chain that waves; this one starts bent,
    so that they fit the joints of the other and not its own (errata E0-8). The law follows what is
    nearest to them among the velocities its joints allow.

    Parameters
    ----------
    bodies : int
        Number of rods.
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    damping : float
        Gain on the velocity errors s.
    bend : float
        Of every joint at first, rad.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    reference_misfit_mps
        Speed at which the worst joint would part if all bodies had the velocities asked
        for.
    velocity_rms_mps
        Largest difference of a body's velocity to the one asked for, root of the mean
        square after 2 s.
    s_rms
        Velocity errors s (m/s, rad/s), root of the mean square after 2 s.
    """

    name: ClassVar[str] = "chain-velocity"

    bodies: int = 5
    duration: float = 8.0
    dt: float = 1e-3
    damping: float = 5.0
    bend: float = 0.3
    plant: str = "native"

    @cached_property
    def _machine(self) -> Machine:
        return chain(self.bodies)

    @property
    def reference(self) -> BodyVelocities:
        """Velocities of a chain that waves and drifts."""
        n, machine = self.bodies - 1, self._machine

        def path(t):  # type: ignore[no-untyped-def]
            waves = [0.4 * (1 - ca.cos(1.5 * t + k) + ca.cos(k) - 1) for k in range(n)]
            steps = [0.1 * t, 0.1 * ca.sin(t), 0, 0, 0, 0.2 * ca.sin(t)]
            steps += [part for wave in waves for part in (0, 0.5 * wave, wave)]
            return machine.integrate(ca.DM(machine.neutral()), ca.vertcat(*steps))

        return BodyVelocities(BodyPoses(JointPath(machine, path)))

    @property
    def start(self) -> np.ndarray:
        """First configuration (nx,): bent."""
        steps = np.zeros(self._machine.nv)
        steps[6:] = np.tile([0.0, self.bend, -self.bend], self.bodies - 1)
        return self._machine.integrate(self._machine.neutral(), steps)

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate the law, and the printed one beside it."""
        both = BesidePrinted.of(
            self._machine,
            lambda printed: VelocityControl(self._machine, self.damping, printed),
            self.reference,
            (self.start,),
            Pulse("body2", (0, 5, 5, 0, 0.5, 0), 5.0, 0.2),
            duration=self.duration,
            dt=self.dt,
            plant=self.plant,
            progress=progress,
        )
        worst = misfits(self._machine, self.reference, [0.0, 0.5, 1.0], self.start)[0]
        run, late = both.runs["follows"], (both.t > 2.0) & both.before
        metrics = {
            **both.metrics,
            "reference_misfit_mps": worst.slipping,
            "velocity_rms_mps": rms(velocity_errors(run)[late].max(axis=1)),
            "s_rms": rms(run["s"][late].reshape(-1, 6 * self.bodies)),
        }
        return Outcome(
            both.runs,
            metrics,
            (
                *both.promises(self.plant),
                Promise(
                    "after 2 s velocity errors s are small, rms",
                    metrics["s_rms"],
                    1e-3,
                    "m/s, rad/s",
                ),
            ),
            _figures(both),
            (Animation("The chain in motion", run, trails=("body1", "end")),),
            notes=(
                f"At the start the worst joint, `{worst.joint}`, would part at "
                f"{worst.slipping:.2g} m/s if all bodies had the velocities asked for.",
            ),
        )


def _figures(both: BesidePrinted) -> tuple[Figure, ...]:
    t = both.t
    return (
        traced("Trace of the whole motion", both.runs["follows"]),
        both.figure(
            "Lyapunov function", "V (J)", lambda run: positive(run["V"]), logarithmic=True,
            caption="A push acts at 5 s. With the joints ignored, V does not go to zero.",
        ),
        Figure.over_time(
            "Error of the stated rate of V", "error (W)", t[2:-2],
            {
                word: positive(rate(t, both.runs[key]["V"]) - both.runs[key]["V_rate"][2:-2])
                for key, word in both.words.items()
            },
            logarithmic=True,
        ),
        both.violation_figure(),
        both.figure(
            "Largest gap between a body's velocity and the one asked for", "velocity (m/s)",
            lambda run: velocity_errors(run).max(axis=1),
            caption="It need not vanish: the velocities do not fit the joints of this chain.",
        ),
    )  # fmt: skip
