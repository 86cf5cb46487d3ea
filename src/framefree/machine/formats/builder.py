"""Links, joints and loops of a model file put together as a machine.

Links fixed to another link become part of its body and stay as frames of their own name; a link
that is fixed to the world does not move, so its mass is left out, as Pinocchio does. A joint whose
child is moved by another joint already closes a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.actuators import motors
from framefree.machine.body import WORLD, Body
from framefree.machine.collision import of_shapes
from framefree.machine.coupling import Coupling
from framefree.machine.formats.markup import Place, ReadError
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.poses import inverse
from framefree.machine.formats.records import (
    FrameRecord,
    JointRecord,
    LinkRecord,
    LoopClosureRecord,
)
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.joints import (
    Continuous,
    Fixed,
    Free,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.machine.loop import Loop
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems
from framefree.machine.shape import Shape
from framefree.machine.tree import unknown

_LOOPS = {Fixed: "weld", Revolute: "hinge", Continuous: "hinge", Prismatic: "slider"}
_LOOPS[Spherical] = "ball"
_FORCES = ("damping", "friction", "stiffness")


@dataclass
class _BodyInMaking:
    """A body in the making: its own link's place, its joint and its mass so far."""

    place: Place
    joint: Joint
    moments: Moments | None = None


class MachineBuilder:
    """Takes links, parents before children, then loops and frames; `machine` puts it together.

    Attributes
    ----------
    remarks, ignored : list of str
        What is doubtful, and what is left out.
    driven : collection of str
        Joints that the file says to have motors, if it says so.
    """

    def __init__(
        self,
        file: str,
        links: Iterable[LinkRecord],
        joints: Iterable[JointRecord],
        options: ReadOptions,
        problems: Problems,
        driven: Collection[str] = (),
    ) -> None:
        self.file = file
        self.driven = driven
        self.options = options
        self.problems = problems
        self.records = {joint.name: joint for joint in joints}
        self.remarks: list[str] = []
        self.ignored: list[str] = []
        self.loops: list[Loop] = []
        self._coupled: list[Coupling] = []
        self._frames: list[Frame] = []
        self._geometry: list[Shape] = []
        self._bodies: dict[str, _BodyInMaking] = {}
        self._roomless: dict[str, list[JointRecord]] = {}
        self._links: dict[str, list[LinkRecord]] = {}
        self._place: dict[str, tuple[str, np.ndarray]] = {}
        self._names = {link.name for link in links}
        self._joint_names = set(self.records)
        followers = {r.name for r in self.records.values() if r.mimics}
        self._mimics = followers | {m.joint for r in self.records.values() for m in r.mimics}

    # ------------------------------------------------------------------ what comes in

    def add(self, link: LinkRecord, joint: JointRecord | None, *, free: bool = False) -> None:
        """Take in one link, whose parent was added before; without a joint it is a root."""
        if joint is None and not free:
            self._place[link.name] = (WORLD, link.pose)
        elif joint is not None and isinstance(joint.kind, Fixed) and not self.options.keep_fixed:
            body, pose = self._place[joint.parent]
            self._place[link.name] = (body, pose @ joint.parent_pose @ inverse(joint.child_pose))
        else:
            self._new_body(link, joint)
        body, pose = self._place[link.name]
        self._add_mass(link, body, pose)
        if link.name not in (body, WORLD):
            self._frames.append(Frame(link.name, body, pose))
        self._draw(link, body)

    def couple(self, coupling: Coupling | None) -> None:
        """Let a joint follow others, before any link is added; None is what could not be read."""
        if coupling is not None:
            self._coupled.append(coupling)
            self._mimics |= {coupling.target, *coupling.sources}

    def stand_on_world(self) -> None:
        """Let joints have the world as their parent."""
        self._place[WORLD] = (WORLD, np.eye(4))

    def close(self, record: JointRecord) -> None:
        """Close a loop by a joint whose child is moved by another one already."""
        kind = _LOOPS.get(type(record.kind))
        forces = any(np.any(record.numbers.get(name, 0.0)) for name in _FORCES)
        if kind is None or forces or record.name in self._mimics:
            self._close_by_weld(record)
            return
        limits = [
            n for n in ("lower", "upper", "velocity_limit", "effort_limit") if self._set(record, n)
        ]
        if limits:
            words = ", ".join(f"`{name}`" for name in limits)
            self.ignored.append(f"{words} of joint `{record.name}`, which closes a loop")
        axis = getattr(record.kind, "axis", None) if kind in ("hinge", "slider") else None
        poses = (record.parent, record.parent_pose, record.child, record.child_pose)
        self.add_loop(LoopClosureRecord(record.name, kind, record.place, *poses, axis=axis))

    def add_loop(self, record: LoopClosureRecord) -> None:
        """Add a loop between two poses on links."""
        ends = []
        for link, pose, end in (
            (record.link_a, record.pose_a, "a"),
            (record.link_b, record.pose_b, "b"),
        ):
            body, offset = self._place[link]
            frame = Frame(self._unused(f"{record.name}_{end}"), body, offset @ pose)
            self._frames.append(frame)
            ends.append(frame.name)
        with self.problems.at(record.place.words):
            self.loops.append(Loop(record.name, record.kind, ends[0], ends[1], axis=record.axis))

    def add_frame(self, record: FrameRecord) -> None:
        """Add a named frame on a link."""
        body, offset = self._place[record.link]
        name = self._unused(record.name)
        if name != record.name:
            self.remarks.append(
                f"{record.place.words}: the frame is called `{name}`: `{record.name}` is taken"
            )
        self._frames.append(Frame(name, body, offset @ record.pose))

    def machine(
        self, name: str, gravity: Any = None, remarks: Any = (), ignored: Any = ()
    ) -> Machine:
        """Return the machine.

        Raises
        ------
        ReadError
            Listing everything that is wrong.
        """
        couplings = (*self._couplings(), *self._coupled)
        self._remark_on_inertia()
        bodies = self._made_bodies()
        self.problems.raise_if_any(ReadError)
        self._remark_on_limits()
        joints = [body.joint for body in self._bodies.values()]
        following = {coupling.target for coupling in couplings}
        moving = motors(self._with_motors(joints))
        settings = {} if gravity is None else {"gravity": gravity}
        with self.problems.at(self.file):
            return Machine(
                tuple(bodies),
                tuple(joints),
                frames=tuple(self._frames),
                loops=tuple(self.loops),
                couplings=couplings,
                actuators=tuple(motor for motor in moving if motor.name not in following),
                name=name,
                geometry=tuple(self._geometry),
                collisions=of_shapes(self._geometry),
                remarks=(*remarks, *self.remarks),
                ignored=(*ignored, *self.ignored),
                **settings,
            )
        raise ReadError(self.problems.messages)

    def _with_motors(self, joints: Sequence[Joint]) -> list[Joint]:
        """Return the joints that get motors; see `motors` of `framefree.read`."""
        wanted = self.options.motors
        able = [joint for joint in joints if joint.nv and not isinstance(joint.kind, Free)]
        if isinstance(wanted, bool):
            if not wanted:
                return []
            said = [joint for joint in able if joint.name in self.driven]
            return said if said and (self.loops or self.options.closed) else able
        names = [joint.name for joint in able]
        strange = [name for name in wanted if name not in names]
        if strange:
            raise ReadError(f"`motors`: {unknown('joint that moves', strange[0], names)}")
        return [joint for joint in able if joint.name in wanted]

    # ------------------------------------------------------------------ bodies and joints

    def _new_body(self, link: LinkRecord, record: JointRecord | None) -> None:
        name = link.name if link.name != WORLD else self._unused("world_link")
        if name != link.name:
            self.remarks.append(
                f"{link.place.words}: the body is called `{name}`: `{WORLD}` is the fixed world"
            )
        if record is None:
            base = "base" if "base" not in self._joint_names else f"{name}_base"
            joint = Joint(self._unused_joint(base), Free(), WORLD, name, link.pose)
        else:
            joint = self._joint(record, name)
        self._bodies[name] = _BodyInMaking(link.place, joint)
        self._place[link.name] = (name, np.eye(4))

    def _joint(self, record: JointRecord, child: str) -> Joint:
        parent, offset = self._place[record.parent]
        kind = record.kind
        if isinstance(kind, Continuous) and record.name in self._mimics:
            kind = Revolute(kind.axis)  # a multiple of an angle is no function of its cosine
        poses = (offset @ record.parent_pose, record.child_pose)
        with self.problems.at(record.place.words):
            return Joint(
                record.name, kind, parent, child, *poses,
                source=record.place.words, **self._numbers(record),
            )  # fmt: skip
        return Joint(record.name, Fixed(), parent, child)

    def _numbers(self, record: JointRecord) -> dict[str, Any]:
        """Return the joint's numbers; limits without room mean that nobody knows them."""
        numbers = dict(record.numbers)
        lower, upper = numbers.get("lower"), numbers.get("upper")
        if lower is not None and upper is not None and np.array_equal(lower, upper):
            self._roomless.setdefault("lower = upper", []).append(record)
            del numbers["lower"], numbers["upper"]
        for name in ("velocity_limit", "effort_limit"):
            if name in numbers and not np.any(numbers[name]):
                words = f"{name.removesuffix('_limit')} = 0"
                self._roomless.setdefault(words, []).append(record)
                del numbers[name]
        return numbers

    def _set(self, record: JointRecord, name: str) -> bool:
        return bool(np.isfinite(record.numbers.get(name, np.inf)).any())

    def _add_mass(self, link: LinkRecord, body: str, pose: np.ndarray) -> None:
        self._links.setdefault(body, []).append(link)
        if link.moments is None:
            return
        if body == WORLD:
            if link.moments.total > 0:
                self.ignored.append(
                    f"the mass of link `{link.name}`, {link.moments.total:g} kg: it is fixed to "
                    "the world"
                )
            return
        made, moved = self._bodies[body], link.moments.moved(pose)
        made.moments = moved if made.moments is None else made.moments + moved

    def _made_bodies(self) -> list[Body]:
        result = []
        for name, body in self._bodies.items():
            where = body.place.words
            with self.problems.at(where):
                result.append(Body(name, body.moments, strict=False, source=where))
        return result

    def _draw(self, link: LinkRecord, body: str) -> None:
        renamed = link.name == WORLD and body != WORLD
        self._geometry += [replace(s, frame=body) if renamed else s for s in link.shapes]

    def _close_by_weld(self, record: JointRecord) -> None:
        """Let the joint move a body without mass, and weld that to the joint's child."""
        name = self._unused(f"{record.child}_{record.name}")
        self._bodies[name] = _BodyInMaking(record.place, self._joint(record, name))
        self._place[name] = (name, np.eye(4))
        ends = (name, np.eye(4), record.child, np.eye(4))
        self.add_loop(LoopClosureRecord(record.name, "weld", record.place, *ends))

    # ------------------------------------------------------------------ couplings

    def _couplings(self) -> tuple[Coupling, ...]:
        """Return the mimic joints' couplings, chains of them resolved to their source."""
        followers = [(r, m) for r in self.records.values() for m in r.mimics]
        if self.options.mimic == "independent":
            self.ignored += [f"<mimic> of joint `{r.name}`, on request" for r, _ in followers]
            return ()
        law = {_coordinate(r.name, m.part): m for r, m in followers}
        made = [self._coupling(r, _coordinate(r.name, m.part), law) for r, m in followers]
        return tuple(coupling for coupling in made if coupling is not None)

    def _coupling(self, record: JointRecord, target: str, law: dict[str, Any]) -> Coupling | None:
        first = law[target]
        source = _coordinate(first.joint, first.other_part)
        multiplier, offset, seen = first.multiplier, first.offset, {target}
        while source in law and source not in seen:
            seen.add(source)
            further = law[source]
            source = _coordinate(further.joint, further.other_part)
            offset, multiplier = (
                offset + multiplier * further.offset,
                multiplier * further.multiplier,
            )
        if source in seen:
            record.place.problem("<mimic> follows itself in a circle")
            return None
        movable = self._coordinates
        if source not in movable or target not in movable:
            message = f"<mimic>: {unknown('joint with one coordinate', source, movable - seen)}"
            if self.options.strict:
                record.place.problem(message)
            else:
                self.remarks.append(
                    f"{record.place.words}: {message}; the joint is read as independent"
                )
            return None
        name = f"{target.replace('.', '_')}_mimic"
        return Coupling.mimic(name, target, source, multiplier, offset)

    @cached_property
    def _coordinates(self) -> set[str]:
        """Coordinates that may follow others: those that are plain numbers."""
        result = set()
        for name, record in self.records.items():
            if isinstance(record.kind, Continuous):
                result.add(name)  # becomes Revolute
            elif record.kind.vector:
                result |= {_coordinate(name, part) for part in record.kind.x_names}
        return result

    # ------------------------------------------------------------------ doubts

    def _remark_on_inertia(self) -> None:
        """Note links whose inertia no body can have; with `strict` that is an error."""
        for name, links in self._links.items():
            body = self._bodies.get(name)
            for link in links:
                if link.doubt and self.options.strict:
                    link.place.problem(link.doubt)
                elif link.doubt and not _says_so_itself(body, link):
                    self.remarks.append(f"{link.place.words}: {link.doubt}")

    def _remark_on_limits(self) -> None:
        """Note limits that leave no room to move and were read as none."""
        for words, records in self._roomless.items():
            first = records[0]
            more = f" and {len(records) - 1} more joints" if len(records) > 1 else ""
            self.remarks.append(
                f"{first.place.words}{more}: the limits leave no room, {words}; read as no limits"
            )

    def _unused(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name

    def _unused_joint(self, name: str) -> str:
        while name in self._joint_names:
            name += "_"
        self._joint_names.add(name)
        return name


def _coordinate(joint: str, part: str) -> str:
    return f"{joint}.{part}" if part else joint


def _says_so_itself(body: _BodyInMaking | None, link: LinkRecord) -> bool:
    """Whether the body will report this link's inertia, because it has no other mass."""
    if body is None or body.moments is None or link.moments is None:
        return False
    return body.moments == link.moments and bool(body.moments.problems())
