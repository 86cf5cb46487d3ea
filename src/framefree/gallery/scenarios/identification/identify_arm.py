"""The scenario `identify-arm`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.gallery.machines.arms import driven_iiwa
from framefree.gallery.scenarios.identification.arm_runs import (
    data_sheet_arm,
    recorded,
    run_arm,
)
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.identify import Fit, Recording, fit
from framefree.identify.excitation import Excitation, FourierMotion, excite
from framefree.identify.fitting import CONFIDENCE, UNKNOWN
from framefree.look.report import Animation, Figure, Line
from framefree.look.report.identified import prediction_figures
from framefree.machine import Machine
from framefree.motion.tree import Tree


@dataclass(frozen=True)
class IdentifyArm(Scenario):
    """A seven-joint arm tells its masses, friction and drives in one motion of 20 s.

    The arm has the numbers of the iiwa, with friction that differs by direction and inertia of
    drives. A law that knows its data sheet only (masses 15 percent off, no friction) follows a
    motion that was designed to tell everything: a Fourier series within the limits of the joints,
    with a small condition number. Recorded are encoders with noise and commands that act two
    periods later, at 1 kHz. From this all base parameters and the delay are identified, and forces
    of motions are predicted that were not used. The same is repeated with other noise: the true
    base parameters must lie in their intervals as often as stated.

    Parameters
    ----------
    duration : float
        Of the designed motion, s.
    noise : float
        Standard deviation of the encoders, rad.
    delay : int
        Periods of 1 ms after which commands act.
    cutoff : float
        Of the filter on both sides, Hz.
    repetitions : int
        Runs with other noise.

    Metrics
    -------
    prediction_error
        Error of the predicted forces of unseen motions, by those forces, at the worst
        joint.
    exact_error
        The same where position, velocity and acceleration are exact and nothing is late.
    coverage
        Share of true base parameters within their 99 percent intervals, over all
        repetitions.
    smallest_eigenvalue_share
        Least eigenvalue of an identified body's 4 x 4 matrix of moments, by the true one:
        positive for a body that can be.
    base_parameters
        How many combinations of parameters the motion can tell at all.
    condition
        Condition number of the designed motion: how differently well it tells them.
    first_condition
        That of the motion before it was designed.
    delay_s
        Delay of the commands that was found.
    delay_error_s
        Largest error of that delay over all repetitions.
    """

    name: ClassVar[str] = "identify-arm"
    extras: ClassVar[tuple[str, ...]] = ("identify",)

    duration: float = 20.0
    noise: float = 2e-5
    delay: int = 2
    cutoff: float = 10.0
    repetitions: int = 20

    def run(self, progress: bool | None = None) -> Outcome:
        """Design a motion, identify, predict others, repeat."""
        plant, known = driven_iiwa(), data_sheet_arm()
        motion = excite(known, UNKNOWN, duration=self.duration, rounds=150)
        unseen = [_random_motion(known, seed) for seed in (1, 2)]
        run = run_arm(plant, motion.reference, self.noise, self.delay, 0, self.duration, progress)
        others = [
            run_arm(plant, one, self.noise, self.delay, 100 + k, one.period, progress)
            for k, one in enumerate(unseen)
        ]
        tests = [self._recorded(one, 100 + k) for k, one in enumerate(others)]
        first = fit(known, self._recorded(run, 0), cutoff=self.cutoff, test=tests)
        truth = np.array(plant.tunable(*first.names).parameters.defaults)
        covered, worst = [first.covers(truth)], [max(float(t.error.max()) for t in first.test)]
        delays = [first.delay]
        for seed in range(1, self.repetitions):
            again = run_arm(plant, motion.reference, self.noise, self.delay, seed, self.duration,
                            progress)  # fmt: skip
            other = fit(known, self._recorded(again, seed), cutoff=self.cutoff, test=tests)
            covered.append(other.covers(truth))
            worst.append(max(float(t.error.max()) for t in other.test))
            delays.append(other.delay)
        metrics = {
            "prediction_error": max(worst),
            "exact_error": _exact_error(plant, known, motion.reference),
            "coverage": float(np.concatenate(covered).mean()),
            "smallest_eigenvalue_share": min(_eigenvalue(first.machine, known)),
            "base_parameters": first.base.rank,
            "condition": first.condition,
            "first_condition": motion.first_condition,
            "delay_s": first.delay,
            "delay_error_s": float(np.abs(np.array(delays) - self._true_delay).max()),
            **_by_joint(first),
        }
        return Outcome(
            runs={"designed": run, "unseen": others[0]},
            metrics=metrics,
            promises=_promises(metrics),
            figures=(*_figures(first, truth), *prediction_figures({"not used": first.test})),
            animations=(Animation("The designed motion", run, trails=("tool",)),),
            notes=_notes(first, motion),
        )

    @property
    def _true_delay(self) -> float:
        """Of the commands, and half a period for which they are held, s."""
        return (self.delay + 0.5) * 1e-3

    def _recorded(self, run, seed: int) -> Recording:
        return recorded(run, self.noise, self.delay, seed)


def _random_motion(machine: Machine, seed: int) -> FourierMotion:
    """Return a motion that nothing was designed for: a few random terms within the limits."""
    found = excite(machine, ["damping"], duration=10.0, harmonics=6, rounds=0, seed=50 + seed)
    return found.reference


def _exact_error(plant: Machine, known: Machine, motion: FourierMotion) -> float:
    """Return the relative error of forces on other states after a fit to exact x, v and a."""
    t = np.arange(0.0, motion.period, 0.02)
    x, v, a = motion.sample(t).values()
    inverse = Tree(plant).inverse
    exact = fit(known, Recording(t, x, v, a, inverse(x, v, a)), delay=False)
    rng = np.random.default_rng(3)
    x, (v, a) = plant.random(rng, 200), rng.normal(size=(2, 200, plant.nv))
    force = inverse(x, v, a)
    off = Tree(exact.machine).inverse(x, v, a) - force
    return float((np.sqrt((off**2).mean(axis=0)) / np.sqrt((force**2).mean(axis=0))).max())


def _eigenvalue(machine: Machine, known: Machine) -> list[float]:
    """Return the least eigenvalue of every body's 4x4 form, relative to what was known of it."""
    found = []
    for body, before in zip(machine.bodies, known.bodies, strict=True):
        L = np.linalg.cholesky(before.moments.matrix4)
        inner = np.linalg.solve(L, np.linalg.solve(L, body.moments.matrix4).T)
        found.append(float(np.linalg.eigvalsh((inner + inner.T) / 2)[0]))
    return found


def _by_joint(first: Fit) -> dict[str, float]:
    errors = np.max([one.error for one in first.test], axis=0)
    names = first.test[0].names
    return {f"prediction_error_{name}": float(e) for name, e in zip(names, errors, strict=True)}


def _promises(metrics: dict) -> tuple[Promise, ...]:
    return (
        Promise.share("forces of unseen motions are predicted, error of the worst joint",
                      metrics["prediction_error"], 0.01),
        Promise("they are exact from exact x, v and a, relative error",
                metrics["exact_error"], 1e-8),
        Promise.share("intervals of 99 percent hold the true base parameters",
                      metrics["coverage"], 0.97, least=True),
        Promise.at_least("all bodies found can be, least eigenvalue by the true one",
                         metrics["smallest_eigenvalue_share"], 0.0),
    )  # fmt: skip


def _figures(first: Fit, truth: np.ndarray) -> tuple[Figure, ...]:
    low, high = first.interval(CONFIDENCE)
    beta = first.base.B @ truth
    places = np.arange(first.base.rank, dtype=float)
    half = np.where(first.told, (high - low) / 2, np.nan)
    return (
        Figure(
            "Base parameters: error in half widths of the 99 percent interval",
            "base parameter",
            "error / half width",
            (
                Line("error", places, (first.estimate - beta) / half, markers=True),
                Line("interval", places, np.ones_like(places), dashed=True),
                Line("interval, below", places, -np.ones_like(places), dashed=True),
            ),
            "Nearly all lie between the dashed lines; one in a hundred may not.",
        ),
    )


def _notes(first: Fit, motion: Excitation) -> tuple[str, ...]:
    return (
        f"The motion was designed from a random one with condition number "
        f"{motion.first_condition:.3g} down to {motion.condition:.3g}.",
        f"No motion tells {', '.join(first.never_told)}: they keep what the data sheet says, moved "
        "only as far as bodies must be possible.",
        "Examples of what is told: " + "; ".join(first.base.expressions[:4]) + ".",
    )
