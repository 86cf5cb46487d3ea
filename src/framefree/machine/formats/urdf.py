"""Reading URDF: links and joints put together as a machine.

The root link is the world (`base` "fixed" or None), or floats in it (`base` "free"). A link that is
fixed to the world does not move, so its mass is left out, as Pinocchio does; `ignored` says so.
Links fixed to a moving link become part of its body and stay as frames of their own name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.actuators import motors
from framefree.machine.body import WORLD, Body
from framefree.machine.coupling import Coupling
from framefree.machine.formats.markup import Element, Place, ReadError
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.source import Source
from framefree.machine.formats.urdf_elements import JointRecord, LinkRecord, RobotElements
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.joints import Continuous, Fixed, Free, Planar, Prismatic, Revolute
from framefree.machine.machine import Machine
from framefree.machine.problems import Problems, known_names
from framefree.machine.shape import Shape
from framefree.machine.tree import unknown

_KINDS = {
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "planar": Planar,
}


def read_urdf(source: Source, robot: Element, options: ReadOptions) -> Machine:
    """Return the machine that a <robot> element describes."""
    problems = Problems()
    elements = RobotElements(source, robot, problems)
    order = _tree(elements, problems)
    problems.raise_if_any(ReadError)
    build = _Build(source.name, elements, options, problems)
    for link, joint in order:
        build.add(link, joint)
    couplings = build.couplings()
    build.remark_on_inertia()
    problems.raise_if_any(ReadError)
    build.remark_on_limits()
    driven = {coupling.target for coupling in couplings}
    free = [j for j in build.joints if j.name not in driven and not isinstance(j.kind, Free)]
    with problems.at(source.name):
        return Machine(
            tuple(build.bodies),
            tuple(build.joints),
            frames=tuple(build.frames),
            couplings=couplings,
            actuators=motors(free) if options.motors else (),
            name=elements.name,
            geometry=tuple(build.geometry),
            remarks=(*elements.remarks, *build.remarks),
            ignored=(*elements.ignored, *build.ignored),
        )
    raise ReadError(problems.messages)


def _tree(
    elements: RobotElements, problems: Problems
) -> list[tuple[LinkRecord, JointRecord | None]]:
    """Links with the joint that moves each, the root (without) first, parents before children."""
    links: dict[str, LinkRecord] = {}
    for link in elements.links:
        if link.name in links:
            line = links[link.name].place.element.line
            link.place.problem(f"this name is taken by the link at line {line}")
        links.setdefault(link.name, link)
    taken: dict[str, JointRecord] = {}
    moved_by: dict[str, JointRecord] = {}
    for joint in elements.joints:
        if joint.name in taken:
            line = taken[joint.name].place.element.line
            joint.place.problem(f"this name is taken by the joint at line {line}")
        taken.setdefault(joint.name, joint)
        for end in ("parent", "child"):
            if getattr(joint, end) not in links:
                joint.place.problem(unknown(f"{end} link", getattr(joint, end), links))
        if joint.child in moved_by:
            other = moved_by[joint.child].name
            joint.place.problem(
                f"link `{joint.child}` is the child of joint `{other}` already; URDF describes "
                "trees, close a loop in Python with a Loop"
            )
        moved_by.setdefault(joint.child, joint)
    if problems.messages:
        return []
    return _depth_first(links, moved_by, elements, problems)


def _depth_first(
    links: dict[str, LinkRecord],
    moved_by: dict[str, JointRecord],
    elements: RobotElements,
    problems: Problems,
) -> list[tuple[LinkRecord, JointRecord | None]]:
    roots = [name for name in links if name not in moved_by]
    if len(roots) != 1:
        words = "the joints close a cycle" if links else "there are no links"
        problems.add(
            f"{elements.source.name}: exactly one link must have no parent joint, the root; "
            + (f"got {known_names(roots)}" if roots else words)
        )
        return []
    children: dict[str, list[JointRecord]] = {}
    for joint in moved_by.values():
        children.setdefault(joint.parent, []).append(joint)
    order, stack = [], [roots[0]]
    while stack:
        name = stack.pop()
        order.append((links[name], moved_by.get(name)))
        stack.extend(joint.child for joint in reversed(children.get(name, [])))
    reached = {link.name for link, _ in order}
    for name in links:
        if name not in reached:
            links[name].place.problem(
                f"the link is not connected to the root link `{roots[0]}`: its joints close a cycle"
            )
    return order


@dataclass
class _UrdfBody:
    """A body in the making: its own link's place, its joint and its mass so far."""

    name: str
    place: Place
    joint: Joint
    moments: Moments | None = None


class _Build:
    """Turns links, parents before children, into bodies, joints and frames."""

    def __init__(
        self, file: str, elements: RobotElements, options: ReadOptions, problems: Problems
    ) -> None:
        self.file = file
        self.options = options
        self.problems = problems
        self.records = {joint.name: joint for joint in elements.joints}
        self.frames: list[Frame] = []
        self.geometry: list[Shape] = []
        self.remarks: list[str] = []
        self.ignored: list[str] = []
        self._bodies: dict[str, _UrdfBody] = {}
        self._roomless: dict[str, list[JointRecord]] = {}
        self._links: dict[str, list[LinkRecord]] = {}
        self._place: dict[str, tuple[str, np.ndarray]] = {}
        self._names = {link.name for link in elements.links}
        self._mimics = {j.name for j in elements.joints if j.mimic} | {
            j.mimic[0] for j in elements.joints if j.mimic
        }

    @property
    def bodies(self) -> list[Body]:
        """All valid bodies; errors go to the problems."""
        result = []
        for name, body in self._bodies.items():
            where = body.place.words
            with self.problems.at(where):
                result.append(Body(name, body.moments, strict=False, source=where))
        return result

    @property
    def joints(self) -> list[Joint]:
        """One joint for each body."""
        return [body.joint for body in self._bodies.values()]

    def add(self, link: LinkRecord, joint: JointRecord | None) -> None:
        """Take in one link, whose parent was added before."""
        if joint is None and self.options.base != "free":
            self._place[link.name] = (WORLD, np.eye(4))
        elif joint is not None and joint.type == "fixed" and not self.options.keep_fixed:
            body, pose = self._place[joint.parent]
            self._place[link.name] = (body, pose @ joint.origin)
        else:
            self._new_body(link, joint)
        body, pose = self._place[link.name]
        self._add_mass(link, body, pose)
        if link.name not in (body, WORLD):
            self.frames.append(Frame(link.name, body, pose))
        self._draw(link, body)

    def couplings(self) -> tuple[Coupling, ...]:
        """Return the mimic joints' couplings, chains of them resolved to their source."""
        if self.options.mimic == "independent":
            return ()
        result = []
        for record in self.records.values():
            if record.mimic and record.type != "fixed":
                coupling = self._coupling(record)
                if coupling is not None:
                    result.append(coupling)
        return tuple(result)

    def remark_on_inertia(self) -> None:
        """Note links whose inertia no body can have; with `strict` that is an error."""
        for name, links in self._links.items():
            body = self._bodies.get(name)
            for link in links:
                if link.doubt and self.options.strict:
                    link.place.problem(link.doubt)
                elif link.doubt and not _says_so_itself(body, link):
                    self.remarks.append(f"{link.place.words}: {link.doubt}")

    def remark_on_limits(self) -> None:
        """Note limits that leave no room to move and were read as none."""
        for words, records in self._roomless.items():
            first = records[0]
            more = f" and {len(records) - 1} more joints" if len(records) > 1 else ""
            self.remarks.append(
                f"{first.place.words}{more}: the limits leave no room, {words}; read as no limits"
            )

    # ------------------------------------------------------------------ pieces

    def _new_body(self, link: LinkRecord, record: JointRecord | None) -> None:
        name = link.name if link.name != WORLD else self._unused("world_link")
        if name != link.name:
            self.remarks.append(
                f"{link.place.words}: the body is called `{name}`: `{WORLD}` is the fixed world"
            )
        if record is None:
            joint = Joint(self._unused_joint("base"), Free(), WORLD, name)
        else:
            parent, pose = self._place[record.parent]
            made = self._joint(record, parent, name, pose @ record.origin)
            if made is None:
                made = Joint(record.name, Fixed(), parent, name)
            joint = made
        self._bodies[name] = _UrdfBody(name, link.place, joint)
        self._place[link.name] = (name, np.eye(4))

    def _joint(
        self, record: JointRecord, parent: str, child: str, pose: np.ndarray
    ) -> Joint | None:
        if record.type == "fixed":
            return Joint(record.name, Fixed(), parent, child, pose, source=record.place.words)
        kind = record.type
        if kind == "continuous" and record.name in self._mimics:
            kind = "revolute"  # a multiple of an angle is no function of its cosine and sine
        made = Free() if kind == "floating" else _KINDS[kind](record.axis)
        lower, upper = record.lower, record.upper
        if lower == upper:
            self._roomless.setdefault("lower = upper", []).append(record)
            lower, upper = -np.inf, np.inf
        with self.problems.at(record.place.words):
            return Joint(
                record.name,
                made,
                parent,
                child,
                pose,
                lower=lower,
                upper=upper,
                velocity_limit=self._largest(record, "velocity"),
                effort_limit=self._largest(record, "effort"),
                damping=record.damping,
                friction=record.friction,
                source=record.place.words,
            )
        return None

    def _largest(self, record: JointRecord, name: str) -> float:
        """Return the largest speed or effort; a zero in the file means that it is unknown."""
        limit = getattr(record, name)
        if limit == 0.0:
            self._roomless.setdefault(f"{name} = 0", []).append(record)
            return np.inf
        return limit

    def _add_mass(self, link: LinkRecord, body: str, pose: np.ndarray) -> None:
        self._links.setdefault(body, []).append(link)
        if body == WORLD:
            if link.moments is not None and link.moments.total > 0:
                self.ignored.append(
                    f"the mass of link `{link.name}`, {link.moments.total:g} kg: it is fixed to "
                    "the world"
                )
            return
        made = self._bodies[body]
        if link.moments is not None:
            moved = link.moments.moved(pose)
            made.moments = moved if made.moments is None else made.moments + moved

    def _draw(self, link: LinkRecord, body: str) -> None:
        for shape in link.shapes:
            if link.name == WORLD and body != WORLD:
                shape = Shape(
                    body, shape.kind, shape.size, shape.pose, shape.file, shape.color, shape.role
                )
            self.geometry.append(shape)

    def _coupling(self, record: JointRecord) -> Coupling | None:
        name, multiplier, offset = record.mimic or ("", 1.0, 0.0)
        seen = {record.name}
        while name in self.records and self.records[name].mimic and name not in seen:
            seen.add(name)
            name, factor, shift = self.records[name].mimic or ("", 1.0, 0.0)
            offset, multiplier = offset + multiplier * shift, multiplier * factor
        if name in seen:
            record.place.problem("<mimic> follows itself in a circle")
            return None
        source = self.records.get(name)
        movable = {
            n for n, r in self.records.items() if r.type in ("revolute", "continuous", "prismatic")
        }
        if source is None or name not in movable or record.name not in movable:
            message = f"<mimic>: {unknown('joint with one coordinate', name, movable - seen)}"
            if self.options.strict:
                record.place.problem(message)
            else:
                self.remarks.append(
                    f"{record.place.words}: {message}; the joint is read as independent"
                )
            return None
        return Coupling.mimic(f"{record.name}_mimic", record.name, name, multiplier, offset)

    def _unused(self, name: str) -> str:
        while name in self._names:
            name += "_"
        return name

    def _unused_joint(self, name: str) -> str:
        while name in self.records:
            name += "_"
        return name


def _says_so_itself(body: _UrdfBody | None, link: LinkRecord) -> bool:
    """Whether the body will report this link's inertia, because it has no other mass."""
    if body is None or body.moments is None or link.moments is None:
        return False
    return body.moments == link.moments and bool(body.moments.problems())
