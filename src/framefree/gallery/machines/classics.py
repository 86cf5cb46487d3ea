"""The textbook machines: a top, a double pendulum, linkages of parallelograms, a body alone."""

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    Keyframe,
    Loop,
    Machine,
    Revolute,
    Spherical,
)
from framefree.machine.shape import Shape

_STEEL, _BRASS, _DARK = (0.55, 0.6, 0.68, 1.0), (0.8, 0.62, 0.25, 1.0), (0.2, 0.22, 0.26, 1.0)
_BLUE = (0.2, 0.45, 0.75, 1.0)
# From the z of a cylinder to the y of a body, and to its x.
_TO_Y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
_TO_X = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])


def _at(position: tuple[float, float, float], rotation: np.ndarray | None = None) -> np.ndarray:
    G = np.eye(4)
    G[:3, 3] = position
    if rotation is not None:
        G[:3, :3] = rotation
    return G


def heavy_top() -> Machine:
    """Return the heavy top that papers on integrators use: a disc on a rod [Bruels2010].

    A thin disc of 15 kg and radius 0.25 m on a massless rod of 1 m along body y, which turns freely
    about the world's origin; frame `center` at the disc.
    """
    mass, radius, length = 15.0, 0.25, 1.0
    disc = mass * radius**2 * np.diag([0.25, 0.5, 0.25])
    return Machine(
        (Body("top", Moments.of_body(mass, (0, length, 0), disc)),),
        (Joint("pivot", Spherical(), "world", "top"),),
        (Frame("center", "top", (0, length, 0)), Frame("rim", "top", (radius, length, 0))),
        name="heavy top",
        geometry=(
            Shape("top", "cylinder", (0.015, length), _at((0, length / 2, 0), _TO_Y), color=_STEEL),
            Shape("top", "cylinder", (radius, 0.04), _at((0, length, 0), _TO_Y), color=_BRASS),
            # A mark on the rim makes the spin visible.
            Shape("top", "box", (0.08, 0.05, 0.03), _at((0.2, length, 0)), color=_DARK),
            Shape("world", "sphere", 0.03, color=_DARK),
        ),
    )


def double_pendulum(length: float = 1.0, mass: float = 1.0) -> Machine:
    """Return two equal slender rods that hang from each other and swing in the plane x-z."""
    inertia = mass * length**2 / 12 * np.diag([1.0, 1.0, 0.005])
    rod = Moments.of_body(mass, (0, 0, -length / 2), inertia)
    names = ("upper", "lower")
    joints = (
        Joint("shoulder", Revolute((0, -1, 0)), "world", "upper"),
        Joint("elbow", Revolute((0, -1, 0)), "upper", "lower", parent_pose=(0, 0, -length)),
    )
    shapes = [
        Shape(name, "capsule", (0.03, length), (0, 0, -length / 2), color=color)
        for name, color in zip(names, (_STEEL, _BLUE), strict=True)
    ]
    return Machine(
        tuple(Body(name, rod) for name in names),
        joints,
        (Frame("tip", "lower", (0, 0, -length)),),
        name="double pendulum",
        geometry=(*shapes, Shape("world", "sphere", 0.05, color=_DARK)),
    )


def four_bars(count: int = 2) -> Machine:
    """Return a row of four-bar linkages of equal rods: benchmark A02 of [Gonzalez2006].

    Uniform rods of 1 kg and 1 m in the plane x-z: `count` + 1 of them turn about points of the
    world, 1 m apart, and as many as `count` connect the ends of neighbours. Frame `B0` is the end
    of the first. All joints are at zero when the rods point along x.
    """
    rod = Moments.of_body(1.0, (0.5, 0, 0), np.diag([0, 1, 1]) / 12)
    bodies, joints, frames, loops, shapes = [], [], [], [], []
    for i in range(count + 1):
        bodies.append(Body(f"crank{i}", rod))
        joints.append(Joint(f"pivot{i}", _HINGE, "world", f"crank{i}", parent_pose=(i, 0, 0)))
        frames.append(Frame(f"B{i}", f"crank{i}", (1, 0, 0)))
        shapes.append(_bar(f"crank{i}", 0.0, _STEEL))
        shapes.append(Shape("world", "sphere", 0.06, (i, 0, 0), color=_DARK))
    for i in range(count):
        bodies.append(Body(f"bar{i}", rod))
        joints.append(Joint(f"knee{i}", _HINGE, f"crank{i}", f"bar{i}", parent_pose=(1, 0, 0)))
        frames.append(Frame(f"end{i}", f"bar{i}", (1, 0, 0)))
        loops.append(Loop(f"loop{i}", "hinge", f"B{i + 1}", f"end{i}", axis=(0, -1, 0)))
        shapes.append(_bar(f"bar{i}", 0.05, _BLUE))
    parts = tuple(bodies), tuple(joints), tuple(frames)
    # At zero all rods lie on one line, where nothing can be seen, and the loops lose rank.
    signs = {joint.name: 1.0 if joint.parent == "world" else -1.0 for joint in joints}
    shown = Keyframe("initial", {name: sign * np.pi / 3 for name, sign in signs.items()})
    return Machine(
        *parts,
        loops=tuple(loops),
        name="four-bars",
        geometry=tuple(shapes),
        keyframes=(shown,),
    )


_HINGE = Revolute((0, -1, 0))


def _bar(body: str, aside: float, color: tuple[float, ...]) -> Shape:
    return Shape(body, "capsule", (0.025, 1.0), _at((0.5, aside, 0), _TO_X), color=color)


def four_bars_at(machine: Machine, angle: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the state (x, v) of `four_bars` in which cranks are turned from upright towards x.

    Parameters
    ----------
    machine : Machine
    angle, rate : float
        rad and rad/s; zero is upright.
    """
    signs = np.array([1.0 if name.startswith("pivot") else -1.0 for name in machine.x_names])
    return signs * (np.pi / 2 - angle), -signs * rate


def cylinder(transverse: float = 0.04, axial: float = 0.02) -> Machine:
    """Return a free cylinder of 1 kg that falls, with its axis along body z [Drake, free_body]."""
    radius = np.sqrt(2 * axial)
    length = np.sqrt(12 * (transverse - axial / 2))
    return _alone(
        "cylinder",
        Moments.of_body(1.0, (0, 0, 0), np.diag([transverse, transverse, axial])),
        [
            Shape("cylinder", "cylinder", (radius, length), color=_BRASS),
            Shape(
                "cylinder", "box", (radius, 0.03, 1.01 * length), (radius / 2, 0, 0), color=_DARK
            ),
        ],
    )


def box(size: tuple[float, float, float] = (0.4, 0.25, 0.1), mass: float = 1.0) -> Machine:
    """Return a free uniform box with three different moments, without gravity."""
    squares = np.square(size)
    inertia = mass / 12 * (squares.sum() - squares)
    corner = Shape("box", "sphere", 0.04, np.array(size) / 2, color=_BRASS)
    return _alone(
        "box",
        Moments.of_body(mass, (0, 0, 0), np.diag(inertia)),
        [Shape("box", "box", size, color=_BLUE), corner],
        gravity=(0, 0, 0),
    )


def _alone(
    name: str, moments: Moments, shapes: list[Shape], gravity: tuple[float, ...] = (0, 0, -9.81)
) -> Machine:
    return Machine(
        (Body(name, moments),),
        (Joint("base", Free(), "world", name),),
        gravity=gravity,
        name=name,
        geometry=tuple(shapes),
    )
