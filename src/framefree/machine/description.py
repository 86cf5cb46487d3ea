"""The description of a machine: its parts, their tree, and names for every coordinate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from framefree.machine.body import WORLD, Body
from framefree.machine.checks import check_parts, check_types, doubts
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError, Problems
from framefree.machine.tree import arrange, unknown
from framefree.machine.values import vector

GRAVITY = (0.0, 0.0, -9.81)
_SEQUENCES = (
    "bodies",
    "joints",
    "frames",
    "springs",
    "dampers",
    "tendons",
    "interactions",
    "loops",
    "couplings",
    "actuators",
    "geometry",
    "collisions",
    "keyframes",
    "remarks",
    "ignored",
)


@dataclass(frozen=True, eq=False)
class Description(Part):
    """The parts of a machine; `Machine`, which adds what can be done with them, documents it."""

    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    springs: tuple[Any, ...] = ()
    dampers: tuple[Any, ...] = ()
    loops: tuple[Any, ...] = ()
    couplings: tuple[Any, ...] = ()
    actuators: tuple[Any, ...] = ()
    gravity: Any = GRAVITY
    fluid: Any = None
    name: str = ""
    geometry: tuple[Any, ...] = ()
    keyframes: tuple[Any, ...] = ()
    remarks: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    tendons: tuple[Any, ...] = ()
    interactions: tuple[Any, ...] = ()
    collisions: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        problems = Problems()
        for name in _SEQUENCES:
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                shown = given if given is None else type(given).__name__
                raise MachineError(f"`{name}` must be a list, got {shown}")
            set_field(self, name, tuple(given))
        with problems.at():
            set_field(self, "gravity", vector(self.gravity, "`gravity`"))
        check_types(self, problems)
        problems.raise_if_any()
        check_parts(self, problems)
        bodies, joints = arrange(self.bodies, self.joints, self.frames, problems)
        problems.raise_if_any()
        set_field(self, "bodies", bodies)
        set_field(self, "joints", joints)

    # ------------------------------------------------------------------ the tree

    @cached_property
    def body_index(self) -> Mapping[str, int]:
        """Index of each body by name; -1 for "world"."""
        return MappingProxyType({WORLD: -1, **{body.name: i for i, body in enumerate(self.bodies)}})

    @cached_property
    def joint_index(self) -> Mapping[str, int]:
        """Index of each joint by name."""
        return MappingProxyType({joint.name: i for i, joint in enumerate(self.joints)})

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """Index of the parent body of body i, -1 for the world."""
        return tuple(self.body_index[joint.parent] for joint in self.joints)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the child bodies of body i."""
        below: list[list[int]] = [[] for _ in self.bodies]
        for i, parent in enumerate(self.parent):
            if parent >= 0:
                below[parent].append(i)
        return tuple(map(tuple, below))

    @cached_property
    def _frames(self) -> Mapping[str, Frame]:
        own = {name: Frame(name, name) for name in (WORLD, *(body.name for body in self.bodies))}
        return MappingProxyType({**own, **{frame.name: frame for frame in self.frames}})

    def frame(self, name: str) -> Frame:
        """Return the frame of this name; every body, and "world", has one of its own name."""
        if name not in self._frames:
            raise MachineError(unknown("frame", name, self._frames))
        return self._frames[name]

    def body(self, name: str) -> Body:
        """Return the body of this name."""
        if name not in self.body_index or name == WORLD:
            raise MachineError(unknown("body", name, [body.name for body in self.bodies]))
        return self.bodies[self.body_index[name]]

    def joint(self, name: str) -> Joint:
        """Return the joint of this name."""
        if name not in self.joint_index:
            raise MachineError(unknown("joint", name, self.joint_index))
        return self.joints[self.joint_index[name]]

    def joint_of(self, body: int) -> Joint:
        """Return the joint that moves the body of this index."""
        return self.joints[body]

    def tendon(self, name: str) -> Any:
        """Return the tendon of this name."""
        tendons = {tendon.name: tendon for tendon in self.tendons}
        if name not in tendons:
            raise MachineError(unknown("tendon", name, tendons))
        return tendons[name]

    @cached_property
    def timed(self) -> bool:
        """Whether an interaction or the fluid's flow depends on time by itself."""
        flowing = self.fluid is not None and self.fluid.timed
        return flowing or any(force.timed for force in self.interactions)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Doubtful properties of the machine that do not prevent its use, as messages."""
        return (*self.remarks, *doubts(self))

    def subtree(self, name: str) -> range:
        """Return the indices of a body and of all its descendants."""
        start = self.body_index[self.body(name).name]
        end = start + 1
        while end < len(self.bodies) and self.parent[end] >= start:
            end += 1
        return range(start, end)

    @cached_property
    def coupling_order(self) -> tuple[Any, ...]:
        """The couplings, each after those whose targets are its sources."""
        by_target = {coupling.target: coupling for coupling in self.couplings}
        order: dict[str, Any] = {}

        def visit(target: str) -> None:
            for source in by_target[target].sources:
                if source in by_target and source not in order:
                    visit(source)
            order[target] = by_target[target]

        for target in by_target:
            if target not in order:
                visit(target)
        return tuple(order.values())

    # ------------------------------------------------------------------ coordinates

    @cached_property
    def nx(self) -> int:
        """Number of configuration numbers."""
        return sum(joint.nx for joint in self.joints)

    @cached_property
    def nv(self) -> int:
        """Number of velocities."""
        return sum(joint.nv for joint in self.joints)

    @cached_property
    def nu(self) -> int:
        """Number of inputs."""
        return sum(actuator.nu for actuator in self.actuators)

    @cached_property
    def x_slice(self) -> Mapping[str, slice]:
        """Slice of x that holds the coordinates of each joint, by joint name."""
        return _slices((joint.name, joint.nx) for joint in self.joints)

    @cached_property
    def v_slice(self) -> Mapping[str, slice]:
        """Slice of v that holds the velocities of each joint, by joint name."""
        return _slices((joint.name, joint.nv) for joint in self.joints)

    @cached_property
    def u_slice(self) -> Mapping[str, slice]:
        """Slice of u that holds the inputs of each actuator, by actuator name."""
        return _slices((actuator.name, actuator.nu) for actuator in self.actuators)

    @cached_property
    def x_names(self) -> tuple[str, ...]:
        """A name for every configuration number."""
        return tuple(name for joint in self.joints for name in joint.x_names)

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        """A name for every velocity."""
        return tuple(name for joint in self.joints for name in joint.v_names)

    @cached_property
    def u_names(self) -> tuple[str, ...]:
        """A name for every input."""
        return tuple(name for actuator in self.actuators for name in actuator.u_names)


def _slices(sizes: Any) -> Mapping[str, slice]:
    slices, start = {}, 0
    for name, size in sizes:
        slices[name] = slice(start, start + size)
        start += size
    return MappingProxyType(slices)
