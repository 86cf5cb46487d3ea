"""Systems that a user writes down in coordinates of their own, and what they share with machines.

A `BodySystem` gives the coordinates x with phi(x) and A(x), some relative poses G_ab(x) that
connect all bodies to the world, and what the bodies are made of: moments of mass, springs and
dampers between frames, gravity. The equations follow from that; nothing about joints is needed. A
`Machine` is brought to the same form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine import (
    WORLD,
    Body,
    Custom,
    Frame,
    Joint,
    Machine,
    MachineError,
    Problems,
    state,
)
from framefree.machine.checks import check_parts, check_types
from framefree.machine.parameters import Parameters
from framefree.machine.tree import unknown
from framefree.machine.values import constant_pose, numbers
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.spatial import Matrix


class System:
    """What systems in a user's own coordinates share with a `Machine`.

    They can be simulated, actuated and controlled like one: all coordinates together count as one
    joint, `q`, whose velocities are those of the system. A motor for every velocity comes by
    ``framefree.machine.motors(system.joints)``.
    """

    name: str
    coordinates: Coordinates
    parameters: Parameters
    actuators: Sequence[Any]

    # What a machine has and such a system does not.
    loops: ClassVar[tuple] = ()
    couplings: ClassVar[tuple] = ()
    geometry: Sequence[Any] = ()
    keyframes: ClassVar[tuple] = ()
    ignored: ClassVar[tuple] = ()
    problems: ClassVar[tuple] = ()
    closed: ClassVar[bool] = False

    @property
    def tree(self) -> "System":
        """The system itself: it has no loops to leave out."""
        return self

    @property
    def numeric(self) -> "System":
        """The system itself; its tunable numbers stay symbols."""
        return self

    def with_parameters(self, values: Any = None) -> "System":
        """Return the system, whose tunable numbers stay symbols, if these values fit them."""
        self.parameters.values(values)
        return self

    @property
    def parent(self) -> tuple[int, ...]:
        """Index of the body from which each body's pose is given, -1 for the world."""
        return ()

    def joint_of(self, body: int) -> Joint:
        """Return the one joint that all coordinates belong to."""
        return self.joints[0]

    def to_dict(self) -> dict[str, Any]:
        """Refuse: functions of the user's own cannot be written down as data."""
        raise MachineError(
            f"`{self.name}` is given by functions of its own, which live only in Python"
        )

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """One joint that has all coordinates and moves no body by itself."""
        coordinates = self.coordinates
        kind = Custom(
            pose_map=lambda x: ca.DM.eye(4),
            nx=coordinates.nx,
            nv=coordinates.nv,
            rate_map=lambda x: ca.SX(coordinates.rate(x)),
            integrate_map=self._integrate,
            difference_map=self._difference,
            normalise_map=coordinates.restore,
            neutral_x=coordinates.start,
            random_map=coordinates.random,
            coordinates=tuple(coordinates.x_names),
            velocities=tuple(coordinates.v_names),
        )
        return (Joint("q", kind, WORLD, "q"),)

    def _integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """One step of the classical Runge-Kutta method over unit time, then onto phi = 0."""
        rate = self.coordinates.rate
        first = ca.SX(rate(x)) @ dv
        second = ca.SX(rate(x + first / 2)) @ dv
        third = ca.SX(rate(x + second / 2)) @ dv
        last = ca.SX(rate(x + third)) @ dv
        moved = x + (first + 2 * second + 2 * third + last) / 6
        return self.coordinates.restore(moved, 2)

    def _difference(self, x0: Matrix, x1: Matrix) -> Matrix:
        """Go towards x1 until nothing is left: each step cubes what the one before has left.

        A step is the mean of ``Y (x1 - x)`` at either end.
        """

        def step(x: Matrix) -> Matrix:
            ends = (self.coordinates.at(one).pseudoinverse_times(x1 - x) for one in (x, x1))
            return sum(ends, ca.SX(self.coordinates.nv, 1)) / 2

        dv = step(x0)
        for _ in range(3):
            dv = dv + step(self._integrate(x0, dv))
        return dv

    def validate(self, x: Any, v: Any = None, *, limits: bool = False) -> None:
        """Raise `StateError` if x, or v, does not fit: shape, finite values, phi(x) = 0."""
        state.problems_of(self._segments, x, v, self.nx, self.nv, limits=limits).raise_if_any(
            state.StateError
        )
        for row in np.atleast_2d(np.asarray(x, float)):
            self.coordinates.on_surface(row)

    # The rest is what a machine with this one joint has.
    nx, nv, nu = Machine.nx, Machine.nv, Machine.nu
    x_names, v_names, u_names = Machine.x_names, Machine.v_names, Machine.u_names
    x_slice, v_slice, u_slice = Machine.x_slice, Machine.v_slice, Machine.u_slice
    joint_index, joint = Machine.joint_index, Machine.joint
    input_limits, input_polytope = Machine.input_limits, Machine.input_polytope
    command_limits = Machine.command_limits
    neutral, random, rate_matrix = Machine.neutral, Machine.random, Machine.rate_matrix
    integrate, difference = Machine.integrate, Machine.difference
    normalise = Machine.normalise
    _segments, _compiled, _on_states = Machine._segments, Machine._compiled, Machine._on_states


@dataclass(frozen=True)
class RelativePose:
    """G_ab(x), or G_ab(x, t): the frame of body b seen from that of body a.

    One of the two may be "world". `pose` takes the casadi column x, and the time t where the pose
    moves by itself, and returns a casadi 4x4 that is a pose where phi(x) = 0.
    """

    a: str
    b: str
    pose: Callable[..., Matrix]

    @property
    def moves(self) -> bool:
        """Whether the pose depends on time by itself."""
        asked = [p for p in signature(self.pose).parameters.values() if p.default is p.empty]
        return len(asked) > 1

    def at(self, x: Matrix, t: Matrix) -> Matrix:
        """Return the pose (4x4)."""
        return ca.SX(self.pose(x, t) if self.moves else self.pose(x))


@dataclass(frozen=True, eq=False)
class BodySystem(System):
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
    frames, springs, dampers, interactions, fluid, gravity, geometry
        As in `Machine`: springs and dampers act between any two frames, relative to each other or
        to the world, with their `Moments`.
    potential : callable x -> scalar, optional
        Further potential energy, J.
    rayleigh : callable (x, v) -> scalar, optional
        Further dissipation function R, W: the force dR/dv resists.
    parameters : Parameters
        Tunable numbers, whose symbols stand in the functions and parts above.
    actuators : sequence
        On frames, or `JointForce` on the joint `q`, which stands for all velocities.
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
    actuators: Sequence[Any] = ()
    geometry: Sequence[Any] = ()
    interactions: Sequence[Any] = ()

    tendons: ClassVar[tuple] = ()
    collisions: ClassVar[tuple] = ()

    def __post_init__(self) -> None:
        for name in (
            *("poses", "bodies", "frames", "springs", "dampers", "interactions", "actuators"),
            "geometry",
        ):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "gravity", numbers(self.gravity, (3,), "`gravity`"))
        problems = Problems()
        check_types(self, problems)
        problems.raise_if_any()
        check_parts(self, problems)
        x, t = ca.SX.sym("x", self.nx), ca.SX.sym("t")
        for edge in self.poses:
            for name in (edge.a, edge.b):
                if name not in self.body_index:
                    problems.add(unknown("a relative pose names body", name, self.body_index))
            shape = edge.at(x, t).shape
            if shape != (4, 4):
                problems.add(
                    f"the pose of `{edge.b}` seen from `{edge.a}` must be 4x4, got {shape}"
                )
        problems.raise_if_any()

    @property
    def parent(self) -> tuple[int, ...]:
        """Index of the body from which each body's pose is given, -1 for the world."""
        reached = ways(self.bodies, self.body_index, self.poses)
        return tuple(reached[i].start for i in range(len(self.bodies)))

    @property
    def timed(self) -> bool:
        """Whether an interaction depends on time by itself."""
        return any(force.timed for force in self.interactions)

    @property
    def rheonomic(self) -> bool:
        """Whether a pose depends on time by itself."""
        return any(edge.moves for edge in self.poses)

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
