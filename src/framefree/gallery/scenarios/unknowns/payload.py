"""The scenario `payload`."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control import (
    Adaptation,
    AdaptivePassivity,
    MomentumObserver,
    PassivityControl,
    UnknownForce,
)
from framefree.control.law import Law
from framefree.control.references import JointPath
from framefree.gallery.machines.arms import driven_iiwa
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import Moments
from framefree.identify.base import base_parameters
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Body, Frame, Machine
from framefree.motion.regressor import body_paths, moments_of_vector, moments_vector
from framefree.motion.tree import Tree
from framefree.simulate import Change, Run, simulate
from framefree.simulate.measures import rate, rate_error, rms

CARRIES = 14.0
"""Load that the arm may carry, kg."""
HELD = (0.02, 0.03, 0.15)
"""Center of the load in the axes of the last link, m."""
GUESS = 1.0, 0.3
"""What the adapting law expects to hold before it knows better: kg, and its spread, m."""
WAIT = 2.0
"""Time after which the end must be back, s."""
COST = 1.5
"""Of the adapting body, J."""
OBSERVER = 60.0
"""Pace of the observer, 1/s."""
MIDDLE = np.array([0.3, 0.5, -0.2, -1.0, 0.3, 0.6, 0.1])
SWING = np.array([0.5, 0.35, 0.3, 0.4, 0.4, 0.3, 0.4])
PACE = 1.2
"""The path: angles (rad) about which the joints swing, how far, and how fast (rad/s)."""
WORDS = {"fixed": "fixed model", "observed": "with observer", "adapted": "adapting"}


@dataclass(frozen=True)
class Payload(Scenario):
    """An arm picks up a load that its law does not know: fixed, observed and adapted side by side.

    A seven-joint arm with the numbers of the iiwa swings all its joints. After a while it has a
    load in its hand that nobody told the law about. The law with a fixed model stays decimetres off
    its path. With an observer of unknown forces (`MomentumObserver`), which takes the load for a
    constant wrench on the last link, it comes back at once. With adaptation (`AdaptivePassivity`)
    the ten numbers of the last link adapt: mass, center and inertia stay those of a body that can
    be, and V with the true numbers in it falls as the law states it.

    Parameters
    ----------
    share : float
        Load as a share of the 14 kg that the arm may carry.
    pick : float
        When it is picked up, s.
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.

    Metrics
    -------
    load_kg
        Mass of the load.
    *_end_rms_m
        Distance of the hand from its path from 2 s after the pick on, root of the mean
        square.
    *_end_max_m
        Largest distance then.
    *_gain
        Error of the fixed law by that of this one.
    lyapunov_rate_max_w
        Largest rate of V that the law states: negative means that V falls.
    lyapunov_fall
        V in the end by V after the pick.
    least_eigenvalue
        Least eigenvalue of the estimated body's 4 x 4 matrix of moments: positive for a
        body that can be.
    excitation_rank
        How many combinations of the ten numbers the motion tells.
    excitation_least
        How well it tells the worst of them, from 0 to 1.
    estimated_mass_kg
        Mass of the last link and its load as estimated in the end.
    true_mass_kg
        That mass in truth.
    effort_share
        Largest share of a joint's effort that was used.
    """

    name: ClassVar[str] = "payload"

    share: float = 0.3
    pick: float = 1.0
    duration: float = 6.0
    dt: float = 5e-4

    def run(self, progress: bool | None = None) -> Outcome:
        """Swing the arm under three laws."""
        setting = PayloadSetting(self.share)
        runs = {name: self._swung(setting, law, progress) for name, law in setting.laws.items()}
        errors = {name: setting.end_error(run) for name, run in runs.items()}
        metrics = self._metrics(setting, runs, errors)
        return Outcome(
            runs=runs,
            metrics=metrics,
            promises=_promises(metrics),
            figures=_figures(self, setting, runs, errors),
            animations=(
                Animation(
                    "The arm that adapts", runs["adapted"], trails=("hand",),
                    caption="At the pick the hand drops by centimetres and comes back.",
                ),
            ),
            notes=_notes(metrics),
        )  # fmt: skip

    def _swung(self, setting: "PayloadSetting", law: Law, progress: bool | None) -> Run:
        return simulate(
            setting.arm, law, setting.path, *setting.start, duration=self.duration, dt=self.dt,
            events=[Change(self.pick, machine=setting.loaded)], record=("energy",),
            progress=progress,
        )  # fmt: skip

    def _metrics(
        self, setting: "PayloadSetting", runs: dict[str, Run], errors: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        adapted = runs["adapted"]
        t = adapted.t
        late = t >= self.pick + WAIT
        after = t > self.pick + 1e-9
        V, stated = adapted["V"][after], adapted["V_rate"][after]
        told, least = setting.excitation(adapted, after)
        late_rms = {name: rms(error[late]) for name, error in errors.items()}
        P = np.array([moments_of_vector(row).matrix4 for row in adapted["numbers"][::20]])
        return {
            "load_kg": setting.load.total,
            **{f"{name}_end_rms_m": value for name, value in late_rms.items()},
            **{f"{name}_end_max_m": float(errors[name][late].max()) for name in errors},
            "observed_gain": late_rms["fixed"] / late_rms["observed"],
            "adapted_gain": late_rms["fixed"] / late_rms["adapted"],
            "lyapunov_rate_error": rate_error(t[after], V, stated),
            "lyapunov_rate_max_w": float(stated.max()),
            "lyapunov_fall": float(V[-1] / V[0]),
            "least_eigenvalue": float(np.linalg.eigvalsh(P).min()),
            "excitation_rank": told,
            "excitation_least": least,
            "estimated_mass_kg": float(adapted["numbers"][-1, 0]),
            "true_mass_kg": float(setting.adaptation.true(setting.arm)[0]),
            "effort_share": float((np.abs(adapted.u) / np.concatenate(setting.efforts)).max()),
        }


@dataclass(frozen=True, eq=False)
class PayloadSetting:
    """The arm, its load, its path and the three laws."""

    share: float

    @cached_property
    def arm(self) -> Machine:
        """The arm without load; frame `hand` is where it holds things."""
        arm = driven_iiwa(friction=False)
        return replace(arm, frames=(*arm.frames, Frame("hand", "link7", HELD)))

    @cached_property
    def load(self) -> Moments:
        """A box with sides of 12, 18 and 24 cm."""
        mass = self.share * CARRIES
        a, b, c = 0.12, 0.18, 0.24
        inertia = mass / 12 * np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2])
        return Moments.of_body(mass, HELD, inertia)

    @cached_property
    def loaded(self) -> Machine:
        """The arm with its load."""
        *others, last = self.arm.bodies
        return replace(self.arm, bodies=(*others, Body(last.name, last.moments + self.load)))

    @cached_property
    def path(self) -> JointPath:
        """All joints to and fro, each with a phase of its own."""
        phase = 0.9 * np.arange(7)
        return JointPath(
            self.arm, lambda t: ca.DM(MIDDLE) + ca.DM(SWING) * ca.sin(PACE * t + ca.DM(phase))
        )

    @cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """First x and v: on the path."""
        first = self.path.at(0.0)
        x, v = (np.array(ca.DM(first[name])).ravel() for name in ("x", "v"))
        return x, v

    @cached_property
    def efforts(self) -> list[np.ndarray]:
        """Largest torques of the joints, Nm."""
        return [np.asarray(joint.effort_limit) for joint in self.arm.joints]

    @cached_property
    def adaptation(self) -> Adaptation:
        """The ten numbers of the last link adapt, from a guess that has room for a load."""
        mass, spread = GUESS
        expected = Moments.of_body(mass, HELD, mass * spread**2 * np.eye(3))
        guess = moments_vector(self.arm.bodies[-1].moments + expected)
        first = dict(zip(body_paths("link7"), guess.tolist(), strict=True))
        return Adaptation(("link7",), cost=COST, first=first, truth=self.loaded)

    @cached_property
    def laws(self) -> dict[str, Law]:
        """The same passivity law three times."""
        size = np.diag(Tree(self.arm).functions["mass"](MIDDLE).full())
        gains: dict[str, Any] = {"K": 20 * size, "stiffness": 100 * size, "Lambda": 0.05 / size}
        observer = MomentumObserver(OBSERVER, UnknownForce("link7"))
        return {
            "fixed": PassivityControl(self.arm, **gains),
            "observed": PassivityControl(self.arm, **gains, unknown=observer),
            "adapted": AdaptivePassivity(self.arm, **gains, unknown=self.adaptation),
        }

    def excitation(self, run: Run, rows: np.ndarray) -> tuple[int, float]:
        """Return how many combinations of the numbers some rows of the motion tell, and how well.

        That is the least eigenvalue (0 to 1) of the mean of Y^T Y on these combinations, columns of
        Y scaled to one.
        """
        model = self.adaptation.numbers(self.arm).machine
        x, v, a = (run.reference[name][rows][::20] for name in ("x", "v", "a"))
        Y = Tree(model).kernel("regressor")(x, v, a, model.parameters.defaults)[0].reshape(-1, 10)
        base = base_parameters(model.parameters.names, Y)
        told = Y[:, base.chosen] / np.linalg.norm(Y[:, base.chosen], axis=0)
        return base.rank, float(np.linalg.eigvalsh(told.T @ told).min())

    def end_error(self, run: Run) -> np.ndarray:
        """Return how far (rows,) the hand is from where it should be, m."""
        pose = Tree(self.arm).kernel("frame_pose:hand")
        there, wanted = (np.asarray(pose(x)) for x in (run.x, run.reference["x"]))
        return np.linalg.norm(there[:, :3, 3] - wanted[:, :3, 3], axis=1)


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    return (
        Promise.at_least(
            "2 s after the pick the observing law is better than the fixed one",
            m["observed_gain"],
            20,
            "times",
        ),
        Promise.at_least(
            "2 s after the pick the adapting law is better than the fixed one",
            m["adapted_gain"],
            20,
            "times",
        ),
        Promise("V falls as the law states, relative error", m["lyapunov_rate_error"], 1e-6),
        Promise.of(m, "lyapunov_rate_max_w", "that rate is never positive", 0.0),
        Promise.at_least(
            "estimates are those of a body that can be, least eigenvalue",
            m["least_eigenvalue"],
            0.0,
        ),
        Promise.share("joints keep within their efforts", m["effort_share"]),
    )


def _figures(
    scenario: Payload, setting: PayloadSetting, runs: dict[str, Run], errors: dict[str, np.ndarray]
) -> tuple[Figure, ...]:
    adapted = runs["adapted"]
    t, few = adapted.t, slice(None, None, 10)
    after = t > scenario.pick + 1e-9
    numbers, true = adapted["numbers"], setting.adaptation.true(setting.arm)
    stated, measured = adapted["V_rate"][after], positive(rate(t[after], adapted["V"][after]))
    return (
        Figure.over_time(
            "Distance of the hand from its path", "distance (m)", t[few],
            {WORDS[name]: _shown(error[few]) for name, error in errors.items()},
            logarithmic=True, caption=f"The load is picked up at {scenario.pick:g} s.",
        ),
        Figure.over_time(
            "Mass of the last link with its load", "mass (kg)", t[few],
            {"estimated": numbers[few, 0], "true after the pick *": np.full(len(t[few]), true[0])},
            caption="What adapts is good for the motion; it is no weighing: other numbers that "
            "move the arm alike do as well.",
        ),
        Figure.over_time(
            "First moments of the last link with its load", "first moment (kg m)", t[few],
            {
                f"{axis}, {word}": values
                for i, axis in enumerate("xyz", start=1)
                for word, values in (
                    ("estimated", numbers[few, i]),
                    ("true after the pick *", np.full(len(t[few]), true[i])),
                )
            },
        ),
        Figure.over_time(
            "Weight of the load as the observer sees it", "force in the world (N)", t[few],
            {
                axis: runs["observed"]["unknown_wrench"][few, i] for i, axis in enumerate("xyz")
            } | {"weight *": np.full(len(t[few]), -9.81 * setting.load.total)},
        ),
        Figure(
            "Lyapunov function of the adapting law", "time (s)", "-dV/dt (W)",
            (
                Line("stated", t[after][few], positive(stated[few])),
                Line("measured", t[after][2:-2][few], measured[few], dashed=True),
            ),
            "Differences of V, with the true numbers in it, beside what the law states.",
            logarithmic=True,
        ),
        Figure.over_time(
            "Torques of the adapting law", "torque (Nm)", t[few],
            {f"joint {k + 1}": adapted.u[few, k] for k in range(7)},
        ),
    )  # fmt: skip


def _shown(error: np.ndarray) -> np.ndarray:
    """Return errors with gaps where they are too small to be shown beside the others."""
    return np.where(error > 1e-6, error, np.nan)


def _notes(m: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"The load has {m['load_kg']:.2f} kg; the adapting law ends at "
        f"{m['estimated_mass_kg']:.2f} kg for the last link with its load, which has "
        f"{m['true_mass_kg']:.2f} kg.",
        f"The motion tells {m['excitation_rank']} combinations of the ten numbers apart, the "
        f"least of them at {m['excitation_least']:.1g} of 1: they are not identified by adapting.",
        "Before the pick the adapting law expects a light, wide load and finds none.",
    )
