"""What the scenarios of two arms share: the published tasks, laws and runs, and their figures."""

from typing import Any

import numpy as np

from framefree.control.law import AnyLaw
from framefree.control.references.frames import Circle
from framefree.control.tasks import (
    FrameControl,
    HeldBodyControl,
    HeldObject,
    RigidCoupling,
    Solver,
    StrictPriority,
    TaskControl,
    Weighted,
)
from framefree.gallery.machines.dual_arm import CENTER, HOLD, LEFT, RIGHT, dual_arm
from framefree.gallery.shared.scenario import Promise
from framefree.look.report.prose import metric_name
from framefree.machine import Machine
from framefree.simulate import Run, simulate
from framefree.simulate.measures import settling_time

# Settings and results of the published experiment [Milioshin2024, ch. 4].
COUPLING_GAINS, CONTROL_GAINS, WEIGHT = (1000.0, 33.0), (500.0, 17.0), 50.0
PUBLISHED = {
    "published_coupling_error": 0.0017,
    "published_control_error": 0.0062,
    "published_x_m": 0.0008,
    "published_y_m": -0.0002,
    "published_z_m": 0.0051,
    "published_velocity_m_s": 0.0021,
    "published_rate_rad_s": 0.0051,
}
"""Means after the start, as printed: norms of errors, components of the error of position."""
PERIOD = 0.005
"""Step of the plant and of control, s."""
STEADY = 1.5
"""Time in s after which errors are averaged."""


def circle(center: Any = (0.0, 0.0, 0.0)) -> Circle:
    """Return the circle, of a point given in the left hand, that the hand is to follow."""
    middle = np.array([0.436763, 0.185684, 0.512661]) + center
    return Circle("held", middle, 0.12, 1.5, normal=(0, -1, 0), start=(0, 0, 1))


CIRCLE = circle()
HELD_CIRCLE = circle(CENTER[:3, 3])


def published_law(
    machine: Machine | None = None,
    gains: Any = (COUPLING_GAINS, CONTROL_GAINS),
    solver: Solver | None = None,
    hands: tuple[str, str] = (LEFT, RIGHT),
) -> TaskControl:
    """Return the published law; by default with its gains, and a model without friction."""
    coupling, control = gains
    levels = (
        (RigidCoupling(*hands, HOLD, *coupling),),
        (FrameControl(hands[0], "held", *control),),
    )
    machine = dual_arm(damping=0.0) if machine is None else machine
    solver = Weighted(WEIGHT) if solver is None else solver
    # The closed form as it is published, from hands that are far off in the first instant.
    return TaskControl(machine, levels, solver, fastest=np.inf)


def strict_law(machine: Machine | None = None, *couplings: RigidCoupling) -> TaskControl:
    """Return the coupling above the circle of the held body, critically damped."""
    levels = (
        (RigidCoupling(LEFT, RIGHT, HOLD, COUPLING_GAINS[0]), *couplings),
        (HeldBodyControl(LEFT, CENTER, "held", CONTROL_GAINS[0]),),
    )
    return TaskControl(dual_arm() if machine is None else machine, levels, StrictPriority())


def object_law(machine: Machine, squeeze: float) -> TaskControl:
    """Return the law that moves the held object on the circle, with its weight on both hands."""
    grasps = tuple(
        RigidCoupling(
            f"link_7_{side}", f"object_{side}", Kp=COUPLING_GAINS[0], name=f"grasp_{side}"
        )
        for side in "lr"
    )
    levels = (grasps, (FrameControl("object", "held", CONTROL_GAINS[0]),))
    return TaskControl(
        machine, levels, StrictPriority(), HeldObject("object", grasps, squeeze=squeeze)
    )


def experiment(machine: Machine, law: AnyLaw, x0: Any, **options: Any) -> Run:
    """Run a law on a plant; by default the published one, for the published time."""
    settings = {
        "reference": CIRCLE,
        "duration": 10.0,
        "dt": PERIOD,
        "plant": "mujoco",
        "integrator": "euler",
        "record": (),
        "limits": False,
        **options,
    }
    reference, dt = settings.pop("reference"), settings["dt"]
    return simulate(machine, law, reference, np.asarray(x0), control_dt=dt, **settings)


class HoldErrors:
    """Errors of coupling and control in a run, and their figures after the start."""

    def __init__(self, run: Run, coupling: str = "coupling", control: str = "control") -> None:
        self.t = run.t
        self.coupling, self.control = run[f"{coupling}.error"], run[f"{control}.error"]
        self.velocity = run[f"{control}.velocity_error"]
        self._late = run.t > STEADY

    def mean(self, values: np.ndarray) -> Any:
        """Return the mean after the start."""
        return values[self._late].mean(axis=0)

    def largest(self, values: np.ndarray) -> float:
        """Return the largest norm after the start."""
        return float(norm(values[self._late]).max())

    def published(self) -> dict[str, float]:
        """Return the figures that are published, by the names of metrics."""
        dx, dy, dz = self.mean(self.control[:, :3])
        return {
            "published_coupling_error": float(self.mean(norm(self.coupling))),
            "published_control_error": float(self.mean(norm(self.control))),
            "published_x_m": float(dx),
            "published_y_m": float(dy),
            "published_z_m": float(dz),
            "published_velocity_m_s": float(self.mean(norm(self.velocity[:, :3]))),
            "published_rate_rad_s": float(self.mean(norm(self.velocity[:, 3:]))),
        }

    def settling(self) -> float:
        """Return the time after which all errors stay below 5 percent of their peaks, s."""
        series = (self.coupling, self.control, self.velocity[:, :3], self.velocity[:, 3:])
        return max(settling_time(self.t, y, 0.05 * float(norm(y).max())) for y in series)


def printed_promises(metrics: dict[str, float]) -> tuple[Promise, ...]:
    """Return that the figures of a run are those that are published."""
    return tuple(
        Promise(
            f"the published {name} of {value:g} is met to its digits, difference",
            abs(metrics[key] - value),
            5e-5,
            unit or "m, rad",
        )
        for key, value in PUBLISHED.items()
        for name, unit in [metric_name(key.removeprefix("published_"))]
    )


def norm(values: np.ndarray) -> np.ndarray:
    """Return the lengths of rows."""
    return np.linalg.norm(values, axis=-1)


def ring(path: Circle) -> dict[str, np.ndarray]:
    """Return the points of an upright circle along x, for animations."""
    angle = np.linspace(0, 2 * np.pi, 90)
    points = np.column_stack([np.cos(angle), 0 * angle, np.sin(angle)])
    return {"circle": path.radius * points + path.center}
