"""An arm with a hand of two fingers, each of them a four-bar that one motor closes.

The hand's fingers move in its xz plane, away from and towards each other. A crank on the hand
carries the coupler, whose other end a rocker on the hand guides; the tip is beyond it.
"""

from typing import Any

import numpy as np

from framefree.gallery.machines.dual_arm import seven_joint_arm
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Loop, Machine, Revolute
from framefree.machine.actuators import motors

CRANK, COUPLER, ROCKER, BASE = 0.05, 0.045, 0.055, 0.03
"""Lengths of the moving bars, and distance of their two joints on the hand, m."""
TIP = 0.04
"""From the coupler's far joint to the tip, m."""
_HAND = "link_7_l"


def finger_arm() -> Machine:
    """Return the seven-joint arm with fingers `a` and `b`; tips are frames `tip_a` and `tip_b`.

    Joints `crank_a` and `crank_b` have motors; `coupler_a`, `rocker_a` and so on follow.
    """
    parts: list[Any] = []
    for finger, sign in (("a", 1.0), ("b", -1.0)):
        parts += _finger(finger, sign)
    joints = [part for part in parts if isinstance(part, Joint) and "crank" in part.name]
    return seven_joint_arm(0.0, np.inf).attach(*parts, *motors(joints)).replace(name="finger arm")


def finger_arm_at(machine: Machine, arm: Any, opening: float = 0.3) -> np.ndarray:
    """Return the configuration (nx,) with the arm's joints and both cranks turned outwards."""
    x = np.zeros(machine.nx)
    x[:7] = arm
    for name in ("crank_a", "crank_b"):
        x[machine.x_slice[name]] = opening
    # Close the bars by hand: the coupler's end meets the circle of the rocker.
    far = CRANK * np.array([np.sin(opening), np.cos(opening)])
    base = np.array([BASE, 0.0])
    line = base - far
    gap = float(np.linalg.norm(line))
    inner = np.arccos((COUPLER**2 + gap**2 - ROCKER**2) / (2 * COUPLER * gap))
    along = np.arctan2(line[0], line[1])
    coupler = along - inner
    end = far + COUPLER * np.array([np.sin(coupler), np.cos(coupler)])
    rocker = np.arctan2(end[0] - base[0], end[1] - base[1])
    for finger in "ab":
        x[machine.x_slice[f"coupler_{finger}"]] = coupler - opening
        x[machine.x_slice[f"rocker_{finger}"]] = rocker
    return x


def _finger(name: str, sign: float) -> list[Any]:
    """Return the parts of a finger; its angles open outwards, along sign times x."""
    axis, place = (0.0, sign, 0.0), np.array([sign * 0.02, 0.0, 0.06])
    bars = {"crank": CRANK, "coupler": COUPLER + TIP, "rocker": ROCKER}
    bodies = [Body(f"{bar}_{name}", _bar(length)) for bar, length in bars.items()]
    outer = place + np.array([sign * BASE, 0.0, 0.0])
    joints = [
        Joint(f"crank_{name}", Revolute(axis), _HAND, f"crank_{name}", parent_pose=place),
        Joint(f"coupler_{name}", Revolute(axis), f"crank_{name}", f"coupler_{name}", (0, 0, CRANK)),
        Joint(f"rocker_{name}", Revolute(axis), _HAND, f"rocker_{name}", parent_pose=outer),
    ]
    frames = [
        Frame(f"pin_{name}", f"coupler_{name}", (0, 0, COUPLER)),
        Frame(f"guide_{name}", f"rocker_{name}", (0, 0, ROCKER)),
        Frame(f"tip_{name}", f"coupler_{name}", (0, 0, COUPLER + TIP)),
    ]
    loop = Loop(f"four_bar_{name}", "ball", f"pin_{name}", f"guide_{name}")
    return [*bodies, *joints, *frames, loop]


def _bar(length: float) -> Moments:
    mass = 0.5 * length
    inertia = mass * length**2 / 12 * np.diag([1.0, 1.0, 0.05])
    return Moments.of_body(mass, (0, 0, length / 2), inertia)
