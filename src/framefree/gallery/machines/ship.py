"""A work boat at its moorings with a six-joint arm on deck.

Hull, arm and their numbers are ours: a barge of 25 m, with added mass and damping of the size that
strip theory gives such hulls at periods of 4 to 10 s.
"""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    FloatingHull,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    JointForce,
    Machine,
    PointSpring,
    Revolute,
    Shape,
    Waves,
)

LENGTH, BREADTH, DRAFT, DENSITY = 25.0, 8.0, 2.0, 1025.0
GYRATION = (2.6, 6.5, 6.6)
"""Radii of gyration of the hull about its mass center, m."""
CENTER = 0.3
"""Height of the hull's mass center above the waterplane, m."""
ADDED = (0.05, 0.5, 0.9, 0.25, 0.9, 0.4)
"""Added mass and moments of inertia, as shares of the hull's own."""
DAMPING = (1.5e4, 6.0e4, 6.0e5, 1.6e6, 2.0e7, 4.0e6)
"""N s/m and Nm s."""
LINE, ANCHOR = 8.0e3, 60.0
"""Stiffness of a mooring line, N/m, and how far ahead or astern its anchor lies, m."""
DECK = (6.0, -2.0, 1.5)
"""Where the arm stands on the hull, m."""
LINKS = (
    ("z", (0.0, 0.0, 0.0), 120.0, (0.0, 0.0, 0.4), (6.0, 6.0, 2.0)),
    ("y", (0.0, 0.0, 0.8), 150.0, (1.0, 0.0, 0.0), (1.5, 50.0, 50.0)),
    ("y", (2.0, 0.0, 0.0), 60.0, (0.3, 0.0, 0.0), (0.6, 3.0, 3.0)),
    ("x", (0.6, 0.0, 0.0), 40.0, (0.5, 0.0, 0.0), (0.3, 3.5, 3.5)),
    ("y", (1.0, 0.0, 0.0), 20.0, (0.1, 0.0, 0.0), (0.1, 0.15, 0.15)),
    ("x", (0.2, 0.0, 0.0), 10.0, (0.1, 0.0, 0.0), (0.04, 0.06, 0.06)),
)
"""Axis and place on the link before; mass, center and principal moments about it."""
TORQUE = (1.5e4, 2.0e4, 1.0e4, 2.0e3, 2.0e3, 1.0e3)
"""Limits of the motors, Nm."""
REST = (-0.6, -1.2, 1.5, 0.0, 1.27, 0.0)
"""Angles of the arm, rad: upper arm up, forearm nearly level, hand down."""


def ship_arm(waves: Waves | None = None, *, sea: bool = True) -> Machine:
    """Return a moored work boat that floats, with a six-joint arm on deck.

    Free joint `base` of the hull, whose frame `ship` has its origin in the middle of the
    waterplane; arm joints `joint1` to `joint6`, frame `hand`; inputs `motor1` to `motor6`.

    Parameters
    ----------
    waves : Waves, optional
        Without, the water is still.
    sea : bool
        Whether water and moorings act at all; a law that measures what the ship does needs neither.
    """
    mass = DENSITY * LENGTH * BREADTH * DRAFT - sum(link[2] for link in LINKS)
    tensor = mass * np.diag(np.square(GYRATION))
    bodies = [Body("ship", Moments.of_body(mass, (0, 0, CENTER), tensor))]
    joints = [Joint("base", Free(), "world", "ship")]
    shapes = [
        Shape("ship", "box", (LENGTH, BREADTH, DRAFT + 1.5), _at(0, 0, (1.5 - DRAFT) / 2),
              color=(0.25, 0.35, 0.5, 1.0)),
        Shape("ship", "box", (5.0, 5.0, 3.0), _at(-8.0, 0, 3.0), color=(0.85, 0.85, 0.82, 1.0)),
    ]  # fmt: skip
    ends = [link[1] for link in LINKS[1:]] + [(0.25, 0.0, 0.0)]
    for i, ((axis, place, weight, center, moments), end) in enumerate(
        zip(LINKS, ends, strict=True), start=1
    ):
        bodies.append(Body(f"link{i}", Moments.of_body(weight, center, np.diag(moments))))
        at = DECK if i == 1 else place
        joints.append(
            Joint(f"joint{i}", Revolute(axis), bodies[-2].name, f"link{i}", parent_pose=at)
        )
        shapes.append(_bar(f"link{i}", np.array(end)))
    return Machine(
        tuple(bodies),
        tuple(joints),
        (Frame("hand", "link6", (0.25, 0.0, 0.0)),),
        actuators=tuple(
            JointForce(f"motor{i}", f"joint{i}", lower=-most, upper=most)
            for i, most in enumerate(TORQUE, start=1)
        ),
        interactions=(_hull(waves), *_moorings()) if sea else (),
        fluid=_water(mass) if sea else None,
        name="ship_arm",
        geometry=tuple(shapes),
    )


def ship_rest(machine: Machine) -> np.ndarray:
    """Return the configuration (nx) of the ship upright, its arm at `REST`."""
    x = machine.neutral()
    x[7:] = REST
    return x


def _hull(waves: Waves | None) -> FloatingHull:
    return FloatingHull(
        "sea", "world", "ship", LENGTH, BREADTH, DRAFT, DENSITY, damping=DAMPING, waves=waves
    )


def _water(mass: float) -> Fluid:
    """Return the water that moves with the hull: its added mass, without buoyancy."""
    own = mass * np.array([1.0, 1.0, 1.0, *np.square(GYRATION)])
    added = Immersed("ship", volume=0.0, added_mass=np.array(ADDED) * own)
    return Fluid((added,), density=DENSITY)


def _moorings() -> tuple[PointSpring, ...]:
    """Return four lines from the corners of the deck to anchors ahead and astern."""
    lines = []
    for i, (ahead, aside) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1)), start=1):
        corner = np.array([ahead * LENGTH / 2, aside * BREADTH / 2, 1.0])
        anchor = corner + np.array([ahead * ANCHOR, aside * ANCHOR / 2, -1.0])
        slack = 0.99 * float(np.linalg.norm(anchor - corner))
        lines.append(
            PointSpring(f"line{i}", "world", "ship", LINE, slack, point_a=anchor, point_b=corner)
        )
    return tuple(lines)


def _at(x: float, y: float, z: float) -> np.ndarray:
    G = np.eye(4)
    G[:3, 3] = x, y, z
    return G


def _bar(body: str, end: np.ndarray) -> Shape:
    """Return a rod from the origin of a body to a point on it along x or z."""
    length = float(np.linalg.norm(end))
    G = np.eye(4)
    if end[0]:
        G[:3, :3] = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    G[:3, 3] = end / 2
    return Shape(body, "cylinder", (0.12, length), G, color=(0.9, 0.6, 0.15, 1.0))
