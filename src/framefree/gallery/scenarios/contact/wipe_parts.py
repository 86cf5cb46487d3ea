"""The arm, the wall and the path of `wipe`."""

from typing import Any

import casadi as ca
import numpy as np

from framefree.control.references.frames import FramePath
from framefree.gallery.machines.arms import driven_iiwa
from framefree.geometry import Moments, euler, se3, so3
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Fixed,
    Frame,
    Joint,
    Machine,
    Prismatic,
    Shape,
)
from framefree.solve import inverse_kinematics

RADIUS = 0.02
"""Of the round tip, m."""
BELIEVED_NORMAL = (-1.0, 0.0, 0.0)
CENTER = np.array([0.8, 0.0, 0.5])
"""Of the figure eight on the wall, as the law believes it to be, m."""
SIZE = (0.08, 0.04)
"""Half width and half height of the figure eight, m."""
START, RAMP, LAP = 1.5, 1.0, 8.0
"""When the figure eight begins, how long its speed grows, and the time of a lap, s."""
PAD = {"mass": 0.3, "stiffness": 4e4, "damping": 150.0}
"""Of the ball on its spring: kg, N/m, N s/m."""
CLEARANCE = 0.01
"""Gap (m) between the tip and the believed wall at the beginning."""


def arm() -> Machine:
    """Return the arm as the law knows it: with a stiff rod that ends in a ball, frame `tip`."""
    return _with_pad("mount", Fixed())


def sprung_arm() -> Machine:
    """Return the arm of the plant: its ball is on a spring along the rod."""
    return _with_pad("pad", Prismatic("z"), stiffness=PAD["stiffness"], damping=PAD["damping"])


def _with_pad(joint: str, kind: Any, **spring: Any) -> Machine:
    ball = Body("pad", Moments.of_body(PAD["mass"], np.zeros(3), 2e-4 * np.eye(3)))
    return driven_iiwa().attach(
        ball,
        Joint(joint, kind, "link7", "pad", (0, 0, 0.2), **spring),
        Frame("tip", "pad"),
        Shape("link7", "cylinder", (0.008, 0.18), (0, 0, 0.09)),
        Shape("tip", "sphere", RADIUS),
    )


def wall(gap: float, lean: float) -> np.ndarray:
    """Return the pose of the wall: solid below its z, by `gap` further away than believed."""
    G = np.eye(4)
    # z of the wall points to the arm; it leans about an axis that is neither level nor upright.
    axis = np.array([0.0, 0.6, 0.8])
    upright = euler.to_rotation((0, -np.pi / 2, 0)).full()
    G[:3, :3] = so3.exp(lean * axis).full() @ upright
    G[:3, 3] = CENTER + np.array([gap, 0, 0])
    return G


def touching(wall: np.ndarray, friction: float) -> tuple[Any, ...]:
    """Return the contact of tip and wall, and what is drawn of the wall."""
    plate = Shape("world", "box", (0.4, 0.5, 0.01), wall @ _shift(-0.005))
    contact = Contact(
        "wall",
        "world",
        "tip",
        ContactShape("half_space", pose=wall),
        ContactShape("sphere", RADIUS),
        stiffness=1e5,
        damping=20.0,
        friction=friction,
        slip_speed=5e-3,
        exponent=1.0,
    )
    return contact, plate


def _shift(z: float) -> np.ndarray:
    G = np.eye(4)
    G[2, 3] = z
    return G


def attitude() -> np.ndarray:
    """Return the rotation of a tip that points at the believed wall."""
    return euler.to_rotation((0, np.pi / 2, 0)).full()


def figure_eight() -> FramePath:
    """Return the path of the tip's middle along the believed wall."""

    def path(t: Any) -> Any:
        s = ca.fmin(ca.fmax((t - START) / RAMP, 0), 1)
        # The integral of a smooth step, and then time itself.
        elapsed = RAMP * s**4 * (2.5 + s * (s - 3)) + ca.fmax(t - START - RAMP, 0)
        angle = 2 * np.pi / LAP * elapsed
        r = ca.DM(CENTER) + ca.vertcat(
            -RADIUS, SIZE[0] * ca.sin(angle), SIZE[1] * ca.sin(2 * angle)
        )
        return se3.pose(ca.DM(attitude()), r)

    return FramePath("tip", path, times=(START, START + RAMP))


def first_posture(machine: Machine) -> np.ndarray:
    """Return a configuration with the tip in front of the wall."""
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = attitude(), CENTER - np.array([RADIUS + CLEARANCE, 0, 0])
    near = np.deg2rad([0.0, 25, 0, -100, 0, -40, 0])
    return inverse_kinematics(machine, {"tip": G}, near).x
