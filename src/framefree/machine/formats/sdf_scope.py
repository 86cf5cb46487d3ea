"""Frames of SDFormat: every model is a scope of names, each with a pose and a link it moves with.

Links, joints, nested models and explicit <frame>s are frames. A pose is given relative to another
frame, so that poses are found by following these; "a::b" is frame b of the nested model a.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import (
    UNIT,
    inverse,
    pose_of_quaternion,
    pose_of_rpy,
)
from framefree.machine.formats.records import FrameRecord
from framefree.machine.problems import MachineError
from framefree.machine.tree import unknown

MODEL = "__model__"
ROOT = "__root__"


class Scope:
    """A model, or the world: its links, joints, frames and nested models by name.

    Attributes
    ----------
    name : str
    prefix : str
        What names of links and joints begin with in the machine: "" or "outer::inner::".
    version : tuple of int
        Of the file that the model is from.
    """

    def __init__(
        self, place: Place, version: tuple[int, int], name: str, parent: Scope | None
    ) -> None:
        self.place = place
        self.version = version
        self.name = name
        self.parent = parent
        self.prefix = ""
        self.links: dict[str, Element] = {}
        self.joints: dict[str, Element] = {}
        self.frames: dict[str, Element] = {}
        self.nested: dict[str, Scope] = {}
        self.own_pose: tuple[np.ndarray, str | None] = (np.eye(4), None)
        self.placement = ""
        self.canonical = ""
        self.static = False
        self._under_way: set[str] = set()
        self._poses: dict[str, np.ndarray] = {}

    @classmethod
    def of_world(cls, place: Place, version: str) -> Scope:
        """Return the scope of the world."""
        return cls(place, version_numbers(version), WORLD, None)

    @property
    def is_world(self) -> bool:
        """Whether this is the world itself, where the model frame is the world's."""
        return self.parent is None

    def put(self, poses: Mapping[str, np.ndarray]) -> None:
        """Take poses (4x4) of frames, seen from the model's, that are known already."""
        self._poses.update(poses)

    def place_of(self, element: Element) -> Place:
        """Return the place of one of the model's elements, for messages."""
        name = (element.attributes.get("name") or "").strip()
        label = f"{element.tag} `{self.prefix}{name}`"
        return Place(self.place.file, element, label, self.place.problems)

    def with_nested(self) -> list[Scope]:
        """Return this scope and all below it, with their prefixes set."""
        result: list[Scope] = [self]
        for name, scope in self.nested.items():
            scope.prefix = f"{self.prefix}{name}::"
            result += scope.with_nested()
        return result

    def full_name(self, name: str) -> str:
        """Return a name of this scope as the machine has it."""
        return f"{self.prefix}{name}"

    # ------------------------------------------------------------------ poses

    def pose(self, name: str) -> np.ndarray:
        """Pose (4x4) of a frame seen from the model's frame.

        Raises
        ------
        MachineError
            If there is no such frame, or poses are given relative to each other in a circle.
        """
        if name in ("", MODEL):
            return np.eye(4)
        if name in (WORLD, ROOT) and not self._has(name):
            return inverse(self.in_world()) if not self.is_world else np.eye(4)
        if name in self._poses:
            return self._poses[name]
        if name in self._under_way:
            raise MachineError(f"the pose of `{name}` is given relative to itself in a circle")
        self._under_way.add(name)
        try:
            self._poses[name] = self._pose(name)
            return self._poses[name]
        finally:
            self._under_way.discard(name)

    def _pose(self, name: str) -> np.ndarray:
        first, _, rest = name.partition("::")
        if rest and first in self.nested:
            return self.pose(first) @ self.nested[first].pose(rest)
        if name in self.links:
            own, relative = self.pose_element(self.links[name])
            return self.pose(relative or MODEL) @ own
        if name in self.joints:
            own, relative = self.pose_element(self.joints[name])
            return self.pose(relative or self.joint_end(name, "child")) @ own
        if name in self.frames:
            own, relative = self.pose_element(self.frames[name])
            return self.pose(relative or self._attached(name) or MODEL) @ own
        if name in self.nested:
            inner = self.nested[name]
            own, relative = inner.own_pose
            placed = inverse(inner.pose(inner.placement)) if inner.placement else np.eye(4)
            return self.pose(relative or MODEL) @ own @ placed
        raise MachineError(unknown("frame", name, self.names()))

    def in_world(self) -> np.ndarray:
        """Pose (4x4) of the model's frame seen from the world."""
        if self.parent is None:
            return np.eye(4)
        return self.parent.in_world() @ self.parent.pose(self.name)

    def pose_element(self, element: Element) -> tuple[np.ndarray, str | None]:
        """Pose of an element's <pose>, and the frame that it is relative to, if it says so."""
        pose = element.first("pose")
        if pose is None:
            return np.eye(4), None
        return read_pose(self.place_of(element).inside(pose))

    # ------------------------------------------------------------------ names

    def check(self) -> None:
        """Report names that the model refers to and that are not there."""
        with self.place.problems.at(self.place.words):
            if self.canonical:
                self.link_of(self.canonical)
            if self.placement:
                self.pose(self.placement)

    def link_of(self, name: str) -> tuple[Scope, str]:
        """Return the link that a frame moves with, as its scope and its name in there."""
        if name in (WORLD, ROOT) and not self._has(name):
            return self._top(), WORLD
        if name in self._under_way:
            raise MachineError(f"frame `{name}` is attached to itself in a circle")
        first, _, rest = name.partition("::")
        if rest and first in self.nested:
            return self.nested[first].link_of(rest)
        self._under_way.add(name)
        try:
            if name in self.links:
                return self, name
            if name in self.frames:
                return self.link_of(self._attached(name) or MODEL)
            if name in self.joints:
                return self.link_of(self.joint_end(name, "child"))
            if name in self.nested:
                return self.nested[name].link_of(MODEL)
            if name == MODEL:
                return self._canonical_link()
        finally:
            self._under_way.discard(name)
        raise MachineError(unknown("frame", name, self.names()))

    def link_and_pose(self, name: str) -> tuple[str, np.ndarray]:
        """Return the full name of the link that a frame moves with, and the frame's pose in it."""
        scope, link = self.link_of(name)
        if link == WORLD:
            return WORLD, np.eye(4)
        of_link = scope.in_world() @ scope.pose(link)
        return scope.full_name(link), inverse(of_link) @ self.in_world() @ self.pose(name)

    def joint_end(self, joint: str, tag: str) -> str:
        """Return the name that a joint has for its parent or child."""
        element = self.joints[joint].first(tag)
        text = "" if element is None else element.content()
        if not text and element is not None:
            # since SDFormat 1.4 the name is the text; older files have it as an attribute
            text = (element.get("link") or "").strip()
        if not text:
            raise MachineError(f"<joint> needs an element <{tag}>")
        return text

    def frame_records(self) -> Iterator[FrameRecord]:
        """Yield the explicit frames, with the links that they are on."""
        for name, element in self.frames.items():
            place = self.place_of(element)
            with self.place.problems.at(place.words):
                link, pose = self.link_and_pose(name)
                yield FrameRecord(self.full_name(name), place, link, pose)

    def names(self) -> list[str]:
        """Return all names of this scope."""
        return [*self.links, *self.joints, *self.frames, *self.nested]

    def _has(self, name: str) -> bool:
        return name in self.links or name in self.frames or name in self.nested

    def _attached(self, frame: str) -> str:
        return (self.frames[frame].get("attached_to") or "").strip()

    def _canonical_link(self) -> tuple[Scope, str]:
        if self.is_world:
            return self, WORLD
        if self.canonical:
            return self.link_of(self.canonical)
        if self.links:
            return self, next(iter(self.links))
        if self.nested:
            return next(iter(self.nested.values()))._canonical_link()
        raise MachineError(f"model `{self.name}` has no links")

    def _top(self) -> Scope:
        return self if self.parent is None else self.parent._top()


def version_numbers(version: str) -> tuple[int, int]:
    """Return "1.9" as (1, 9)."""
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def read_pose(place: Place) -> tuple[np.ndarray, str | None]:
    """Return a <pose> and the frame that it is relative to, None where it does not say.

    Raises
    ------
    MachineError
        If it cannot be read; what is wrong is noted.
    """
    element = place.element
    relative = (element.get("relative_to") or "").strip() or None
    if (element.get("frame") or "").strip():
        raise MachineError("the attribute `frame` of <pose> is not supported; use `relative_to`")
    form = (element.get("rotation_format") or "euler_rpy").strip()
    degrees = boolean(place, element.get("degrees") or "false", "`degrees`")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise MachineError(f"`rotation_format` must be euler_rpy or quat_xyzw, got {form[:60]!r}")
    if not element.content():
        return np.eye(4), relative
    numbers = place.content_numbers(6 if form == "euler_rpy" else 7)
    if numbers is None:
        raise MachineError("the pose cannot be read")
    if form == "euler_rpy":
        return pose_of_rpy(
            numbers[:3], np.array(numbers[3:]) * (np.pi / 180 if degrees else 1.0)
        ), relative
    if degrees:
        raise MachineError("`degrees` has no meaning for a quaternion")
    length = float(np.linalg.norm(numbers[3:]))
    if not abs(length - 1.0) <= UNIT:
        raise MachineError(f"the quaternion must have unit length, got {length:.6g}")
    return pose_of_quaternion(numbers[:3], (numbers[6], *numbers[3:6])), relative


def boolean(place: Place, text: str, what: str) -> bool:
    """Return true or false, 1 or 0."""
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in words:
        place.problem(f"{what} must be true or false, got {text.strip()[:60]!r}")
    return words.get(text.strip().lower(), False)
