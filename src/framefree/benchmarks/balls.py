"""A scene for `framefree bench contact`: balls in a box."""

from itertools import combinations

import numpy as np

from framefree.geometry import Moments
from framefree.machine import Body, Contact, ContactShape, Free, Joint, Machine


def balls_in_box(
    n: int = 10, radius: float = 0.05, mass: float = 0.5, width: float = 0.3, **material: float
) -> Machine:
    """Return balls in a square box without a lid: each may touch the floor, four walls and others.

    The floor is at z = 0, and the walls are at plus and minus half of `width` along x and y.
    """
    material = {"stiffness": 2e4, "damping": 1.0, "friction": 0.5, "slip_speed": 0.02} | material
    moments = Moments.of_body(mass, np.zeros(3), 0.4 * mass * radius**2 * np.eye(3))
    names = [f"ball{i + 1}" for i in range(n)]
    sphere = ContactShape("sphere", radius)
    sides = {"floor": ContactShape("half_space")} | {
        f"wall_{axis}{sign}": ContactShape("half_space", (), _wall(k, -side, width / 2))
        for k, axis in enumerate("xy")
        for side, sign in ((1, "+"), (-1, "-"))
    }
    contacts = [
        Contact(f"{name}_{side}", "world", name, shape, sphere, **material)
        for name in names
        for side, shape in sides.items()
    ]
    contacts += [
        Contact(f"{one}_{other}", one, other, sphere, sphere, **material)
        for one, other in combinations(names, 2)
    ]
    return Machine(
        tuple(Body(name, moments) for name in names),
        tuple(Joint(f"{name}_base", Free(), "world", name) for name in names),
        name="balls-in-box",
        interactions=tuple(contacts),
    )


def _wall(axis: int, side: int, distance: float) -> np.ndarray:
    """Return the pose of a half-space whose z points along plus or minus an axis of the world."""
    pose = np.eye(4)
    z = side * np.eye(3)[axis]
    x = np.array([0.0, 0.0, 1.0])
    pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    pose[:3, 3] = -distance * z
    return pose
