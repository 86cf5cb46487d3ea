"""Bodies on a plane, for contact: a ball, a block, a coin, a wheel, a stack and an arm at rest."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import Body, Contact, ContactShape, Free, Joint, Machine, Revolute, Shape

GROUND = ContactShape("half_space")


def _resting(
    name: str, moments: Moments, shape: ContactShape, g: float, **material: float
) -> Machine:
    """Return one free body over the ground z <= 0."""
    return Machine(
        (Body(name, moments),),
        (Joint("base", Free(), "world", name),),
        gravity=(0.0, 0.0, -g),
        name=name,
        interactions=(Contact("ground", "world", name, GROUND, shape, **material),),
        geometry=(_drawn(name, shape),),
    )


def _drawn(frame: str, shape: ContactShape) -> Shape:
    """Return what the viewer draws of a contact shape; a disk gets a little thickness."""
    if shape.kind == "disk":
        return Shape(frame, "cylinder", (shape.size[0], 0.02 * shape.size[0]), shape.pose)
    return Shape(frame, shape.kind, shape.size, shape.pose)


def ball(mass: float = 1.0, radius: float = 0.1, g: float = 9.81, **material: float) -> Machine:
    """Return a full ball over the ground; `material` are numbers of `Contact`."""
    material = {"stiffness": 1e5, "damping": 0.2} | material
    moments = Moments.of_body(mass, np.zeros(3), 0.4 * mass * radius**2 * np.eye(3))
    return _resting("ball", moments, ContactShape("sphere", radius), g, **material)


def block(
    mass: float = 1.0,
    size: tuple[float, float, float] = (0.2, 0.2, 0.1),
    height: float | None = None,
    g: float = 9.81,
    **material: float,
) -> Machine:
    """Return a block over the ground; `height` of its center of mass, else in its middle."""
    material = {"stiffness": 1e6, "damping": 2.0, "friction": 0.4} | material
    x, y, z = size
    inertia = mass / 12 * np.diag([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    center = (0.0, 0.0, 0.0 if height is None else height - z / 2)
    moments = Moments.of_body(mass, center, inertia)
    return _resting("block", moments, ContactShape("box", size), g, **material)


def coin(mass: float = 1.0, radius: float = 0.2, g: float = 9.81, **material: float) -> Machine:
    """Return a thin disk about z of its body, over the ground."""
    material = {"stiffness": 1e6, "exponent": 1.0, "friction": 0.6} | material
    across = mass * radius**2 / 4
    moments = Moments.of_body(mass, np.zeros(3), np.diag([across, across, 2 * across]))
    return _resting("coin", moments, ContactShape("disk", radius), g, **material)


def stack(**material: float) -> Machine:
    """Return a ball on a block on the ground."""
    material = {"stiffness": 1e5, "damping": 5.0, "friction": 0.5} | material
    below = block(3.0, (0.2, 0.2, 0.1), None, 9.81, **material)
    radius, mass = 0.05, 0.7
    above = Body("ball", Moments.of_body(mass, np.zeros(3), 0.4 * mass * radius**2 * np.eye(3)))
    shapes = ContactShape("box", (0.2, 0.2, 0.1)), ContactShape("sphere", radius)
    return below.attach(
        above,
        Joint("ball_base", Free(), "world", "ball"),
        Contact("top", "block", "ball", *shapes, **material),
        _drawn("ball", shapes[1]),
    ).replace(name="stack")


def resting_arm(length: float = 0.8, mass: float = 2.0, **material: float) -> Machine:
    """Return a rod that hangs on a hinge 0.3 m over the ground and leans on its round tip."""
    material = {"stiffness": 1e5, "damping": 5.0} | material
    inertia = mass * length**2 / 12 * np.diag([1.0, 1.0, 1e-3])
    rod = Body("rod", Moments.of_body(mass, (0, 0, -length / 2), inertia))
    hinge = Joint("hinge", Revolute("y"), "world", "rod", (0, 0, 0.3), damping=2.0)
    tip = ContactShape("sphere", 0.02, (0, 0, -length))
    ground = Contact("ground", "world", "rod", GROUND, tip, **material)
    return Machine((rod,), (hinge,), interactions=(ground,), name="resting-arm")
