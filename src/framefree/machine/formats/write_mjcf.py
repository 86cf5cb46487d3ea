"""Writing MJCF.

Our joint between two bodies, G_parent_child = P K(x) C^-1, is written as MuJoCo's, which sits in
the child body: P C^-1 is the body's pose and the joint has the position and axis of C K C^-1. A
massless body between two joints becomes a body with several joints. Joints of several motions are
written as slides and hinges one after the other; angles replace (cos, sin) pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.actuators import motor_range
from framefree.machine.body import WORLD, Body
from framefree.machine.formats.markup import Element
from framefree.machine.formats.poses import inverse, quaternion_of_rotation
from framefree.machine.formats.write_mjcf_fluid import FluidWriter
from framefree.machine.formats.write_mjcf_forces import actuators, equalities, keyframes
from framefree.machine.formats.write_mjcf_joints import JointWriter, check_limits, is_plain_free
from framefree.machine.formats.write_mjcf_tendons import (
    compensation,
    tendons,
    written_as_compensation,
)
from framefree.machine.formats.writing import (
    WriteError,
    check_numeric,
    checked_without,
    document,
    fixed_pose,
    is_fixed,
    node,
    unused,
)
from framefree.machine.joint import Joint
from framefree.machine.joints import Free, Spherical
from framefree.machine.problems import Problems

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

WITHOUT = (
    *("actuator", "damper", "equality", "fluid", "interaction", "spring", "tendon"),
    *("effort_limit", "range", "velocity_limit"),
)
"""What `without` may name."""

SMALLEST = 1e-14
"""MuJoCo refuses moving bodies with less mass (kg) or inertia (kg m^2) than 1e-15."""


def to_mjcf(machine: Machine, *, without: str | Iterable[str] = (), meshes: bool = False) -> str:
    """Return a machine as MJCF text.

    Parameters
    ----------
    machine : Machine
    without : one or several of "actuator", "equality", "spring", "damper", "interaction", "tendon",
        "fluid"
        What to leave out although it changes the motion; or "range", "velocity_limit" and
        "effort_limit" of joints, which are data.
    meshes : bool
        Write meshes too, by their path. A text that names files can be read only from a file in
        their folder, and MuJoCo reads STL, OBJ and MSH only.

    Raises
    ------
    WriteError
        Naming everything that the format cannot say.
    """
    problems = Problems()
    check_numeric(machine, problems)
    writer = _MjcfWriter(machine, checked_without(without, WITHOUT), problems)
    root = writer.model(meshes)
    problems.raise_if_any(WriteError)
    return document(root, writer.remarks)


class _MjcfWriter:
    def __init__(self, machine: Machine, without: set[str], problems: Problems) -> None:
        self.machine = machine
        self.without = without
        self.problems = problems
        self.remarks: list[str] = []
        self.nodes: dict[str, Element] = {WORLD: node("worldbody")}
        self.joints = JointWriter(problems, without, self._implied())
        self.merged = self._massless()
        self.names = {body.name for body in machine.bodies}
        self.fluid: FluidWriter | None = None
        if machine.fluid is not None and "fluid" not in without:
            self.fluid = FluidWriter(machine, problems)
        self.compensated = {} if self.fluid is not None else compensation(machine)

    def model(self, meshes: bool) -> Element:
        machine = self.machine
        self._refuse()
        for body, joint in zip(machine.bodies, machine.joints, strict=True):
            if body.name not in self.merged:
                self._body(body, joint)
        for frame in machine.frames:
            self._site(frame.name, frame.body, np.asarray(frame.pose))
        assets = self._shapes(meshes)
        equal, driven, cables = node("equality"), node("actuator"), node("tendon")
        if "tendon" not in self.without:
            cables = tendons(machine, self._add_to, self.problems)
        if "equality" not in self.without:
            equal = equalities(machine, self._site, cables, self.problems)
        if "actuator" not in self.without:
            driven = actuators(machine, self._site, self.problems)
        keys = keyframes(machine, "actuator" in self.without, self.problems)
        # Without this MuJoCo would add the mass of what is only drawn.
        compiler = node("compiler", angle="radian", inertiafromgeom="false", autolimits="false")
        around = {} if self.fluid is None else self.fluid.options
        option = node("option", gravity=machine.gravity, **around)
        sections = [compiler, option, assets, self.nodes[WORLD], cables, equal, driven, keys]
        optional = {"asset", "tendon", "equality", "actuator", "keyframe"}
        kept = [part for part in sections if part.children or part.tag not in optional]
        return node("mujoco", *kept, model=machine.name or None)

    def _implied(self) -> set[str]:
        """Return the joints whose limits of effort are those of their motors: MuJoCo's count more.

        `actuatorfrcrange` bounds what actuators on sites do to a joint, too.
        """
        machine, implied = self.machine, set()
        for joint in machine.joints if "actuator" not in self.without else ():
            if joint.nv == 1:
                low, high = motor_range(joint, machine.actuators, machine.tendons)
                lower, upper = (float(side[0]) for side in joint.effort_range)
                if low < high and lower <= low and upper >= high:
                    implied.add(joint.name)
        return implied

    # ------------------------------------------------------------------ bodies

    def _massless(self) -> set[str]:
        """Return bodies without mass that only join two joints, to be written as one body."""
        machine, names = self.machine, set()
        used = {frame.body for frame in machine.frames}
        for i, (body, joint) in enumerate(zip(machine.bodies, machine.joints, strict=True)):
            if body.inertia is not None or is_fixed(joint):
                continue
            below = machine.children[i]
            single = len(below) == 1 and not is_fixed(machine.joints[below[0]])
            if single and body.name not in used and not isinstance(joint.kind, Spherical | Free):
                names.add(body.name)
            elif not self._carries_fixed_mass(i):
                self.problems.add(
                    f"body `{body.name}` has no mass: MuJoCo moves none, except between two joints "
                    "and without frames on it"
                )
        return names

    def _carries_fixed_mass(self, i: int) -> bool:
        """Whether a body without mass carries some on bodies that are fixed to it."""
        for child in self.machine.children[i]:
            if is_fixed(self.machine.joints[child]) and (
                self.machine.bodies[child].inertia is not None or self._carries_fixed_mass(child)
            ):
                return True
        return False

    def _body(self, body: Body, joint: Joint) -> None:
        """Write a body with its joint, and the joints of massless bodies above it."""
        if is_fixed(joint):
            self._add(body, joint.parent, fixed_pose(joint), [])
            return
        chain = [joint]
        while chain[0].parent in self.merged:
            above = self.machine.body_index[chain[0].parent]
            chain.insert(0, self.machine.joints[above])
        C = np.asarray(joint.child_pose)
        if is_plain_free(joint):
            damping = float(joint.damping[0]) or None
            free = node("joint", name=joint.name, type="free", damping=damping)
            self._add(body, WORLD, np.eye(4), [free])
            return
        # poses of the joint frames in the last body when all joints are neutral
        at, frames = np.eye(4), []
        for one in reversed(chain):
            frames.insert(0, at @ np.asarray(one.child_pose))
            at = frames[0] @ inverse(np.asarray(one.parent_pose))
        along = np.array_equal(C[:3, :3], np.eye(3))
        if isinstance(joint.kind, Spherical | Free) and not along:
            frames = [inverse(C) @ F for F in frames]
            self._add_turned(body, chain[0].parent, inverse(at), chain, frames)
        else:
            self._add(body, chain[0].parent, inverse(at), self._motions(chain, frames))

    def _add_turned(
        self,
        body: Body,
        parent: str,
        pose: np.ndarray,
        chain: list[Joint],
        frames: list[np.ndarray],
    ) -> None:
        """Write a ball whose axes are not the body's on a body of its own, with the body fixed."""
        C = np.asarray(chain[-1].child_pose)
        name = f"{body.name}_{chain[-1].name}"
        self._add(Body(name, None), parent, pose @ C, self._motions(chain, frames))
        self._add(body, name, inverse(C), [])

    def _motions(self, chain: list[Joint], frames: list[np.ndarray]) -> list[Element]:
        pairs = zip(chain, frames, strict=True)
        return [motion for joint, frame in pairs for motion in self.joints.write(joint, frame)]

    def _add(self, body: Body, parent: str, pose: np.ndarray, joints: list[Element]) -> None:
        share = self.compensated.get(body.name)
        element = node("body", name=body.name, **_placed(pose), gravcomp=share)
        element.children += joints
        if self.fluid is None:
            element.children += self._inertial(body)
        else:
            self._in_fluid(body, element)
        self.nodes[body.name] = element
        self.nodes[parent].children.append(element)

    def _in_fluid(self, body: Body, element: Element) -> None:
        """Write a body's mass so that MuJoCo gives it the drag it has here."""
        assert self.fluid is not None
        pieces = self.fluid.pieces.get(body.name, [])
        if not pieces:
            element.children += [*self._inertial(body), *self.fluid.geoms(body.name)]
            return
        element.children.append(pieces[0].element)
        for piece in pieces[1:]:
            name = unused(f"{piece.name}_body", self.names)
            element.children.append(node("body", piece.element, name=name))

    def _inertial(self, body: Body) -> list[Element]:
        if body.inertia is None:
            return []
        m = body.moments
        sizes, axes = np.linalg.eigh(m.moment_at_center)
        if sizes[0] < SMALLEST or m.total < SMALLEST or body.problems:
            self.problems.add(
                f"body `{body.name}`: MuJoCo needs principal moments of inertia that are positive "
                f"and keep the triangle inequality, got {sizes.tolist()} kg m^2"
            )
            return []
        axes = axes * np.linalg.det(axes)
        quat = quaternion_of_rotation(axes)
        return [node("inertial", pos=m.center, quat=quat, mass=m.total, diaginertia=sizes)]

    # ------------------------------------------------------------------ the rest

    def _add_to(self, body: str, element: Element) -> None:
        if body in self.nodes:
            self.nodes[body].children.append(element)

    def _site(self, name: str, body: str, pose: np.ndarray) -> str:
        """Write a site and return its name."""
        if body in self.nodes:
            self.nodes[body].children.append(node("site", name=name, **_placed(pose)))
        return name

    def _shapes(self, meshes: bool) -> Element:
        assets, left_out = node("asset"), 0
        for shape in self.machine.geometry:
            frame = self.machine.frame(shape.frame)
            pose = np.asarray(frame.pose) @ np.asarray(shape.pose)
            sizes = _GEOMS.get(shape.kind)
            group = 1 if shape.role == "visual" else 3
            common = {"contype": 0, "conaffinity": 0, "group": group, "rgba": shape.color}
            if sizes is not None and frame.body in self.nodes:
                geom = node(
                    "geom", type=shape.kind, size=sizes(shape.size), **_placed(pose), **common
                )
            elif shape.kind == "mesh" and meshes and frame.body in self.nodes:
                name = f"mesh{len(assets.children)}"
                assets.children.append(node("mesh", name=name, file=shape.file, scale=shape.size))
                geom = node("geom", type="mesh", mesh=name, **_placed(pose), **common)
            else:
                left_out += 1
                continue
            self.nodes[frame.body].children.append(geom)
        if self.machine.collisions:
            self.remarks.append("contact of the geoms of its file is left out")
        if left_out:
            self.remarks.append(f"{left_out} shapes are left out (`meshes=True` writes meshes)")
        return assets

    def _refuse(self) -> None:
        machine = self.machine
        check_limits(machine.joints, self.without, self.problems)
        said = () if self.fluid is not None else written_as_compensation(machine)
        for group, word in (
            ("springs", "spring"),
            ("dampers", "damper"),
            ("interactions", "interaction"),
        ):
            for part in getattr(machine, group):
                if part not in said:
                    self._refuse_one(word, f"{word} `{part.name}`: MJCF has none between bodies")
        if machine.fluid is not None and "fluid" in self.without:
            self.remarks.append("the fluid (left out on request)")

    def _refuse_one(self, word: str, message: str) -> None:
        if word in self.without:
            self.remarks.append(f"{message} (left out on request)")
        else:
            self.problems.add(f'{message}; `without="{word}"` leaves it out')


_GEOMS = {
    "box": lambda s: s / 2,
    "sphere": lambda s: s,
    "cylinder": lambda s: [s[0], s[1] / 2],
    "capsule": lambda s: [s[0], s[1] / 2],
    "ellipsoid": lambda s: s,
    "plane": lambda s: [s[0] / 2, s[1] / 2, 0.1],
}


def _placed(pose: np.ndarray) -> dict[str, Any]:
    return {"pos": pose[:3, 3], "quat": quaternion_of_rotation(pose[:3, :3])}
