"""Two arms that face each other, to carry things together."""

import numpy as np

from framefree.gallery.machines.arms import driven_iiwa
from framefree.geometry import so3
from framefree.machine import Frame, Machine, Shape

SIDES = ("left", "right")
BASE = 0.75
"""Distance (m) of the bases of both arms from the middle."""


def carrying_robots() -> Machine:
    """Return two arms that face each other; frames `left_hand` and `right_hand`, z forward."""
    arm = driven_iiwa().attach(
        Frame("hand", "link7", (0, 0, 0.12)),
        Shape("link7", "cylinder", (0.03, 0.1), (0, 0, 0.06), color=(0.35, 0.38, 0.42, 1)),
        *_links(),
    )
    pair = Machine((), (), name="two robots")
    for side, sign in zip(SIDES, (-1, 1), strict=True):
        turned = np.eye(4)
        turned[:3, :3] = so3.exp(np.array([0, 0, np.pi if sign > 0 else 0.0])).full()
        turned[0, 3] = sign * BASE
        pair = pair.merge(arm, f"{side}_", pose=turned)
    return pair.replace(name="two robots")


def _links() -> list[Shape]:
    """Return what is drawn of the arm: a bar from each joint to the next."""
    arm, bars = driven_iiwa(), []
    for joint in arm.joints:
        way = np.asarray(joint.parent_pose)[:3, 3]
        length = float(np.linalg.norm(way))
        pose = np.eye(4)
        z = way / length
        x = np.array([1.0, 0, 0])
        y = np.cross(z, x)
        pose[:3, :3], pose[:3, 3] = np.stack([x, y, z], axis=1), way / 2
        bars.append(Shape(joint.parent, "cylinder", (0.05, length), pose))
    return bars
