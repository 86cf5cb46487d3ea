"""The scenario `chain-pose`."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np

from framefree.control.port import PoseControl, require_feasible
from framefree.control.references import MinimumJerk
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.beside_printed import ALONE, BesidePrinted
from framefree.gallery.scenarios.ports.chain_measures import body_errors
from framefree.gallery.scenarios.ports.chain_pictures import desired_centers, traced
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.metrics import ChainScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Pulse
from framefree.simulate.measures import rate, rms

SHAPES = {"coil": (0.9, 0.3), "wave": (-0.7, 0.5), "straight": (0.0, 0.0)}
TIMES = (0.0, 2.0, 4.0, 6.0)
LONG = 40
"""Number of bodies from which on joints bend less and slower: longer chains turn as far in all, and
their ends move about as fast."""
FINE = 30
"""Number of bodies from which on steps are shorter. Errors of a step are of fourth order; those in
the rate of V grow with the number of bodies to the power 2.6, and stay below a millionth."""
SAFE = 2e-3
"""Step up to which explicit steps serve chains of any length, s: their dampers act at 900 1/s."""


@dataclass(frozen=True)
class ChainPose(ChainScenario):
    """All bodies of a floating chain follow poses, from a coil to a wave and back to straight.

    Law II by a virtual port. The poses come from a motion of the joints, so that they fit together;
    the chain starts somewhere else. Its reference velocity is the one nearest to the desired
    velocities, less the gradient of the bodies' mean square distance from where they should be,
    that the joints allow. Without that, as printed in [Eslami2025, eq. 32], s does not fit the
    joints and V does not fall as stated (errata E0-9); chains of fewer than 16 bodies show both.
    Chains of more than 30 bodies take several steps in each `dt`, and are recorded after it.

    Parameters
    ----------
    bodies : int
        Number of rods.
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    rate : float
        At which errors of pose decay, 1/s.
    damping : float
        Gain on the velocity errors s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    position_at_end_m
        Largest distance of a body from its place in the last half second.
    position_after_pulse_m
        The same, where the run is long enough after the push.
    position_rms_m
        Largest distance of a body from its place after 4 s and before the push, root of the
        mean square.
    attitude_rms_deg
        Largest angle of a body from its attitude, likewise.
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

    @property
    def _share(self) -> float:
        """How much a joint of a long chain bends, of what one of a short chain does."""
        return min(1.0, LONG / self.bodies)

    def shape(self, name: str) -> np.ndarray:
        """Return a configuration (nx,): every joint bent alike, in turn to one side and up."""
        side, up = (self._share * bend for bend in SHAPES[name])
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
        return BodyPoses(MinimumJerk(self._machine, points, self.times))

    @property
    def times(self) -> tuple[float, ...]:
        """When the chain has each of its shapes, s."""
        return tuple(time / self._share for time in TIMES)

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """First configuration and velocity, off by some 0.2 m, rad, m/s and rad/s.

        Joints of long chains are off by less: deviations of headings add up along the chain, and
        displacements of the bodies are sums of those again.
        """
        rng, machine = np.random.default_rng(3), self._machine
        off = np.full(machine.nv, 0.2)
        off[6:] *= self._share**1.5
        moved = machine.integrate(machine.neutral(), off * rng.normal(size=machine.nv))
        return moved, off * rng.normal(size=machine.nv)

    def run(self, progress: bool | None = None) -> Outcome:
        """Simulate the law, and the printed one beside it."""
        require_feasible(self._machine, self.reference, np.linspace(0, self.times[-1], 13))
        parts = ceil((self.bodies / FINE) ** (2.6 / 4))
        both = BesidePrinted.of(
            self._machine,
            lambda printed: PoseControl(self._machine, self.damping, printed, rate=self.rate),
            self.reference,
            self.start,
            Pulse("body2", (0, 20, 20, 0, 1, 0), 7.0, 0.2),
            duration=self.duration,
            dt=self.dt / parts,
            every=parts,
            plant=self.plant,
            integrator="rk4" if self.bodies >= ALONE and self.dt <= SAFE else None,
            progress=progress,
        )
        errors = {key: body_errors(run) for key, run in both.runs.items()}
        metrics = both.metrics | _metrics(both, errors)
        return Outcome(
            both.runs,
            metrics,
            (*both.promises(self.plant), *_promises(metrics)),
            _figures(both, errors),
            tuple(
                Animation(title, both.runs[key], trails=("end",))
                for key, title in (("follows", "This law"), ("printed", "Joints ignored"))
                if key in both.runs
            ),
        )


BodyErrors = dict[str, tuple[np.ndarray, np.ndarray]]
"""Errors of position (m) and attitude (deg) of all bodies, for each run."""


def _metrics(both: BesidePrinted, errors: BodyErrors) -> dict[str, float]:
    position, attitude = errors["follows"]
    steady, last = (both.t > 4.0) & both.before, both.t > both.t[-1] - 0.5
    metrics = {"position_at_end_m": float(position[last].max())}
    if both.t[-1] > both.pulse.stop + 2.0:
        metrics["position_after_pulse_m"] = metrics["position_at_end_m"]
    if steady.any():
        metrics["position_rms_m"] = rms(position[steady].max(axis=1))
        metrics["attitude_rms_deg"] = rms(attitude[steady].max(axis=1))
        if "printed" in errors:
            printed = errors["printed"][0][steady]
            metrics["ignoring_joints_position_rms_m"] = rms(printed.max(axis=1))
    return metrics


_PROMISED = (
    ("position_rms_m", "after 4 s all bodies are where they should be, rms", 1e-3),
    ("attitude_rms_deg", "and as they should be turned, rms", 0.1),
    ("position_after_pulse_m", "in the end, after a push, they are back", 5e-3),
)


def _promises(m: dict[str, float]) -> tuple[Promise, ...]:
    """Return what must hold of all that the run was long enough for."""
    return tuple(Promise.of(m, key, text, bound) for key, text, bound in _PROMISED if key in m)


def _figures(both: BesidePrinted, errors: BodyErrors) -> tuple[Figure, ...]:
    t, lines = both.t, []
    for key, run in both.runs.items():
        word = both.words[key]
        lines.append(Line(f"{word}: stated", t, positive(run["V_rate"])))
        lines.append(Line(f"{word}: measured", t[2:-2], positive(rate(t, run["V"])), dashed=True))
    follows = both.runs["follows"]
    return (
        traced(
            "Trace of the whole motion", follows, desired_centers(follows),
            caption="Ways of the bodies' mass centers; dashed, where they should be.",
        ),
        Figure.over_time(
            "Farthest body from its pose", "distance (m)", t,
            {word: positive(errors[key][0].max(axis=1)) for key, word in both.words.items()},
            logarithmic=True, caption="A push acts at 7 s.",
        ),
        Figure.over_time(
            "Largest attitude error of a body", "angle (deg)", t,
            {word: positive(errors[key][1].max(axis=1)) for key, word in both.words.items()},
            logarithmic=True,
        ),
        Figure(
            "Lyapunov function", "time (s)", "-dV/dt (W)", tuple(lines),
            "Stated rate and differences of the recorded V: with the joints ignored they differ.",
            logarithmic=True,
        ),
        both.violation_figure(),
    )  # fmt: skip
