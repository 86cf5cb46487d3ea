"""Two arms, the box that they hold, the table, and the laws of `carry`."""

from typing import Any

import numpy as np

from framefree.control.references import Together
from framefree.control.references.frames import FrameWaypoints
from framefree.control.tasks import (
    FrameControl,
    HeldObject,
    JointControl,
    RigidCoupling,
    StrictPriority,
    TaskControl,
)
from framefree.gallery.machines.carrying_robots import SIDES
from framefree.geometry import Moments, euler, so3
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Frame,
    Free,
    Joint,
    Loop,
    Machine,
    Shape,
)
from framefree.solve import inverse_kinematics

BOX = (0.3, 0.24, 0.12)
"""Edges of the box, m."""
MASS = 4.0
TABLE = 0.3
"""Height of the table, m."""
FRICTION = 0.5
MATERIAL = {"stiffness": 2e4, "damping": 20.0, "slip_speed": 1e-2, "exponent": 1.0}
"""Of box and table, at each corner."""
START, OVER, DOWN = (0.0, -0.15, 0.5), (0.0, 0.15, 0.55), (0.0, 0.15, TABLE + BOX[2] / 2)
"""Places of the middle of the box: taken up, above its place, on the table; m."""
TIMES = {"start": 0.3, "over": 2.3, "near": 3.8, "down": 4.3, "release": 5.0, "clear": 6.2}
"""When it leaves, is above its place, 5 mm over the table, and down; release; hands away; s."""
NEAR = 5e-3
BACK = 0.12
"""How far (m) the hands go back after the release."""
TURN = np.deg2rad(30.0)
"""How far the box is turned about the upright axis on its way, rad."""


def grasp_pose(side: str) -> np.ndarray:
    """Return where a hand holds the box, seen from its middle: z into the box."""
    pose, sign = np.eye(4), -1 if side == "left" else 1
    pose[:3, :3] = euler.to_rotation((0, -sign * np.pi / 2, 0)).full()
    pose[0, 3] = sign * BOX[0] / 2
    return pose


def with_box(arms: Machine) -> Machine:
    """Return the arms and the free box, welded to both hands by loops."""
    x, y, z = BOX
    inertia = MASS / 12 * np.diag([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    parts: list[Any] = [
        Body("box", Moments.of_body(MASS, (0, 0, 0), inertia)),
        Joint("box", Free(), "world", "box"),
        Shape("box", "box", BOX, color=(0.8, 0.45, 0.2, 1)),
    ]
    for side in SIDES:
        parts.append(Frame(f"box_{side}", "box", grasp_pose(side)))
        parts.append(Loop(f"grasp_{side}", "weld", f"{side}_hand", f"box_{side}"))
    return arms.attach(*parts).replace(name="two robots and a box")


def with_table(machine: Machine, friction: float) -> Machine:
    """Return the plant: the machine, and the table that the box can touch."""
    top = Contact(
        "table",
        "world",
        "box",
        ContactShape("half_space", pose=(0, 0, TABLE)),
        ContactShape("box", BOX),
        friction=friction,
        **MATERIAL,
    )
    drawn = Shape("world", "box", (0.5, 0.7, 0.04), (0, 0.05, TABLE - 0.02))
    return machine.attach(top, drawn)


def turned_box(position: Any, turn: float = 0.0) -> np.ndarray:
    """Return the pose of a level box, turned about the upright axis."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = so3.exp(np.array([0, 0, turn])).full(), position
    return pose


def first_state(machine: Machine) -> np.ndarray:
    """Return the configuration in which both hands hold the box at its start."""
    near = dict(zip(SIDES, (_near(1), _near(-1)), strict=True))
    guess = np.concatenate([*near.values(), START, [1, 0, 0, 0]])
    return inverse_kinematics(machine, {"box": turned_box(START)}, guess).x


def _near(sign: int) -> np.ndarray:
    return np.deg2rad([-15.0 * sign, 30, 0, -95, 0, -35, 0])


def reference(press: float) -> Together:
    """Return the way of the box, `press` (m) into the table, and of the hands after the release."""
    at = TIMES
    end, above = np.subtract(DOWN, (0, 0, press)), np.add(DOWN, (0, 0, NEAR))
    box = FrameWaypoints(
        "goal",
        [turned_box(START), turned_box(OVER, TURN), turned_box(above, TURN), turned_box(end, TURN)],
        [at[name] for name in ("start", "over", "near", "down")],
    )
    back = np.eye(4)
    back[2, 3] = -BACK
    hands = []
    for side in SIDES:
        held = turned_box(DOWN, TURN) @ grasp_pose(side)
        times = [at["release"], at["clear"]]
        hands.append(FrameWaypoints(f"{side}_goal", [held, held @ back], times))
    return Together(box, *hands)


def carrying_law(machine: Machine, posture: np.ndarray, squeeze: float) -> TaskControl:
    """Return the law of the held box: both grasps, then its way, then the posture."""
    grasps = tuple(
        RigidCoupling(f"{side}_hand", f"box_{side}", Kp=1000.0, name=f"grasp_{side}")
        for side in SIDES
    )
    levels = [grasps, [FrameControl("box", "goal", 300.0)], [_posture(machine, posture)]]
    return TaskControl(
        machine, levels, StrictPriority(), HeldObject("box", grasps, squeeze=squeeze)
    )


def leaving_law(machine: Machine, posture: np.ndarray) -> TaskControl:
    """Return the law after the release: both hands go back."""
    hands = [FrameControl(f"{side}_hand", f"{side}_goal", 300.0, name=side) for side in SIDES]
    return TaskControl(machine, [hands, [_posture(machine, posture)]], StrictPriority())


def _posture(machine: Machine, posture: np.ndarray) -> JointControl:
    joints = tuple(joint.name for joint in machine.joints if joint.nv == 1)
    return JointControl(machine, posture, joints=joints, Kp=20.0, Kd=9.0)
