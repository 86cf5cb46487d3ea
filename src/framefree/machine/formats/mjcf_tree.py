"""Bodies, joints and frames of a compiled MuJoCo model.

MuJoCo's joints sit in the child body and act one after the other,

    G_parent_child = G_0  J_1(q_1) ... J_n(q_n),    J = T(pos) K(q - ref) T(-pos)

with K the turn about, or the shift along, the joint's axis. Each becomes a joint of its own, with a
massless body between two, and x = q: the reference goes into the parent pose. Bodies without
joints become part of their parent and stay as frames, or are kept with a Fixed joint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.geometry.moments import Moments, MomentsError
from framefree.machine.body import WORLD, Body
from framefree.machine.formats.mjcf_engine import column, enabled, ends, part_names, value
from framefree.machine.formats.mjcf_text import Document
from framefree.machine.formats.options import ReadOptions
from framefree.machine.formats.poses import pose_of_quaternion, posed
from framefree.machine.frame import Frame
from framefree.machine.joint import Joint
from framefree.machine.joints import Fixed, Free, JointKind, Prismatic, Revolute, Spherical
from framefree.machine.problems import MachineError, Problems, known_names

FREE, BALL, SLIDE, HINGE = range(4)
"""Values of `jnt_type`."""
_WORDS = {FREE: "free", BALL: "ball", SLIDE: "slide", HINGE: "hinge"}


class MjcfTree:
    """A model's bodies, joints and frames, and where each MuJoCo body went.

    Attributes
    ----------
    bodies, joints, frames : lists
    place : list of (body name, 4x4 pose)
        For each MuJoCo body, the body it is part of and its pose there.
    body_names : list of str
        For each MuJoCo body, the name of its body or frame here.
    joint_names : dict of int to str
        Names of the MuJoCo joints that are joints here.
    site_names : list of str
    driven : dict of int to list of (int, float)
        For MuJoCo joints, the actuators that drive them directly, with their gears.
    smooth_friction : list of str
        Joints and tendons whose `frictionloss` became smooth friction.
    """

    def __init__(
        self, model: Any, document: Document, options: ReadOptions, problems: Problems
    ) -> None:
        self.model = model
        self.document = document
        self.options = options
        self.problems = problems
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.ignored: list[str] = []
        self.remarks: list[str] = []
        self.place: list[tuple[str, np.ndarray]] = [(WORLD, np.eye(4))]
        self.body_names: list[str] = [WORLD]
        self.joint_names: dict[int, str] = {}
        self.smooth_friction: list[str] = []
        self._moments: dict[str, list[Moments]] = {}
        self._parts: list[tuple[str, str]] = []
        self._taken = {WORLD, *(model.body(i).name for i in range(1, model.nbody))}
        self._joints_taken = {model.joint(i).name for i in range(model.njnt)}
        self.driven = driven_joints(model)
        self._floating = self._floating_root()
        for i in range(1, model.nbody):
            self._add_body(i)
        for name, where in self._parts:
            self._make_body(name, where)
        sites = part_names(model, "site", model.nsite)
        self.site_names = [self._add_site(i, site) for i, site in enumerate(sites)]

    def frame_at(self, body: int, pose: np.ndarray, name: str) -> Frame:
        """Return a frame of a new name at a pose on a MuJoCo body."""
        at, offset = self.place[body]
        return Frame(self.unused(name), at, offset @ pose)

    def frame_on(self, body: int, pose: np.ndarray, name: str) -> str:
        """Return the name of a frame at a pose on a MuJoCo body, such as of a geom.

        It is the frame or site of that name if there is one at this place, otherwise a new one.
        """
        at, offset = self.place[body]
        for frame in self.frames:
            if frame.name == name and frame.body == at and np.allclose(frame.pose, offset @ pose):
                return name
        frame = self.frame_at(body, pose, name)
        self.frames.append(frame)
        return frame.name

    def unused(self, name: str) -> str:
        """Return this name, or a longer one that no body or frame has; it is taken from now on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    # ------------------------------------------------------------------ bodies

    def _add_body(self, i: int) -> None:
        model = self.model
        own_name = model.body(i).name
        name = own_name or self.unused(f"body{i}")
        self.body_names.append(name)
        where = self.document.where("body", own_name, i)
        parent, offset = self.place[model.body_parentid[i]]
        pose = offset @ pose_of_quaternion(model.body_pos[i], model.body_quat[i])
        first = int(model.body_jntadr[i])
        joints = range(first, first + int(model.body_jntnum[i]))
        if self.options.base == "fixed":
            joints = [j for j in joints if model.jnt_type[j] != FREE]
        if i == self._floating:
            self._move(name, where, Joint(self._unused_joint("base"), Free(), WORLD, name))
        elif joints:
            self._add_joints(list(joints), name, where, parent, pose)
        elif self.options.keep_fixed:
            joint = self._unused_joint(f"{name}_fixed")
            self._move(name, where, Joint(joint, Fixed(), parent, name, pose))
        else:
            self.place.append((parent, pose))
            self.frames.append(Frame(name, parent, pose))
            self._add_mass(i, name, parent, pose, where)
            return
        self.place.append((name, np.eye(4)))
        self._add_mass(i, name, name, np.eye(4), where)

    def _move(self, name: str, where: str, joint: Joint) -> None:
        self._parts.append((name, where))
        self.joints.append(joint)

    def _add_mass(self, i: int, name: str, body: str, pose: np.ndarray, where: str) -> None:
        model = self.model
        mass = float(model.body_mass[i])
        if mass <= 0.0:
            return
        if body == WORLD:
            self.ignored.append(f"the mass of body `{name}`, {mass:g} kg: it is fixed to the world")
            return
        inner = pose_of_quaternion(model.body_ipos[i], model.body_iquat[i])
        R = inner[:3, :3]
        try:
            own = Moments.of_body(mass, inner[:3, 3], R @ np.diag(model.body_inertia[i]) @ R.T)
            self._moments.setdefault(body, []).append(own.moved(pose))
        except MomentsError as error:
            self.problems.add(str(error), where)

    def _make_body(self, name: str, where: str) -> None:
        parts = self._moments.get(name)
        with self.problems.at(where):
            moments = sum(parts[1:], parts[0]) if parts else None
            self.bodies.append(Body(name, moments, strict=self.options.strict, source=where))

    def _floating_root(self) -> int:
        """Return the body that `base="free"` lets float, 0 if there is none to let."""
        model = self.model
        if self.options.base != "free" or any(model.jnt_type == FREE):
            return 0
        roots = [
            i
            for i in range(1, model.nbody)
            if model.body_parentid[i] == 0 and model.body_subtreemass[i] > 0
        ]
        if len(roots) == 1 and model.body_jntnum[roots[0]] == 0:
            return roots[0]
        self.problems.add(
            'base="free" needs a model with one body in the world, without joints; got '
            f"{len(roots)} bodies" + (" with joints" if len(roots) == 1 else "")
        )
        return 0

    def _add_site(self, i: int, site: str) -> str:
        model = self.model
        pose = pose_of_quaternion(model.site_pos[i], model.site_quat[i])
        name = f"{site}_site" if site in self._taken else site
        frame = self.frame_at(int(model.site_bodyid[i]), pose, name)
        if frame.name != site:
            self.remarks.append(
                f"{self.document.where('site', site)}: the frame is called `{frame.name}`: "
                f"`{site}` is taken by a body"
            )
        self.frames.append(frame)
        return frame.name

    # ------------------------------------------------------------------ joints

    def _add_joints(
        self, joints: list[int], body: str, where: str, parent: str, pose: np.ndarray
    ) -> None:
        """Chain of joints that ends in a body, with massless bodies between them."""
        for j in joints:
            own_name = self.model.joint(j).name
            name = own_name or self._unused_joint(f"{body}_{_WORDS[int(self.model.jnt_type[j])]}")
            self.joint_names[j] = name
            child = body if j == joints[-1] else self.unused(f"{body}_{name}")
            at = self.document.where("joint", own_name, j)
            try:
                joint = self._joint(j, name, parent, child, pose)
            except MachineError as error:
                self.problems.extend(error.problems, at)
                joint = Joint(name, Fixed(), parent, child)
            self._move(child, where, joint)
            parent, pose = child, np.eye(4)

    def _joint(self, j: int, name: str, parent: str, child: str, pose: np.ndarray) -> Joint:
        model, kind = self.model, self._kind(j)
        if isinstance(kind, Free):
            pose, anchor = np.eye(4), np.eye(4)
        else:
            anchor = posed(np.eye(3), model.jnt_pos[j])
            pose = pose @ anchor @ self._at_reference(j, kind)
        dof, q = int(model.jnt_dofadr[j]), int(model.jnt_qposadr[j])
        v = slice(dof, dof + kind.nv)
        lower, upper = self._limits(j)
        effort = self._effort(j)
        motor_damping, motor_armature = self._from_actuators(j)
        spring = float(model.jnt_stiffness[j]) if enabled(model, "SPRING") else 0.0
        rest = np.array(model.qpos_spring[q : q + kind.nx])
        return Joint(
            name,
            kind,
            parent,
            child,
            pose,
            anchor,
            lower=lower,
            upper=upper,
            effort_lower=effort[0],
            effort_limit=effort[1],
            armature=model.dof_armature[v] + motor_armature,
            damping=(model.dof_damping[v] + motor_damping) if enabled(model, "DAMPER") else 0.0,
            friction=self._friction(name, v),
            stiffness=spring,
            rest=_unit(rest) if isinstance(kind, Spherical) else rest if spring else None,
            source=self.document.where("joint", self.model.joint(j).name, j),
        )

    def _friction(self, name: str, v: slice) -> Any:
        friction = self.model.dof_frictionloss[v]
        if not enabled(self.model, "FRICTIONLOSS") or not friction.any():
            return 0.0
        self.smooth_friction.append(name)
        return friction

    def _kind(self, j: int) -> JointKind:
        kind, axis = int(self.model.jnt_type[j]), np.array(self.model.jnt_axis[j])
        if kind == HINGE:
            return Revolute(axis)
        if kind == SLIDE:
            return Prismatic(axis)
        return Spherical() if kind == BALL else Free()

    def _at_reference(self, j: int, kind: JointKind) -> np.ndarray:
        """K(-ref): what the joint's pose lacks when its coordinate is the reference."""
        reference = float(self.model.qpos0[self.model.jnt_qposadr[j]])
        if isinstance(kind, Spherical) or reference == 0.0:
            return np.eye(4)
        if isinstance(kind, Prismatic):
            return posed(np.eye(3), -reference * np.asarray(kind.axis))
        half = -reference / 2
        axis = np.asarray(getattr(kind, "axis", None))
        return pose_of_quaternion(np.zeros(3), [np.cos(half), *(np.sin(half) * axis)])

    def _limits(self, j: int) -> tuple[Any, Any]:
        model = self.model
        if not model.jnt_limited[j]:
            return -np.inf, np.inf
        if model.jnt_type[j] in (HINGE, SLIDE):
            return ends(model.jnt_range[j])
        self.ignored.append(f"the range of joint `{self.joint_names[j]}`: limits of a ball")
        return -np.inf, np.inf

    def _effort(self, j: int) -> tuple[float, float]:
        """Least and largest force of all actuators on a joint."""
        model = self.model
        if not model.jnt_actfrclimited[j]:
            return -np.inf, np.inf
        if column(model, "jnt_actgravcomp", j):
            self.remarks.append(
                f"{self.document.where('joint', model.joint(j).name, j)}: `actuatorfrcrange` does "
                "not bound the part of the actuators' force that `actuatorgravcomp` asks for"
            )
        return ends(model.jnt_actfrcrange[j])

    def _from_actuators(self, j: int) -> tuple[float, float]:
        """Damping and armature that actuators give their joint, each through its gear."""
        damping = armature = 0.0
        for a, gear in self.driven.get(j, ()):
            damping += gear * gear * float(np.ravel(column(self.model, "actuator_damping", a))[0])
            armature += gear * gear * float(column(self.model, "actuator_armature", a))
        return damping, armature

    @property
    def friction_notes(self) -> list[str]:
        """What became of dry friction, in words."""
        if not self.smooth_friction:
            return []
        return [
            f"the sticking of `frictionloss` ({known_names(self.smooth_friction, 6)}): friction is "
            f"smooth here, and creeps below {self.options.friction_width:g} rad/s or m/s; a "
            "smaller `friction_width` lets it stick"
        ]

    def _unused_joint(self, name: str) -> str:
        while name in self._joints_taken:
            name += "_"
        self._joints_taken.add(name)
        return name


def driven_joints(model: Any) -> dict[int, list[tuple[int, float]]]:
    """Return actuators with their gears by the joint that each drives directly."""
    driven: dict[int, list[tuple[int, float]]] = {}
    on_joints = [value("mjtTrn", f"mjTRN_{name}") for name in ("JOINT", "JOINTINPARENT")]
    for a in range(int(getattr(model, "nactuator", model.nu))):
        if int(model.actuator_trntype[a]) in on_joints:
            gear = float(model.actuator_gear[a, 0])
            driven.setdefault(int(model.actuator_trnid[a, 0]), []).append((a, gear))
    return driven


def _unit(wxyz: np.ndarray) -> np.ndarray:
    return wxyz / np.linalg.norm(wxyz)
