"""The scenario `dual-arm`."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from framefree.control.tasks import RigidCoupling
from framefree.gallery.machines.dual_arm import (
    HOLD_THIRD,
    START,
    START_HELD,
    dual_arm,
    dual_arm_with_object,
    three_arms,
)
from framefree.gallery.machines.dual_arm_file import read_robot
from framefree.gallery.scenarios.cooperation.dual_arm_figures import published_figures
from framefree.gallery.scenarios.cooperation.dual_arm_file import published_run
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    CONTROL_GAINS,
    COUPLING_GAINS,
    HELD_CIRCLE,
    LEFT,
    PERIOD,
    HoldErrors,
    experiment,
    norm,
    object_law,
    printed_promises,
    published_law,
    ring,
    strict_law,
)
from framefree.gallery.scenarios.cooperation.dual_arm_wrenches import between_hands, grasp_wrenches
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import Run
from framefree.solve import assemble

STEPS = (0.005, 0.001, 0.0002)
"""Steps of plant and control, s, over which the coupling error is to fall in proportion."""


@dataclass(frozen=True)
class DualArm(Scenario):
    """Two arms, then three, hold one object and move it on a circle.

    The published experiment: each hand is coupled to the other as if a rigid body joined them, and
    the left one follows a circle, from hands that are 12 cm and 15 degrees off. Friction in the
    plant that the model does not know leaves a coupling error, and the soft weight of the circle
    leaves it 5 mm too low. Then the same with critically damped gains; then with the friction in
    the model and the circle strictly below the coupling, where only the step of the plant is left;
    then with a third robot, and with an object that has mass.

    With `file`, the path of a URDF or MJCF file of the robot, the published experiment alone is run
    with it. `left` and `right` name the frames of its hands where they do not end with link_7_l and
    link_7_r; its root stands at `height`, m.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    plant : str
        "native" or "mujoco".
    payload : float
        Mass of the object that is held, kg.
    squeeze : float
        Force with which the hands press the object between them, N.
    file : str
        Path of a robot file; see above.
    left : str
        Frame of its left hand.
    right : str
        Frame of its right hand.
    height : float
        At which its root stands, m.

    Metrics
    -------
    published_coupling_error
        Mean norm of the coupling error (m and rad together) in the published experiment,
        after its start.
    published_control_error
        Mean norm of the error of the hand on the circle (m and rad together) there.
    published_x_m
        Mean size of the error of the hand along x there.
    published_y_m
        The same along y.
    published_z_m
        The same along z: the sag.
    published_velocity_m_s
        Mean error of the hand's velocity there.
    published_rate_rad_s
        Mean error of the hand's rate of turn there.
    settling_s
        Time after which all errors of the published law stay below 5 percent of their
        peaks.
    critical_settling_s
        The same with critically damped gains.
    critical_coupling_error
        Largest coupling error with critically damped gains, after the start (m, rad).
    coupling_error
        Largest coupling error under strict priority (m, rad).
    path_error
        Largest distance from the circle under strict priority, m.
    fine_coupling_error
        Coupling error with the shortest steps (m, rad).
    order_of_coupling_error
        Power of the step with which the coupling error falls: 1 is in proportion.
    unknown_*
        The strict law with friction and gravity that its model does not know.
    three_coupling_error
        Largest coupling error of three arms (m, rad).
    three_path_error
        Largest distance from the circle with three arms, m.
    object_path_error
        Largest distance of the held object from the circle, m.
    object_mujoco_path_error
        The same on MuJoCo, m.
    object_mujoco_grasp_error
        Largest gap of a grasp on MuJoCo (m, rad).
    object_grasp_wrench_error
        Largest difference between what a hand carries and what the law asks of it (N, Nm), without
        the torques by which motors make up for what joints resist within a period.
    object_squeeze_n
        Mean force with which the hands press the object between them.
    mass_difference
        Difference of the mass matrix to that of the published robot, relative.
    """

    name: ClassVar[str] = "dual-arm"
    extras: ClassVar[tuple[str, ...]] = ("models",)

    duration: float = 10.0
    plant: str = "mujoco"
    payload: float = 2.0
    squeeze: float = 20.0
    file: str = ""
    left: str = ""
    right: str = ""
    height: float = 0.0

    def run(self, progress: bool | None = None) -> Outcome:
        """Run the published experiment and the better ones."""
        common = {"duration": self.duration, "plant": self.plant, "progress": progress}
        if self.file:
            robot = read_robot(self.file, self.left, self.right, self.height)
            return published_run(robot, **common)
        critical = ((COUPLING_GAINS[0], None), (CONTROL_GAINS[0], None))
        held = {**common, "reference": HELD_CIRCLE}
        third = RigidCoupling(LEFT, "third_link_7_l", HOLD_THIRD, COUPLING_GAINS[0], name="third")
        trio = three_arms()
        rough, loaded = dual_arm(friction=0.2), dual_arm_with_object(self.payload)
        runs = {
            "published": experiment(dual_arm(), published_law(), START, **common),
            "critical": experiment(dual_arm(), published_law(gains=critical), START, **common),
            "strict": experiment(dual_arm(), strict_law(), START, **held),
            "unknown": experiment(
                rough, strict_law(dual_arm(0.0).replace(gravity=(0, 0, -9.7))), START, **held
            ),
            "three": experiment(trio, strict_law(trio, third), [*START, *_THIRD_START], **held),
            "object": self._with_object(loaded, "native", progress),
            "object_mujoco": self._with_object(loaded, "mujoco", progress),
        }
        findings = _Findings(runs, self._fine(progress), loaded)
        return Outcome(
            runs,
            findings.metrics,
            findings.promises(),
            findings.figures(),
            _animations(runs),
            _NOTES,
        )

    def _fine(self, progress: bool | None) -> dict[float, Run]:
        """Run the strict law with shorter and shorter steps."""
        return {
            dt: experiment(
                dual_arm(),
                strict_law(),
                START,
                reference=HELD_CIRCLE,
                duration=min(self.duration, 4.0),
                dt=dt,
                every=round(PERIOD / dt),
                plant=self.plant,
                progress=progress,
            )
            for dt in STEPS
        }

    def _with_object(self, machine: Machine, plant: str, progress: bool | None) -> Run:
        """Run the law that knows the object; the native plant closes its loops exactly."""
        at_hands = assemble(machine, [*START_HELD, 0.436, -0.015, 0.69, 1, 0, 0, 0])
        return experiment(
            machine,
            object_law(machine, self.squeeze),
            at_hands,
            reference=HELD_CIRCLE,
            duration=min(self.duration, 5.0),
            plant=plant,
            integrator="rk4" if plant == "native" else "euler",
            record=("constraint",) if plant == "native" else (),
            progress=progress,
        )


_THIRD_START = tuple(np.array(START_HELD[:7]) + 0.1)
_NOTES = (
    "The published errors have two causes. Viscous friction of 0.5 Nm s/rad is in the plant, not "
    "in the model: without it the coupling error would be twenty times smaller. The circle is only "
    "a weight beside the principle of Gauss, which wants the arms to fall: the hand sags by 5 mm. "
    "More weight lessens the sag in proportion, strict priority removes it.",
    "What is left under strict priority is the error of holding torques over a step, and of the "
    "plant's own integrator: it falls in proportion to the step.",
    "With an object that has mass, both hands carry half of the wrench that moves it, and press it "
    "between them. What the loops of the plant carry is what the law meant them to.",
)


_BOUNDS = {
    "coupling_error": ("the strict law keeps the coupling, steps of 5 ms", 3e-4, "m, rad"),
    "fine_coupling_error": ("and better with steps of 0.2 ms", 1e-5, "m, rad"),
    "path_error": ("the strict law keeps to the circle", 1e-3, "m"),
    "three_coupling_error": ("three arms keep their couplings", 3e-4, "m, rad"),
    "three_path_error": ("three arms keep to the circle", 1e-3, "m"),
    "object_path_error": ("the held object keeps to the circle", 1e-3, "m"),
    "object_mujoco_path_error": ("it does so on MuJoCo", 1e-3, "m"),
    "object_mujoco_grasp_error": ("its grasps stay closed on MuJoCo", 1e-3, "m, rad"),
    "object_grasp_wrench_error": ("hands carry what the law asks of them", 1e-6, "N, Nm"),
}


class _Findings:
    """What the runs show."""

    def __init__(self, runs: dict[str, Run], fine: dict[float, Run], machine: Machine) -> None:
        self.runs, self.machine = runs, machine
        names = ("published", "critical", "strict", "unknown", "three")
        self.errors = {name: HoldErrors(runs[name]) for name in names}
        self.third = HoldErrors(runs["three"], "third")
        self.object = HoldErrors(runs["object"], "grasp_r")
        self.object_mujoco = HoldErrors(runs["object_mujoco"], "grasp_r")
        self.fine = {dt: HoldErrors(run) for dt, run in fine.items()}
        self.at_steps = [e.largest(e.coupling) for e in self.fine.values()]

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Flat figures by name."""
        published, strict = self.errors["published"], self.errors["strict"]
        three, critical, unknown = (self.errors[k] for k in ("three", "critical", "unknown"))
        run = self.runs["object"]
        carried = grasp_wrenches(run, self.machine)
        meant = np.stack([run[f"grasp_{side}.wrench"] for side in "lr"], axis=1)
        return {
            **published.published(),
            "settling_s": published.settling(),
            "critical_settling_s": critical.settling(),
            "critical_coupling_error": critical.largest(critical.coupling),
            "coupling_error": strict.largest(strict.coupling),
            "path_error": strict.largest(strict.control[:, :3]),
            "fine_coupling_error": self.at_steps[-1],
            "order_of_coupling_error": self._order(),
            "unknown_coupling_error": unknown.largest(unknown.coupling),
            "unknown_path_error": unknown.largest(unknown.control[:, :3]),
            "three_coupling_error": max(e.largest(e.coupling) for e in (three, self.third)),
            "three_path_error": three.largest(three.control[:, :3]),
            "object_path_error": self.object.largest(self.object.control[:, :3]),
            "object_mujoco_path_error": self.object_mujoco.largest(
                self.object_mujoco.control[:, :3]
            ),
            "object_mujoco_grasp_error": self.object_mujoco.largest(self.object_mujoco.coupling),
            "object_grasp_wrench_error": float(np.abs(carried - meant).max()),
            "object_squeeze_n": float(between_hands(carried, run, self.machine).mean()),
        }

    def promises(self) -> tuple[Promise, ...]:
        """Return what must hold."""
        metrics = self.metrics
        return (
            *printed_promises(metrics),
            Promise.of(metrics, "settling_s", "the published law settles soon", 0.75),
            *(
                Promise(text, metrics[key], bound, unit)
                for key, (text, bound, unit) in _BOUNDS.items()
            ),
            Promise(
                "the coupling error falls in proportion to the step: order less one",
                abs(metrics["order_of_coupling_error"] - 1),
                0.1,
            ),
        )

    def _order(self) -> float:
        return float(np.polyfit(np.log(list(self.fine)), np.log(self.at_steps), 1)[0])

    def figures(self) -> tuple[Figure, ...]:
        """Return what is to be seen."""
        t = self.runs["published"].t
        laws = ("published", "critical", "strict", "unknown")
        return (
            Figure.over_time(
                "Coupling error",
                "norm (m, rad)",
                t,
                {name: norm(self.errors[name].coupling) for name in laws},
                logarithmic=True,
                caption="Friction that the model does not know leaves most of it.",
            ),
            Figure.over_time(
                "Sag of the circle",
                "height below the path (m)",
                t,
                {name: self.errors[name].control[:, 2] for name in laws},
                caption="A soft weight against gravity leaves 5 mm, strict priority nothing.",
            ),
            _path_figure(self.runs),
            self._order_figure(),
            Figure.over_time(
                "Three arms",
                "norm (m, rad)",
                self.runs["three"].t,
                {
                    "coupling of two": norm(self.errors["three"].coupling),
                    "coupling of the third": norm(self.third.coupling),
                    "circle": norm(self.errors["three"].control),
                },
                logarithmic=True,
            ),
            _wrench_figure(self.runs["object"]),
            *published_figures(self.runs["published"], dual_arm()),
        )

    def _order_figure(self) -> Figure:
        steps = np.array(list(self.fine))
        slope = self.at_steps[0] / steps[0]
        between = np.geomspace(steps[-1], steps[0], 50)
        return Figure(
            "Coupling error over the step",
            "step (ms)",
            "largest error (m, rad)",
            (
                Line("measured", 1e3 * steps, np.array(self.at_steps), markers=True),
                Line("in proportion", 1e3 * between, slope * between, dashed=True),
            ),
            logarithmic=True,
        )


def _path_figure(runs: dict[str, Run]) -> Figure:
    """Return the paths of the left hand in the plane of the circle."""
    lines = []
    for name in ("published", "strict"):
        p = runs[name].reference["held.pose"][:, :3, 3] - runs[name]["control.error"][:, :3]
        if name == "strict":
            p = p + CIRCLE.center - HELD_CIRCLE.center
        lines.append(Line(name, p[:, 0], p[:, 2]))
    target = runs["published"].reference["held.pose"][:, :3, 3]
    lines.append(Line("circle", target[:, 0], target[:, 2], dashed=True))
    return Figure("Path of the hand", "x (m)", "z (m)", tuple(lines), equal=True)


def _wrench_figure(run: Run) -> Figure:
    """Return the forces of both hands on the object."""
    values = {
        f"{side}, {axis}": run[f"grasp_{hand}.wrench"][:, k]
        for hand, side in (("l", "left"), ("r", "right"))
        for k, axis in ((1, "across"), (2, "up"))
    }
    return Figure.over_time(
        "Hands on the object",
        "force (N)",
        run.t,
        values,
        caption="Each hand carries half of the load; the pressure is along the rod, which leans.",
    )


def _animations(runs: dict[str, Run]) -> tuple[Animation, ...]:
    hand, body = ring(CIRCLE), ring(HELD_CIRCLE)
    return (
        Animation("The published run", runs["published"], (LEFT, "link_7_r"), hand),
        Animation("Three arms", runs["three"], (LEFT, "link_7_r", "third_link_7_l"), body),
        Animation("An object with mass", runs["object"], ("object",), body),
    )
