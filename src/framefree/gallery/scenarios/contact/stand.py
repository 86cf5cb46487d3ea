"""The scenario `stand`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framefree.control.tasks import unloaded_contacts
from framefree.gallery.machines.quadruped import StandingRobot, standing_robot
from framefree.gallery.scenarios.contact import stand_parts as parts
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.simulate import Run

PLANTS = {"mujoco": "hard contact of MuJoCo", "native": "compliant contact"}


@dataclass(frozen=True)
class Stand(Scenario):
    """A quadruped stands on four feet, moves its body, is pushed, and lifts a foot.

    The base has no drive: feet on the ground carry it, with forces that the law finds together with
    the motion, inside the friction cones and within the torques of the motors. The body goes along
    a path in position and attitude, is pushed at the trunk, leans away from one foot and lifts it.
    All this happens on MuJoCo with its hard contacts, and on our own compliant ones. At the end the
    robot is at rest, where statics tell its forces. Then comes a push that is too strong: feet that
    cannot be loaded are named.

    Parameters
    ----------
    robot : str
        "quadruped", described by us, or "solo12" of the package example-robot-data.
    push : float
        Share of the weight with which the trunk is pushed for 0.3 s.
    strong_push : float
        The same of the push that is too strong.

    Metrics
    -------
    *_position_rms_m
        Distance of the body from its path, root of the mean square, on each plant.
    *_attitude_rms_deg
        Error of the body's attitude, root of the mean square.
    *_pushed_m
        How far the push throws the body off its path.
    *_after_push_m
        How far it is off its path 1.1 s after the push.
    strong_push_cone_share
        Largest share of a friction cone under the push that is too strong.
    strong_push_feet_named
        Feet that the law names because they cannot be loaded under that push.
    *_cone_share
        Largest share of a friction cone that the law's forces use.
    *_torque_share
        Largest share of a motor's limit.
    *_lifted_m
        Largest height of the lifted foot over the ground.
    *_lifted_force_n
        Largest force on the foot while it is lifted.
    *_unsolved_share
        Share of steps whose program was not solved.
    *_certificate
        Largest error of the certificates, which show that a solution is the best one.
    *_unloaded_s
        Time with feet that could not be loaded, summed over feet.
    *_weight_error
        Relative difference between the ground's force at rest and the weight.
    *_torque_error
        Relative difference between the torques at rest and those of statics.
    *_sinks_m
        How far the feet sink into MuJoCo's contacts at rest.
    """

    name: ClassVar[str] = "stand"
    extras: ClassVar[tuple[str, ...]] = ("models",)

    robot: str = "quadruped"
    push: float = 0.25
    strong_push: float = 1.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Run on both plants, then with the strong push."""
        robot = standing_robot(self.robot)
        law = parts.standing_law(robot)
        runs = {
            plant: parts.run_of(robot, law, plant, self.push, progress=progress) for plant in PLANTS
        }
        found = {plant: parts.measured(robot, law, run, plant) for plant, run in runs.items()}
        metrics = {name: v for one in found.values() for name, v in one.metrics.items()}
        strong = parts.run_of(
            robot, law, "mujoco", self.strong_push, start=0.2, duration=0.8, progress=progress
        )
        named = unloaded_contacts(law, strong.t, strong["unloaded"])
        metrics["strong_push_feet_named"] = len({one.name for one in named})
        metrics["strong_push_cone_share"] = float(
            max(strong[f"{leg}.cone"].max() for leg in robot.feet)
        )
        return Outcome(
            runs={**runs, "strong_push": strong},
            metrics=metrics,
            promises=_promises(metrics, parts.HEIGHT * parts.size_of(robot)),
            figures=_figures(robot, runs, found),
            animations=(
                Animation("On MuJoCo's contacts", runs["mujoco"], (robot.trunk,)),
                Animation("Pushed too hard", strong, (robot.trunk,)),
            ),
            notes=(
                *_NOTES,
                "Pushed too hard, from 0.2 s on: "
                + ("; ".join(map(str, named[:4])) or "no foot is named")
                + ("; and so on." if len(named) > 4 else "."),
            ),
        )


_NOTES = (
    f"The law counts on {100 * parts.KEPT:.0f} percent of the friction; shares of cones are of "
    "that.",
    "MuJoCo's contacts are soft as well: at rest the feet have sunk by what `mujoco_sinks_m` says, "
    "while the weight is carried.",
    "The law does not know the push. It answers to where the body is and how it moves.",
)


def _promises(metrics: dict, height: float) -> tuple[Promise, ...]:
    promises = []
    for plant, words in PLANTS.items():
        of = {name: metrics[f"{plant}_{name}"] for name in _BOUNDS}
        promises += [
            Promise.share(f"{text}, {words}", of[name], bound)
            if name.endswith("share")
            else Promise.of(of, name, f"{text}, {words}", bound)
            for name, (text, bound) in _BOUNDS.items()
        ]
        lifted = metrics[f"{plant}_lifted_m"]
        promises.append(
            Promise.at_least(f"the foot is lifted, {words}", lifted, 0.95 * height, "m")
        )
    return (
        *promises,
        Promise("torques at rest are those of statics", metrics["native_torque_error"], 1e-6),
        Promise.at_least(
            "under the push that is too strong, feet that cannot be loaded are named, number",
            metrics["strong_push_feet_named"],
            1,
        ),
        Promise.share(
            "and even then the law's forces stay within the friction cones",
            metrics["strong_push_cone_share"],
        ),
    )


_BOUNDS = {
    "position_rms_m": ("the body keeps to its path, rms", 0.01),
    "attitude_rms_deg": ("the body keeps its attitude, rms", 2.0),
    "after_push_m": ("1.1 s after the push the body is back on its path", 1e-3),
    "cone_share": ("the law's forces stay within the friction cones", 1.0),
    "torque_share": ("torques stay within the motors' limits", 1.0),
    "lifted_force_n": ("no force acts on the lifted foot", 0.0),
    "unsolved_share": ("steps whose program was not solved", 0.0),
    "certificate": ("certificates show that each solution is the best one", 1e-6),
    "unloaded_s": ("time with feet that could not be loaded", 0.0),
    "weight_error": ("at rest the ground carries the weight, relative error", 1e-6),
}


def _figures(
    robot: StandingRobot, runs: dict[str, Run], found: dict[str, parts.StandMeasures]
) -> tuple[Figure, ...]:
    run, t = runs["mujoco"], runs["mujoco"].t
    errors = {PLANTS[plant]: one.position_error for plant, one in found.items()}
    angles = {PLANTS[plant]: one.attitude_error for plant, one in found.items()}
    _, most = robot.model.input_limits
    body = {axis: run.x[:, k] - robot.stands[k] for k, axis in enumerate("xyz")}
    wanted = parts.wanted_way(robot, t)
    body |= {f"{axis}, wanted *": wanted[:, k] for k, axis in enumerate("xyz")}
    return (
        Figure.over_time("The body goes", "from where it stands (m)", t, body),
        Figure.over_time("Off its path", "distance (m)", t, errors),
        Figure.over_time("Off its attitude", "angle (degrees)", t, angles),
        Figure.over_time(
            "Normal forces on MuJoCo", "force (N)", t,
            {leg.replace("_", " "): run[f"{leg}.normal_force"].reshape(len(run))
             for leg in robot.feet},
        ),
        Figure.over_time(
            "Normal forces that the law plans", "force (N)", t,
            {leg.replace("_", " "): run[f"{leg}.normal"].reshape(len(run)) for leg in robot.feet},
        ),
        Figure.over_time(
            "Friction that the law uses", "share of the cone", t,
            {leg.replace("_", " "): run[f"{leg}.cone"].reshape(len(run)) for leg in robot.feet},
            caption="Never above 1. A foot that is lifted uses none.",
        ),
        Figure.over_time(
            "Torques", "largest share of a motor's limit", t,
            {"of all motors": np.max(np.abs(run.u) / most, axis=1)},
        ),
    )  # fmt: skip
