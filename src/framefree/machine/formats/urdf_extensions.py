"""Elements of URDF files that are not part of URDF: loops, frames and springs of other programs.

Loops are written in these published forms:

- `<loop_joint name type>` with `<link1 link xyz rpy/>`, `<link2 .../>` and for a hinge or slider
  `<axis xyz/>`: Drake, Isaac Sim (which documents `<link1>` twice);
- `<loop name type>` of URDF+ [Chignoli2024] with `<predecessor link>`, `<successor link>`, an
  `<origin>` in each, and `<axis xyz/>`;
- `<coupling>` of URDF+, joints that follow others by a ratio: see `urdf_couplings`;
- `<drake:ball_constraint>` with two bodies and a point on each;
- `<gazebo>` with a `<joint>` of SDFormat in it: see `urdf_gazebo`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import origin_of, placed, posed
from framefree.machine.formats.records import CouplingRecord, FrameRecord, LoopClosureRecord
from framefree.machine.formats.urdf_couplings import read_coupling

_REFUSED = {
    "constraint": "add a Loop or a Coupling in Python instead",
    "drake:linear_spring_damper": "add a Spring and a Damper in Python instead",
    "drake:linear_bushing_rpy": "add a Spring and a Damper in Python instead",
    "drake:joint": "URDF has no such joint; build it in Python, or use MJCF or SDFormat",
    "drake:tendon_constraint": "use MJCF, or add it in Python",
}
LOOP_KINDS = {
    "fixed": "weld",
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "slider",
    "spherical": "ball",
    "ball": "ball",
}
_SPRINGS = {"springStiffness": "stiffness", "springReference": "rest"}


class Extensions:
    """What extensions of URDF add to a robot.

    Attributes
    ----------
    loops : list of LoopClosureRecord
    couplings : list of CouplingRecord
    frames : list of FrameRecord
    gazebo_joints : list of Element
        Joints of SDFormat that close loops; see `urdf_gazebo`.
    motors : frozenset of str
        Joints that <transmission> or <ros2_control> says to be driven.
    """

    def __init__(self, robot: Place) -> None:
        self.robot = robot
        self.loops: list[LoopClosureRecord] = []
        self.couplings: list[CouplingRecord] = []
        self.frames: list[FrameRecord] = []
        self.gazebo_joints: list[Element] = []
        self.motors = _driven(robot.element)
        self._springs: dict[str, dict[str, Any]] = {}
        self._refuse()
        for element in robot.element.all("loop_joint", "loop", "drake:ball_constraint"):
            self._loop(element)
        for element in robot.element.all("coupling"):
            self._coupling(element)
        for element in robot.element.all("fixed_frame"):
            self._frame(element)
        for element in robot.element.all("gazebo"):
            self._gazebo(robot.inside(element))

    def check_springs(self, joints: set[str]) -> None:
        """Report springs of joints that are not there; joints that move have taken theirs."""
        for name in self._springs:
            reason = "does not move" if name in joints else "is not there"
            self.robot.problem(f"<gazebo>: a spring of joint `{name}`, which {reason}")

    def springs(self, joint: str) -> dict[str, Any]:
        """Return the stiffness and rest of a joint's spring, as far as they are given."""
        return self._springs.pop(joint, {})

    def _refuse(self) -> None:
        places = [self.robot, *map(self.robot.inside, self.robot.element.children)]
        for place in places:
            for child in place.element.children:
                if child.tag in _REFUSED and place is self.robot:
                    words = f"<{child.tag}> is not supported: {_REFUSED[child.tag]}"
                elif child.tag.startswith("xacro:"):
                    words = (
                        f"<{child.tag}> is not URDF but xacro; expand the file with the xacro tool"
                    )
                else:
                    continue
                place.inside(child).problem(words)

    def _loop(self, element: Element) -> None:
        name = (element.get("name") or "").strip() or f"loop{len(self.loops) + 1}"
        label = f"{element.tag} `{name}`"
        place = Place(self.robot.file, element, label, self.robot.problems)
        if element.tag == "drake:ball_constraint":
            ends, kind = _ball_ends(place), "ball"
        else:
            type_ = element.get("type") or ""
            kind = LOOP_KINDS.get(type_)
            if kind is None:
                place.problem(f"`type` must be one of {', '.join(LOOP_KINDS)}, got {type_!r}")
            ends = _loop_ends(place)
        axis = _loop_axis(place) if kind in ("hinge", "slider") else ()
        if kind is None or ends is None or axis is None:
            return
        self.loops.append(LoopClosureRecord(name, kind, place, *ends, axis=axis or None))

    def _coupling(self, element: Element) -> None:
        name = (element.get("name") or "").strip() or f"coupling{len(self.couplings) + 1}"
        place = Place(self.robot.file, element, f"coupling `{name}`", self.robot.problems)
        record = read_coupling(place, name)
        if record is not None:
            self.couplings.append(record)

    def _frame(self, element: Element) -> None:
        name = (element.get("name") or "").strip()
        place = Place(self.robot.file, element, f"fixed_frame `{name}`", self.robot.problems)
        parent, pose = element.first("parent"), origin_of(place)
        if not name or parent is None:
            place.problem("<fixed_frame> needs the attribute `name` and an element <parent>")
            return
        link = place.inside(parent).text("link")
        if link is not None and pose is not None:
            self.frames.append(FrameRecord(name, place, link, pose))

    def _gazebo(self, place: Place) -> None:
        """Springs of joints are read, and joints that close loops."""
        for tag, field in _SPRINGS.items():
            child = place.element.first(tag)
            if child is not None:
                joint = (place.element.get("reference") or "").strip()
                number = place.inside(child).content_number()
                self._springs.setdefault(joint, {})[field] = number
        for child in place.element.all("joint"):
            if place.element.get("reference") is None:
                self.gazebo_joints.append(child)
                continue
            place.inside(child).problem(
                "a <joint> that closes a loop stands in a <gazebo> without `reference`"
            )


def _driven(robot: Element) -> frozenset[str]:
    """Return the joints of <transmission>s, and those that <ros2_control> commands."""
    found = [
        joint
        for element in robot.children
        for joint in element.children
        if joint.tag == "joint"
        and (
            element.tag == "transmission"
            or (
                element.tag == "ros2_control"
                and any(child.tag == "command_interface" for child in joint.children)
            )
        )
    ]
    names = {(joint.attributes.get("name") or "").strip() for joint in found}
    return frozenset(names - {""})


def _loop_ends(loop: Place) -> tuple[str, np.ndarray, str, np.ndarray] | None:
    ends = loop.element.all("link1", "link2")
    if not ends:
        ends = loop.element.all("predecessor", "successor")
        poses = [origin_of(loop.inside(end)) for end in ends]
    else:
        poses = [placed(loop.inside(end)) for end in ends]
    if len(ends) != 2:
        loop.problem(
            f"<{loop.element.tag}> needs two ends, <link1> and <link2> or <predecessor> and "
            f"<successor>; got {len(ends)}"
        )
        return None
    names = [loop.inside(end).text("link") for end in ends]
    if names[0] is None or names[1] is None or poses[0] is None or poses[1] is None:
        return None
    return names[0], poses[0], names[1], poses[1]


def _loop_axis(loop: Place) -> tuple | None:
    element = loop.element.first("axis")
    if element is None:
        return (1.0, 0.0, 0.0)
    axis = loop.inside(element).numbers("xyz", 3, None)
    if axis is not None and not any(axis):
        loop.problem("the axis must not be zero, got (0, 0, 0)")
        return None
    return axis


def _ball_ends(loop: Place) -> tuple[str, np.ndarray, str, np.ndarray] | None:
    parts: dict[str, Any] = {}
    for end, word, size in (
        ("body_A", "name", 0),
        ("p_AP", "value", 3),
        ("body_B", "name", 0),
        ("p_BQ", "value", 3),
    ):
        tag = f"drake:ball_constraint_{end}"
        element = loop.element.first(tag)
        if element is None:
            loop.problem(f"<drake:ball_constraint> needs an element <{tag}>")
            parts[end] = None
            continue
        inside = loop.inside(element)
        parts[end] = inside.numbers(word, size, None) if size else inside.text(word)
    a, p, b, q = parts.values()
    if a is None or b is None or p is None or q is None:
        return None
    return a, posed(np.eye(3), p), b, posed(np.eye(3), q)
