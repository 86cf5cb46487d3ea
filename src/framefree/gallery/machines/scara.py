"""The horizontal two-joint part of a SCARA robot."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Revolute, Shape, motors


def scara() -> Machine:
    """Return two links of 0.3 and 0.2 m, 1 and 2 kg, that turn about the vertical; frame `tool`."""
    lengths, masses = (0.3, 0.2), (1.0, 2.0)
    bodies, joints, shapes = [], [], []
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True), start=1):
        thin = np.diag([0.05, 1.0, 1.0]) * mass * length**2 / 12
        bodies.append(Body(f"link{i}", Moments.of_body(mass, (length / 2, 0, 0), thin)))
        parent, place = ("world", (0, 0, 0)) if i == 1 else ("link1", (lengths[0], 0, 0))
        joints.append(Joint(f"joint{i}", Revolute("z"), parent, f"link{i}", parent_pose=place))
        middle = np.eye(4)
        middle[0, 3] = length / 2
        shapes.append(Shape(f"link{i}", "box", (length, 0.05, 0.04), middle))
    machine = Machine(
        tuple(bodies),
        tuple(joints),
        (Frame("tool", "link2", (lengths[1], 0, 0)),),
        name="scara",
        geometry=tuple(shapes),
    )
    return machine.attach(*motors(machine.joints))
