"""The scenario `chain-pose`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from framefree.control.port import PoseControl, require_feasible
from framefree.control.references import MinimumJerk
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_errors, positive, violations_of_s
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Pulse, Run, simulate
from framefree.simulate.measures import rate, rate_error, rms

SHAPES = {"coil": (0.9, 0.3), "wave": (-0.7, 0.5), "straight": (0.0, 0.0)}
TIMES = (0.0, 2.0, 4.0, 6.0)


@dataclass(frozen=True)
class ChainPose(Scenario):
    """All bodies of a floating chain follow poses, from a coil to a wave and back to straight.

    Law II by a virtual port. The poses come from a motion of the joints, so that they fit together;
    the chain starts somewhere else. Its reference velocity is the one nearest to the desired
    velocities, less the gradient of the bodies' mean square distance from where they should be,
    that the joints allow. Without that, as printed in [Eslami2025, eq. 32], s does not fit the
    joints and V does not fall as stated (errata E0-9).
    """

    name: ClassVar[str] = "chain-pose"

    bodies: int = 5
    duration: float = 10.0
    dt: float = 1e-3
    rate: float = 3.0
    damping: float = 10.0
    plant: str = "native"

    @cached_property
    def _machine(self) -> Machine:
        return chain(self.bodies)

    def shape(self, name: str) -> np.ndarray:
        """Return a configuration (nx,): every joint bent alike, in turn to one side and up."""
        side, up = SHAPES[name]
        n = self.bodies - 1
        bends = [
            (0.0, -up * (-1) ** k, side * (1 if name == "coil" else (-1) ** k)) for k in range(n)
        ]
        steps = np.concatenate([np.zeros(6), np.ravel(bends)])
        return self._machine.integrate(self._machine.neutral(), steps)

    @property
    def reference(self) -> BodyPoses:
        """Poses of all bodies."""
        points = [self.shape(name) for name in ("straight", "coil", "wave", "straight")]
        return BodyPoses(MinimumJerk(self._machine, points, TIMES))

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """First configuration and velocity, off by some 0.2 m, rad, m/s and rad/s."""
        rng, machine = np.random.default_rng(3), self._machine
        moved = machine.integrate(machine.neutral(), 0.2 * rng.normal(size=machine.nv))
        return moved, 0.2 * rng.normal(size=machine.nv)

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate the law, and the printed one beside it."""
        require_feasible(self._machine, self.reference, np.linspace(0, TIMES[-1], 13))
        pulse = Pulse("body2", (0, 20, 20, 0, 1, 0), 7.0, 0.2)
        runs = {}
        for name, literal in (("follows", False), ("printed", True)):
            law = PoseControl(self._machine, self.damping, literal, rate=self.rate)
            runs[name] = simulate(
                self._machine,
                law,
                self.reference,
                *self.start,
                duration=self.duration,
                dt=self.dt,
                plant=self.plant,
                disturbances=[pulse],
                record=("energy", "joint_wrench"),
                progress=progress,
            )
        return outcome_of(self, runs, pulse)


def outcome_of(scenario: Any, runs: dict[str, Run], pulse: Pulse) -> Outcome:
    """Return what came of two runs of law II: as it should be, and as printed."""
    run, t = runs["follows"], runs["follows"].t
    gaps = {key: body_errors(one) for key, one in runs.items()}
    before = t < pulse.start - 1e-9
    steady = (t > 4.0) & before
    last = t > t[-1] - 0.5
    rates = {
        key: rate_error(t[before], one["V"][before], one["V_rate"][before])
        for key, one in runs.items()
    }
    metrics = {
        "lyapunov_rate_error": rates["follows"],
        "js_max": float(violations_of_s(run).max()),
        "position_rms_m": rms(gaps["follows"][0][steady].max(axis=1)),
        "attitude_rms_deg": rms(gaps["follows"][1][steady].max(axis=1)),
        "position_after_pulse_m": float(gaps["follows"][0][last].max()),
        "literal_lyapunov_rate_error": rates["printed"],
        "literal_js_max": float(violations_of_s(runs["printed"]).max()),
        "literal_position_rms_m": rms(gaps["printed"][0][steady].max(axis=1)),
    }
    promises = [
        Promise("J s at most 1e-10", metrics["js_max"], 1e-10),
        Promise("all bodies within 1 mm rms after 4 s", metrics["position_rms_m"], 1e-3),
        Promise("and within 0.1 degree rms", metrics["attitude_rms_deg"], 0.1),
        Promise("within 5 mm at the end, after a push", metrics["position_after_pulse_m"], 5e-3),
        Promise("as printed, s violates the joints", 1e-3, metrics["literal_js_max"]),
    ]
    if scenario.plant == "native":
        error = metrics["lyapunov_rate_error"]
        promises += [
            Promise("V falls as stated, to 1e-6", error, 1e-6),
            Promise("as printed it does not", 1e-3, metrics["literal_lyapunov_rate_error"]),
        ]
    return Outcome(
        runs,
        metrics,
        tuple(promises),
        _figures(runs, gaps),
        tuple(
            Animation(title, runs[key], trails=("end",))
            for key, title in (("follows", "This law"), ("printed", "As printed"))
        ),
    )


def _figures(runs: dict[str, Run], gaps: dict[str, Any]) -> tuple[Figure, ...]:
    t, words = runs["follows"].t, {"follows": "this law", "printed": "as printed"}
    lines = []
    for key, run in runs.items():
        lines.append(Line(f"{words[key]}: stated", t, positive(run["V_rate"])))
        lines.append(
            Line(f"{words[key]}: measured", t[2:-2], positive(rate(t, run["V"])), dashed=True)
        )
    return (
        Figure.over_time(
            "Farthest body from its pose", "distance (m)", t,
            {word: positive(gaps[key][0].max(axis=1)) for key, word in words.items()},
            logarithmic=True, caption="A push acts at 7 s.",
        ),
        Figure.over_time(
            "Largest attitude error of a body", "angle (degree)", t,
            {word: positive(gaps[key][1].max(axis=1)) for key, word in words.items()},
            logarithmic=True,
        ),
        Figure(
            "Lyapunov function", "time (s)", "-dV/dt (W)", tuple(lines),
            "Stated rate and differences of the recorded V: of the law as printed they differ.",
            logarithmic=True,
        ),
        Figure.over_time(
            "Velocity errors against the joints", "|J s| (m/s)", t,
            {word: positive(violations_of_s(runs[key])) for key, word in words.items()},
            logarithmic=True,
        ),
    )  # fmt: skip
