"""The scenario `dual-arm-limits`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.control.references.frames import FramePath
from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    RigidCoupling,
    StrictPriority,
    TaskControl,
)
from framefree.gallery.machines.dual_arm import EFFORT, HOLD, START_HELD, dual_arm
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    CONTROL_GAINS,
    LEFT,
    RIGHT,
    HoldErrors,
    experiment,
    norm,
    ring,
)
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Run

AWAY, RAMP = 1.0, 1.5
"""How far out of reach the target goes, m, and how long it takes to get there, s."""
LEAVES = 1.0
"""When it leaves, s."""
FAR = {"mujoco": "out of reach", "native": "out of reach native"}
"""Names of the runs with this target, by plant."""


@dataclass(frozen=True)
class DualArmLimits(Scenario):
    """Two arms with motors too weak for the path, then a target out of reach: they keep hold.

    The motors can give less than the circle asks for. A law that does not know it is cut off, and
    the hands lose each other. The same tasks within limits, in strict order, keep the coupling and
    leave the circle by as much as they must; with strong motors they are the strict law. Then the
    target leaves for a place that the hands cannot reach, stays there and comes back: joints keep
    within their speeds, the hands keep hold, and follow again as soon as they can; on MuJoCo and on
    the native plant, where the law is part of the compiled step.

    Parameters
    ----------
    duration : float
        How long to simulate, s.
    dt : float
        Step of the integrator, s.
    effort : float
        Torque limit of the weak motors, Nm.
    coupling_gain : float
        Stiffness with which the coupling is kept, 1/s^2.
    away : float
        How long the target stays out of reach, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    coupling_error
        Largest error of the coupling with weak motors, m and rad together.
    path_error
        Largest distance from the circle with weak motors, m.
    cut_off_*
        The same for a law that does not know the limits and whose torques are cut off.
    strong_*
        The same with motors that are strong enough.
    strict_path_error
        Largest distance from the circle under the strict law with strong motors, m.
    strict_difference_m
        Largest difference of a joint angle between the law within limits and the strict
        law, strong motors, rad.
    largest_torque_nm
        Largest torque of the weak motors.
    needed_torque_nm
        Largest torque that the circle asks of strong motors.
    relaxed_share
        Share of steps in which limits left no room even for the coupling.
    unsolved_share
        Share of steps whose program was not solved.
    most_steps
        Most steps that the solver took.
    certificate
        Largest error of the certificates, which show that a solution is the best one.
    *far_speed_share
        Largest share of a joint's speed limit while the target is out of reach.
    *far_coupling_error
        Largest error of the coupling while the target is out of reach.
    *far_missed_m
        How far the hand is from the target while it is out of reach.
    *recovery_s
        Time until the hands follow again after the target has come back.
    *far_*
        Of the run with the target out of reach.
    """

    name: ClassVar[str] = "dual-arm-limits"
    extras: ClassVar[tuple[str, ...]] = ("models",)

    duration: float = 10.0
    dt: float = 5e-4
    effort: float = 30.0
    coupling_gain: float = 4000.0
    away: float = 10.0
    plant: str = "mujoco"

    def run(self, progress: bool | None = None) -> Outcome:
        """Run with weak motors, torques cut off, strong motors, and a target out of reach."""
        options = {"duration": self.duration, "plant": self.plant, "progress": progress}
        options |= {"dt": self.dt, "every": max(round(5e-3 / self.dt), 1)}
        strong, weak = robot(EFFORT), robot(self.effort)
        levels = task_levels(strong, self.coupling_gain)
        far = {**options, "reference": leaving(self.away)}
        far["duration"] = LEAVES + 2 * RAMP + self.away + 2.0
        runs = {
            "limited": experiment(
                weak, LimitedTaskControl(weak, levels), START_HELD, limits=True, **options
            ),
            "cut off": experiment(
                weak,
                TaskControl(weak, levels, StrictPriority()),
                START_HELD,
                limits=True,
                **options,
            ),
            "strong": experiment(strong, LimitedTaskControl(strong, levels), START_HELD, **options),
            "strict": experiment(
                strong, TaskControl(strong, levels, StrictPriority()), START_HELD, **options
            ),
        }
        law = LimitedTaskControl(strong, levels)
        for plant, name in FAR.items():
            runs[name] = experiment(strong, law, START_HELD, limits=True, **{**far, "plant": plant})
        errors = {name: HoldErrors(run) for name, run in runs.items()}
        metrics = _metrics(runs, errors, self.away)
        return Outcome(
            {name.replace(" ", "_"): run for name, run in runs.items()},
            metrics,
            self._promises(metrics),
            _figures(runs, errors, self.effort),
            (
                Animation("Weak motors", runs["limited"], (LEFT, RIGHT), ring(CIRCLE)),
                Animation("Target out of reach", runs[FAR["mujoco"]], (LEFT, RIGHT)),
            ),
            (
                "A torque that is cut off does not know what it was for: the coupling loses more "
                "than the circle. Limits above the tasks decide it: the coupling is exact, the "
                "circle gives way.",
            ),
        )

    def _promises(self, metrics: dict[str, float]) -> tuple[Promise, ...]:
        return (
            Promise("weak motors keep the coupling", metrics["coupling_error"], 1e-4, "m, rad"),
            Promise.of(
                metrics,
                "largest_torque_nm",
                "weak motors keep within their torque",
                self.effort * (1 + 1e-9),
            ),
            Promise.at_least("it is the path that gives way", metrics["path_error"], 1e-3, "m"),
            Promise.share(
                "steps in which even the coupling had no room", metrics["relaxed_share"], 0.0
            ),
            Promise.share("steps whose program was not solved", metrics["unsolved_share"], 0.0),
            Promise(
                "certificates show that each solution is the best one",
                metrics["certificate"],
                1e-9,
            ),
            Promise.at_least(
                "the coupling holds better than with torques that are cut off",
                metrics["cut_off_coupling_error"] / max(metrics["coupling_error"], 1e-300),
                10,
                "times",
            ),
            Promise("strong motors follow the path", metrics["strong_path_error"], 1e-5, "m"),
            Promise(
                "strong motors move as under the strict law",
                metrics["strict_difference_m"],
                1e-8,
                "rad",
            ),
            *_far_promises(metrics, ""),
            *_far_promises(metrics, "native_"),
        )


def _far_promises(metrics: dict[str, float], plant: str) -> tuple[Promise, ...]:
    """Return what is promised of a target out of reach on one plant."""
    where = "on the native plant" if plant else "on MuJoCo"
    far = f"with the target out of reach, {where}"
    return (
        Promise.share(f"joints keep within their speeds {far}", metrics[f"{plant}far_speed_share"]),
        Promise(
            f"the hands keep hold {far}", metrics[f"{plant}far_coupling_error"], 1e-3, "m, rad"
        ),
        Promise.at_least(
            f"the target is out of reach indeed, {where}", metrics[f"{plant}far_missed_m"], 0.1, "m"
        ),
        Promise(
            f"the hands follow again when the target is back, {where}, after",
            metrics[f"{plant}recovery_s"],
            1.0,
            "s",
        ),
    )


def robot(effort: float) -> Machine:
    """Return the two arms; positions may go where the published experiment has them."""
    machine = dual_arm(effort=effort)
    for joint in machine.joints:
        machine = machine.replace(f"joint:{joint.name}", lower=-2 * np.pi, upper=2 * np.pi)
    return machine


def task_levels(machine: Machine, gain: float = 4000.0) -> tuple:
    """Return coupling, circle, and a weak damping of what they leave free."""
    return (
        (RigidCoupling(LEFT, RIGHT, HOLD, gain),),
        (FrameControl(LEFT, "held", CONTROL_GAINS[0]),),
        (JointControl(machine, START_HELD, Kd=4.0),),
    )


def leaving(stays: float) -> FramePath:
    """Return a target on the circle's top that goes out of reach, stays there, and comes back."""
    top = CIRCLE.function(0.0)[0]
    back = LEAVES + RAMP + stays

    def path(t: Any) -> Any:
        share = _ramp((t - LEAVES) / RAMP) - _ramp((t - back) / RAMP)
        shift = ca.SX.zeros(4, 4)
        shift[0, 3] = AWAY * share
        return ca.SX(top) + shift

    return FramePath("held", path, times=(LEAVES, LEAVES + RAMP, back, back + RAMP))


def _ramp(s: Any) -> Any:
    """Return a smooth rise from 0 to 1, with acceleration zero at both ends."""
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s**3 * (10 - 15 * s + 6 * s**2)


def _speed_limits(run: Run) -> np.ndarray:
    """Return the largest speeds (nv,) of a run's joints, rad/s."""
    assert run.machine is not None
    return np.array([joint.velocity_limit[0] for joint in run.machine.joints])


def _metrics(runs: dict[str, Run], errors: dict[str, HoldErrors], away: float) -> dict[str, float]:
    limited, cut, strong = (errors[name] for name in ("limited", "cut off", "strong"))
    solved = [runs[name]["solved"].min() for name in ("limited", "strong", *FAR.values())]
    hard = [runs[name] for name in ("limited", *FAR.values())]
    return {
        "coupling_error": limited.largest(limited.coupling),
        "path_error": limited.largest(limited.control[:, :3]),
        "cut_off_coupling_error": cut.largest(cut.coupling),
        "cut_off_path_error": cut.largest(cut.control[:, :3]),
        "strong_coupling_error": strong.largest(strong.coupling),
        "strong_path_error": strong.largest(strong.control[:, :3]),
        "strict_path_error": errors["strict"].largest(errors["strict"].control[:, :3]),
        "strict_difference_m": float(np.abs(runs["strong"].x - runs["strict"].x).max()),
        "largest_torque_nm": float(np.abs(runs["limited"].u).max()),
        "needed_torque_nm": float(np.abs(runs["strong"].u).max()),
        "relaxed_share": float(runs["limited"]["relaxed"].mean()),
        "unsolved_share": float(1 - min(solved)),
        "most_steps": float(max(run["steps"].max() for run in hard)),
        "certificate": float(max(run["certificate"].max() for run in hard)),
        **_far_metrics(runs[FAR["mujoco"]], errors[FAR["mujoco"]], away, ""),
        **_far_metrics(runs[FAR["native"]], errors[FAR["native"]], away, "native_"),
    }


def _far_metrics(run: Run, errors: HoldErrors, away: float, plant: str) -> dict[str, float]:
    """Return the figures of a run whose target goes out of reach and comes back."""
    returned = LEAVES + 2 * RAMP + away
    missed = norm(errors.control[:, :3])
    late = run.t[(missed > 1e-3) & (run.t > returned)]
    return {
        f"{plant}far_speed_share": float((np.abs(run.v) / _speed_limits(run)).max()),
        f"{plant}far_coupling_error": float(norm(errors.coupling[run.t > LEAVES]).max()),
        f"{plant}far_missed_m": float(missed.max()),
        f"{plant}far_damped_share": float(run["damped"].max()),
        f"{plant}recovery_s": float(max(late[-1] - returned, 0.0)) if len(late) else 0.0,
    }


def _figures(
    runs: dict[str, Run], errors: dict[str, HoldErrors], effort: float
) -> tuple[Figure, ...]:
    near = [name for name in runs if name not in FAR.values()]
    t, far = runs["limited"].t, {name: runs[name] for name in FAR.values()}
    joint = int(np.abs(runs["strong"].u).max(axis=0).argmax())
    torques = {name: runs[name].u[:, joint] for name in near}
    bounds = {"upper limit *": np.full(len(t), effort), "lower limit *": np.full(len(t), -effort)}
    long = runs[FAR["native"]].t
    parts = {"coupling": lambda e: e.coupling, "path": lambda e: e.control[:, :3]}
    return (
        Figure.over_time(
            "Coupling error",
            "norm (m, rad)",
            t,
            {name: norm(errors[name].coupling) for name in near},
            logarithmic=True,
        ),
        Figure.over_time(
            "Path error",
            "norm (m)",
            t,
            {name: norm(errors[name].control[:, :3]) for name in near},
            logarithmic=True,
        ),
        Figure.over_time(
            f"Torque of {dual_arm().joints[joint].name}", "torque (Nm)", t, {**torques, **bounds}
        ),
        Figure.over_time(
            "Target out of reach",
            "norm (m, rad)",
            long,
            {
                f"{part}, {plant}": norm(take(errors[name]))
                for part, take in parts.items()
                for plant, name in FAR.items()
            },
            logarithmic=True,
        ),
        Figure.over_time(
            "Speed out of reach",
            "largest share of a joint's limit",
            long,
            {
                plant: (np.abs(far[name].v) / _speed_limits(far[name])).max(axis=1)
                for plant, name in FAR.items()
            },
        ),
    )
