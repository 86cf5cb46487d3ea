"""The scenario `rover-arm`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from framefree.control.passive import EndEffectorPassivity, Rolling
from framefree.control.references import FrameWaypoints
from framefree.gallery.machines.rover import SIDES, WHEEL, rolling, rover_arm, rover_rest
from framefree.gallery.scenarios.vehicles.vehicle_checks import (
    frame_distance,
    residual_promises,
    residuals,
)
from framefree.gallery.shared.metrics import VehicleArmScenario
from framefree.gallery.shared.rotations import about, angle_between
from framefree.gallery.shared.scenario import Outcome, Promise
from framefree.look.report import Animation, Figure, Line
from framefree.machine import Machine
from framefree.motion.constrained import Constrained
from framefree.motion.tree import Tree
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rate_error, rms

GOALS = ((1.2, 0.35, 0.1, 0.5, 0.3), (2.0, 1.0, -0.1, 0.8, 0.0))
"""Where the gripper goes from its place at rest: forward, left and up (m), yaw and roll (rad)."""
OFF = {"joint1": 0.1, "joint2": -0.1}
"""How far joints are off at the start, rad."""


@dataclass(frozen=True)
class RoverArm(VehicleArmScenario):
    """A rover on two wheels drives its gripper to a pose, wheels rolling without slipping.

    The gripper's path is more than two metres long and goes to the left; no wheel can go there
    sideways. The law commands wheels and arm together: the chassis goes where the wheels roll, the
    arm is drawn back to its posture, so that the wheels take over what is far. Rolling is four
    nonholonomic constraints of which three are independent, in the plant as in the law.

    Parameters
    ----------
    duration : float
        How long to simulate, s. The second pose is reached after five sixths of it.
    dt : float
        Step, s.

    Metrics
    -------
    slip_max_m_s
        Largest speed at which a wheel slips.
    constraint_power_share
        Largest power of the constraint forces, by the motors' largest.
    constraint_power_w
        Largest power of the constraint forces, which should do no work.
    motor_power_w
        Largest power of the motors.
    driven_m
        How far the wheels have rolled, in the mean of both.
    """

    name: ClassVar[str] = "rover-arm"

    duration: float = 18.0
    dt: float = 2e-3

    def run(self, progress: bool | None = None) -> Outcome:
        """Drive to the pose."""
        machine = rover_arm()
        rows, rest = rolling(machine), rover_rest(machine)
        equations = Constrained(machine, rows)
        poses = _poses(Tree(machine).functions["frame_pose:gripper"](rest).full())
        times = np.array([0.0, 4 / 9, 5 / 6]) * self.duration
        reference = FrameWaypoints("gripper", poses, times, stop=False)
        x0 = rest.copy()
        for joint, angle in OFF.items():
            x0[machine.x_slice[joint]] += angle
        run = simulate(
            machine, _law(machine, rows, rest), reference, x0, duration=self.duration, dt=self.dt,
            formulation=equations, record=("energy", "constraint"), progress=progress,
        )  # fmt: skip
        slip, power, motors = _slip(machine, run), _constraint_power(equations, run), _motors(run)
        pose = np.asarray(Tree(machine).kernel("frame_pose:gripper")(run.x))
        error = frame_distance(pose, run["gripper.pose"])
        metrics = {
            **residuals(machine),
            "slip_max_m_s": float(slip.max()),
            "constraint_power_share": float(np.abs(power).max() / motors.max()),
            "constraint_power_w": float(np.abs(power).max()),
            "motor_power_w": float(motors.max()),
            "end_position_rms_m": rms(error),
            "end_position_m": float(error[-1]),
            "end_angle_rad": float(
                angle_between(pose[-1, :3, :3], run["gripper.pose"][-1, :3, :3])
            ),
            "lyapunov_rate_error": rate_error(run.t, run["V"], run["V_rate"]),
            "driven_m": float(WHEEL * np.abs(np.diff(run.x[:, 4:6], axis=0)).sum(axis=0).mean()),
            "task_pivot_min": float(run["task_pivot"].min()),
        }
        return Outcome(
            runs={"rover_arm": run},
            metrics=metrics,
            promises=_promises(metrics),
            figures=_figures(run, error, slip, power),
            animations=(
                Animation(
                    "The drive", run, trails=("gripper", "chassis"),
                    paths={"reference of the gripper": run["gripper.pose"][:, :3, 3]},
                ),
            ),
            notes=(
                "Slip is taken from the twists of the wheels: the velocity of the point of each "
                "that touches the ground. Constraint forces are those of the equations at every "
                "recorded state, their power is taken with the velocities of all joints.",
            ),
        )  # fmt: skip


def _law(machine: Machine, rows: Any, rest: np.ndarray) -> EndEffectorPassivity:
    size = np.diag(Tree(machine).functions["mass"](rest).full())[3:].copy()
    # A wheel moves half of the rover: what that weighs at its rim.
    size[:2] += 0.5 * sum(body.moments.total for body in machine.bodies) * WHEEL**2
    return EndEffectorPassivity(
        machine, K=6 * size, freedom=Rolling(rows), frame="gripper", stiffness=(100.0, 5.0),
        rates=(2.0, 2.0), weights=(0.3, 0.3, *(1.0,) * 6), posture=rest,
        posture_gain=(0.0, 0.0, *(0.6,) * 6),
    )  # fmt: skip


def _poses(at_rest: np.ndarray) -> list[np.ndarray]:
    poses = [at_rest]
    for *shift, yaw, roll in GOALS:
        G = at_rest.copy()
        G[:3, :3] = about("z", yaw) @ about("x", roll) @ at_rest[:3, :3]
        G[:3, 3] += shift
        poses.append(G)
    return poses


def _slip(machine: Machine, run: Run) -> np.ndarray:
    """Return the speed (n,) of the points of the wheels that touch the ground, m/s."""
    tree, slips = Tree(machine), []
    pose = np.asarray(tree.kernel("body_pose")(run.x))
    twist = np.asarray(tree.kernel("body_velocity")(run.x, run.v))
    for side in SIDES:
        b = machine.body_index[f"wheel_{side}"]
        R, xi = pose[:, b, :3, :3], twist[:, b]
        contact = np.einsum("nji,j->ni", R, [0.0, 0.0, -WHEEL])
        slips.append(np.linalg.norm(xi[:, :3] + np.cross(xi[:, 3:], contact), axis=1))
    return np.max(slips, axis=0)


def _constraint_power(equations: Constrained, run: Run) -> np.ndarray:
    B = np.asarray(equations.kernel("input_matrix")(run.x[0]))
    force = np.asarray(equations.kernel("constraint_force")(run.x, run.v, run.u @ B.T))
    return np.einsum("ni,ni->n", force, run.v)


def _motors(run: Run) -> np.ndarray:
    """Return the sum (n,) of the magnitudes of the motors' power, W."""
    return np.abs(run.u * run.v[:, 3:]).sum(axis=1)


def _promises(m: dict[str, Any]) -> tuple[Promise, ...]:
    return (
        *residual_promises(m),
        Promise("the wheels do not slip", m["slip_max_m_s"], 1e-10, "m/s"),
        Promise(
            "constraint forces do no work, by the motors' power",
            m["constraint_power_share"], 1e-9,
        ),
        Promise("the gripper reaches its place", m["end_position_m"], 1e-3, "m"),
        Promise("and its attitude", m["end_angle_rad"], 1e-3, "rad"),
        Promise.at_least("the wheels have rolled", m["driven_m"], 1.5, "m"),
        Promise("V falls as the law states, relative error", m["lyapunov_rate_error"], 1e-6),
    )  # fmt: skip


def _figures(
    run: Run, error: np.ndarray, slip: np.ndarray, power: np.ndarray
) -> tuple[Figure, ...]:
    t, tiny = run.t, 1e-18
    path = run["gripper.pose"][:, :2, 3]
    return (
        Figure.over_time(
            "Distance of the gripper from where it should be", "distance (m)", t,
            {"gripper": error}, logarithmic=True,
        ),
        Figure(
            "The way, seen from above", "x (m)", "y (m)",
            (
                Line("middle of the axle", run.x[:, 0], run.x[:, 1]),
                Line("path of the gripper", path[:, 0], path[:, 1], dashed=True),
            ),
            equal=True, caption="The axle never moves sideways.",
        ),
        Figure.over_time(
            "Slip, and power of the constraint forces", "slip (m/s), power (W)", t,
            {
                "slip (m/s)": np.maximum(slip, tiny),
                "constraint power (W)": np.maximum(np.abs(power), tiny),
                "motor power (W)": np.maximum(_motors(run), tiny),
            },
            logarithmic=True,
        ),
        Figure.over_time(
            "Wheels", "torque (Nm)", t, {"left": run.u[:, 0], "right": run.u[:, 1]}
        ),
        Figure.over_time(
            "Joints of the arm", "torque (Nm)", t,
            {f"joint {k - 1}": run.u[:, k] for k in range(2, 8)},
        ),
        Figure.over_time("V", "V (J)", t, {"V": np.maximum(run["V"], tiny)}, logarithmic=True),
    )  # fmt: skip
