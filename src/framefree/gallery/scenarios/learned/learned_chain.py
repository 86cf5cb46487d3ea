"""The scenario `learned-chain`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.gallery.scenarios.learned.closed_loop import (
    SETTLED,
    FluidTracking,
    settled_rms,
    tracking_errors,
)
from framefree.gallery.scenarios.learned.measured_chain import LATE, PERIOD, MeasuredChain
from framefree.gallery.scenarios.learned.open_loop import STYLES, FluidLessons, rotation_factors
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.simulate import Run

FOLLOWED = ("plane", "yaw", "space")
GAINS = {"plane": 50.0, "yaw": 50.0, "space": 20.0}
"""Times by which tracking must improve."""
WORDS = {"none": "without learning", "learned": "learned", "world": "plain network"}


@dataclass(frozen=True)
class LearnedChain(Scenario):
    """Five rods learn the fluid they swim in, from motions in one plane and at one heading.

    The law knows the rods and nothing of the fluid: strip drag that halves above 0.8 m/s, lift,
    Magnus force, buoyancy off centre, and a current. A basis of readable terms is fitted to what
    the equations lack, T' tau, and a network that commutes with the symmetry of a rod learns what
    the basis leaves. Both are one function of what a rod meets in its own axes, shared by all rods.
    So what was learned in one plane holds at every heading, rolled, in three dimensions, and for a
    chain of ten rods; a plain network in world axes is shown beside it. The port law with the model
    added to its machine then follows motions that it has not seen.

    Errors are those of T' tau at unseen states, relative, in a metric that no frame alters.

    Parameters
    ----------
    samples, few : int
        Samples to learn from, and few of them; labels have 3 percent of noise.
    plain_samples : int
        Most samples of the plain network.
    measured : int
        Runs of 20 s recorded as a real machine would (200 Hz, 0.2 mm, 1 mrad, inputs 20 ms late);
        0 leaves this out.
    closed_loop : bool
        Whether the law is run.
    """

    name: ClassVar[str] = "learned-chain"

    samples: int = 1000
    few: int = 200
    plain_samples: int = 4000
    seed: int = 2
    measured: int = 6
    closed_loop: bool = True
    duration: float = 10.0
    dt: float = 2e-3
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Learn, judge, and follow motions with what was learned."""
        loop = FluidLessons(self.samples, self.few, self.plain_samples, self.seed)
        metrics, curve = _open_metrics(loop)
        training = [one.trained.seconds for one in (loop.full, loop.from_few) if one.trained]
        metrics["training_s"] = max(training)
        if self.measured:
            metrics |= _measured_metrics(loop, MeasuredChain(self.measured, self.seed, progress))
        runs = self._runs(loop, progress) if self.closed_loop else {}
        metrics |= _closed_metrics(runs)
        return Outcome(
            {f"{style}_{name}": run for (style, name), run in runs.items()},
            metrics,
            _promises(metrics, self),
            (*_curves(curve), *_tracking_figures(runs)),
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

    def _runs(self, loop: FluidLessons, progress: bool | None) -> dict[tuple[str, str], Run]:
        models: dict[str, Any] = {
            "none": None,
            "learned": loop.full.model,
            "world": loop.worlds[self.samples],
        }
        return {
            (style, name): FluidTracking(
                STYLES[style], self.duration, self.dt, self.plant, progress
            ).run(model)
            for style in FOLLOWED
            for name, model in models.items()
        }


Curve = dict[str, dict[int, float]]
"""Error in the plane by number of samples, for every kind of model."""


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
        "error_measured_without_delay": max(test.error(punctual) for test in tests),
        "delay_found_s": chain.delay,
        "delay_error_s": abs(chain.delay - LATE * PERIOD),
    }


def _closed_metrics(runs: dict[tuple[str, str], Run]) -> dict[str, float]:
    metrics = {}
    for style in FOLLOWED if runs else ():
        errors = {name: settled_rms(runs[style, name]) for name in WORDS}
        metrics |= {f"{name}_{style}_rms_m": error for name, error in errors.items()}
        metrics[f"tracking_gain_{style}"] = errors["none"] / errors["learned"]
        metrics[f"tracking_gain_{style}_world"] = errors["none"] / errors["world"]
        run = runs[style, "learned"]
        angles = tracking_errors(run)[1][run.t > SETTLED]
        metrics[f"learned_{style}_attitude_rms_deg"] = float(np.sqrt(np.mean(angles**2)))
    return metrics


def _promises(m: dict[str, Any], scenario: LearnedChain) -> tuple[Promise, ...]:
    promises = [
        Promise(f"error on unseen motions, {scenario.samples} samples", m["error_1000"], 0.02),
        Promise(f"error on unseen motions, {scenario.few} samples", m["error_200"], 0.04),
        Promise("error on ten rods", m["error_ten_rods"], 0.03),
        Promise("error of a basis that spans the fluid, 50 samples", m["error_in_span_50"], 0.015),
        Promise("turning the experiment changes no error", m["rotation_factor"] - 1, 1e-9),
        Promise("samples of ours, share of the plain network's", 1 / m["data_factor"], 1 / 20),
    ]
    if "error_measured" in m:
        promises.append(Promise("error with measured data", m["error_measured"], 0.03))
    if scenario.closed_loop:
        promises += [
            Promise(
                f"tracking error, {style}: share of that without learning",
                1 / m[f"tracking_gain_{style}"],
                1 / gain,
            )
            for style, gain in GAINS.items()
        ]
    return tuple(promises)


def _curves(curve: Curve) -> tuple[Figure, ...]:
    lines = tuple(
        Line(name, np.array(list(values), float), 100 * np.array(list(values.values())))
        for name, values in curve.items()
    )
    return (
        Figure(
            "Error in the plane of the training", "samples", "error of T' tau (percent)", lines,
            "Other motions in the same plane and at the same heading: what the plain network is "
            "best at.",
            logarithmic=True,
        ),
    )  # fmt: skip


def _tracking_figures(runs: dict[tuple[str, str], Run]) -> tuple[Figure, ...]:
    titles = {"plane": "in the plane", "yaw": "turned about the vertical", "space": "in space"}
    figures = []
    for style in FOLLOWED if runs else ():
        t = runs[style, "none"].t
        lines = {
            word: positive(np.sqrt(np.mean(tracking_errors(runs[style, name])[0] ** 2, axis=1)))
            for name, word in WORDS.items()
        }
        figures.append(
            Figure.over_time(
                f"Distance of the rods from their poses, {titles[style]}",
                "rms distance (m)",
                t,
                lines,
                logarithmic=True,
            )
        )
    return tuple(figures)
