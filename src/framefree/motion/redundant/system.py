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
from framefree.machine import WORLD, Body, Frame, Joint, Machine, MachineError, Problems
from framefree.machine.checks import check_parts, check_types
from framefree.machine.joints import Prismatic
from framefree.machine.parameters import Parameters
from framefree.machine.state import numeric
from framefree.machine.tree import unknown
from framefree.machine.values import constant_pose, numbers
from framefree.motion.redundant.coordinates import Coordinates
from framefree.motion.spatial import Matrix


class System:
    """What systems in a user's own coordinates share with a `Machine`.

    They can be simulated, actuated and controlled like one. Every velocity counts as a joint of its
    own name: a motor `JointForce("motor", "v0")` pushes it.
    """

    name: str
    coordinates: Coordinates
    parameters: Parameters
    actuators: Sequence[Any]

    # What a machine has and such a system does not.
    joints: ClassVar[tuple] = ()
    loops: ClassVar[tuple] = ()
    couplings: ClassVar[tuple] = ()
    geometry: Sequence[Any] = ()
    keyframes: ClassVar[tuple] = ()
    ignored: ClassVar[tuple] = ()
    closed: ClassVar[bool] = False

    @property
    def tree(self) -> "System":
        """The system itself: it has no loops to leave out."""
        return self

    @property
    def numeric(self) -> "System":
        """The system itself; its tunable numbers stay symbols."""
        return self

    @property
    def nx(self) -> int:
        """Number of coordinates."""
        return self.coordinates.nx

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.coordinates.nv

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return sum(actuator.nu for actuator in self.actuators)

    @property
    def x_names(self) -> tuple[str, ...]:
        """A name for every coordinate."""
        return tuple(self.coordinates.x_names)

    @property
    def v_names(self) -> tuple[str, ...]:
        """A name for every velocity."""
        return tuple(self.coordinates.v_names)

    @property
    def u_names(self) -> tuple[str, ...]:
        """A name for every input."""
        return tuple(name for actuator in self.actuators for name in actuator.u_names)

    @cached_property
    def x_slice(self) -> Mapping[str, slice]:
        """Where the coordinate of a velocity's name is in x; empty where there is none."""
        return MappingProxyType(
            {
                name: slice(k, k + 1)
                for name in self.v_names
                for k in [self.x_names.index(name) if name in self.x_names else self.nx]
            }
        )

    @cached_property
    def v_slice(self) -> Mapping[str, slice]:
        """Where each velocity is in v."""
        return MappingProxyType({name: slice(k, k + 1) for k, name in enumerate(self.v_names)})

    @cached_property
    def u_slice(self) -> Mapping[str, slice]:
        """Where each actuator's inputs are in u, by actuator name."""
        slices, start = {}, 0
        for actuator in self.actuators:
            slices[actuator.name] = slice(start, start + actuator.nu)
            start += actuator.nu
        return MappingProxyType(slices)

    def joint(self, name: str) -> Joint:
        """Return a velocity as a joint without limits."""
        if name not in self.v_slice:
            raise MachineError(unknown("velocity", name, self.v_names))
        return Joint(name, Prismatic("x"), WORLD, name)

    input_limits = Machine.input_limits
    input_polytope = Machine.input_polytope

    # ------------------------------------------------------------------ states

    def neutral(self) -> np.ndarray:
        """Return a configuration (nx,) with phi(x) = 0."""
        return np.array(self.coordinates.start)

    def random(self, rng: np.random.Generator, batch: int | None = None) -> np.ndarray:
        """Return a random configuration (nx,), or (batch, nx), with phi(x) = 0."""
        if batch is None:
            return self.coordinates.random(rng)
        return np.array([self.coordinates.random(rng) for _ in range(batch)]).reshape(-1, self.nx)

    def rate_matrix(self, x: Any) -> Any:
        """A(x) (nx x nv) of casadi columns: dx/dt = A v."""
        return ca.SX(self.coordinates.rate(x))

    def integrate(self, x: Any, dv: Any) -> Any:
        """Move x by dv along A, and back onto phi = 0: casadi columns, or arrays, one or many."""
        return self._on_states("integrate", self._integrate, (self.nx, self.nv), x, dv)

    def difference(self, x0: Any, x1: Any) -> Any:
        """Return dv with integrate(x0, dv) = x1, to second order in the distance."""
        return self._on_states("difference", self._difference, (self.nx, self.nx), x0, x1)

    def normalise(self, x: Any) -> Any:
        """Bring x back onto phi = 0."""
        restore = self.coordinates.restore
        return self._on_states("normalise", restore, (self.nx,), x)

    def validate(self, x: Any, v: Any = None, *, limits: bool = False) -> None:
        """Raise `StateError` if x, or v, does not fit: shape, finite values, phi(x) = 0."""
        for row in np.atleast_2d(np.asarray(x, float)):
            self.coordinates._validate(row)
        if v is not None and np.shape(v)[-1:] != (self.nv,):
            raise MachineError(f"`v` must have {self.nv} entries, got shape {np.shape(v)}")

    def with_parameters(self, values: Any = None) -> "System":
        """Return the system, whose tunable numbers stay symbols, if these values fit them."""
        self.parameters.values(values)
        return self

    def _integrate(self, x: Matrix, dv: Matrix) -> Matrix:
        """One step of the classical Runge-Kutta method over unit time, then onto phi = 0."""
        first = self.rate_matrix(x) @ dv
        second = self.rate_matrix(x + first / 2) @ dv
        third = self.rate_matrix(x + second / 2) @ dv
        last = self.rate_matrix(x + third) @ dv
        moved = x + (first + 2 * second + 2 * third + last) / 6
        return self.coordinates.restore(moved, 2)

    def _difference(self, x0: Matrix, x1: Matrix) -> Matrix:
        """Half of ``Y (x1 - x0)`` at either end: its error is of third order."""
        return sum(self.coordinates.at(x).pseudoinverse_times(x1 - x0) for x in (x0, x1)) / 2

    def _on_states(self, name: str, function: Callable, sizes: tuple[int, ...], *x: Any) -> Any:
        if any(isinstance(value, ca.SX | ca.DM | ca.MX) for value in x):
            return function(*x)
        if name not in self._compiled:
            self._compiled[name] = numeric(function, sizes)
        return self._compiled[name](*x)

    @cached_property
    def _compiled(self) -> dict[str, Callable]:
        return {}


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
    frames, springs, dampers, fluid, gravity, geometry
        As in `Machine`: springs and dampers act between any two frames, relative to each other or
        to the world, with their `Moments`.
    potential : callable x -> scalar, optional
        Further potential energy, J.
    rayleigh : callable (x, v) -> scalar, optional
        Further dissipation function R, W: the force dR/dv resists.
    parameters : Parameters
        Tunable numbers, whose symbols stand in the functions and parts above.
    actuators : sequence
        On frames, or `JointForce` on the name of a velocity.
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

    def __post_init__(self) -> None:
        for name in ("poses", "bodies", "frames", "springs", "dampers", "actuators", "geometry"):
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
