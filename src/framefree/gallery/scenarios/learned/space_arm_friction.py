"""The scenario `space-arm-friction`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control import Assisted
from framefree.control.passive import EndEffectorPassivity, FreeFloating
from framefree.control.references import FrameWaypoints
from framefree.gallery.machines.space_arm import space_arm
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.identify import Recording
from framefree.learn import JointFriction, fit_friction, measured_samples
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.motion.tree import Tree
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rms

START = (0.3, 0.5, 0.9, -0.6, 0.9, 0.0)
LESSON = ((1.3, 0.9, 0.6, -0.9, 1.1, 0.6), (0.6, 0.2, 1.5, -0.5, 0.8, -0.4))
UNSEEN = ((-0.3, 0.6, 1.2, -0.8, 0.9, 0.5), (0.3, 0.9, 0.8, -0.8, 1.2, -0.5))
"""Angles of the arm (rad) that give the poses of both manoeuvres, were the satellite to stay."""
TRUE = JointFriction(
    tuple(f"joint{i}" for i in range(1, 7)),
    [
        [14.0, 5.0, 0.0, 0.008],
        [12.0, 4.2, 0.0, 0.010],
        [9.0, 3.1, 0.0, 0.006],
        [4.0, 1.4, 0.0, 0.009],
        [3.0, 1.1, 0.0, 0.007],
        [2.0, 0.7, 0.0, 0.012],
    ],
)
"""What the joints of the plant have: Nm s/rad, Nm, Nm, rad/s."""
PERIOD = 0.01
PLACE, TURN, ENCODER = 5e-5, 2e-5, 5e-6
"""Noise of the satellite's place (m) and attitude (rad), and of the joints (rad)."""
WINDOW, EVERY = 0.8, 10
"""Local polynomials, s, and rows from sample to sample."""
SETTLED = 5.0
"""s, from which on errors of tracking count."""


@dataclass(frozen=True)
class SpaceArmFriction(Scenario):
    """A satellite's arm learns the friction of its joints from one manoeuvre and does another.

    The joints of the satellite ETS-VII's arm rub: viscous friction, and Coulomb friction that is
    smooth through rest. The law of `space-arm` knows nothing of it. One manoeuvre is recorded as a
    machine would give it, at 100 Hz with noise, velocities and accelerations unknown. What the
    equations lack there, joint by joint, is fitted by friction that people can read, widths of the
    smooth Coulomb laws included. The law with that friction in its machine then does a manoeuvre
    that was not learned from, beside the law without.

    Parameters
    ----------
    duration : float
        Of each manoeuvre, s; the second pose is reached at nine tenths of it.
    dt : float
        Step, s.
    seed : int
        Of the noise.

    Metrics
    -------
    torque_error
        Mean error of the learned torques, by their mean size.
    torque_error_worst_joint
        The same of the worst joint.
    torque_error_max_nm
        Largest error of a learned torque.
    coulomb_error
        Largest relative error of a joint's Coulomb friction.
    width_error
        Largest relative error of the speed below which it fades.
    damping_error
        Largest relative error of a joint's damping.
    position_rms_*
        Distance of the gripper from its place, root of the mean square, without and with
        learning.
    angle_rms_*
        Angle of the gripper from its attitude, likewise.
    end_position_*
        Distance of the gripper in the end.
    tracking_gain_*
        How many times better the gripper follows with what was learned.
    """

    name: ClassVar[str] = "space-arm-friction"
    extras: ClassVar[tuple[str, ...]] = ("learn",)

    duration: float = 60.0
    dt: float = 0.005
    seed: int = 0

    def run(self, progress: bool | None = None) -> Outcome:
        """Record a manoeuvre, learn from it, and do another with what was learned."""
        lesson = self._manoeuvre(LESSON, None, progress)
        fit = fit_friction(self._samples(lesson))
        runs = {
            "without": self._manoeuvre(UNSEEN, None, progress),
            "learned": self._manoeuvre(UNSEEN, fit, progress),
        }
        metrics = {
            **_learned_metrics(fit, runs["learned"]),
            **_tracking_metrics(runs),
        }
        return Outcome(
            {"lesson": lesson, **runs},
            metrics,
            _promises(metrics),
            (*_tracking_figures(runs), *_friction_figures(fit, lesson)),
            (
                Animation(
                    "The manoeuvre that was not learned from", runs["learned"], trails=("gripper",),
                    paths={"reference of the gripper": runs["learned"]["gripper.pose"][:, :3, 3]},
                ),
            ),
            notes=("Friction as it was read from one manoeuvre:", *fit.formula().splitlines()),
        )  # fmt: skip

    def _manoeuvre(self, goals: tuple, known: JointFriction | None, progress: bool | None) -> Run:
        """Reach poses with joints that rub, by a law that knows some friction or none."""
        machine = space_arm()
        pose = Tree(machine).functions["frame_pose:gripper"]
        poses = [pose(_arm_at(machine, angles)).full() for angles in (START, *goals)]
        reference = FrameWaypoints("gripper", poses, np.array([0.0, 0.45, 0.9]) * self.duration)
        x0 = _arm_at(machine, START)
        law = EndEffectorPassivity(
            machine, K=np.diag(Tree(machine).functions["mass"](x0).full())[6:],
            freedom=FreeFloating(), frame="gripper", stiffness=(20.0, 2.0), rates=(0.5, 0.5),
            posture=x0, posture_gain=0.0,
        )  # fmt: skip
        return simulate(
            TRUE.added_to(machine), law if known is None else Assisted(law, known), reference, x0,
            duration=self.duration, dt=self.dt, every=max(1, round(PERIOD / self.dt)), record=(),
            progress=progress,
        )  # fmt: skip

    def _samples(self, run: Run) -> Any:
        """Return what the equations lack, from poses with noise and the commands."""
        machine, rng = space_arm(), np.random.default_rng(self.seed)
        sizes = np.r_[np.full(3, PLACE), np.full(3, TURN), np.full(6, ENCODER)]
        x = machine.integrate(run.x, sizes * rng.normal(size=run.v.shape))
        return measured_samples(machine, Recording(run.t, x, u=run.u), window=WINDOW, every=EVERY)


def _arm_at(machine: Machine, angles: Any) -> np.ndarray:
    x = machine.neutral()
    x[7:] = angles
    return x


def _learned_metrics(fit: JointFriction, run: Run) -> dict[str, float]:
    """Return how far the learned torques and numbers are off, on a manoeuvre not learned from."""
    machine = space_arm()
    true, found = TRUE.forces(machine, run.v), fit.forces(machine, run.v)
    share = np.abs(found - true).mean(axis=0) / np.abs(true).mean(axis=0)
    off = np.abs(fit.numbers / np.where(TRUE.numbers, TRUE.numbers, 1.0) - 1)
    return {
        "torque_error": float(np.abs(found - true).mean() / np.abs(true).mean()),
        "torque_error_worst_joint": float(share.max()),
        "torque_error_max_nm": float(np.abs(found - true).max()),
        "coulomb_error": float(off[:, 1].max()),
        "width_error": float(off[:, 3].max()),
        "damping_error": float(off[:, 0].max()),
    }


def _tracking_metrics(runs: dict[str, Run]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name, run in runs.items():
        late = run.t > SETTLED
        metrics[f"position_rms_{name}_m"] = rms(run["frame_distance"][late])
        metrics[f"angle_rms_{name}_rad"] = rms(run["frame_angle"][late])
        metrics[f"end_position_{name}_m"] = float(run["frame_distance"][-1])
    for what, unit in (("position", "m"), ("angle", "rad")):
        before, after = (metrics[f"{what}_rms_{name}_{unit}"] for name in ("without", "learned"))
        metrics[f"tracking_gain_{what}"] = before / after
    return metrics


def _promises(m: dict[str, float]) -> tuple[Promise, ...]:
    return (
        Promise.share("torques of friction are learned, mean error", m["torque_error"], 0.01),
        Promise.share("and those of the worst joint, error", m["torque_error_worst_joint"], 0.03),
        Promise.at_least("the gripper follows its place better than without learning",
                         m["tracking_gain_position"], 50.0, "times"),
        Promise.at_least("and its attitude", m["tracking_gain_angle"], 50.0, "times"),
        Promise("the gripper is at its place in the end", m["end_position_learned_m"], 1e-3, "m"),
    )  # fmt: skip


def _tracking_figures(runs: dict[str, Run]) -> tuple[Figure, ...]:
    words = {"without": "without learning", "learned": "friction learned"}
    t = runs["learned"].t
    return tuple(
        Figure.over_time(
            title, axis, t, {words[name]: positive(run[key]) for name, run in runs.items()},
            logarithmic=True,
        )
        for title, axis, key in (
            ("Distance of the gripper from where it should be", "distance (m)", "frame_distance"),
            ("Angle of the gripper from how it should be", "angle (rad)", "frame_angle"),
        )
    )  # fmt: skip


def _friction_figures(fit: JointFriction, lesson: Run) -> tuple[Figure, ...]:
    """Return the friction of the first and last joint over speed, true and learned."""
    machine, figures = space_arm(), []
    for k in (0, 5):
        top = float(np.abs(lesson.v[:, 6 + k]).max())
        speeds = np.linspace(-1.2 * top, 1.2 * top, 201)
        v = np.zeros((len(speeds), machine.nv))
        v[:, 6 + k] = speeds
        lines = [
            Line(name, speeds, -model.forces(machine, v)[:, k], dashed=name == "true")
            for name, model in (("learned", fit), ("true", TRUE))
        ]
        figures.append(
            Figure(
                f"Friction of joint {k + 1}", "speed (rad/s)", "torque (Nm)", tuple(lines),
                caption="Speeds of the manoeuvre that was learned from, and a fifth more.",
            )
        )  # fmt: skip
    return tuple(figures)
