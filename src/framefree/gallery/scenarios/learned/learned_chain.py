"""The scenario `learned-chain`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.gallery.scenarios.learned.adaptive_chain import ChangedChain, in_span_gap
from framefree.gallery.scenarios.learned.chain_figures import (
    TITLES,
    WORDS,
    Curve,
    Runs,
    current_figure,
    curves,
    tracking_figures,
)
from framefree.gallery.scenarios.learned.chain_task import chain_task
from framefree.gallery.scenarios.learned.closed_loop import (
    SETTLED,
    FluidTracking,
    settled_rms,
    tracking_errors,
)
from framefree.gallery.scenarios.learned.guarded_chain import FAR, GuardedLessons
from framefree.gallery.scenarios.learned.measured_chain import LATE, PERIOD, MeasuredChain
from framefree.gallery.scenarios.learned.open_loop import STYLES, FluidLessons, rotation_factors
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.learn import LearningTask
from framefree.look.report import Animation
from framefree.simulate.measures import rate

FOLLOWED = ("plane", "yaw", "space")
GAINS = {"plane": 50.0, "yaw": 50.0, "space": 20.0}
"""Times by which tracking must improve."""
KNOWN = ("none", "learned", "world")
ADAPTED = {"current": 0.015, "payload": 0.020}
"""m, rms that is left after a change."""
V_STEP, V_DURATION = 1.25e-4, 1.0
"""s, of the run whose V is differenced: drag has kinks, over which differences are rough."""


@dataclass(frozen=True)
class LearnedChain(Scenario):
    """Five rods learn the fluid they swim in, from motions in one plane and at one heading.

    The law knows the rods and nothing of the fluid: strip drag that halves above 0.8 m/s, lift,
    Magnus force, buoyancy off centre, and a current. A basis of readable terms is fitted to what
    the equations lack, T' tau, and a network that commutes with the symmetry of a rod learns what
    the basis leaves. Both are one function of what a rod meets in its own axes, shared by all rods.
    So what was learned in one plane holds at every heading, rolled, in three dimensions, and for a
    chain of ten rods; a plain network in world axes is shown beside it. The port law with the model
    added to its machine then follows motions that it has not seen. With a guard the model fades out
    where it has no data. When the current jumps, or the last rod gets a load, `Adaptive` follows.

    Errors are those of T' tau at unseen states, relative, in a metric that no frame alters.

    Parameters
    ----------
    samples, few : int
        Samples to learn from, and few of them; labels have 3 percent of noise.
    plain_samples : int
        Most samples of the plain network.
    measured : int
        Runs of 20 s recorded as a real machine would (200 Hz, 0.2 mm, 1 mrad, inputs 20 ms late),
        half of them with what the first half told; 0 leaves this out.
    closed_loop, adaptive : bool
        Whether the law is run, and the adapting law.
    seed : int
        Of the noise.
    duration : float
        Of each run of the law, s.
    dt : float
        Step of the integrator, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    error_1000
        Error of the force on unseen motions with all samples, by that force, for the worst
        kind of motion.
    error_200
        The same with few samples.
    error_ten_rods
        The same for ten rods, learned from five.
    error_space
        The same for motions in space.
    error_basis
        The same by the readable basis alone.
    error_network
        The same by the network alone.
    error_in_span_50
        The same with 50 samples of a fluid that the basis spans.
    error_world_space
        The same by the plain network for motions in space.
    error_world
        The same by the plain network.
    error_measured_first_round
        The same after the first half of the measured runs.
    error_measured_without_delay
        The same where the delay is not found.
    error_measured
        The same with motions measured as on a real machine.
    error_*
        The same for this kind of motion or number of samples.
    rotation_factor_world
        By how much the plain network's error changes when the experiment is turned.
    rotation_factor*
        By how much an error changes when the experiment is turned: 1 is not at all.
    data_factor_reached
        Whether the plain network reached our error at all.
    data_factor
        How many times as many samples the plain network needs, or more.
    untold
        Terms of the basis that the samples do not tell.
    dropped
        Terms of the basis that were dropped.
    delay_found_s
        Delay of the inputs that was found.
    delay_error_s
        Its error.
    training_s
        Time of all training.
    tracking_gain_*_world
        How many times better the chain follows with the plain network.
    tracking_gain_*
        How many times better the chain follows with what was learned.
    *_attitude_rms_deg
        Angle of a rod from its attitude, root of the mean square.
    *_rms_m
        Distance of a rod from its place, root of the mean square, in this run.
    guard_excess_m
        By how much the guarded chain is farther off than without learning; negative is
        nearer.
    guard_bound_m
        By how much it may be.
    guard_misfit_excess_n
        By how much the guarded force is farther from the truth than none.
    guard_misfit_bound_n
        By how much it may be.
    v_rate_gap_*
        Largest difference between the rate of V and the stated one.
    """

    name: ClassVar[str] = "learned-chain"
    extras: ClassVar[tuple[str, ...]] = ("learn",)

    samples: int = 1000
    few: int = 200
    plain_samples: int = 20_000
    seed: int = 2
    measured: int = 6
    closed_loop: bool = True
    adaptive: bool = True
    duration: float = 10.0
    dt: float = 2e-3
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Learn, judge, and follow motions with what was learned."""
        loop = FluidLessons(self.samples, self.few, self.plain_samples, self.seed)
        metrics, curve = _open_metrics(loop)
        metrics["training_s"] = loop.training_seconds
        if self.measured:
            metrics |= _measured_metrics(loop, MeasuredChain(self.measured, self.seed, progress))
        runs: Runs = {}
        if self.closed_loop:
            runs |= self._followed(loop, progress)
            metrics |= _closed_metrics(runs) | _guard_metrics(GuardedLessons(loop), runs)
        if self.adaptive:
            changed = self._changed(loop, progress)
            metrics |= _adaptive_metrics(changed)
            runs |= changed
        return Outcome(
            {f"{style}_{name}": run for (style, name), run in runs.items()},
            metrics,
            _promises(metrics, self),
            (*curves(curve), *tracking_figures(runs), *current_figure(runs)),
            tuple(
                Animation(f"In three dimensions, {WORDS[name]}", runs["space", name])
                for name in ("none", "learned")
                if ("space", name) in runs
            ),
            notes=(
                "The fluid as it was read from the data:",
                *loop.full.model.formula().splitlines(),
            ),
        )

    def learning(self) -> LearningTask:
        """Return the fluid as what `framefree learn` learns, from slow, fast and other motions."""
        return chain_task(self.name, self.seed, self.duration, self.dt, self.plant)

    def _followed(self, loop: FluidLessons, progress: bool | None) -> Runs:
        """Follow motions with what was learned, and with the guard what is out of reach."""
        models: dict[str, Any] = {
            "none": None,
            "learned": loop.full.model,
            "world": loop.worlds[self.samples],
            "guarded": GuardedLessons(loop).model,
        }
        asked = [(style, name) for style in FOLLOWED for name in KNOWN]
        asked += [("far", "none"), ("far", "guarded")]
        styles = {**STYLES, "far": FAR}
        return {
            (style, name): FluidTracking(
                styles[style], self.duration, self.dt, self.plant, progress
            ).run(models[name])
            for style, name in asked
        }

    def _changed(self, loop: FluidLessons, progress: bool | None) -> Runs:
        """Go on after a change, with and without what was learned; and shortly in small steps."""
        runs: Runs = {}
        for change in ADAPTED:
            chain = ChangedChain(
                STYLES["space"], self.duration, self.dt, change == "payload", self.plant, progress
            )
            runs[change, "none"] = chain.run(None)
            runs[change, "adaptive"] = chain.run(loop.full.model)
        short = ChangedChain(
            STYLES["space"], V_DURATION, V_STEP, payload=True, plant=self.plant, progress=progress
        )
        runs["payload", "short"] = short.run(loop.full.model)
        return runs


def _open_metrics(loop: FluidLessons) -> tuple[dict[str, Any], Curve]:
    full, few, basis = loop.full, loop.from_few, loop.full.basis
    assert basis is not None
    errors = {name: test.error(full.model) for name, test in loop.tests.items()}
    few_errors = {name: test.error(few.model) for name, test in loop.tests.items()}
    plane = loop.tests["plane"]
    world = {count: plane.error(model) for count, model in loop.worlds.items()}
    factor, reached = loop.data_factor(world, few_errors["plane"])
    ratios, plain_ratio = rotation_factors(loop)
    five = [name for name in errors if name != "ten_rods"]
    metrics: dict[str, Any] = {
        "error_1000": max(errors[name] for name in five),
        "error_200": max(few_errors[name] for name in five),
        "error_ten_rods": errors["ten_rods"],
        **{f"error_{name}": errors[name] for name in five},
        "error_basis": max(loop.tests[name].error(basis.model) for name in five),
        "error_network": max(loop.tests[name].error(loop.network.model) for name in five),
        "error_in_span_50": loop.in_span[1],
        "error_world": world[loop.samples],
        "error_world_space": loop.tests["space"].error(loop.worlds[loop.samples]),
        "rotation_factor": max(ratios.values()),
        "rotation_factor_world": plain_ratio,
        "data_factor": factor,
        "data_factor_reached": reached,
        "untold": ", ".join(basis.untold) or "none",
        "dropped": ", ".join(basis.dropped) or "none",
    }
    ours = {loop.few: few_errors["plane"], loop.samples: errors["plane"]}
    return metrics, {"basis and network": ours, "plain network in world axes": world}


def _measured_metrics(loop: FluidLessons, chain: MeasuredChain) -> dict[str, float]:
    late, punctual = chain.learned(chain.delay).model, chain.learned(0.0).model
    tests = [loop.tests[style] for style in ("plane", "space")]
    return {
        "error_measured": max(test.error(late) for test in tests),
        "error_measured_first_round": max(test.error(chain.first_learned.model) for test in tests),
        "error_measured_without_delay": max(test.error(punctual) for test in tests),
        "delay_found_s": chain.delay,
        "delay_error_s": abs(chain.delay - LATE * PERIOD),
    }


def _closed_metrics(runs: Runs) -> dict[str, float]:
    metrics = {}
    for style in FOLLOWED:
        errors = {name: settled_rms(runs[style, name]) for name in KNOWN}
        metrics |= {f"{name}_{style}_rms_m": error for name, error in errors.items()}
        metrics[f"tracking_gain_{style}"] = errors["none"] / errors["learned"]
        metrics[f"tracking_gain_{style}_world"] = errors["none"] / errors["world"]
        run = runs[style, "learned"]
        angles = tracking_errors(run)[1][run.t > SETTLED]
        metrics[f"learned_{style}_attitude_rms_deg"] = float(np.sqrt(np.mean(angles**2)))
    return metrics


def _guard_metrics(guard: GuardedLessons, runs: Runs) -> dict[str, float]:
    none, guarded = (settled_rms(runs["far", name]) for name in ("none", "guarded"))
    return {
        "none_far_rms_m": none,
        "guarded_far_rms_m": guarded,
        "guard_excess_m": guarded - none,
        "guard_bound_m": guard.distance,
        "guard_misfit_excess_n": guard.excess(),
        "guard_misfit_bound_n": guard.bound,
    }


def _adaptive_metrics(runs: Runs) -> dict[str, float]:
    short = runs.pop(("payload", "short"))
    return {
        **{f"{name}_{change}_rms_m": settled_rms(run) for (change, name), run in runs.items()},
        "v_rate_gap_in_span_w": in_span_gap(STYLES["space"]),
        "v_rate_gap_differences_w": float(
            np.abs(rate(short.t, short["V"]) - short["V_rate"][2:-2]).max()
        ),
    }


def _promises(m: dict[str, Any], scenario: LearnedChain) -> tuple[Promise, ...]:
    promises = [
        Promise.share(
            f"{scenario.samples} samples tell forces of unseen motions, error",
            m["error_1000"],
            0.02,
        ),
        Promise.share(f"{scenario.few} samples tell them, error", m["error_200"], 0.04),
        Promise.share("what five rods tell serves ten, error", m["error_ten_rods"], 0.03),
        Promise.share(
            "50 samples are enough where the basis spans the fluid, error",
            m["error_in_span_50"],
            0.015,
        ),
        Promise("turning the experiment changes no error, factor less one",
                m["rotation_factor"] - 1, 1e-9),
        Promise.at_least("a plain network needs more samples", m["data_factor"], 20, "times"),
    ]  # fmt: skip
    if "error_measured" in m:
        words = "motions measured as on a real machine tell the forces, error"
        promises.append(Promise.share(words, m["error_measured"], 0.03))
    if scenario.closed_loop:
        promises += [
            Promise.at_least(
                f"the chain follows better than without learning, {TITLES[style]}",
                m[f"tracking_gain_{style}"],
                gain,
                "times",
            )
            for style, gain in GAINS.items()
        ]
        promises += [
            Promise("with the guard it is not much farther off than without learning, rms",
                    m["guard_excess_m"], m["guard_bound_m"], "m"),
            Promise("nor are forces missed by much more than without learning",
                    m["guard_misfit_excess_n"], m["guard_misfit_bound_n"], "N"),
        ]  # fmt: skip
    if scenario.adaptive:
        promises += [
            Promise.of(
                m,
                f"adaptive_{change}_rms_m",
                f"adapting, the chain keeps to its path {TITLES[change]}, rms",
                most,
            )
            for change, most in ADAPTED.items()
        ]
        promises += [
            Promise("V falls as the law states where the basis spans the fluid, difference",
                    m["v_rate_gap_in_span_w"], 1e-9, "W"),
            Promise("V falls as stated with what is not learned counted, difference",
                    m["v_rate_gap_differences_w"], 1e-6, "W"),
        ]  # fmt: skip
    return tuple(promises)
