"""A quadruped: a trunk on four legs of three joints each, with round feet. All numbers are ours.

Another one, solo12, is read from the package example-robot-data where that is installed.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from framefree.errors import FramefreeError
from framefree.gallery.machines.touching import GROUND
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Contact,
    ContactShape,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Revolute,
    Shape,
)
from framefree.machine.read import read

LEGS = {
    "front_left": (1.0, 1.0),
    "front_right": (1.0, -1.0),
    "hind_left": (-1.0, 1.0),
    "hind_right": (-1.0, -1.0),
}
"""Names of the legs, and on which side of the trunk they are in x and y."""
TRUNK = (0.42, 0.2, 0.11)
"""Edges of the trunk, m."""
HIP = (0.19, 0.06)
"""Where the first joint of a leg is on the trunk, m."""
ASIDE = 0.07
"""From the axis of the first joint to the plane of the leg, m."""
THIGH, SHANK = 0.21, 0.21
"""Lengths of the links, m."""
FOOT = 0.02
"""Radius of a foot, m."""
TORQUE, SPEED = 30.0, 20.0
"""What a motor gives at most, Nm and rad/s."""
BENT = 0.75
"""Angle of the thigh to the vertical where the quadruped stands, rad; the knee has twice that."""
FRICTION = 0.7
SOLO_FOOT, SOLO_TORQUE = 0.016, 2.7
"""Radius of the feet of solo12, m, and what its motors give at most, Nm: its file has neither."""


class StandingRobot(NamedTuple):
    """A robot on four legs.

    Attributes
    ----------
    plant : Machine
        With compliant contacts at its feet, called as its legs.
    model : Machine
        The same without them, for laws.
    stands : (nx,)
        The configuration in which it stands.
    feet : dict of str to str
        Frames in the centers of the feet, by names of legs.
    radius : float
        Of a foot, m.
    trunk : str
        The body on the free joint.
    """

    plant: Machine
    model: Machine
    stands: np.ndarray
    feet: Mapping[str, str]
    radius: float
    trunk: str

    @property
    def weight(self) -> float:
        """Weight, N."""
        mass = sum(body.moments.total for body in self.model.bodies)
        return float(mass * np.linalg.norm(self.model.gravity))


ROBOTS = ("quadruped", "solo12")


def standing_robot(name: str) -> StandingRobot:
    """Return one of `ROBOTS`."""
    if name == "quadruped":
        model, feet = quadruped(touching=False), {leg: f"{leg}_foot" for leg in LEGS}
        return StandingRobot(quadruped(), model, standing(model), feet, FOOT, "trunk")
    if name == "solo12":
        return _solo12()
    raise FramefreeError(f"there is no standing robot `{name}`; there are: {', '.join(ROBOTS)}")


def _solo12() -> StandingRobot:
    """Return solo12; its legs get our names, feet and strength of motors."""
    try:
        package = metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        raise FramefreeError(
            'solo12 needs example robots; install them with: pip install "framefree[peers]"'
        ) from None
    files = [entry for entry in package.files or () if str(entry).endswith("/solo12.urdf")]
    model = read(str(package.locate_file(files[0])), base="free")
    # Hulls of its meshes overlap: trunk and upper legs would push each other by 260 N all the time.
    model = replace(model, collisions=())
    for actuator in model.actuators:
        model = model.replace(f"actuator:{actuator.name}", lower=-SOLO_TORQUE, upper=SOLO_TORQUE)
    stands, contacts, feet = np.array(model.neutral()), [], {}
    for leg, own in zip(LEGS, ("FL", "FR", "HL", "HR"), strict=True):
        stands[model.x_slice[f"{own}_HFE"]] = BENT
        stands[model.x_slice[f"{own}_KFE"]] = -2 * BENT
        feet[leg] = f"{own}_FOOT"
        shape = ContactShape("sphere", SOLO_FOOT)
        material = {"stiffness": 5e4, "damping": 1.0, "friction": FRICTION}
        contacts.append(Contact(leg, "world", feet[leg], GROUND, shape, **material))
    # Links of 0.16 m each.
    stands[model.x_slice["base"]][2] = 2 * 0.16 * np.cos(BENT) + SOLO_FOOT
    plant = model.attach(*contacts)
    return StandingRobot(plant, model, stands, feet, SOLO_FOOT, "base_link")


_DARK, _BRIGHT = (0.2, 0.22, 0.25, 1.0), (0.85, 0.6, 0.2, 1.0)


def quadruped(touching: bool = True, **material: float) -> Machine:
    """Return a quadruped on the ground z <= 0: 15.7 kg, 18 velocities, 12 motors.

    Free joint `base` of the body `trunk`; of every leg of `LEGS` the joints LEG_hip (about x),
    LEG_thigh and LEG_knee (about y), each with a motor of its name, and the frame LEG_foot in the
    center of its round foot.

    Parameters
    ----------
    touching : bool
        Whether feet have compliant contacts with the ground, called as their legs; a law that finds
        the forces of the ground itself wants a machine without.
    material : float
        Numbers of these contacts.
    """
    material = {"stiffness": 2e5, "damping": 1.0, "friction": FRICTION} | material
    bodies = [Body("trunk", _box(9.0, (0.0, 0.0, 0.0), TRUNK))]
    joints = [Joint("base", Free(), "world", "trunk")]
    shapes = [Shape("trunk", "box", TRUNK, color=_BRIGHT)]
    frames, feet, motors = [], [], []
    for leg, (ahead, left) in LEGS.items():
        foot = ContactShape("sphere", FOOT, (0, 0, -SHANK))
        links = (
            ("hip", "x", (ahead * HIP[0], left * HIP[1], 0.0), 0.7, (0.0, left * ASIDE / 2, 0.0)),
            ("thigh", "y", (0.0, left * ASIDE, 0.0), 0.8, (0.0, 0.0, -THIGH / 2)),
            ("knee", "y", (0.0, 0.0, -THIGH), 0.175, (0.0, 0.0, -SHANK / 2)),
        )
        sizes = ((0.09, ASIDE, 0.09), (0.04, 0.035, THIGH), (0.025, 0.025, SHANK))
        parent = "trunk"
        for (part, axis, place, mass, center), size in zip(links, sizes, strict=True):
            name = f"{leg}_{part}"
            bodies.append(Body(name, _box(mass, center, size)))
            joints.append(
                Joint(name, Revolute(axis), parent, name, place, armature=0.01,
                      velocity_limit=SPEED, **_range(part, left))
            )  # fmt: skip
            motors.append(JointForce(name, name, lower=-TORQUE, upper=TORQUE))
            shapes.append(Shape(name, "box", size, center, color=_DARK))
            parent = name
        shapes.append(Shape(parent, "sphere", (FOOT,), (0, 0, -SHANK), color=_BRIGHT))
        frames.append(Frame(f"{leg}_foot", parent, (0, 0, -SHANK)))
        feet.append(Contact(leg, "world", parent, GROUND, foot, **material))
    return Machine(
        tuple(bodies),
        tuple(joints),
        tuple(frames),
        actuators=tuple(motors),
        interactions=tuple(feet) if touching else (),
        geometry=tuple(shapes),
        name="quadruped",
    )


def standing(machine: Machine) -> np.ndarray:
    """Return the configuration (nx,) in which the quadruped stands, its feet just at the ground."""
    x = np.array(machine.neutral())
    for leg in LEGS:
        x[machine.x_slice[f"{leg}_thigh"]] = BENT
        x[machine.x_slice[f"{leg}_knee"]] = -2 * BENT
    x[machine.x_slice["base"]][2] = (THIGH + SHANK) * np.cos(BENT) + FOOT
    return x


def _range(part: str, left: float) -> dict[str, Any]:
    """Return the limits of a joint, rad; first joints of both sides mirror each other."""
    if part == "hip":
        return {"lower": min(-0.9 * left, 0.6 * left), "upper": max(-0.9 * left, 0.6 * left)}
    return {"lower": -0.6, "upper": 2.6} if part == "thigh" else {"lower": -2.7, "upper": -0.2}


def _box(mass: float, center: tuple[float, ...], size: tuple[float, ...]) -> Moments:
    """Return the moments of a box with its center there."""
    x, y, z = np.square(size)
    return Moments.of_body(mass, center, mass / 12 * np.diag([y + z, x + z, x + y]))
