"""The scenario `auv-current`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control import Adaptation, MomentumObserver, UnknownForce
from framefree.control.passive import EndEffectorPassivity
from framefree.control.unknown import Correction
from framefree.gallery.machines.auv import THRUST, auv
from framefree.gallery.scenarios.vehicles.auv_arm_parts import DiveLoop, gripper_error, hull_sizes
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Run, SetParameters, simulate
from framefree.simulate.measures import rms

AXES = ("fluid.current.x", "fluid.current.y", "fluid.current.z")
SPEED, RISING = 0.3, 0.05
"""Of the current: horizontal, and upwards, m/s."""
STEP = 0.5
"""Time after which the current turns on by a little, s."""
LATE = 10.0
"""Time from which the gripper must be on its path, s."""
OFF = (0.01, -0.02, 0.01, 0.0, 0.0, 0.0, *(0.03,) * 7)
"""How far hull (m, rad) and arm (rad) are off at the start."""
WORDS = {"fixed": "still water assumed", "observed": "with observer", "adapted": "adapting"}


@dataclass(frozen=True)
class AuvCurrent(Scenario):
    """An underwater vehicle with arm keeps its gripper on a path in a current that nobody knows.

    The vehicle of `auv-arm` dives in its loop, in a current that turns by half a circle meanwhile.
    All laws have a model in still water, are evaluated 100 times a second and share out what they
    ask for within the limits of the thrusters. The law alone is carried off by centimetres. With an
    observer of unknown forces (`MomentumObserver`), which takes what it does not know for a wrench
    on the hull, the gripper stays on its path; and so it does where the law adapts the three
    numbers of the current in its model (`Adaptation`).

    Parameters
    ----------
    period : float
        Time of the loop, s.
    duration : float
        How long the runs are, s.
    dt : float
        Step of the integrator, s; a control period is 10 ms.

    Metrics
    -------
    *_end_rms_m
        Distance of the gripper from its path after 10 s, root of the mean square, under
        each law.
    *_end_max_m
        Largest distance then.
    end_position_rms_m
        The worse of the observing and the adapting law.
    current_error_rms_m_s
        Error of the current as the adapting law has it, root of the mean square after 10 s.
    thrust_max_n
        Largest thrust under all laws.
    """

    name: ClassVar[str] = "auv-current"

    period: float = 30.0
    duration: float = 30.0
    dt: float = 5e-3

    def run(self, progress: bool | None = None) -> Outcome:
        """Follow the path under three laws."""
        model = auv((0.0, 0.0, 0.0))
        loop = DiveLoop(model, self.period)
        laws: dict[str, Correction | None] = {
            "fixed": None,
            "observed": MomentumObserver(30.0, UnknownForce("hull")),
            "adapted": Adaptation(AXES, gain=0.2),
        }
        runs = {name: self._followed(loop, unknown, progress) for name, unknown in laws.items()}
        errors = {name: gripper_error(run, loop) for name, run in runs.items()}
        metrics = self._metrics(runs, errors)
        return Outcome(
            runs=runs,
            metrics=metrics,
            promises=_promises(metrics),
            figures=self._figures(runs, errors),
            animations=(
                Animation(
                    "With observer", runs["observed"], trails=("gripper",),
                    paths={"reference": loop.wanted(runs["observed"].t[::10])[:, :3, 3]},
                ),
            ),
            notes=(
                "The current turns in steps of half a second. Drag is quadratic in the "
                "velocity relative to the water: the force is not linear in the current, and its "
                "numbers adapt by the slope at the estimate.",
            ),
        )  # fmt: skip

    def current(self, t: Any) -> np.ndarray:
        """Return the current at times t, m/s in world axes: (..., 3)."""
        angle = 0.3 + np.pi * np.asarray(t, float) / self.duration
        x, y = SPEED * np.cos(angle), SPEED * np.sin(angle)
        return np.stack([x, y, np.full_like(x, RISING)], axis=-1)

    def _followed(self, loop: DiveLoop, unknown: Correction | None, progress: bool | None) -> Run:
        size = hull_sizes(loop)
        law = EndEffectorPassivity(
            loop.machine, K=6 * size, frame="gripper", stiffness=(30.0, 0.3), rates=(2.0, 2.0),
            weights=(*(400.0,) * 3, *(100.0,) * 3, *(1.0,) * 7), follow_posture=True,
            posture_gain=(*(1.0,) * 6, *(0.1,) * 7), within_limits=True, unknown=unknown,
        )  # fmt: skip
        plant = auv(self.current(0.0)).tunable(*AXES[:2])
        x0 = plant.integrate(loop.rest, np.array(OFF))
        return simulate(
            plant, law, loop.reference(), x0, np.zeros(plant.nv), duration=self.duration,
            dt=self.dt, control_dt=max(1, round(0.01 / self.dt)) * self.dt,
            events=self._turning(plant), record=("energy",), progress=progress,
        )  # fmt: skip

    def _turning(self, plant: Machine) -> list[SetParameters]:
        times = np.arange(STEP, self.duration, STEP)
        return [
            SetParameters(t, dict(zip(plant.parameters.names, current[:2].tolist(), strict=True)))
            for t, current in zip(times.tolist(), self.current(times), strict=True)
        ]

    def _metrics(self, runs: dict[str, Run], errors: dict[str, np.ndarray]) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        for name, run in runs.items():
            late = run.t > LATE
            metrics[f"{name}_end_rms_m"] = rms(errors[name][late])
            metrics[f"{name}_end_max_m"] = float(errors[name][late].max())
        adapted = runs["adapted"]
        gap = adapted["numbers"] - self.current(adapted.t)
        return {
            **metrics,
            "end_position_rms_m": max(metrics[f"{n}_end_rms_m"] for n in ("observed", "adapted")),
            "current_error_rms_m_s": rms(gap[adapted.t > LATE]),
            "thrust_max_n": max(float(np.abs(run.u[:, :8]).max()) for run in runs.values()),
        }

    def _figures(self, runs: dict[str, Run], errors: dict[str, np.ndarray]) -> tuple[Figure, ...]:
        adapted, observed = runs["adapted"], runs["observed"]
        t, true = adapted.t, self.current(adapted.t)
        return (
            Figure.over_time(
                "Distance of the gripper from its path", "distance (m)", t,
                {WORDS[name]: positive(error) for name, error in errors.items()},
                logarithmic=True,
            ),
            Figure.over_time(
                "Current", "velocity in the world (m/s)", t,
                {f"{axis}, estimated": adapted["numbers"][:, i] for i, axis in enumerate("xyz")}
                | {f"{axis}, true *": true[:, i] for i, axis in enumerate("xyz")},
                caption="What adapts is good for the motion: where the vehicle hardly moves "
                "through the water, a wrong current does no harm and is not seen.",
            ),
            Figure.over_time(
                "Force of the current as the observer sees it", "force in the world (N)", t,
                {axis: observed["unknown_wrench"][:, i] for i, axis in enumerate("xyz")},
            ),
            Figure.over_time(
                "Thrusters of the vehicle with observer", "thrust (N)", t,
                {f"thruster {k + 1}": observed.u[:, k] for k in range(8)},
            ),
        )  # fmt: skip


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    return (
        Promise.of(
            m,
            "observed_end_rms_m",
            "observing, the gripper keeps to its path after 10 s, rms",
            5e-3,
        ),
        Promise.of(
            m, "adapted_end_rms_m", "adapting, the gripper keeps to its path after 10 s, rms", 5e-3
        ),
        Promise.of(m, "fixed_end_rms_m", "without either it is off, rms", 0.02, least=True),
        Promise.of(m, "thrust_max_n", "thrusters keep within their limits", THRUST),
    )
