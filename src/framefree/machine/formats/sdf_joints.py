"""Joints of SDFormat: fixed, revolute, continuous, prismatic, ball, universal, revolute2, screw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.formats.markup import Place
from framefree.machine.formats.poses import inverse
from framefree.machine.formats.records import UNLIMITED, JointRecord, Mimic
from framefree.machine.formats.sdf_scope import MODEL, Scope, boolean
from framefree.machine.joints import (
    Continuous,
    Fixed,
    Helical,
    JointKind,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.problems import MachineError

_AXES = {
    "fixed": (),
    "ball": (),
    "revolute": ("axis",),
    "continuous": ("axis",),
    "prismatic": ("axis",),
    "screw": ("axis",),
    "universal": ("axis", "axis2"),
    "revolute2": ("axis", "axis2"),
}
_PARTS = {"axis": "angle1", "axis2": "angle2"}


def joint_of(scope: Scope, place: Place) -> JointRecord | None:
    """Return a joint of a model; what is wrong with it goes to the problems."""
    name = (place.element.get("name") or "").strip()
    with place.problems.at(place.words):
        type_ = (place.element.get("type") or "").strip()
        if type_ not in _AXES:
            reason = (
                "; a gearbox is written as a <mimic> of the joint that follows"
                if type_ == "gearbox"
                else ""
            )
            raise MachineError(
                f"`type` must be one of {', '.join(_AXES)}, got {type_[:60]!r}{reason}"
            )
        parent, parent_pose, child, child_pose = _ends(scope, name)
        axes = [_axis(scope, name, place, tag) for tag in _AXES[type_]]
        kind = _kind(place, type_, axes)
        numbers = _numbers(place, type_)
        mimics = tuple(
            mimic for tag in _AXES[type_] for mimic in _mimic(scope, place, tag, len(axes) == 2)
        )
        return JointRecord(
            scope.full_name(name),
            kind,
            place,
            parent,
            child,
            parent_pose,
            child_pose,
            numbers,
            mimics,
        )
    return None


def _ends(scope: Scope, name: str) -> tuple[str, np.ndarray, str, np.ndarray]:
    """Return both links, and the joint frame's pose in each as the file places them."""
    in_world = scope.in_world() @ scope.pose(name)
    ends: list[Any] = []
    for tag in ("parent", "child"):
        frame = scope.joint_end(name, tag)
        link, pose = scope.link_and_pose(frame)
        if link == WORLD:
            if tag == "child":
                raise MachineError("the child of a joint must not be the world")
            ends += [WORLD, in_world]
            continue
        at = scope.in_world() @ scope.pose(frame) @ inverse(pose)
        ends += [link, inverse(at) @ in_world]
    if ends[0] == ends[2]:
        raise MachineError(f"the joint connects link `{ends[0]}` with itself")
    return ends[0], ends[1], ends[2], ends[3]


def _axis(scope: Scope, name: str, joint: Place, tag: str) -> np.ndarray:
    """Return a unit axis in the joint's frame."""
    element = joint.element.first(tag)
    if element is None:
        raise MachineError(f"<joint> of this type needs an element <{tag}>")
    place = joint.inside(element)
    xyz = element.first("xyz")
    vector: Any = (0.0, 0.0, 1.0)
    frame = ""
    if xyz is not None:
        vector = place.inside(xyz).content_numbers(3)
        frame = (xyz.get("expressed_in") or "").strip()
    if vector is None or not np.linalg.norm(vector) > 0:
        raise MachineError(f"the <xyz> of <{tag}> must be three numbers that are not all zero")
    old = element.first("use_parent_model_frame")
    if scope.version <= (1, 4) or (
        old is not None and boolean(place, old.content(), "<use_parent_model_frame>")
    ):
        frame = MODEL
    if frame and frame != name:
        vector = scope.pose(name)[:3, :3].T @ scope.pose(frame)[:3, :3] @ np.array(vector)
    return np.array(vector) / np.linalg.norm(vector)


def _kind(place: Place, type_: str, axes: Sequence[np.ndarray]) -> JointKind:
    if type_ == "fixed":
        return Fixed()
    if type_ == "ball":
        return Spherical()
    if type_ in ("universal", "revolute2"):
        return Universal(*axes)
    if type_ == "prismatic":
        return Prismatic(axes[0])
    if type_ == "screw":
        return Helical(axes[0], _pitch(place))
    return Revolute(axes[0]) if type_ == "revolute" else Continuous(axes[0])


def _pitch(joint: Place) -> float:
    """Return metres per radian of a screw.

    <screw_thread_pitch> is metres per turn, right-handed; the older <thread_pitch> is radians per
    metre, left-handed.
    """
    new, old = joint.element.first("screw_thread_pitch"), joint.element.first("thread_pitch")
    if new is not None:
        per_turn = joint.inside(new).content_number()
        if per_turn is None:
            raise MachineError("the <screw_thread_pitch> cannot be read")
        if old is not None:
            old.take_whole()  # the newer element replaces it
        return per_turn / (2 * np.pi)
    ratio = 1.0 if old is None else joint.inside(old).content_number()
    if not ratio:
        raise MachineError("the <thread_pitch> must be a number that is not zero")
    return -1.0 / ratio


def _numbers(joint: Place, type_: str) -> dict[str, Any]:
    """Limits, friction and springs, one number for each axis."""
    tags = _AXES[type_]
    rows = [_axis_numbers(joint, tag, type_) for tag in tags]
    if not rows:
        return {}
    numbers = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    if type_ == "continuous":
        rest = float(numbers.pop("rest")[0])
        numbers["rest"] = np.array([np.cos(rest), np.sin(rest)])
    return numbers


def _axis_numbers(joint: Place, tag: str, type_: str) -> dict[str, float]:
    axis = joint.element.first(tag)
    assert axis is not None  # `_axis` has refused a joint without
    place = joint.inside(axis)
    limit, dynamics = axis.first("limit"), axis.first("dynamics")
    ranged = () if type_ == "continuous" else ("lower", "upper")
    limits = _children(place, limit, (*ranged, "effort", "velocity"))
    forces = _children(
        place, dynamics, ("damping", "friction", "spring_reference", "spring_stiffness")
    )
    result = {
        "velocity_limit": _bound(limits.get("velocity", np.inf)),
        "effort_limit": _bound(limits.get("effort", np.inf)),
        "damping": forces.get("damping", 0.0),
        "friction": forces.get("friction", 0.0),
        "stiffness": forces.get("spring_stiffness", 0.0),
        "rest": forces.get("spring_reference", 0.0),
    }
    if ranged:
        result |= {"lower": limits.get("lower", -np.inf), "upper": limits.get("upper", np.inf)}
        for name in ranged:
            if abs(result[name]) >= UNLIMITED:
                result[name] = float(np.copysign(np.inf, result[name]))
    return result


def _children(place: Place, element: Any, tags: Sequence[str]) -> dict[str, float]:
    """Return the numbers of those children of an element that are there."""
    if element is None:
        return {}
    inside, numbers = place.inside(element), {}
    for tag in tags:
        child = element.first(tag)
        if child is None:
            continue
        text = child.content().lower()
        if text in ("inf", "+inf", "-inf"):
            numbers[tag] = -np.inf if text == "-inf" else np.inf
            continue
        number = inside.inside(child).content_number()
        if number is None:
            raise MachineError(f"<{tag}> cannot be read")
        numbers[tag] = number
    return numbers


def _bound(limit: float) -> float:
    """Return a largest speed or effort; a negative one means that there is none."""
    return float("inf") if limit < 0 or limit >= UNLIMITED else limit


def _mimic(scope: Scope, joint: Place, tag: str, two: bool) -> list[Mimic]:
    """Follower = multiplier (leader - reference) + offset."""
    axis = joint.element.first(tag)
    element = None if axis is None else axis.first("mimic")
    if axis is None or element is None:
        return []
    place = joint.inside(axis).inside(element)
    leader = (place.text("joint") or "").strip()
    other = (element.get("axis") or "axis").strip()
    if not leader or other not in _PARTS:
        raise MachineError("<mimic> needs the attribute `joint`, and `axis` is axis or axis2")
    numbers = _children(joint.inside(axis), element, ("multiplier", "offset", "reference"))
    multiplier = numbers.get("multiplier", 0.0)
    offset = numbers.get("offset", 0.0) - multiplier * numbers.get("reference", 0.0)
    known = scope.joints.get(leader)
    leading = known is not None and len(_AXES.get(known.attributes.get("type") or "", ())) == 2
    if other == "axis2" and not leading:
        raise MachineError(f"joint `{leader}` has no second axis to follow")
    part = _PARTS[tag] if two else ""
    other_part = _PARTS[other] if leading else ""
    return [Mimic(scope.full_name(leader), multiplier, offset, part, other_part)]
