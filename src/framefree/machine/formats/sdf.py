"""Reading SDFormat (1.4 to 1.12): models, with loops, put together as a machine.

A model floats in the world unless it is static or a joint holds it there. Where several models, or
models within models, are put together, names are those of SDFormat: `gripper::finger`.
"""

from __future__ import annotations

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.formats.builder import MachineBuilder
from framefree.machine.formats.markup import Element, Place, ReadError
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.records import FrameRecord, JointRecord, LinkRecord
from framefree.machine.formats.sdf_include import Includer
from framefree.machine.formats.sdf_joints import joint_of
from framefree.machine.formats.sdf_links import LinkReader
from framefree.machine.formats.sdf_scope import Scope
from framefree.machine.formats.source import Source
from framefree.machine.formats.unread import unread
from framefree.machine.joints import Fixed
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems

VERSIONS = tuple(f"1.{minor}" for minor in range(4, 13))
DRAWN = "only drawn"
CONTACT = "contact is not modelled"
GAZEBO = "settings of the simulator"
MOVES_NOTHING: dict[str, str | None] = {
    "visual/*": DRAWN,
    "collision/*": CONTACT,
    "link/sensor": "sensors",
    "link/light": DRAWN,
    "link/particle_emitter": DRAWN,
    "link/projector": DRAWN,
    "link/battery": "batteries",
    "link/audio_source": "sound",
    "link/audio_sink": "sound",
    "link/self_collide": CONTACT,
    "link/enable_wind": "there is no wind",
    "link/must_be_base_link": GAZEBO,
    "joint/sensor": "sensors",
    "joint/physics": GAZEBO,
    "limit/stiffness": "limits of joints are not stops",
    "limit/dissipation": "limits of joints are not stops",
    "axis/initial_position": GAZEBO,
    "model/self_collide": CONTACT,
    "model/allow_auto_disable": GAZEBO,
    "model/enable_wind": "there is no wind",
    "model/plugin": "programs",
    "model/gripper": CONTACT,
    "world/plugin": "programs",
    "world@name": "a label",
    "world/physics": GAZEBO,
    "physics/*": GAZEBO,
    "world/scene": DRAWN,
    "world/light": DRAWN,
    "world/gui": DRAWN,
    "world/audio": "sound",
    "world/magnetic_field": "sensors",
    "world/spherical_coordinates": "where on the earth it is",
    "world/atmosphere": "there is no air",
    "world/wind": "there is no wind",
    "world/road": DRAWN,
    "world/population": None,
    "world/actor": DRAWN,
    "world/state": GAZEBO,
    "sdf/light": DRAWN,
    "sdf/actor": DRAWN,
    "include/plugin": "programs",
    "joint type=fixed/axis": "the joint is fixed",
    "joint type=ball/axis": "a ball has no axis",
}
"""What of an SDFormat file is known to move nothing, see `unread`."""


def read_sdf(source: Source, root: Element, options: ReadOptions) -> Machine:
    """Return the machine that an <sdf> element describes."""
    problems = Problems()
    reader = _SdfReader(source, root, options, problems)
    try:
        reader.read()
    except RecursionError:
        raise ReadError(
            f"{source.name}: poses are given relative to one another over too many frames"
        ) from None
    reader.list_unread()
    problems.raise_if_any(ReadError)
    machine = reader.machine()
    problems.raise_if_any(ReadError)
    return machine


class _SdfReader:
    def __init__(
        self, source: Source, root: Element, options: ReadOptions, problems: Problems
    ) -> None:
        self.source = source
        self.root = root
        self.options = options
        self.problems = problems
        self.includer = Includer(source, problems)
        self.drawn = LinkReader(self.includer, problems)
        self.gravity: tuple | None = None
        self.name = ""
        self.scopes: list[Scope] = []
        self.joints: list[JointRecord] = []
        self.frames: list[FrameRecord] = []
        self.links: dict[str, LinkRecord] = {}
        self.remarks: list[str] = []
        self.ignored: list[str] = []

    def read(self) -> None:
        """Read models, then links and joints of them all."""
        place = Place(self.source.name, self.root, "<sdf>", self.problems)
        version = (self.root.get("version") or "").strip()
        if version not in VERSIONS:
            words = f"{VERSIONS[0]} to {VERSIONS[-1]}"
            place.problem(f"`version` must be one of {words}, got {version[:60]!r}")
            return
        world = self.root.first("world")
        holder = place if world is None else place.inside(world)
        top = Scope.of_world(holder, version)
        if world is not None:
            self._world(holder)
        self.scopes = self.includer.models(holder, top)
        if not self.scopes:
            place.problem("<sdf> needs a <model>, or a <world> with models")
            return
        single = len(self.scopes) == 1
        self.name = self.scopes[0].name if single else self.name
        for scope in () if single else self.scopes:
            scope.prefix = f"{scope.name}::"
        self.scopes = [scope for one in self.scopes for scope in one.with_nested()]
        for scope in (top, *self.scopes):
            scope.check()
            self._scope(scope)
            self.frames += scope.frame_records()

    def _world(self, world: Place) -> None:
        self.name = world.element.get("name") or ""
        gravity = world.element.first("gravity")
        if gravity is not None:
            self.gravity = world.inside(gravity).content_numbers(3)
        physics = world.element.first("physics")
        old = None if physics is None else physics.first("gravity")
        if old is not None and gravity is None:
            self.gravity = world.inside(old).content_numbers(3)

    def _scope(self, scope: Scope) -> None:
        for name, element in scope.links.items():
            place = scope.place_of(element)
            made = self.drawn.link(scope, name, place)
            if made is not None:
                self.links[made.name] = made
        for element in scope.joints.values():
            place = scope.place_of(element)
            made_joint = joint_of(scope, place)
            if made_joint is not None:
                self.joints.append(made_joint)

    def list_unread(self) -> None:
        """Note what nobody asked for, of all documents."""
        for root in (self.root, *self.includer.documents):
            for joint in _all_joints(root):
                joint.tag = f"joint type={joint.attributes.get('type')}"
            file = self.source.name if root is self.root else self.includer.names[id(root)]
            rest = unread(file, root, _by_joint_type(MOVES_NOTHING))
            if self.options.strict:
                self.problems.extend(rest.unknown)
            self.remarks += rest.unknown
            self.ignored += rest.known
        self.remarks += self.drawn.remarks
        self.ignored += self.drawn.ignored()

    # ------------------------------------------------------------------ putting together

    def machine(self) -> Machine:
        """Return the machine: a spanning tree of the joints, the others as loops."""
        base = self.options.base
        builder = MachineBuilder(
            self.source.name, self.links.values(), self.joints, self.options, self.problems
        )
        builder.stand_on_world()
        joints = []
        for joint in self.joints:
            if joint.child in self.drawn.static and joint.parent in {WORLD, *self.drawn.static}:
                builder.ignored.append(f"joint `{joint.name}` of a static model")
            elif base == "free" and _holds(joint):
                builder.ignored.append(f"joint `{joint.name}`, which holds the root: base is free")
            else:
                joints.append(joint)
        tree, closing = self._tree(joints)
        for link, joint in tree:
            fixed = link.name in self.drawn.static
            builder.add(link, joint, free=joint is None and not fixed and base != "fixed")
        for joint in closing:
            builder.close(joint)
        for frame in self.frames:
            builder.add_frame(frame)
        gravity = None if self.gravity is None else np.array(self.gravity)
        return builder.machine(self.name, gravity, self.remarks, self.ignored)

    def _tree(
        self, joints: list[JointRecord]
    ) -> tuple[list[tuple[LinkRecord, JointRecord | None]], list[JointRecord]]:
        """Links with the joint that moves each, parents first, and the joints that close loops.

        Trees grow from the world and from links that are no child; a link that is reached from
        none of them, in a ring of joints, is a root of its own.
        """
        below: dict[str, list[JointRecord]] = {}
        for joint in joints:
            below.setdefault(joint.parent, []).append(joint)
        children = {joint.child for joint in joints}
        order: list[tuple[LinkRecord, JointRecord | None]] = []
        used: set[str] = set()
        reached = {WORLD}
        starts = [WORLD, *(n for n in self.links if n not in children), *self.links]
        for start in starts:
            if start in self.links and start not in reached:
                reached.add(start)
                order.append((self.links[start], None))
            elif start != WORLD:
                continue
            stack = list(reversed(below.get(start, [])))
            while stack:
                joint = stack.pop()
                if joint.child in reached:
                    continue
                reached.add(joint.child)
                used.add(joint.name)
                order.append((self.links[joint.child], joint))
                stack.extend(reversed(below.get(joint.child, [])))
        return order, [joint for joint in joints if joint.name not in used]


def _holds(joint: JointRecord) -> bool:
    return joint.parent == WORLD and isinstance(joint.kind, Fixed)


def _all_joints(root: Element) -> list[Element]:
    found, stack = [], [root]
    while stack:
        element = stack.pop()
        if element.tag == "joint":
            found.append(element)
        elif element.tag in ("sdf", "world", "model"):
            stack.extend(element.children)
    return found


def _by_joint_type(table: dict[str, str | None]) -> dict[str, str | None]:
    """Return the table with the entries of <joint> for each type that it may have."""
    types = ("fixed", "revolute", "continuous", "prismatic", "ball", "universal", "revolute2")
    common = {key: why for key, why in table.items() if key.startswith(("joint/", "joint@"))}
    more = {
        f"joint type={type_}{key.removeprefix('joint')}": why
        for key, why in common.items()
        for type_ in (*types, "screw", "gearbox")
    }
    return {**table, **more}
