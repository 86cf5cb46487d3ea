"""Chains of rods with flexible ball joints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Damper,
    EulerSpring,
    Frame,
    Free,
    Joint,
    Machine,
    MachineError,
    Shape,
    Spherical,
    Spring,
    Wrench,
    motors,
)

PORTS = ("full", "motors", "thrusters", "none")
SPRINGS = ("torsional", "euler", "none")
_COLORS = ((0.35, 0.52, 0.72, 1.0), (0.80, 0.60, 0.36, 1.0))


def chain(
    n: int = 5,
    *,
    lengths: Any = 0.4,
    masses: Any = 1.0,
    radius: float = 0.03,
    stiffness: float = 1.0,
    damping: float = 0.1,
    spring: str = "torsional",
    gravity: Any = (0.0, 0.0, -9.81),
    held: bool = False,
    port: str = "full",
    frames: Sequence[Frame] = (),
) -> Machine:
    """Return rods in a row along x, joined by flexible ball joints.

    Bodies `body1` ... have their frames at their mass centers, x along the rod; joint `joint2`
    joins the first two. `end` is the frame at the tip of the last.

    Parameters
    ----------
    n : int
    lengths, masses : float or (n,)
        m and kg.
    radius : float
        Of the rods, m.
    stiffness, damping : float
        Of every joint, Nm/rad and Nm s/rad.
    spring : "torsional", "euler" or "none"
        The spring without angles, `Spring.torsional`; one on Euler angles, `EulerSpring`; or none,
        and no damper.
    gravity : (3,) or None
        None: compensated, so that nothing falls.
    held : bool
        Whether the first rod hangs on the world, by ball joint `joint1` at the origin; otherwise it
        is free, by joint `base`.
    port : "full", "motors", "thrusters" or "none"
        Actuators: a wrench on every body (`port1` ...), a motor for every axis of every ball joint,
        three forces at every mass center (`thruster1` ...), or none.
    frames : sequence of Frame
        Further frames.
    """
    if n < 1:
        raise MachineError(f"a chain needs at least one body, got {n}")
    for value, known, what in ((port, PORTS, "port"), (spring, SPRINGS, "spring")):
        if value not in known:
            raise MachineError(f"`{what}` of a chain must be one of {known}, got {value!r}")
    length = np.broadcast_to(np.asarray(lengths, float), n)
    mass = np.broadcast_to(np.asarray(masses, float), n)
    bodies = [Body(f"body{i + 1}", _rod(mass[i], length[i], radius)) for i in range(n)]
    joints, marks, springs, dampers = [], [], [], []
    for i in range(n):
        own, start = f"body{i + 1}", (-length[i] / 2, 0, 0)
        if i == 0 and not held:
            joints.append(Joint("base", Free(), "world", own))
            continue
        joint, parent = f"joint{i + 1}", f"body{i}" if i else "world"
        end = (length[i - 1] / 2, 0, 0) if i else (0, 0, 0)
        joints.append(Joint(joint, Spherical(), parent, own, parent_pose=end, child_pose=start))
        if spring == "none":
            continue
        ends = (f"{joint}_a", f"{joint}_b")
        marks += [Frame(ends[0], parent, end), Frame(ends[1], own, start)]
        springs.append(_spring(spring, f"spring{i + 1}", ends, stiffness))
        dampers.append(Damper.torsional(f"damper{i + 1}", *ends, damping))
    tip = Frame("end", f"body{n}", (length[-1] / 2, 0, 0))
    return Machine(
        tuple(bodies),
        tuple(joints),
        (*marks, tip, *frames),
        springs=tuple(springs),
        dampers=tuple(dampers),
        actuators=_actuators(port, n, joints),
        gravity=(0.0, 0.0, 0.0) if gravity is None else gravity,
        geometry=tuple(_shape(i, length[i], radius) for i in range(n)),
        name=f"chain of {n}",
    )


def _rod(mass: float, length: float, radius: float) -> Moments:
    across = radius**2 / 4 + length**2 / 12
    return Moments.of_body(mass, (0, 0, 0), mass * np.diag([radius**2 / 2, across, across]))


def _spring(kind: str, name: str, ends: tuple[str, str], stiffness: float) -> Any:
    if kind == "euler":
        return EulerSpring(name, *ends, np.full(3, stiffness))
    return Spring.torsional(name, *ends, stiffness)


def _actuators(port: str, n: int, joints: list[Joint]) -> tuple[Any, ...]:
    if port == "motors":
        return motors(joint for joint in joints if joint.nv == 3)
    if port == "none":
        return ()
    name, directions = ("port", np.eye(6)) if port == "full" else ("thruster", np.eye(6)[:, :3])
    return tuple(Wrench(f"{name}{i + 1}", f"body{i + 1}", directions) for i in range(n))


def _shape(i: int, length: float, radius: float) -> Shape:
    along_x = np.eye(4)
    along_x[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    size = (radius, max(length - 2 * radius, 1e-6))
    return Shape(f"body{i + 1}", "capsule", size, along_x, color=_COLORS[i % 2])
