"""Writing MJCF: our joints as MuJoCo's slides, hinges and balls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.formats.markup import Element
from framefree.machine.formats.writing import check_friction, is_identity, node
from framefree.machine.joint import Joint
from framefree.machine.joints import (
    Continuous,
    Cylindrical,
    Free,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.problems import MachineError, Problems, known_names

HUGE = 1e16
"""Written for an end of a range that is not there; reading takes it for infinite."""


@dataclass(frozen=True)
class MjcfJoint:
    """One of MuJoCo's joints: type, axis, name, and which of our velocities it stands for."""

    type: str
    axis: np.ndarray | None
    name: str
    v: slice


class JointWriter:
    """Writes joints; what MJCF cannot say goes to `problems`."""

    def __init__(self, problems: Problems, without: set[str], implied: set[str]) -> None:
        self.problems = problems
        self.without = without
        self.implied = implied  # joints whose limits of effort their motors' own ones imply

    def write(self, joint: Joint, frame: np.ndarray) -> list[Element]:
        """Return MuJoCo's joints for one of ours, whose frame has this pose in the body."""
        check_friction(joint, self.problems)
        self._check_axes(joint)
        elements = []
        for motion in motions_of(joint):
            axis = None if motion.axis is None else frame[:3, :3] @ motion.axis
            elements.append(
                node(
                    "joint",
                    name=motion.name,
                    type=motion.type,
                    pos=frame[:3, 3],
                    axis=axis,
                    **self._numbers(joint, motion),
                )
            )
        if not elements:
            words = type(joint.kind).__name__.lower()
            self.problems.add(f"joint `{joint.name}`: MJCF has no {words} joint")
        return elements

    def _check_axes(self, joint: Joint) -> None:
        """Refuse what differs because our linear velocities are along the axes of the child."""
        count = {Planar: 2, Free: 3}.get(type(joint.kind), 0)
        linear = {
            name: getattr(joint, name)[:count] for name in ("armature", "friction", "damping")
        }
        for name, values in linear.items():
            same = len(set(values.tolist())) <= 1
            if not same or (name != "damping" and np.any(values)):
                self.problems.add(
                    f"joint `{joint.name}`: `{name}` {values.tolist()} along the axes of the "
                    "moving body cannot be written: MuJoCo's axes are those of the parent"
                )

    def _numbers(self, joint: Joint, motion: MjcfJoint) -> dict[str, Any]:
        attributes = {
            name: self._one(joint, motion, field)
            for name, field in (
                ("armature", "armature"),
                ("damping", "damping"),
                ("frictionloss", "friction"),
                ("stiffness", "stiffness"),
            )
        }
        if attributes["stiffness"]:
            attributes["springref"] = self._rest(joint, motion)
        ranged = motion.axis is not None and not isinstance(joint.kind, Continuous)
        if ranged and "range" not in self.without:
            i = motion.v.start if joint.nx == joint.nv else min(motion.v.start, 1)
            lower, upper = joint.lower[i], joint.upper[i]
            planar_angle = isinstance(joint.kind, Planar) and motion.type == "hinge"
            if np.isfinite([lower, upper]).any() and not planar_angle:
                with self.problems.at(f"joint `{joint.name}`"):
                    attributes |= limits_of("", float(lower), float(upper))
            elif np.isfinite([lower, upper]).any():
                self.problems.add(f"joint `{joint.name}`: MJCF cannot limit its angle")
        said = joint.name in self.implied or "effort_limit" in self.without
        if motion.axis is not None and not said:
            lower, upper = (float(bound[motion.v.start]) for bound in joint.effort_range)
            with self.problems.at(f"joint `{joint.name}`"):
                attributes |= limits_of("actuatorfrc", lower, upper)
        return attributes

    def _one(self, joint: Joint, motion: MjcfJoint, field: str) -> float | None:
        """Return the one number that MuJoCo has for all velocities of its joint."""
        values = np.asarray(getattr(joint, field))[motion.v]
        if len(set(values.tolist())) > 1:
            self.problems.add(
                f"joint `{joint.name}`: `{field}` must be one number for a {motion.type} in MJCF, "
                f"got {values.tolist()}"
            )
        return float(values[0]) or None

    def _rest(self, joint: Joint, motion: MjcfJoint) -> float | None:
        rest = np.asarray(joint.rest)
        if isinstance(joint.kind, Spherical | Continuous):
            if not np.array_equal(rest, joint.kind.neutral) or isinstance(joint.kind, Continuous):
                words = type(joint.kind).__name__.lower()
                self.problems.add(f"joint `{joint.name}`: MJCF cannot describe its {words} spring")
            return None
        return float(rest[motion.v.start])


def check_limits(joints: Iterable[Joint], without: set[str], problems: Problems) -> None:
    """Refuse limits of joints that MJCF has no words for."""
    fast = [joint.name for joint in joints if np.isfinite(joint.velocity_limit).any()]
    bounded = [joint.name for joint in joints if is_plain_free(joint) and _is_bounded(joint)]
    strong = [joint.name for joint in joints if _has_unsayable_effort(joint)]
    for word, names, where in (
        ("velocity_limit", fast, ""),
        ("effort_limit", strong, " of balls and free joints"),
        ("range", bounded, " of free joints"),
    ):
        if names and word not in without:
            problems.add(
                f"MJCF has no `{word}`{where} ({known_names(names, 4)}); "
                f'`without="{word}"` leaves it out'
            )


def _is_bounded(joint: Joint) -> bool:
    return bool(np.isfinite(joint.lower).any() or np.isfinite(joint.upper).any())


def _has_unsayable_effort(joint: Joint) -> bool:
    """Whether a limit of effort is on velocities that are not those of a slide or hinge."""
    spans = [motion.v for motion in motions_of(joint) if motion.axis is None]
    spans = [slice(0, 6)] if isinstance(joint.kind, Free) else spans
    return any(np.isfinite(side[span]).any() for span in spans for side in joint.effort_range)


def limits_of(word: str, lower: float, upper: float) -> dict[str, Any]:
    """Return attributes of a range; MuJoCo has both ends or none, so that one may be huge."""
    if np.isinf(lower) and np.isinf(upper):
        return {}
    if lower == upper:
        raise MachineError(f"MuJoCo needs a range with room in it, got [{lower:g}, {upper:g}]")
    return {f"{word}limited": "true", f"{word}range": np.clip([lower, upper], -HUGE, HUGE)}


def is_plain_free(joint: Joint) -> bool:
    """Whether MuJoCo's free joint represents this one: from the world, with uniform damping."""
    if not isinstance(joint.kind, Free) or joint.parent != WORLD:
        return False
    plain = is_identity(joint.parent_pose) and is_identity(joint.child_pose)
    calm = len(set(joint.damping.tolist())) == 1 and not joint.has_friction
    return plain and calm and not np.any(joint.armature)


def motions_of(joint: Joint) -> list[MjcfJoint]:
    """Return the slides, hinges and balls that make up a joint; none if MuJoCo lacks the joint."""
    kind, name = joint.kind, joint.name
    if isinstance(kind, Revolute | Continuous):
        parts = [("hinge", kind.axis, "")]
    elif isinstance(kind, Prismatic):
        parts = [("slide", kind.axis, "")]
    elif isinstance(kind, Cylindrical):
        parts = [("slide", kind.axis, ".displacement"), ("hinge", kind.axis, ".angle")]
    elif isinstance(kind, Universal):
        parts = [("hinge", kind.axis1, ".angle1"), ("hinge", kind.axis2, ".angle2")]
    elif isinstance(kind, Planar):
        first, second, normal = kind.basis.T
        parts = [("slide", first, ".px"), ("slide", second, ".py"), ("hinge", normal, ".angle")]
    elif isinstance(kind, Spherical):
        return [MjcfJoint("ball", None, name, slice(0, 3))]
    elif isinstance(kind, Free):
        slides = [
            MjcfJoint("slide", axis, f"{name}.p{letter}", slice(i, i + 1))
            for i, (axis, letter) in enumerate(zip(np.eye(3), "xyz", strict=True))
        ]
        return [*slides, MjcfJoint("ball", None, f"{name}.q", slice(3, 6))]
    else:
        return []
    return [
        MjcfJoint(type, np.asarray(axis), name + suffix, slice(i, i + 1))
        for i, (type, axis, suffix) in enumerate(parts)
    ]
