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
from framefree.gallery.scenarios.ports.chain_measures import (
    positive,
    velocity_errors,
    violations_of_s,
)
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Pulse, Run, simulate
from framefree.simulate.measures import rate, rate_error, rms


@dataclass(frozen=True)
class ChainVelocity(Scenario):
    """All bodies of a floating chain follow velocities that do not quite fit its joints.

    Law I by a virtual port. The velocities are those of a chain that waves; this one starts bent,
    so that they fit the joints of the other and not its own (errata E0-8). The law follows what is
    nearest to them among the velocities its joints allow.
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
        pulse = Pulse("body2", (0, 5, 5, 0, 0.5, 0), 5.0, 0.2)
        runs = {}
        for name, literal in (("follows", False), ("printed", True)):
            runs[name] = simulate(
                self._machine,
                VelocityControl(self._machine, self.damping, literal),
                self.reference,
                self.start,
                duration=self.duration,
                dt=self.dt,
                plant=self.plant,
                disturbances=[pulse],
                record=("energy", "joint_wrench"),
                progress=progress,
            )
        metrics = self._metrics(runs, pulse)
        return Outcome(
            runs,
            metrics,
            self._promises(metrics),
            _figures(runs),
            (Animation("The chain in motion", runs["follows"], trails=("body1", "end")),),
            notes=(
                f"At the start the worst joint, `{self._worst.joint}`, would part at "
                f"{self._worst.slipping:.2g} m/s if all bodies had the velocities asked for.",
            ),
        )

    @cached_property
    def _worst(self):  # type: ignore[no-untyped-def]
        return misfits(self._machine, self.reference, [0.0, 0.5, 1.0], self.start)[0]

    def _metrics(self, runs: dict[str, Run], pulse: Pulse) -> dict[str, float]:
        t = runs["follows"].t
        before = t < pulse.start - 1e-9
        rates = {
            key: rate_error(t[before], run["V"][before], run["V_rate"][before])
            for key, run in runs.items()
        }
        late = t > 2.0
        return {
            "lyapunov_rate_error": rates["follows"],
            "js_max": float(violations_of_s(runs["follows"]).max()),
            "reference_misfit_mps": self._worst.slipping,
            "velocity_rms_mps": rms(velocity_errors(runs["follows"])[late & before].max(axis=1)),
            "s_rms": rms(runs["follows"]["s"][late & before].reshape(-1, 6 * self.bodies)),
            "literal_lyapunov_rate_error": rates["printed"],
            "literal_js_max": float(violations_of_s(runs["printed"]).max()),
        }

    def _promises(self, m: dict[str, float]) -> tuple[Promise, ...]:
        found = [
            Promise("J s at most 1e-10", m["js_max"], 1e-10),
            Promise("s below 1e-3 after 2 s", m["s_rms"], 1e-3),
            Promise("as printed, s violates the joints", 1e-3, m["literal_js_max"]),
        ]
        if self.plant == "native":
            found += [
                Promise("V falls as stated, to 1e-6", m["lyapunov_rate_error"], 1e-6),
                Promise("as printed it does not", 1e-3, m["literal_lyapunov_rate_error"]),
            ]
        return tuple(found)


def _figures(runs: dict[str, Run]) -> tuple[Figure, ...]:
    t, words = runs["follows"].t, {"follows": "this law", "printed": "as printed"}
    return (
        Figure.over_time(
            "Lyapunov function", "V (J)", t,
            {word: positive(runs[key]["V"]) for key, word in words.items()},
            logarithmic=True, caption="A push acts at 5 s. As printed, V does not go to zero.",
        ),
        Figure.over_time(
            "Error of the stated rate of V", "error (W)", t[2:-2],
            {
                word: positive(rate(t, runs[key]["V"]) - runs[key]["V_rate"][2:-2])
                for key, word in words.items()
            },
            logarithmic=True,
        ),
        Figure.over_time(
            "Velocity errors against the joints", "|J s| (m/s)", t,
            {word: positive(violations_of_s(runs[key])) for key, word in words.items()},
            logarithmic=True,
        ),
        Figure.over_time(
            "Largest gap between a body's velocity and the one asked for", "velocity (m/s)", t,
            {word: velocity_errors(runs[key]).max(axis=1) for key, word in words.items()},
            caption="It need not vanish: the velocities do not fit the joints of this chain.",
        ),
    )  # fmt: skip
