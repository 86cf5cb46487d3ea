"""The scenario `wipe`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control.contact import HybridControl
from framefree.gallery.scenarios.contact import wipe_parts as parts
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.simulate import ForceSensor, Run, simulate
from framefree.simulate.measures import rms


@dataclass(frozen=True)
class Wipe(Scenario):
    """An arm wipes a wall that is not where its law believes it to be.

    A seven-joint arm presses a ball on a stiff spring against a wall and moves along a figure
    eight. The wall is 5 mm further away than the law believes, and leans by 10 degrees; there is
    friction. The law knows nothing of the spring, feels the wrench at the ball, learns the normal
    of the wall from the way the tip can move, and follows the path across it. The native plant has
    a compliant wall; with `--plant mujoco` MuJoCo solves the contact as a hard one, with the
    settings that it has by default.

    Parameters
    ----------
    force : float
        With which the tip is to press, N.
    gap : float
        How far the wall is behind where the law believes it to be, m.
    lean_deg : float
        How far the wall leans from what the law believes, degrees.
    friction : float
        Coefficient of friction between tip and wall.
    adaptation : float
        How fast the law learns the wall's normal.
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    force_error_rms_n
        Error of the normal force from the first touch on, root of the mean square.
    path_error_m
        Largest distance of the tip from its path, along the wall.
    gap_m
        Largest distance of the tip from the wall after it first touched; negative while it
        presses.
    normal_error_deg
        Angle between the wall's normal as learned and the true one, in the end.
    first_touch_s
        When the tip first touches the wall.
    largest_force_n
        Largest normal force.
    attitude_error_rad
        Largest error of the tool's attitude.
    """

    name: ClassVar[str] = "wipe"

    force: float = 20.0
    gap: float = 5e-3
    lean_deg: float = 10.0
    friction: float = 0.2
    adaptation: float = 1500.0
    duration: float = 18.5
    dt: float = 1e-3
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Run until the figure eight has been passed twice."""
        arm, wall = parts.arm(), parts.wall(self.gap, np.deg2rad(self.lean_deg))
        law = HybridControl(
            arm,
            "tip",
            self.force,
            parts.BELIEVED_NORMAL,
            stiffness=(1600.0, 60.0),
            damping=(120.0, 5.0),
            inertia=(2.0, 0.05),
            adaptation=self.adaptation,
            null_damping=2.0,
        )
        plant = parts.sprung_arm().attach(*parts.touching(wall, self.friction))
        engine: dict[str, Any] = {}
        if self.plant == "mujoco":
            engine = {"plant": "mujoco", "integrator": "euler", "contacts": True}
        run = simulate(
            plant,
            law,
            parts.figure_eight(),
            np.append(parts.first_posture(arm), 0.0),
            duration=self.duration,
            dt=self.dt,
            control_dt=self.dt,
            sensors=ForceSensor(frame="tip"),
            record=("energy", "interaction"),
            progress=progress,
            **engine,
        )
        off = _off_path(plant, run)
        metrics, error = measured(run, off, wall, self.force)
        return Outcome(
            {"run": run},
            metrics,
            (
                Promise.of(metrics, "force_error_rms_n", "the wanted force is kept, rms", 2.0),
                Promise.of(metrics, "path_error_m", "the tip keeps to its path on the wall", 3e-3),
                Promise.at_least(
                    "once it touches, the tip never leaves the wall, least depth",
                    -metrics["gap_m"],
                    0.0,
                    "m",
                ),
                Promise.of(metrics, "normal_error_deg", "the law learns the wall's normal", 1.0),
            ),
            _figures(run, off, wall, error, self.force),
            (Animation("The arm", run, ("tip",)),),
            _NOTES,
        )


def measured(
    run: Run, off: np.ndarray, wall: np.ndarray, force: float
) -> tuple[dict[str, float], np.ndarray]:
    """Return the metrics from the first touch on, and the errors (m, deg) of path and normal."""
    normal, pressed = wall[:3, 2], run["wall.normal_force"]
    across = np.eye(3) - np.outer(normal, normal)
    path = np.linalg.norm(off @ across, axis=1)
    angle = np.rad2deg(np.arccos(np.clip(run["normal"] @ normal, -1, 1)))
    touching = pressed > 0
    if not touching.any():
        return dict.fromkeys(_METRICS, np.inf), np.stack([path, angle], axis=1)
    after = slice(int(np.argmax(touching)), None)
    values = (
        rms(pressed[after] - force),
        path[after].max(),
        run["wall.gap"][after].max(),
        angle[-1],
        run.t[after][0],
        pressed[after].max(),
        np.linalg.norm(run["e"][after, 3:], axis=1).max(),
    )
    metrics = dict(zip(_METRICS, map(float, values), strict=True))
    return metrics, np.stack([path, angle], axis=1)


def _off_path(plant: Machine, run: Run) -> np.ndarray:
    """Return how far (m) the ball itself is from its path: (rows, 3), in world axes."""
    tip = plant.forward_kinematics(run.x, "tip")
    return run["tip.pose"][:, :3, 3] - tip[:, :3, 3]


_METRICS: tuple[str, ...] = (
    "force_error_rms_n",
    "path_error_m",
    "gap_m",
    "normal_error_deg",
    "first_touch_s",
    "largest_force_n",
    "attitude_error_rad",
)

_NOTES = (
    "Errors count from the first touch on. The path is meant across the wall: what the law "
    "believes is projected onto the true wall along its true normal.",
    "The ball is on a stiff spring, which the law does not know. MuJoCo's contacts need it: its "
    "solver lifts what slides, the more the heavier and faster it is. Pressed with 20 N, an arm "
    "without the spring leaves the wall by micrometres from about 0.02 m/s on, whatever the law "
    "does: its 10 kg are pushed with more than 20 N before they are in the wall at all. The ball "
    "of 0.3 kg stays in the wall at all speeds of this path.",
)


def _figures(
    run: Run, off: np.ndarray, wall: np.ndarray, error: np.ndarray, force: float
) -> tuple[Figure, ...]:
    G = run["tip.pose"]
    axes = wall[:3, :2]
    wanted = (G[:, :3, 3] - wall[:3, 3]) @ axes
    made = wanted - off @ axes
    pressed = {"measured": run["wall.normal_force"], "wanted *": np.full(len(run), force)}
    normal = {"of the learned normal": error[:, 1]}
    return (
        Figure(
            "The way on the wall", "along the wall (m)", "along the wall (m)",
            (Line("tip", *made.T), Line("path", *wanted.T, dashed=True)), equal=True,
        ),
        Figure.over_time("Force on the wall", "force (N)", run.t, pressed),
        Figure.over_time("Error of the path", "error (mm)", run.t, {"across": 1e3 * error[:, 0]}),
        Figure.over_time("Error of the normal", "angle (deg)", run.t, normal),
    )  # fmt: skip
