"""The parts of `stand`: where the body goes, the law, the runs and what is measured of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.references import ContactSchedule, FramePath, Together
from framefree.control.references.base import Reference
from framefree.control.references.path import smooth_step
from framefree.control.tasks import (
    ContactFrame,
    FrameControl,
    JointControl,
    LimitedTaskControl,
    unloaded_contacts,
)
from framefree.gallery.machines.quadruped import FRICTION, StandingRobot
from framefree.geometry import so3
from framefree.motion import equations
from framefree.simulate import Pulse, Run, simulate

MOVES = (1.0, 5.0)
"""When the body follows its path, s."""
PUSHED = (5.5, 5.8)
"""When it is pushed, s."""
LEANS = (7.0, 8.0, 9.2, 10.2)
"""When the body leans away from a foot, has leant, leans back and is back, s."""
LIFTED = (8.1, 9.1)
"""When the foot is lifted, s."""
END = 12.5
LIFTS = "front_left"
RAMP = 0.1
"""Time in which a foot is unloaded and loaded, s."""
KEPT = 0.85
"""Share of the friction that the law counts on."""
WAY = (0.03, 0.025, 0.02)
"""How far the body goes in x, y and z, per 0.3 m of its height, m."""
TURN = (0.12, 0.1, 0.15)
"""How far it turns about x, y and z, rad."""
LEANING = (-0.045, -0.035)
"""How far it leans away from the lifted foot, per 0.3 m of its height, m."""
HEIGHT = 0.05
"""How high the foot goes, per 0.3 m of the body's height, m."""


def _rise(t: Any, start: float, end: float) -> Any:
    return smooth_step(ca.fmin(ca.fmax((t - start) / (end - start), 0), 1))


def size_of(robot: StandingRobot) -> float:
    """Return the size of a robot: the height of its trunk, in 0.3 m."""
    return float(robot.stands[2]) / 0.3


def body_path(robot: StandingRobot) -> FramePath:
    """Return the path of the body: three circles at once in position and attitude, then leaning."""
    size, start = size_of(robot), robot.stands[:3]

    def path(t: Any) -> Any:
        s = 2 * np.pi * (t - MOVES[0]) / (MOVES[1] - MOVES[0])
        on = _rise(t, MOVES[0], MOVES[0] + 0.8) - _rise(t, MOVES[1] - 0.8, MOVES[1])
        waves = ca.vertcat(ca.sin(s), ca.sin(2 * s), ca.cos(s))
        turns = ca.vertcat(ca.sin(2 * s), ca.cos(s), ca.sin(s))
        leans = _rise(t, *LEANS[:2]) - _rise(t, *LEANS[2:])
        shift = size * (on * ca.DM(WAY) * waves + leans * ca.DM([*LEANING, 0]))
        G = ca.SX.eye(4)
        G[:3, :3] = so3.exp(on * ca.DM(TURN) * turns)
        G[:3, 3] = ca.DM(start) + shift
        return G

    times = (MOVES[0], MOVES[0] + 0.8, MOVES[1] - 0.8, MOVES[1], *LEANS)
    return FramePath("trunk", path, times=times)


def wanted_way(robot: StandingRobot, t: np.ndarray) -> np.ndarray:
    """Return how far the body is to be from where it stands (rows x 3), m."""
    poses = body_path(robot).function.map(len(t))(t[None])[0].full()
    return poses[:3, 3::4].T - robot.stands[:3]


def foot_path(robot: StandingRobot) -> FramePath:
    """Return the path of the foot: up and down again, while it is lifted."""
    pose = equations(robot.model).kernel(f"frame_pose:{robot.feet[LIFTS]}")(robot.stands)
    half = (LIFTED[1] - LIFTED[0]) / 2

    def path(t: Any) -> Any:
        up = _rise(t, LIFTED[0], LIFTED[0] + half) - _rise(t, LIFTED[1] - half, LIFTED[1])
        G = ca.SX(ca.DM(pose))
        G[2, 3] += HEIGHT * size_of(robot) * up
        return G

    return FramePath("foot", path, times=(LIFTED[0], sum(LIFTED) / 2, LIFTED[1]))


def reference(robot: StandingRobot) -> Reference:
    """Return all that the law follows: body, foot, and which feet stand."""
    opened = {leg: [LIFTED] if leg == LIFTS else [] for leg in robot.feet}
    return Together(body_path(robot), foot_path(robot), ContactSchedule(opened, RAMP))


def standing_law(robot: StandingRobot) -> LimitedTaskControl:
    """Return the law: the body's pose, the lifted foot, the posture, on feet within friction."""
    model = robot.model
    feet = [
        ContactFrame(
            frame, KEPT * FRICTION, radius=robot.radius, least=0.02 * robot.weight,
            most=robot.weight, switched=True, name=leg,
        )
        for leg, frame in robot.feet.items()
    ]  # fmt: skip
    legs = tuple(joint.name for joint in model.joints if joint.nv == 1)
    levels = (
        (FrameControl(robot.trunk, "trunk", Kp=150.0, name="body"),),
        (FrameControl(robot.feet[LIFTS], "foot", Kp=400.0, only="position", name="foot"),),
        (JointControl(model, robot.stands, Kp=50.0, Kd=14.0, joints=legs),),
    )
    return LimitedTaskControl(model, levels, contacts=feet)


def run_of(
    robot: StandingRobot,
    law: LimitedTaskControl,
    plant: str,
    push: float,
    *,
    start: float = PUSHED[0],
    duration: float = END,
    progress: bool | None = None,
) -> Run:
    """Run the programme on a plant: hard contact of MuJoCo, or our compliant one.

    `push` is the share of its weight with which the trunk is pushed aside, from `start` on.
    """
    aside = np.array([0.3, 0.95, 0.0, 0.0, 0.0, 0.0])
    size = push * robot.weight * aside / np.linalg.norm(aside)
    return simulate(
        robot.plant,
        law,
        reference(robot),
        x0=robot.stands,
        duration=duration,
        dt=1e-3,
        control_dt=2e-3,
        plant=plant,
        contacts=plant == "mujoco",
        disturbances=(Pulse(robot.trunk, size, start, PUSHED[1] - PUSHED[0]),),
        every=10,
        record=("interaction",),
        progress=progress,
    )


class StandMeasures(NamedTuple):
    """What was measured of a run on one plant."""

    metrics: Mapping[str, float]
    position_error: np.ndarray
    attitude_error: np.ndarray


def measured(robot: StandingRobot, law: LimitedTaskControl, run: Run, plant: str) -> StandMeasures:
    """Return errors of the body, use of friction and torques, and forces at rest."""
    error = run["body.error"]
    position = np.linalg.norm(error[:, :3], axis=1)
    attitude = np.rad2deg(np.linalg.norm(error[:, 3:], axis=1))
    cones = np.max([run[f"{leg}.cone"] for leg in robot.feet], axis=0)
    _, most = robot.model.input_limits
    after = run.t > LEANS[0] - 0.1
    raised = (run.t > LIFTED[0] + RAMP) & (run.t < LIFTED[1] - RAMP)
    normal = np.sum([run[f"{leg}.normal_force"].reshape(len(run)) for leg in robot.feet], axis=0)
    metrics = {
        "position_rms_m": float(np.sqrt(np.mean(position**2))),
        "attitude_rms_deg": float(np.sqrt(np.mean(attitude**2))),
        "pushed_m": float(position[(run.t > PUSHED[0]) & ~after].max()),
        "after_push_m": float(position[np.argmax(after)]),
        "cone_share": float(cones.max()),
        "torque_share": float((np.abs(run.u) / most).max()),
        "lifted_m": float(run[f"{LIFTS}.gap"].reshape(len(run))[raised].max()),
        "lifted_force_n": float(run[f"{LIFTS}.normal_force"][raised].max()),
        "unsolved_share": float(1 - run["solved"].mean()),
        "certificate": float(run["certificate"].max()),
        "unloaded_s": unloaded_time(law, run),
        "weight_error": float(abs(normal[-1] / robot.weight - 1)),
    }
    if plant == "native":
        metrics["torque_error"] = statics_error(robot, run)
    else:
        metrics["sinks_m"] = float(-np.mean([run[f"{leg}.gap"][-1] for leg in robot.feet]))
    return StandMeasures({f"{plant}_{name}": v for name, v in metrics.items()}, position, attitude)


def unloaded_time(law: LimitedTaskControl, run: Run) -> float:
    """Return for how long feet could not be loaded as they should, summed over them, s."""
    row = float(run.t[1] - run.t[0])
    found = unloaded_contacts(law, run.t, run["unloaded"])
    return float(sum(one.end - one.start + row for one in found))


def statics_error(robot: StandingRobot, run: Run) -> float:
    """Return how far torques at the end are from those of statics, relative to the largest.

    S^T tau = g(x) - J^T w, with w the wrenches of the ground on the legs that the plant recorded.
    """
    eom, x = equations(robot.model), run.x[-1]
    rest = np.zeros(robot.model.nv)
    missing = eom.inverse(x, rest, rest)
    wrenches = run["interaction_wrench"][-1]
    for contact, wrench in zip(robot.plant.interactions, wrenches, strict=True):
        missing = missing - eom.kernel(f"jacobian:{contact.frame_b}")(x).T @ wrench
    given = np.concatenate([np.zeros(6), run.u[-1]])
    return float(np.abs(missing - given).max() / np.abs(run.u[-1]).max())
