"""Links, joints and loops of a URDF file as records: every element checked, none put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import origin_of
from framefree.machine.formats.records import (
    UNLIMITED,
    JointRecord,
    LinkRecord,
    Mimic,
    moments_of,
)
from framefree.machine.formats.source import Source
from framefree.machine.formats.unread import unread
from framefree.machine.formats.urdf_extensions import Extensions
from framefree.machine.formats.urdf_shapes import SOLIDS, ShapeReader
from framefree.machine.joints import (
    Continuous,
    Fixed,
    Free,
    JointKind,
    Planar,
    Prismatic,
    Revolute,
)
from framefree.machine.problems import Problems

VERSIONS = ("1.0", "1.1", "1.2")
_KINDS = {
    "fixed": lambda axis: Fixed(),
    "revolute": Revolute,
    "continuous": Continuous,
    "prismatic": Prismatic,
    "floating": lambda axis: Free(),
    "planar": Planar,
}
MOVES_NOTHING: dict[str, str | None] = {
    "visual/*": "only drawn",
    "collision/*": "contact is not modelled",
    "material/*": "only drawn",
    "link/sensor": "sensors",
    "robot/sensor": "sensors",
    "gazebo/*": "settings of Gazebo",
    "gazebo/turnGravityOff": None,
    "gazebo/gravity": None,
    "gazebo/dampingFactor": None,
    "gazebo/velocityDecay": None,
    "gazebo/kinematic": None,
    "gazebo/static": None,
    "robot/transmission": "joints have motors of their own",
    "robot/ros2_control": "settings of ros2_control",
    "robot/group": "a group of joints",
    "robot/drake:collision_filter_group": "contact is not modelled",
    "joint/safety_controller": "limits that a controller keeps",
    "joint/calibration": "where the encoder's marks are",
    "limit@acceleration": "machines have no limits of acceleration",
    "limit@deceleration": "machines have no limits of acceleration",
    "limit@jerk": "machines have no limits of jerk",
    "link@type": "a label",
    "link/contact": "contact is not modelled",
    "link/surface": "contact is not modelled",
    "link/self_filter": "contact is not modelled",
    "link/collision_checking": "contact is not modelled",
    "link/self_collision_checking": "contact is not modelled",
    "joint@independent": "which joints of a loop count as independent is chosen here",
    "joint@dont_collapse": "a label",
    "joint type=fixed@dont_collapse": "a label",
}
"""What of a URDF file is known to move nothing, see `unread`; `machine.ignored` lists it."""

FIXED = "joint type=fixed"
for _tag in ("axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"):
    MOVES_NOTHING[f"{FIXED}/{_tag}"] = "the joint is fixed"


class RobotElements:
    """All links and joints of a <robot>, with what was left out.

    Attributes
    ----------
    links, joints : list of LinkRecord, JointRecord
    extensions : Extensions
        Loops, frames and springs of elements that are not part of URDF itself.
    """

    def __init__(self, source: Source, robot: Element, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.robot = robot
        self._drawn = ShapeReader(source, robot)
        self.place = place = Place(source.name, robot, "<robot>", problems)
        self.name = place.text("name") or ""
        self._version(place)
        self.extensions = Extensions(place)
        self.links = [self._link(e) for e in robot.all("link")]
        joints = [self._joint(e) for e in robot.all("joint")]
        self.joints = [joint for joint in joints if joint is not None]

    def left_out(self, *, strict: bool) -> tuple[list[str], list[str]]:
        """Return remarks on doubtful things and what is ignored; with `strict` doubts are errors.

        To be called after everything was read.
        """
        doubts, ignored = list(self._drawn.remarks), self._ignored_shapes()
        for joint in self.robot.all("joint"):
            if joint.attributes.get("type") == "fixed":
                joint.tag = FIXED  # it has a list of its own of what moves nothing
        rest = unread(self.source.name, self.robot, MOVES_NOTHING)
        if strict:
            self.problems.extend(rest.unknown)
        return [*doubts, *rest.unknown], [*rest.known, *ignored]

    def _ignored_shapes(self) -> list[str]:
        ignored = []
        solids = sum(s.role == "collision" for link in self.links for s in link.shapes)
        if solids:
            ignored.append(f"contact of {solids} <collision> shapes: {SOLIDS}")
        if self._drawn.missing:
            names = sorted(self._drawn.missing)
            ignored.append(
                f"{len(names)} mesh files that were not found, the first `{names[0]}`; "
                "`packages` says where packages are"
            )
        ignored += [f"material `{name}`: nothing has it" for name in self._drawn.idle_colors()]
        return ignored

    def _version(self, robot: Place) -> None:
        version = robot.element.get("version")
        if version is not None and version.strip() not in (*VERSIONS, "1"):
            robot.problem(
                f"`version` must be one of {', '.join(VERSIONS)}, got {version.strip()[:60]!r}"
            )

    # ------------------------------------------------------------------ links

    def _link(self, element: Element) -> LinkRecord:
        name, place = self._named(element)
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
        with self.problems.at(link.words):
            return moments_of(total, pose, entries)
        return None, ""

    # ------------------------------------------------------------------ joints

    def _joint(self, element: Element) -> JointRecord | None:
        name, place = self._named(element)
        type_ = element.get("type") or ""
        if type_ not in _KINDS:
            place.problem(f"`type` must be one of {', '.join(_KINDS)}, got {type_!r}")
        ends = [_end(place, tag) for tag in ("parent", "child")]
        origin = origin_of(place)
        kind = self._kind(place, type_)
        numbers: dict[str, Any] = {}
        mimic: tuple[Mimic, ...] = ()
        if type_ != "fixed":
            numbers = {**_limits(place, type_), **_dynamics(place)}
            numbers |= self.extensions.springs(name)
            mimic = _mimic(place)
        if kind is None or None in ends or origin is None or None in numbers.values():
            return None
        poses = (origin, np.eye(4))
        return JointRecord(
            name, kind, place, str(ends[0]), str(ends[1]), *poses, numbers=numbers, mimics=mimic
        )

    def _kind(self, place: Place, type_: str) -> JointKind | None:
        if type_ not in _KINDS:
            return None
        axis: tuple | None = (1.0, 0.0, 0.0)
        if type_ not in ("fixed", "floating"):
            element = place.element.first("axis")
            if element is not None:
                axis = place.inside(element).numbers("xyz", 3, axis)
        if axis is not None and not any(axis):
            place.problem("the axis must not be zero, got (0, 0, 0)")
            axis = None
        if axis is None:
            return None
        with self.problems.at(place.words):
            return _KINDS[type_](axis)
        return None

    def _named(self, element: Element) -> tuple[str, Place]:
        name = (element.get("name") or "").strip()
        label = f"{element.tag} `{name}`" if name else f"<{element.tag}>"
        place = Place(self.source.name, element, label, self.problems)
        if not name:
            place.problem(f"<{element.tag}> needs the attribute `name`")
        return name, place


def _six(inertia: Place) -> list[float | None]:
    return [inertia.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]


def _end(joint: Place, tag: str) -> str | None:
    element = joint.element.first(tag)
    if element is None:
        joint.problem(f"<joint> needs an element <{tag}>")
        return None
    return joint.inside(element).text("link")


def _limits(joint: Place, type_: str) -> dict[str, float | None]:
    """Limits of a joint; where the file gives neither lower nor upper there is none."""
    element = joint.element.first("limit")
    if element is None:
        return {}
    inside = joint.inside(element)
    given = element.attributes
    # Where one of the two is given, the format's own default for the other is 0.
    ranged = type_ in ("revolute", "prismatic") and ("lower" in given or "upper" in given)
    names = [name for name in ("velocity", "effort") if name in given]
    limits: dict[str, float | None] = {}
    for name in [*names, *(("lower", "upper") if ranged else ())]:
        number = inside.number(name, 0.0)
        if number is not None and abs(number) >= UNLIMITED:
            number = float("inf") if number > 0 else -float("inf")
        limits[name if name in ("lower", "upper") else f"{name}_limit"] = number
    return limits


def _dynamics(joint: Place) -> dict[str, float | None]:
    element = joint.element.first("dynamics")
    if element is None:
        return {}
    inside = joint.inside(element)
    return {name: inside.number(name, 0.0) for name in ("damping", "friction")}


def _mimic(joint: Place) -> tuple[Mimic, ...]:
    element = joint.element.first("mimic")
    if element is None:
        return ()
    inside = joint.inside(element)
    name = inside.text("joint")
    multiplier, offset = inside.number("multiplier", 1.0), inside.number("offset", 0.0)
    if name is None or multiplier is None or offset is None:
        return ()
    return (Mimic(name, multiplier, offset),)
