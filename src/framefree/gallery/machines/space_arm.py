"""A satellite with a six-joint arm, floating freely.

Numbers of the ETS-VII satellite and its arm [Yoshida2003] as they stand in the model of
TraceableRobotModels, with its rounded angles; link tensors are taken about the centers of mass.
"""

import numpy as np

from framefree.geometry import Moments, euler
from framefree.machine import Body, Frame, Free, Joint, JointForce, Machine, Revolute, Shape

BASE_MASS = 2550.0
BASE_INERTIA = ((6200.0, 48.2, 78.5), (48.2, 3540.0, -29.2), (78.5, -29.2, 7090.0))
# Parent-to-joint position and roll-pitch-yaw; mass, center of mass, principal inertia about it.
LINKS = (
    ((-0.79, -0.29, 1.0), (0, 0, 3.1416), 35.0, (0, 0, 0.175), (0.25, 0.25, 1.69)),
    ((0, -0.275, 0.35), (-1.570796, 0, 0), 22.5, (0, -0.435, 0), (0.1, 1.31, 3.75)),
    ((0, -0.87, 0), (0, 0, 0), 21.9, (-0.275, 0, 0), (0.1, 0.71, 2.53)),
    ((-0.63, 0, 0), (0, 0, 0), 16.5, (0, 0, 0.1335), (0.15, 0.15, 0.073)),
    ((0, 0, 0.26), (1.5708, 0, 0), 26.0, (0, 0, 0.1385), (0.15, 0.15, 0.13)),
    ((0, 0, 0.28), (0, -1.5708, 0), 18.5, (0, 0, 0.133), (0.97, 0.97, 0.26)),
)
GRIPPER = (0.0, 0.0, 0.53)


def space_arm(*, published: bool = False) -> Machine:
    """Return a satellite with a six-joint arm, without gravity.

    Free joint `base` of the satellite, arm joints `joint1` to `joint6`, frame `gripper` on the last
    link; inputs `motor1` to `motor6`.

    Parameters
    ----------
    published : bool
        Whether links 1 to 3 keep their tensors as published. These are not those of any body: the
        greatest moment exceeds the sum of the others, and `machine.problems` says so. Otherwise it
        is cut to that sum, less 1 percent.
    """
    bodies = [Body("satellite", Moments.of_body(BASE_MASS, (0, 0, 0), np.array(BASE_INERTIA)))]
    joints = [Joint("base", Free(), "world", "satellite")]
    shapes = [
        Shape("satellite", "box", (2.4, 2.2, 2.0), color=(0.75, 0.65, 0.35, 1.0)),
        *(Shape("satellite", "box", (1.2, 3.0, 0.05), _at(0, side * 2.8, 0),
                color=(0.15, 0.2, 0.5, 1.0)) for side in (1, -1)),
    ]  # fmt: skip
    parent = "satellite"
    ends = [link[0] for link in LINKS[1:]] + [GRIPPER]
    for i, ((place, rpy, mass, center, inertia), end) in enumerate(
        zip(LINKS, ends, strict=True), start=1
    ):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = euler.to_rotation(rpy).full(), place
        moments = Moments.of_body(mass, center, np.diag(inertia if published else _cut(inertia)))
        bodies.append(Body(f"link{i}", moments, strict=not published))
        joints.append(Joint(f"joint{i}", Revolute("z"), parent, f"link{i}", parent_pose=pose))
        shapes.append(_bar(f"link{i}", np.array(end, float)))
        parent = f"link{i}"
    return Machine(
        tuple(bodies),
        tuple(joints),
        (Frame("gripper", "link6", GRIPPER),),
        actuators=tuple(JointForce(f"motor{i}", f"joint{i}") for i in range(1, 7)),
        gravity=(0.0, 0.0, 0.0),
        name="space_arm",
        geometry=tuple(shapes),
    )


def _cut(inertia: tuple[float, ...]) -> np.ndarray:
    """Return principal moments of which none exceeds the sum of the others."""
    moments = np.array(inertia)
    return np.minimum(moments, np.maximum(0.99 * (moments.sum() - moments), 1e-3))


def _at(x: float, y: float, z: float) -> np.ndarray:
    G = np.eye(4)
    G[:3, 3] = x, y, z
    return G


def _bar(body: str, end: np.ndarray) -> Shape:
    """Return a rod from the origin of a body to a point on it."""
    length = float(np.linalg.norm(end))
    z = end / length
    helper = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = np.column_stack([x, np.cross(z, x), z]), end / 2
    return Shape(body, "cylinder", (0.06, length), G, color=(0.85, 0.85, 0.88, 1.0))
