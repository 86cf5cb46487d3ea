"""Links and joints of a URDF file as records: every element checked, nothing put together yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import origin_of
from framefree.machine.formats.source import Source
from framefree.machine.formats.urdf_shapes import ShapeReader
from framefree.machine.problems import MachineError, Problems
from framefree.machine.shape import Shape

UNLIMITED = 1e16
"""Limits from this size on are none, as in SDF: the format has no word for infinity."""

JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "floating", "planar")
_KNOWN = {
    "robot": {"link", "joint", "material"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
_REFUSED = {
    "loop_joint": "a closed loop is not part of URDF; add it with a Loop in Python, or use MJCF",
    "drake:linear_spring_damper": "add a Spring and a Damper in Python instead",
    "drake:linear_bushing_rpy": "add a Spring and a Damper in Python instead",
    "drake:ball_constraint": "add a Loop in Python instead",
    "drake:joint": "URDF has no such joint; build it in Python, or use MJCF",
}


@dataclass(frozen=True)
class LinkRecord:
    """A link: its mass, None if it has none, what is wrong with it, and the link's shapes."""

    name: str
    place: Place
    moments: Moments | None
    doubt: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class JointRecord:
    """A joint as the file says it."""

    name: str
    type: str
    place: Place
    parent: str
    child: str
    origin: np.ndarray
    axis: tuple[float, float, float]
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None


class RobotElements:
    """All links and joints of a <robot>, with what was left out.

    Attributes
    ----------
    links, joints : list of LinkRecord, JointRecord
    ignored : list of str
        What was left out and does not move anything.
    """

    def __init__(self, source: Source, robot: Element, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.ignored: list[str] = []
        self._drawn = ShapeReader(source, robot)
        place = Place(source.name, robot, "<robot>", problems)
        self.name = place.text("name") or ""
        self._skipped: Counter[str] = Counter()
        self._first_line: dict[str, int] = {}
        self._note_skipped(place, "robot")
        self.links = [self._link(e) for e in robot.all("link")]
        joints = [self._joint(e) for e in robot.all("joint")]
        self.joints = [joint for joint in joints if joint is not None]
        self._summarise()

    @property
    def remarks(self) -> list[str]:
        """Errors of the file that were skipped in reading it, as messages."""
        return self._drawn.remarks

    # ------------------------------------------------------------------ links

    def _link(self, element: Element) -> LinkRecord:
        name, place = self._named(element)
        self._note_skipped(place, "link")
        moments, doubt = self._moments(place)
        return LinkRecord(name, place, moments, doubt, self._drawn.shapes(place, name))

    def _moments(self, link: Place) -> tuple[Moments | None, str]:
        inertial = link.element.first("inertial")
        if inertial is None:
            return None, ""
        place = link.inside(inertial)
        pose = origin_of(place)
        mass, inertia = inertial.first("mass"), inertial.first("inertia")
        for tag, child in (("mass", mass), ("inertia", inertia)):
            if child is None:
                place.problem(f"<inertial> needs an element <{tag}>")
        total = place.inside(mass).number("value") if mass is not None else None
        entries = [None] if inertia is None else _six(place.inside(inertia))
        if total is not None and total < 0:
            link.problem(f"the mass must be positive, got {total:g} kg")
        if pose is None or total is None or total < 0 or None in entries:
            return None, ""
        if total == 0 and not any(entries):
            return None, ""
        xx, xy, xz, yy, yz, zz = entries
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)
        R = pose[:3, :3]
        with self.problems.at(link.words):
            return _of_body(total, pose[:3, 3], R @ matrix @ R.T), triangle_doubt(matrix)
        return None, ""

    # ------------------------------------------------------------------ joints

    def _joint(self, element: Element) -> JointRecord | None:
        name, place = self._named(element)
        self._note_skipped(place, "joint")
        kind = element.get("type") or ""
        if kind not in JOINT_TYPES:
            place.problem(f"`type` must be one of {', '.join(JOINT_TYPES)}, got {kind!r}")
        ends = [_end(place, tag) for tag in ("parent", "child")]
        origin = origin_of(place)
        axis = self._axis(place, kind)
        numbers: dict[str, Any] = {**_limits(place, kind), **_dynamics(place)}
        mimic = _mimic(place)
        whole = kind in JOINT_TYPES and None not in ends
        if not whole or origin is None or axis is None or None in numbers.values():
            return None
        return JointRecord(
            name, kind, place, str(ends[0]), str(ends[1]), origin, axis, mimic=mimic, **numbers
        )

    def _axis(self, place: Place, kind: str) -> tuple | None:
        element = place.element.first("axis")
        if element is None or kind in ("fixed", "floating"):
            return (1.0, 0.0, 0.0)
        axis = place.inside(element).numbers("xyz", 3, (1.0, 0.0, 0.0))
        if axis is not None and not any(axis):
            place.problem("the axis must not be zero, got (0, 0, 0)")
            return None
        return axis

    # ------------------------------------------------------------------ bookkeeping

    def _named(self, element: Element) -> tuple[str, Place]:
        name = (element.get("name") or "").strip()
        label = f"{element.tag} `{name}`" if name else f"<{element.tag}>"
        place = Place(self.source.name, element, label, self.problems)
        if not name:
            place.problem(f"<{element.tag}> needs the attribute `name`")
        return name, place

    def _note_skipped(self, place: Place, kind: str) -> None:
        for child in place.element.children:
            if child.tag in _REFUSED:
                place.inside(child).problem(
                    f"<{child.tag}> is not supported: {_REFUSED[child.tag]}"
                )
            elif child.tag.startswith("xacro:"):
                place.inside(child).problem(
                    f"<{child.tag}> is not URDF but xacro; expand the file with the xacro tool"
                )
            elif child.tag not in _KNOWN[kind]:
                words = f"<{child.tag}> of <{kind}>"
                self._skipped[words] += 1
                self._first_line.setdefault(words, child.line)

    def _summarise(self) -> None:
        for words, count in self._skipped.items():
            line = self._first_line[words]
            times = "" if count == 1 else f"{count} times, first "
            self.ignored.append(f"{words} ({times}at line {line})")
        solids = sum(s.role == "collision" for link in self.links for s in link.shapes)
        if solids:
            self.ignored.append(f"contact of {solids} <collision> shapes: contact is not modelled")
        if self._drawn.missing:
            names = sorted(self._drawn.missing)
            self.ignored.append(
                f"{len(names)} mesh files that were not found, the first `{names[0]}`; "
                "`packages` says where packages are"
            )


def _six(inertia: Place) -> list[float | None]:
    return [inertia.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]


def triangle_doubt(inertia: np.ndarray) -> str:
    """Say which principal moments at the center no body can have, "" if they are all right.

    Each is the sum of two non-negative second moments, so that none exceeds the other two together.
    """
    low, middle, high = np.linalg.eigvalsh(inertia)
    if low + middle - high >= -1e-9 * max(abs(low), abs(high)):
        return ""
    return (
        "the inertia is not that of any distribution of mass: its principal moments at the center, "
        f"{low:.6g}, {middle:.6g} and {high:.6g} kg m^2, break the triangle inequality: the "
        "largest must not exceed the sum of the others"
    )


def _of_body(mass: float, center: np.ndarray, inertia: np.ndarray) -> Moments:
    try:
        return Moments.of_body(mass, center, inertia)
    except ValueError as error:  # overflow of huge entries
        raise MachineError(str(error)) from None


def _end(joint: Place, tag: str) -> str | None:
    element = joint.element.first(tag)
    if element is None:
        joint.problem(f"<joint> needs an element <{tag}>")
        return None
    return joint.inside(element).text("link")


def _limits(joint: Place, kind: str) -> dict[str, float | None]:
    """Limits of a joint; where the file gives neither lower nor upper there is none."""
    infinite = float("inf")
    limits: dict[str, float | None] = dict.fromkeys(("velocity", "effort", "upper"), infinite)
    limits["lower"] = -infinite
    element = joint.element.first("limit")
    if element is None or kind == "fixed":
        return limits
    inside = joint.inside(element)
    names = ["velocity", "effort"]
    if kind in ("revolute", "prismatic") and (
        "lower" in element.attributes or "upper" in element.attributes
    ):
        # The format's own default for one of the two is 0.
        names += ["lower", "upper"]
    for name in names:
        default = infinite if name in ("velocity", "effort") else 0.0
        number = inside.number(name, default)
        if number is not None and abs(number) >= UNLIMITED:
            number = infinite if number > 0 else -infinite
        limits[name] = number
    return limits


def _dynamics(joint: Place) -> dict[str, float | None]:
    element = joint.element.first("dynamics")
    if element is None:
        return {"damping": 0.0, "friction": 0.0}
    inside = joint.inside(element)
    return {name: inside.number(name, 0.0) for name in ("damping", "friction")}


def _mimic(joint: Place) -> tuple[str, float, float] | None:
    element = joint.element.first("mimic")
    if element is None:
        return None
    inside = joint.inside(element)
    name = inside.text("joint")
    multiplier, offset = inside.number("multiplier", 1.0), inside.number("offset", 0.0)
    if name is None or multiplier is None or offset is None:
        return None
    return name, multiplier, offset
