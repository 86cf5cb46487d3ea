"""The scenario `ship-arm`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control.passive import CarriedBase, EndEffectorPassivity
from framefree.control.references import FrameWaypoints
from framefree.gallery.machines.ship import TORQUE, ship_arm, ship_rest
from framefree.gallery.scenarios.vehicles.vehicle_checks import (
    frame_distance,
    residual_promises,
    residuals,
)
from framefree.gallery.shared.figures import positive
from framefree.gallery.shared.metrics import VehicleArmScenario
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure
from framefree.machine import Machine, Waves
from framefree.motion.tree import Tree
from framefree.simulate import JointAccelerations, Run, simulate
from framefree.simulate.measures import rate, rms

OFF = 0.01
"""How far every joint of the arm is off at the start, rad."""
LATE = 8.0
"""Time from which the hand must be in its place, s."""
PERIODS = (2, 1)
"""Control periods of the runs that show the rate of V, ms."""
HOUR = 3600.0
"""Time over which the height of the waves is looked at, s."""
WORDS = {
    "measured": "deck's motion measured",
    "steady": "its acceleration not known",
    "ground": "deck taken for ground",
}


@dataclass(frozen=True)
class ShipArm(VehicleArmScenario):
    """An arm on the deck of a ship in waves holds its hand in one place of the world.

    A moored work boat of 25 m floats in waves of the JONSWAP spectrum; the water's forces follow
    from its pose and from the pressure of the waves, and nobody tells them to the law. The arm on
    deck holds its hand at a pose in the world. Its law knows where the deck is and how it moves:
    pose, twist and, with noise, acceleration, 200 times a second. What moves the deck, and what the
    ship weighs, does not enter it.

    The same law is tried twice without what it adds: with the deck's acceleration taken for zero,
    and with the deck taken for ground that stands still.

    Parameters
    ----------
    height : float
        Significant height of the waves, m.
    period : float
        Of the peak of their spectrum, s.
    direction : float
        In which they travel, deg from the ship's bow.
    seed : int
        Of the waves.
    duration : float
        How long to simulate, s.
    dt : float
        Step and control period, s.

    Metrics
    -------
    wave_height_m
        Significant height of the waves that were met.
    deck_rise_m
        How far the foot of the arm rises and falls.
    hand_rms_m
        Distance of the hand from its place, root of the mean square.
    hand_max_m
        Largest distance of the hand from its place.
    hand_angle_rms_rad
        Angle of the hand from its attitude, root of the mean square.
    joint_range_rad
        How far a joint of the arm turns at most.
    steady_hand_rms_m
        Distance of the hand where the law does not know the deck's acceleration.
    ground_hand_rms_m
        Distance of the hand where the law takes the deck for ground.
    torque_share
        Largest share of a motor's limit.
    lyapunov_rate_error_left
        Error of the stated rate of V that is left for ever shorter control periods,
        relative.
    lyapunov_rate_error_*_ms
        Error of the stated rate of V with this control period, relative.
    """

    name: ClassVar[str] = "ship-arm"

    height: float = 1.0
    period: float = 7.0
    direction: float = 150.0
    seed: int = 1
    duration: float = 30.0
    dt: float = 5e-3

    def run(self, progress: bool | None = None) -> Outcome:
        """Hold the hand under three laws."""
        plant, model = ship_arm(self._waves()), ship_arm(sea=False)
        place = Tree(model).functions["frame_pose:hand"](ship_rest(model)).full()
        runs = {
            "measured": self._held(plant, self._law(model, CarriedBase()), place, progress),
            "steady": self._held(
                plant, self._law(model, CarriedBase(acceleration=None)), place, progress
            ),
            "ground": self._held(plant, self._law(model.lock("base"), None), place, progress),
        }
        fine = {ms: self._fine(plant, model, place, ms, progress) for ms in PERIODS}
        errors = {name: _error(plant, run, place) for name, run in runs.items()}
        metrics = {**residuals(model), **self._metrics(plant, runs, errors, fine)}
        return Outcome(
            runs={**runs, "start": fine[PERIODS[-1]]},
            metrics=metrics,
            promises=_promises(metrics),
            figures=_figures(plant, runs, errors),
            animations=(
                Animation(
                    "The ship and its arm", runs["measured"], trails=("hand",),
                    caption="The deck moves; the hand stays.",
                ),
            ),
            notes=(
                "The deck's acceleration is read with noise, 0.02 m/s^2 and 2 mrad/s^2 a reading; "
                "its pose and twist are read exactly.",
            ),
        )  # fmt: skip

    def _waves(self) -> Waves:
        return Waves(self.height, self.period, np.deg2rad(self.direction), seed=self.seed)

    def _law(self, model: Machine, freedom: CarriedBase | None) -> EndEffectorPassivity:
        arm = ship_arm(sea=False)
        size = np.diag(Tree(arm).functions["mass"](ship_rest(arm)).full())[6:]
        known: dict[str, Any] = {} if freedom is None else {"freedom": freedom}
        rest = ship_rest(arm)
        return EndEffectorPassivity(
            model, K=4 * size, frame="hand", stiffness=(2e3, 1.0), rates=(2.0, 2.0),
            posture=rest if freedom is not None else rest[7:], posture_gain=0.0, **known,
        )  # fmt: skip

    def _held(
        self, plant: Machine, law: EndEffectorPassivity, place: np.ndarray, progress: bool | None
    ) -> Run:
        unit = JointAccelerations(joints=("base",), deviation=(*(0.02,) * 3, *(2e-3,) * 3))
        return simulate(
            plant, law, _hold(place), self._start(plant), duration=self.duration, dt=self.dt,
            control_dt=self.dt, sensors=(unit,) if law.measures else (),
            every=2, record=(), progress=progress,
        )  # fmt: skip

    def _fine(
        self, plant: Machine, model: Machine, place: np.ndarray, period: int, progress: bool | None
    ) -> Run:
        """Return a short run with exact readings and a control period of some ms."""
        dt = 1e-3 * period
        return simulate(
            plant, self._law(model, CarriedBase()), _hold(place), self._start(plant),
            duration=0.5, dt=dt, control_dt=dt, limits=False,
            sensors=JointAccelerations(joints=("base",)), record=(), progress=progress,
        )  # fmt: skip

    def _start(self, plant: Machine) -> np.ndarray:
        off = np.concatenate([np.zeros(6), np.full(6, OFF)])
        return plant.integrate(ship_rest(plant), off)

    def _metrics(
        self,
        plant: Machine,
        runs: dict[str, Run],
        errors: dict[str, np.ndarray],
        fine: dict[int, Run],
    ) -> dict[str, Any]:
        gaps = {f"lyapunov_rate_error_{ms}_ms": _rate_error(run) for ms, run in fine.items()}
        longer, shorter = gaps.values()
        late = {name: error[runs[name].t >= LATE] for name, error in errors.items()}
        surface = self._waves().elevation(0.0, 0.0, np.arange(0.0, HOUR, 0.25))
        foot = _foot(plant, runs["measured"])
        return {
            "wave_height_m": float(4 * surface.std()),
            "deck_rise_m": float(np.ptp(foot[:, 2])),
            "hand_rms_m": rms(late["measured"]),
            "hand_max_m": float(late["measured"].max()),
            "hand_angle_rms_rad": rms(runs["measured"]["frame_angle"][runs["measured"].t >= LATE]),
            "joint_range_rad": float(np.ptp(runs["measured"].x[:, 7:], axis=0).max()),
            "steady_hand_rms_m": rms(late["steady"]),
            "ground_hand_rms_m": rms(late["ground"]),
            "torque_share": float((np.abs(runs["measured"].u) / TORQUE).max()),
            "task_pivot_min": float(runs["measured"]["task_pivot"].min()),
            **gaps,
            "lyapunov_rate_error_left": abs(2 * shorter - longer),
        }


def _rate_error(run: Run) -> float:
    """Return the largest error of the stated rate of V, as a share of the largest rate."""
    stated = run["V_rate"][2:-2]
    return float(np.abs(rate(run.t, run["V"]) - stated).max() / np.abs(stated).max())


def _hold(place: np.ndarray) -> FrameWaypoints:
    return FrameWaypoints("hand", [place, place], np.array([0.0, 1.0]))


def _error(plant: Machine, run: Run, place: np.ndarray) -> np.ndarray:
    pose = np.asarray(Tree(plant).kernel("frame_pose:hand")(run.x))
    return frame_distance(pose, np.broadcast_to(place, pose.shape))


def _foot(plant: Machine, run: Run) -> np.ndarray:
    """Return where the foot of the arm is (n, 3), m."""
    return np.asarray(Tree(plant).kernel("frame_pose:link1")(run.x))[:, :3, 3]


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    return (
        *residual_promises(m),
        Promise("the hand keeps its place in the world, rms", m["hand_rms_m"], 5e-3, "m"),
        Promise("and its attitude, rms", m["hand_angle_rms_rad"], 5e-3, "rad"),
        Promise("no joint of the arm turns far", m["joint_range_rad"], 2.0, "rad"),
        Promise.at_least(
            "with the deck taken for ground the hand is off, rms", m["ground_hand_rms_m"], 0.05, "m"
        ),
        Promise.at_least(
            "without the deck's acceleration it is farther off than with it",
            m["steady_hand_rms_m"] / max(m["hand_rms_m"], 1e-300), 10, "times",
        ),
        Promise.at_least("the deck rises and falls", m["deck_rise_m"], 0.2, "m"),
        Promise.share("motors keep within their limits", m["torque_share"]),
        Promise.share(
            "for ever shorter control periods V falls as the law states, error",
            m["lyapunov_rate_error_left"], 5e-3,
        ),
        Promise.share(
            "half the control period leaves half the error",
            m["lyapunov_rate_error_1_ms"] / max(m["lyapunov_rate_error_2_ms"], 1e-300), 0.55,
        ),
    )  # fmt: skip


def _figures(
    plant: Machine, runs: dict[str, Run], errors: dict[str, np.ndarray]
) -> tuple[Figure, ...]:
    run = runs["measured"]
    foot = _foot(plant, run)
    return (
        Figure.over_time(
            "Distance of the hand from its place", "distance (m)", run.t,
            {WORDS[name]: positive(error) for name, error in errors.items()}, logarithmic=True,
        ),
        Figure.over_time(
            "The foot of the arm on deck", "way from the start (m)", run.t,
            {axis: foot[:, k] - foot[0, k] for k, axis in enumerate("xyz")},
        ),
        Figure.over_time(
            "Torques, as shares of their limits", "share", run.t,
            {f"joint {k + 1}": run.u[:, k] / TORQUE[k] for k in range(6)},
        ),
        Figure.over_time(
            "Angles of the arm", "angle (rad)", run.t,
            {f"joint {k + 1}": run.x[:, 7 + k] for k in range(6)},
        ),
    )  # fmt: skip
