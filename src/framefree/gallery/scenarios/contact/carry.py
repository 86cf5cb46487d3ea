"""The scenario `carry`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.gallery.machines.carrying_robots import carrying_robots
from framefree.gallery.scenarios.contact import carry_parts as parts
from framefree.gallery.shared.scenario import Outcome, Promise, Scenario
from framefree.geometry import quaternion
from framefree.look.report import Animation, Figure
from framefree.machine import Machine
from framefree.simulate import Change, Release, Run, simulate
from framefree.simulate.measures import rms

GRAVITY = 9.81


@dataclass(frozen=True)
class Carry(Scenario):
    """Two robots hold one box, carry it to a table, set it down and let go.

    Both hands are welded to the box. It is lifted, turned and moved across the table, then lowered
    until it touches; the law goes on `press` below the table, which its gains turn into a gentle
    push. Then both hands let go in one moment and go back, and the table carries the box. The
    native plant has a compliant table; with `--plant mujoco` MuJoCo solves the contact, and the
    loops of both hands.

    Parameters
    ----------
    press : float
        How far below the table the law believes the way to end, m; negative, and the box is
        dropped from that height.
    squeeze : float
        Force with which the hands press the box between them, N.
    friction : float
        Coefficient of friction between box and table.
    dt : float
        Step of the integrator, s.
    duration : float
        How long to simulate, s.
    plant : str
        "native" or "mujoco".

    Metrics
    -------
    path_error_rms_m
        Distance of the box from its way until it touches, root of the mean square.
    grasp_error_m
        Largest distance of a hand from where it holds the box.
    first_touch_s
        When the box first touches the table.
    largest_force_n
        Largest force of the table on the box.
    force_before_release_n
        Force of the table just before the hands let go.
    moved_after_release_m
        How far the box moves after it was let go.
    placed_error_m
        Distance of the box from its place on the table in the end.
    tilt_deg
        Angle of the box from upright in the end.
    weight_error
        Relative difference between the table's force in the end and the weight.
    sunk_m
        How far the box has sunk into the table in the end: the table is soft.
    hands_back_m
        How far the hands have gone back, the nearer of both.
    torque_share
        Largest share of a motor's limit that was used.
    """

    name: ClassVar[str] = "carry"

    press: float = 1e-3
    squeeze: float = 20.0
    friction: float = parts.FRICTION
    duration: float = 6.8
    dt: float = 1e-3
    plant: str = "native"

    def run(self, progress: bool | None = None) -> Outcome:
        """Run from the held box to the box on the table."""
        held = parts.with_box(carrying_robots())
        free = held.detach("grasp_left").detach("grasp_right")
        x0, release = parts.first_state(held), parts.TIMES["release"]
        engine: dict[str, Any] = {"integrator": "rk4"}
        if self.plant == "mujoco":
            engine = {"plant": "mujoco", "integrator": "euler", "contacts": True}
        run = simulate(
            parts.with_table(held, self.friction),
            parts.carrying_law(held, x0, self.squeeze),
            parts.reference(self.press),
            x0,
            duration=self.duration,
            dt=self.dt,
            control_dt=self.dt,
            every=5,
            events=[
                *(Release(release, f"grasp_{side}") for side in parts.SIDES),
                Change(release, law=parts.leaving_law(free, x0)),
            ],
            record=("energy", "interaction"),
            progress=progress,
            **engine,
        )
        found = CarryMeasures(held, run)
        metrics = found.metrics
        return Outcome(
            {"run": run},
            metrics,
            _promises(metrics, hard=self.plant == "mujoco"),
            _figures(found),
            (Animation("Two robots and a box", run, ("box",)),),
            _NOTES,
        )


class CarryMeasures:
    """What became of the box, the hands and the table in a run."""

    def __init__(self, machine: Machine, run: Run) -> None:
        self.run, t = run, run.t
        self.weight = parts.MASS * GRAVITY
        self.held = t < parts.TIMES["release"] - 1e-9  # the row of the release is after it
        self.left = ~self.held
        self.pressed = run["table.normal_force"]
        self.position, wxyz = run.x[:, -7:-4], run.x[:, -4:]
        up = np.array([quaternion.to_rotation(row).full()[2, 2] for row in wxyz])
        self.tilt = np.rad2deg(np.arccos(np.clip(up, -1, 1)))
        self.error = np.linalg.norm(run["control.error"][:, :3], axis=1)
        self.slip = np.stack([self._grasp_error(side) for side in parts.SIDES], axis=1)
        poses = [machine.forward_kinematics(run.x, f"{side}_hand") for side in parts.SIDES]
        self.hands = np.stack([pose[:, :3, 3] for pose in poses], axis=1)
        self.torque_share = np.abs(run.u / machine.input_limits[1]).max(axis=1)

    def _grasp_error(self, side: str) -> np.ndarray:
        """Return how far (m) a hand is from where it holds the box; while it does."""
        return np.linalg.norm(self.run[f"grasp_{side}.error"][:, :3], axis=1)

    @property
    def metrics(self) -> dict[str, float]:
        """All figures by name."""
        held, left, run = self.held, self.left, self.run
        touching = self.pressed > 0
        first = int(np.argmax(touching)) if touching.any() else len(run) - 1
        last = self.position[-1]
        after = np.linalg.norm(self.position[left] - self.position[held][-1], axis=1)
        gap = np.linalg.norm(self.hands[-1] - self.hands[held][-1], axis=1).min()
        values = {
            "path_error_rms_m": rms(self.error[: first + 1]),
            "grasp_error_m": self.slip[held].max(),
            "first_touch_s": run.t[first] if touching.any() else np.inf,
            "largest_force_n": self.pressed.max(),
            "force_before_release_n": self.pressed[held][-1],
            "moved_after_release_m": after.max(),
            "placed_error_m": np.linalg.norm(last[:2] - np.array(parts.DOWN)[:2]),
            "tilt_deg": self.tilt[-1],
            "weight_error": abs(self.pressed[-1] / self.weight - 1),
            "sunk_m": -run["table.gap"][-1],
            "hands_back_m": gap,
            "torque_share": self.torque_share.max(),
        }
        return {name: float(value) for name, value in values.items()}


def _promises(metrics: dict[str, float], *, hard: bool) -> tuple[Promise, ...]:
    most = 1.5 * parts.MASS * GRAVITY
    return (
        Promise("the box keeps to its way until it touches, rms", metrics["path_error_rms_m"], 1e-3,
                "m"),
        Promise("the hands stay where they hold the box", metrics["grasp_error_m"],
                1e-3 if hard else 1e-4, "m"),
        Promise("the table is touched before the release", metrics["first_touch_s"],
                parts.TIMES["release"], "s"),
        Promise("the table never bears more than 1.5 times the weight",
                metrics["largest_force_n"], most, "N"),
        Promise("the box stays when it is let go", metrics["moved_after_release_m"], 1e-3, "m"),
        Promise("the box stands at its place on the table", metrics["placed_error_m"], 1e-3, "m"),
        Promise("the box stands upright in the end", metrics["tilt_deg"], 0.1, "°"),
        Promise("in the end the table carries the weight, relative error",
                metrics["weight_error"], 1e-6),
        Promise.at_least("the hands have gone back", metrics["hands_back_m"],
                         0.95 * parts.BACK, "m"),
        Promise.share("torques stay within the motors' limits", metrics["torque_share"]),
    )  # fmt: skip


_NOTES = (
    "Before the release the hands carry what the table does not; the jump of the table's force at "
    "the release is what they carried last, and how far the box then sinks is the table's own "
    "softness.",
    "After the release the law knows nothing of the box: both hands go back along their own axes.",
)


def _figures(found: CarryMeasures) -> tuple[Figure, ...]:
    run, t = found.run, found.run.t
    goal = run["goal.pose"][:, :3, 3]
    way = {axis: found.position[:, k] for k, axis in enumerate("xyz")}
    way |= {f"{axis}, wanted *": goal[:, k] for k, axis in enumerate("xyz")}
    held = np.where(found.held[:, None], found.slip, np.nan)
    hands = {side: 1e3 * held[:, k] for k, side in enumerate(parts.SIDES)}
    force = {"of the table": found.pressed, "weight *": np.full(len(t), found.weight)}
    return (
        Figure.over_time("The way of the box", "position (m)", t, way),
        Figure.over_time("Force of the table", "force (N)", t, force),
        Figure.over_time("Hands off the box", "distance (mm)", t, hands),
        Figure.over_time("Tilt of the box", "angle (deg)", t, {"tilt": found.tilt}),
        Figure.over_time("Torques", "largest share of a limit", t, {"share": found.torque_share}),
    )
