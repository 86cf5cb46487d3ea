"""The scenario `learned-wall`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.gallery.scenarios.learned.wall_arm import (
    BELIEVED,
    CENTER,
    FRAME,
    RADIUS,
    Polishing,
    Pressing,
    Wall,
    moved_samples,
    origin,
    pressed,
    recorded_samples,
    tool_pose,
    true_samples,
    wall_arm,
)
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import se3, so3
from framefree.learn import ContactFit, LearnedContact, fit_contact
from framefree.look.report import Animation, Figure
from framefree.motion import equations
from framefree.simulate import Run
from framefree.simulate.measures import rms

SETTLED = 1.5
"""s, from which on errors of tracking count."""
UNSEEN = 50
"""Seed of the presses that are not learned from."""
TURNS = {"learned": (0.0, 0.0, 0.0), "tilted": (0.5, 0.3, -0.4), "over": (0.0, -1.5, 1.0)}
"""How the wall is turned about the ball (rad, world axes) in the runs of the law."""


@dataclass(frozen=True)
class LearnedWall(Scenario):
    """An arm feels its way along a wall, learns where and what it is, and then polishes it.

    A ball at the end of a seven-joint arm touches a wall that the law knows nothing of, and that is
    7 mm and 4 degrees off where it is believed to be. Some seconds of pressing and sliding are
    recorded as a machine would give them: angles and torques at 500 Hz with noise. From what the
    equations lack, stiffness, damping, friction and slip speed of the wall are learned together
    with its plane, whose normal and place are latent numbers. What was learned depends on the gap
    and the normal in the axes of the body alone. So it holds for the same wall turned anywhere,
    which the law then polishes in a figure of eight with a force that is wanted, beside the same
    law on the same path without the contact.

    Parameters
    ----------
    lessons : int
        Runs of 10 s to learn from.
    seed : int
        Of the noise.
    duration : float
        Of each run of the law, s.

    Metrics
    -------
    wrench_error
        Error of the wrench of unseen presses, by that wrench.
    place_error_m
        Error of the wall's place along its normal.
    normal_error_deg
        Error of the wall's normal.
    believed_normal_error_deg
        Error of the normal that the law believed in before.
    stiffness_error
        Relative error of the wall's stiffness.
    damping_error
        Relative error of its damping.
    friction_error
        Relative error of its friction.
    slip_speed_error
        Relative error of the speed below which friction fades.
    rotation_factor
        By how much an error changes when the world is moved: 1 is not at all.
    touching_samples
        Samples in which the tip touched.
    force_rms_*
        Error of the normal force, root of the mean square, without or with what was
        learned.
    path_rms_*
        Distance of the tip from its path, likewise.
    *_gain_*
        How many times better this is with what was learned.
    """

    name: ClassVar[str] = "learned-wall"
    extras: ClassVar[tuple[str, ...]] = ("learn",)

    lessons: int = 2
    seed: int = 0
    duration: float = 9.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Feel, learn, judge on presses that were not learned from, and polish."""
        wall = Wall()
        lessons = [
            pressed(wall, Pressing(k).reference(), None, 10.0, progress)
            for k in range(self.lessons)
        ]
        fit = fit_contact(recorded_samples(lessons, self.seed), CENTER, RADIUS)
        unseen = pressed(wall, Pressing(UNSEEN).reference(), None, 8.0, progress)
        metrics: dict[str, Any] = {**_learned_metrics(fit, wall, unseen)}
        runs: dict[str, Run] = {}
        tasks: dict[str, Polishing] = {}
        for name, turn in TURNS.items():
            there = _about_the_ball(turn)
            model, plant = fit.model.moved(there), Wall(there)
            task = tasks[name] = Polishing(model, origin(), tool_pose()[:3, :3])
            for kind, known in (("without", None), ("with", model)):
                key = f"{name}_{kind}"
                runs[key] = pressed(plant, task.reference(), known, self.duration, progress)
                metrics |= _polished(key, runs[key], task, plant)
            for what, unit in (("force", "n"), ("path", "m")):
                before, after = (
                    metrics[f"{what}_rms_{name}_{kind}_{unit}"] for kind in ("without", "with")
                )
                metrics[f"{what}_gain_{name}"] = before / after
        return Outcome(
            {"lesson": lessons[0], "unseen": unseen, **runs},
            metrics,
            _promises(metrics),
            _figures(runs, tasks, fit, wall, unseen),
            (
                Animation("Polishing the wall as it was learned", runs["learned_with"],
                          trails=(FRAME,)),
                Animation("Polishing the wall turned over", runs["over_with"], trails=(FRAME,)),
            ),
            notes=(
                "The wall as it was read from the data:",
                *fit.model.formula().splitlines(),
                "Without the contact in its machine the law follows the same path, some "
                "millimetres into the wall, as a spring of its own stiffness would: it presses too "
                "little, and friction drags it off the path.",
            ),
        )  # fmt: skip


def _about_the_ball(turn: Any) -> np.ndarray:
    """Return the pose (4, 4) that turns the wall about the place of the ball."""
    G, o = np.eye(4), origin()
    G[:3, :3] = np.array(so3.exp(np.asarray(turn, float)))
    G[:3, 3] = o - G[:3, :3] @ o
    return G


def _learned_metrics(fit: ContactFit, wall: Wall, unseen: Run) -> dict[str, float]:
    """Return how far plane, matter and wrenches are off."""
    model, true = fit.model, wall.model
    test = true_samples([unseen], wall)
    foot = origin() - RADIUS * true.normal
    places = [float(one.normal @ foot - one.coefficients[7]) for one in (model, true)]
    cosine = float(np.clip(model.normal @ true.normal, -1, 1))
    off = np.abs(model.coefficients[:4] / true.coefficients[:4] - 1)
    return {
        "wrench_error": test.error(model),
        "place_error_m": abs(places[0] - places[1]),
        "normal_error_deg": float(np.degrees(np.arccos(cosine))),
        "believed_normal_error_deg": float(np.degrees(np.arccos(BELIEVED @ true.normal))),
        "stiffness_error": float(off[0]),
        "damping_error": float(off[1]),
        "friction_error": float(off[2]),
        "slip_speed_error": float(off[3]),
        "rotation_factor": _rotation_factor(model, test),
        "touching_samples": fit.touching,
    }


def _rotation_factor(model: LearnedContact, test: Any) -> float:
    """Return the largest ratio of errors in a moved world and at home, or its inverse."""
    worst, rng = 1.0, np.random.default_rng(0)
    for _ in range(3):
        G = np.array(se3.exp(rng.normal(size=6)))
        ratio = moved_samples(test, G).error(model.moved(G)) / test.error(model)
        worst = max(worst, ratio, 1 / ratio)
    return worst


def _force_error(run: Run, task: Polishing) -> np.ndarray:
    return run["wall.normal_force"] - task.wanted(run.t)


def _path_error(run: Run, wall: Wall) -> np.ndarray:
    """Return distances (rows,) from the path along the wall, m."""
    place = np.asarray(equations(wall_arm()).kernel(f"frame_pose:{FRAME}")(run.x))[:, :3, 3]
    apart = place - run[f"{FRAME}.pose"][:, :3, 3]
    return np.linalg.norm(apart - np.outer(apart @ wall.model.normal, wall.model.normal), axis=1)


def _polished(key: str, run: Run, task: Polishing, wall: Wall) -> dict[str, float]:
    late = run.t > SETTLED
    return {
        f"force_rms_{key}_n": rms(_force_error(run, task)[late]),
        f"path_rms_{key}_m": rms(_path_error(run, wall)[late]),
    }


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    polished = []
    for name in TURNS:
        where = "" if name == "learned" else f", wall turned ({name})"
        polished += [
            Promise(
                f"the force of 20 N is kept, rms{where}", m[f"force_rms_{name}_with_n"], 0.6, "N"
            ),
            Promise.at_least(
                f"the force is kept better than without learning{where}",
                m[f"force_gain_{name}"],
                20.0,
                "times",
            ),
            Promise.at_least(
                f"the path is kept better than without learning{where}",
                m[f"path_gain_{name}"],
                20.0,
                "times",
            ),
        ]
    return (
        Promise.share("wrenches of unseen presses are told, error", m["wrench_error"], 0.02),
        Promise.of(m, "place_error_m", "the place of the wall is found", 5e-5),
        Promise.of(m, "normal_error_deg", "its normal is found", 0.05),
        Promise.share("its stiffness is found, error", m["stiffness_error"], 0.01),
        Promise.share("its friction is found, error", m["friction_error"], 0.01),
        Promise(
            "moving the world changes no error, factor less one", m["rotation_factor"] - 1, 1e-9
        ),
        *polished,
    )


def _figures(
    runs: dict[str, Run],
    tasks: dict[str, Polishing],
    fit: ContactFit,
    wall: Wall,
    unseen: Run,
) -> tuple[Figure, ...]:
    t = runs["learned_with"].t
    forces = {
        "with what was learned": runs["learned_with"]["wall.normal_force"],
        "without": runs["learned_without"]["wall.normal_force"],
        "wanted *": tasks["learned"].wanted(t),
    }
    paths = {
        "with what was learned": positive(_path_error(runs["learned_with"], wall)),
        "without": positive(_path_error(runs["learned_without"], wall)),
    }
    turned = {
        f"{name}": positive(_force_error(runs[f"{name}_with"], tasks[name])) for name in TURNS
    }
    test = true_samples([unseen], wall)
    times = unseen.t[:: max(1, len(unseen.t) // len(test))][: len(test)]
    torque = {
        "true": test.labels[:, 3],
        "learned *": test.predicted(fit.model)[:, 3],
    }
    return (
        Figure.over_time("Normal force", "force (N)", t, forces),
        Figure.over_time("Distance from the path along the wall", "distance (m)", t, paths,
                         logarithmic=True),
        Figure.over_time("Force that is off, wall as learned and turned", "force (N)", t, turned,
                         logarithmic=True),
        Figure.over_time(
            "What the wall does to joint 4 in presses that were not learned from", "torque (Nm)",
            times, torque,
        ),
    )  # fmt: skip
