"""The scenario `dual-arm-limits`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control.tasks import (
    FrameControl,
    JointControl,
    LimitedTaskControl,
    ProxQp,
    RigidCoupling,
    TaskControl,
    Weighted,
)
from framefree.gallery.machines.dual_arm import HOLD, START_HELD, dual_arm
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    CONTROL_GAINS,
    COUPLING_GAINS,
    LEFT,
    RIGHT,
    HoldErrors,
    experiment,
    norm,
    ring,
)
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.simulate import Run


@dataclass(frozen=True)
class DualArmLimits(Scenario):
    """Two arms with motors too weak for the path: they keep hold, and the path gives way.

    The motors can give less than the circle asks for. A law that does not know it is cut off, and
    the hands lose each other. The same tasks as a quadratic program, with the limits in it, keep
    the coupling and leave the circle by as much as they must.
    """

    name: ClassVar[str] = "dual-arm-limits"

    duration: float = 10.0
    effort: float = 28.0
    plant: str = "mujoco"

    def run(self, progress: bool | None = None) -> Outcome:
        """Run without limits, with torques cut off, and with limits in the law."""
        options = {"duration": self.duration, "plant": self.plant, "progress": progress}
        strong, weak = dual_arm(), dual_arm(effort=self.effort)
        levels, weight = _levels(strong), (1000.0, 1.0)
        program = LimitedTaskControl(weak, levels, ProxQp(weight), joint_limits=False)
        plain = TaskControl(strong, levels, Weighted(weight))
        cut = TaskControl(weak, levels, Weighted(weight))
        runs = {
            "limited": experiment(weak, program, START_HELD, limits=True, **options),
            "cut off": experiment(weak, cut, START_HELD, limits=True, **options),
            "strong": experiment(strong, plain, START_HELD, **options),
        }
        errors = {name: HoldErrors(run) for name, run in runs.items()}
        metrics = _metrics(runs, errors)
        return Outcome(
            {name.replace(" ", "_"): run for name, run in runs.items()},
            metrics,
            self._promises(metrics),
            _figures(runs, errors, self.effort),
            (Animation("Weak motors", runs["limited"], (LEFT, RIGHT), ring(CIRCLE)),),
            (
                "A torque that is cut off does not know what it was for: the coupling loses more "
                "than the circle. Limits in the program decide it: the coupling is exact, the "
                "circle has a weight.",
            ),
        )

    def _promises(self, metrics: dict[str, float]) -> tuple[Promise, ...]:
        return (
            Promise("coupling error within limits", metrics["coupling_error"], 2e-3),
            Promise("torque, Nm", metrics["largest_torque_nm"], self.effort * (1 + 1e-9)),
            Promise("share of steps without room for the coupling", metrics["relaxed_share"], 0.0),
            Promise("share of steps that were not solved", metrics["unsolved_share"], 0.0),
            Promise(
                "the coupling holds at least ten times as well as with torques cut off",
                10 * metrics["coupling_error"],
                metrics["cut_off_coupling_error"],
            ),
            Promise(
                "the path gives way: it is missed by more than the coupling",
                metrics["coupling_error"],
                metrics["path_error"],
            ),
            Promise("strong motors follow the path, m", metrics["strong_path_error"], 1e-3),
        )


def _levels(machine: Any) -> tuple:
    """Return coupling, circle, and a weak damping of what they leave free."""
    return (
        (RigidCoupling(LEFT, RIGHT, HOLD, COUPLING_GAINS[0]),),
        (FrameControl(LEFT, "held", CONTROL_GAINS[0]),),
        (JointControl(machine, START_HELD, Kd=4.0),),
    )


def _metrics(runs: dict[str, Run], errors: dict[str, HoldErrors]) -> dict[str, float]:
    limited, cut, strong = (errors[name] for name in ("limited", "cut off", "strong"))
    return {
        "coupling_error": limited.largest(limited.coupling),
        "path_error": limited.largest(limited.control[:, :3]),
        "cut_off_coupling_error": cut.largest(cut.coupling),
        "cut_off_path_error": cut.largest(cut.control[:, :3]),
        "strong_coupling_error": strong.largest(strong.coupling),
        "strong_path_error": strong.largest(strong.control[:, :3]),
        "largest_torque_nm": float(np.abs(runs["limited"].u).max()),
        "needed_torque_nm": float(np.abs(runs["strong"].u).max()),
        "relaxed_share": float(runs["limited"]["relaxed"].mean()),
        "unsolved_share": float(1 - runs["limited"]["solved"].mean()),
    }


def _figures(
    runs: dict[str, Run], errors: dict[str, HoldErrors], effort: float
) -> tuple[Figure, ...]:
    t = runs["limited"].t
    joint = int(np.abs(runs["strong"].u).max(axis=0).argmax())
    torques = {name: run.u[:, joint] for name, run in runs.items()}
    bounds = {"upper limit *": np.full(len(t), effort), "lower limit *": np.full(len(t), -effort)}
    return (
        Figure.over_time(
            "Coupling error",
            "norm (m, rad)",
            t,
            {name: norm(error.coupling) for name, error in errors.items()},
            logarithmic=True,
        ),
        Figure.over_time(
            "Path error",
            "norm (m)",
            t,
            {name: norm(error.control[:, :3]) for name, error in errors.items()},
            logarithmic=True,
        ),
        Figure.over_time(
            f"Torque of {dual_arm().joints[joint].name}", "torque (Nm)", t, {**torques, **bounds}
        ),
    )
