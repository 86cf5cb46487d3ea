"""A system of rigid bodies as the redundant formulation takes it: coordinates, poses, parameters.

A user gives the coordinates x with phi(x) and A(x), some relative poses G_ab(x) that connect all
bodies to the world, and what the bodies are made of: moments of mass, springs and dampers between
frames, gravity. The equations follow from that; nothing about joints is needed. A `Machine` is
brought to the same form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import casadi as ca

from framefree.geometry import se3
from framefree.machine import WORLD, Body, Frame, Machine, MachineError, Problems
from framefree.machine.checks import check_parts, check_types
from framefree.machine.parameters import Parameters
from framefree.machine.tree import unknown
from framefree.machine.values import constant_pose, numbers
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.spatial import Matrix


@dataclass(frozen=True)
class RelativePose:
    """G_ab(x): the frame of body b seen from that of body a. One of the two may be "world".

    `pose` takes the casadi column x and returns a casadi 4x4 that is a pose where phi(x) = 0.
    """

    a: str
    b: str
    pose: Callable[[Matrix], Matrix]


@dataclass(frozen=True, eq=False)
class BodySystem:
    """Rigid bodies whose poses are given as functions of redundant coordinates.

    Parameters
    ----------
    name : str
    coordinates : Coordinates
    poses : sequence of RelativePose
        Edges of a connected graph of all bodies and the world, in any order and direction. Edges
        that close loops may be there too; that the loops close must follow from phi(x) = 0.
    bodies : sequence of Body
        With their moments of mass in the body frame.
    frames, springs, dampers, fluid, gravity
        As in `Machine`: springs and dampers act between any two frames, relative to each other or
        to the world, with their `Moments`.
    potential : callable x -> scalar, optional
        Further potential energy, J.
    rayleigh : callable (x, v) -> scalar, optional
        Further dissipation function R, W: the force dR/dv resists.
    parameters : Parameters
        Tunable numbers, whose symbols stand in the functions and parts above.
    """

    name: str
    coordinates: Coordinates
    poses: Sequence[RelativePose]
    bodies: Sequence[Body]
    frames: Sequence[Frame] = ()
    springs: Sequence[Any] = ()
    dampers: Sequence[Any] = ()
    fluid: Any = None
    gravity: Any = (0.0, 0.0, -9.81)
    potential: Callable[[Matrix], Matrix] | None = None
    rayleigh: Callable[[Matrix, Matrix], Matrix] | None = None
    parameters: Parameters = field(default_factory=Parameters)

    # What a Machine has and such a system does not; the checks and force laws look for them.
    joints: ClassVar[tuple] = ()
    loops: ClassVar[tuple] = ()
    couplings: ClassVar[tuple] = ()
    actuators: ClassVar[tuple] = ()
    geometry: ClassVar[tuple] = ()
    keyframes: ClassVar[tuple] = ()

    def __post_init__(self) -> None:
        for name in ("poses", "bodies", "frames", "springs", "dampers"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "gravity", numbers(self.gravity, (3,), "`gravity`"))
        problems = Problems()
        check_types(self, problems)
        problems.raise_if_any()
        check_parts(self, problems)
        x = ca.SX.sym("x", self.nx)
        for edge in self.poses:
            for name in (edge.a, edge.b):
                if name not in self.body_index:
                    problems.add(unknown("a relative pose names body", name, self.body_index))
            shape = ca.SX(edge.pose(x)).shape
            if shape != (4, 4):
                problems.add(
                    f"the pose of `{edge.b}` seen from `{edge.a}` must be 4x4, got {shape}"
                )
        problems.raise_if_any()

    @property
    def nx(self) -> int:
        """Number of coordinates."""
        return self.coordinates.nx

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.coordinates.nv

    @cached_property
    def body_index(self) -> Mapping[str, int]:
        """Index of each body by name; -1 for "world"."""
        return MappingProxyType({WORLD: -1, **{body.name: i for i, body in enumerate(self.bodies)}})

    def frame(self, name: str) -> Frame:
        """Return the frame of this name; every body, and "world", has one of its own name."""
        if name in self.body_index:
            return Frame(name, name)
        for frame in self.frames:
            if frame.name == name:
                return frame
        raise MachineError(
            unknown("frame", name, [*self.body_index, *(f.name for f in self.frames)])
        )


@dataclass(frozen=True)
class Way:
    """How the pose of one body is reached: from body `start` (-1: world) over one edge."""

    start: int
    edge: RelativePose
    forwards: bool


def machine_poses(machine: Machine) -> list[RelativePose]:
    """Return the pose of every body seen from its parent, with the joints' coordinates from x."""

    def pose_of(joint: Any) -> Callable[[Matrix], Matrix]:
        part = machine.x_slice[joint.name]
        before = constant_pose(joint.parent_pose)
        after = se3.inverse(constant_pose(joint.child_pose))
        return lambda x: se3.compose(before, joint.kind.pose(x[part, :]), after)

    return [RelativePose(joint.parent, joint.child, pose_of(joint)) for joint in machine.joints]


def ways(
    bodies: Sequence[Body], index: Mapping[str, int], poses: Sequence[RelativePose]
) -> dict[int, Way]:
    """Return how to reach every body from the world, each after the one that it starts from.

    Raises
    ------
    MachineError
        Naming the bodies that no relative pose connects to the world.
    """
    neighbours: dict[int, list[tuple[int, RelativePose, bool]]] = {}
    for edge in poses:
        a, b = index[edge.a], index[edge.b]
        neighbours.setdefault(a, []).append((b, edge, True))
        neighbours.setdefault(b, []).append((a, edge, False))
    found: dict[int, Way] = {}
    reached = [-1]
    for at in reached:
        for to, edge, forwards in neighbours.get(at, []):
            if to >= 0 and to not in found:
                found[to] = Way(at, edge, forwards)
                reached.append(to)
    missing = [body.name for i, body in enumerate(bodies) if i not in found]
    if missing:
        raise MachineError(
            "no relative poses lead from the world to " + ", ".join(f"`{name}`" for name in missing)
        )
    return found
