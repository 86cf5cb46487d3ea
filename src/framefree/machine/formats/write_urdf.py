"""Writing URDF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.actuators import motors
from framefree.machine.body import WORLD, Body
from framefree.machine.coupling import Linear
from framefree.machine.formats.markup import Element
from framefree.machine.formats.poses import inverse, rpy_of_rotation
from framefree.machine.formats.records import UNLIMITED
from framefree.machine.formats.urdf_shapes import MISSING
from framefree.machine.formats.writing import (
    WriteError,
    check_friction,
    check_numeric,
    checked_without,
    document,
    fixed_pose,
    is_fixed,
    is_identity,
    node,
    unused,
)
from framefree.machine.joint import Joint
from framefree.machine.joints import Continuous, Free, Planar, Prismatic, Revolute
from framefree.machine.problems import Problems

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity that readers of URDF assume."""

WITHOUT = ("actuator", "armature", "effort_limit", "gravity", "keyframe", "range", "velocity_limit")
"""What `without` may name."""

_TYPES = {
    Revolute: "revolute",
    Continuous: "continuous",
    Prismatic: "prismatic",
    Planar: "planar",
    Free: "floating",
}
_SHAPES = {
    "box": lambda s: node("box", size=s),
    "sphere": lambda s: node("sphere", radius=s[0]),
    "cylinder": lambda s: node("cylinder", radius=s[0], length=s[1]),
    "capsule": lambda s: node("capsule", radius=s[0], length=s[1]),
}


def to_urdf(machine: Machine, *, without: str | Iterable[str] = ()) -> str:
    """Return a machine as URDF text.

    The root link is `world`. Frames become links without mass. A body whose frame is not its
    joint's frame hangs, fixed, on a link without mass that the joint moves. The format has no
    actuators; motors on all joints, limited by the effort limits, are what `read` gives back.

    Parameters
    ----------
    machine : Machine
    without : one or several of `WITHOUT`
        What to leave out although it changes the motion, or is an input, a limit or a keyframe.

    Raises
    ------
    WriteError
        Naming everything that the format cannot say.
    """
    problems = Problems()
    check_numeric(machine, problems)
    writer = _UrdfWriter(machine, checked_without(without, WITHOUT), problems)
    robot = writer.robot()
    problems.raise_if_any(WriteError)
    return document(robot, writer.remarks)


class _UrdfWriter:
    def __init__(self, machine: Machine, without: set[str], problems: Problems) -> None:
        self.machine = machine
        self.without = without
        self.problems = problems
        self.remarks: list[str] = []
        self.links: dict[str, Element] = {}
        self.joints: list[Element] = []
        self.taken = {joint.name for joint in machine.joints}
        self.taken_links = {b.name for b in machine.bodies} | {f.name for f in machine.frames}
        self.mimic = self._mimics()

    def robot(self) -> Element:
        self._refuse()
        self.links[WORLD] = node("link", name=WORLD)
        for body, joint in zip(self.machine.bodies, self.machine.joints, strict=True):
            self._body(body, joint)
        for frame in self.machine.frames:
            self.links[frame.name] = node("link", name=frame.name)
            self._fix(frame.name, frame.body, np.asarray(frame.pose))
        for shape in self.machine.geometry:
            self._shape(shape)
        name = self.machine.name or "machine"
        return node("robot", *self.links.values(), *self.joints, name=name)

    # ------------------------------------------------------------------ bodies and joints

    def _body(self, body: Body, joint: Joint) -> None:
        self.links[body.name] = node("link", *_inertial(body), name=body.name)
        if is_fixed(joint):
            self._fix(body.name, joint.parent, fixed_pose(joint), joint.name)
            return
        moved = body.name
        if not is_identity(joint.child_pose):
            moved = unused(f"{body.name}_{joint.name}", self.taken_links)
            self.links[moved] = node("link", name=moved)
            self._fix(body.name, moved, inverse(np.asarray(joint.child_pose)))
        kind = _TYPES.get(type(joint.kind))
        if kind is None:
            words = type(joint.kind).__name__.lower()
            self.problems.add(f"joint `{joint.name}`: URDF has no {words} joint")
            return
        self._check(joint)
        axis = getattr(joint.kind, "axis", getattr(joint.kind, "normal", None))
        parts = [
            _origin(np.asarray(joint.parent_pose)),
            node("parent", link=joint.parent),
            node("child", link=moved),
        ]
        if axis is not None:
            parts.append(node("axis", xyz=axis))
        parts += [*_limit(joint, self.without), *_dynamics(joint), *self.mimic.get(joint.name, [])]
        self.joints.append(node("joint", *parts, name=joint.name, type=kind))

    def _fix(self, child: str, parent: str, pose: np.ndarray, name: str = "") -> None:
        name = name or unused(f"{child}_fixed", self.taken)
        ends = (node("parent", link=parent), node("child", link=child))
        self.joints.append(node("joint", _origin(pose), *ends, name=name, type="fixed"))

    def _mimics(self) -> dict[str, list[Element]]:
        mimics: dict[str, list[Element]] = {}
        for coupling in self.machine.couplings:
            plain = set(coupling.coordinates) <= {j.name for j in self.machine.joints if j.nx == 1}
            if not isinstance(coupling.law, Linear) or len(coupling.sources) != 1 or not plain:
                self.problems.add(
                    f"coupling `{coupling.name}`: URDF has only mimic joints, linear in one other"
                )
                continue
            factor, offset = float(coupling.law.multipliers[0]), coupling.law.offset
            mimic = node("mimic", joint=coupling.sources[0], multiplier=factor, offset=offset)
            mimics.setdefault(coupling.target, []).append(mimic)
        return mimics

    # ------------------------------------------------------------------ what cannot be said

    def _refuse(self) -> None:
        machine, add = self.machine, self.problems.add
        for group in ("springs", "dampers", "tendons", "interactions", "loops"):
            for part in getattr(machine, group):
                add(f"{type(part).__name__.lower()} `{part.name}`: URDF has none")
        if machine.fluid is not None:
            add("the fluid: URDF has none")
        if not np.array_equal(machine.gravity, GRAVITY) and "gravity" not in self.without:
            add(
                f"gravity {np.asarray(machine.gravity).tolist()}: URDF does not say it, and "
                'readers take (0, 0, -9.81); `without="gravity"` leaves it out'
            )
        self._refuse_actuators()
        if machine.keyframes and "keyframe" not in self.without:
            add(
                f"{len(machine.keyframes)} keyframes: URDF has none; "
                '`without="keyframe"` leaves them out'
            )

    def _refuse_actuators(self) -> None:
        machine = self.machine
        driven = {coupling.target for coupling in machine.couplings}
        free = [j for j in machine.joints if j.name not in driven and not isinstance(j.kind, Free)]
        if machine.actuators and set(machine.actuators) != set(motors(free)):
            if "actuator" in self.without:
                self.remarks.append(f"{len(machine.actuators)} actuators were left out")
                return
            self.problems.add(
                "the actuators are not one motor on each joint, limited by its effort limits, and "
                'URDF has no actuators; `without="actuator"` leaves them out'
            )

    def _check(self, joint: Joint) -> None:
        check_friction(joint, self.problems)
        if np.any(joint.armature) and "armature" not in self.without:
            self.problems.add(
                f'joint `{joint.name}`: URDF has no armature; `without="armature"` leaves it out'
            )
        if joint.has_spring:
            self.problems.add(f"joint `{joint.name}`: URDF has no joint springs")
        for name in ("damping", "friction", "velocity_limit", "effort_limit"):
            if name not in self.without and len(set(np.asarray(getattr(joint, name)).tolist())) > 1:
                self.problems.add(f"joint `{joint.name}`: `{name}` must be one number in URDF")
        if np.any(joint.friction_asymmetry):
            self.problems.add(f"joint `{joint.name}`: URDF has one friction for both directions")
        self._check_limits(joint)

    def _check_limits(self, joint: Joint) -> None:
        """Refuse limits that URDF cannot say, or that read as none: those without room."""
        limited = np.isfinite(joint.lower) | np.isfinite(joint.upper)
        least, most = joint.effort_range
        for word, wrong, reason in (
            ("range", joint.nx > 1 and limited.any(), "no limits of such a joint"),
            ("range", joint.nx == 1 and joint.lower[0] == joint.upper[0], "limits with room only"),
            ("effort_limit", (least != -most).any(), "one effort for both directions"),
            ("effort_limit", (most == 0).any(), "no effort limit of zero"),
            ("velocity_limit", (joint.velocity_limit == 0).any(), "no velocity limit of zero"),
        ):
            if wrong and word not in self.without:
                self.problems.add(
                    f'joint `{joint.name}`: URDF has {reason}; `without="{word}"` leaves it out'
                )

    def _shape(self, shape: Any) -> None:
        link = self.links.get(shape.frame)
        if shape.kind == "mesh":
            solid = node("mesh", filename=shape.file.removeprefix(MISSING), scale=shape.size)
        elif shape.kind in _SHAPES:
            solid = _SHAPES[shape.kind](shape.size)
        else:
            self.remarks.append(f"a {shape.kind} drawn on `{shape.frame}` is not part of URDF")
            return
        if link is not None:
            color = node("color", rgba=shape.color)
            parts = [_origin(np.asarray(shape.pose)), node("geometry", solid)]
            if shape.role == "visual":
                parts.append(node("material", color, name=f"color_{len(link.children)}"))
            link.children.append(node(shape.role, *parts))


def _origin(pose: np.ndarray) -> Element:
    return node("origin", xyz=pose[:3, 3], rpy=rpy_of_rotation(pose[:3, :3]))


def _inertial(body: Body) -> list[Element]:
    if body.inertia is None:
        return []
    m = body.moments
    I = m.moment_at_center
    inertia = node(
        "inertia", ixx=I[0, 0], ixy=I[0, 1], ixz=I[0, 2], iyy=I[1, 1], iyz=I[1, 2], izz=I[2, 2]
    )
    return [node("inertial", node("origin", xyz=m.center), node("mass", value=m.total), inertia)]


def _limit(joint: Joint, without: set[str]) -> list[Element]:
    none = np.full(joint.nv, np.inf)
    effort = float(np.min(none if "effort_limit" in without else joint.effort_limit))
    velocity = float(np.min(none if "velocity_limit" in without else joint.velocity_limit))
    bounded = joint.nx == 1
    lower, upper = (joint.lower[0], joint.upper[0]) if bounded else (None, None)
    if bounded and "range" in without:
        lower, upper = -np.inf, np.inf
    if not bounded and np.isinf([effort, velocity]).all():
        return []
    limits = {"lower": lower, "upper": upper, "effort": effort, "velocity": velocity}
    return [node("limit", **{k: _finite(v) for k, v in limits.items()})]


def _finite(value: Any) -> float | None:
    return None if value is None else float(np.clip(value, -UNLIMITED, UNLIMITED))


def _dynamics(joint: Joint) -> list[Element]:
    damping, friction = float(joint.damping[0]), float(joint.friction[0])
    return [node("dynamics", damping=damping, friction=friction)] if damping or friction else []
