"""A body with the joint that carries it: its constants, and the steps that all sweeps share.

Everything is in the axes of the body's link, see `framefree.motion.tree.links`. Motions that the
joints allow are found by elimination from the tips inwards (`framefree.motion.maximal.graph`): with
loads h_i on the bodies and the wrench w_i that joint i passes from its parent p,

    M_i a_i = h_i + w_i - sum_children X_c^T w_c,      a_i = X_i a_p + b_i + S_i y_i
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine import Joint
from framefree.machine.part import plain
from framefree.machine.values import constant
from framefree.motion.elimination import BodyFactor, EliminatedLoad, directions
from framefree.motion.loops.packing import LiftedNumbers
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist
from framefree.motion.tree import Tree
from framefree.motion.tree.links import Link


class LinkPose(NamedTuple):
    """Pose of a link seen from the world."""

    R: Matrix
    r: Matrix

    @property
    def matrix(self) -> Matrix:
        """The same as 4x4."""
        return se3.pose(self.R, self.r)


@dataclass(frozen=True)
class BodyMath:
    """A body with its joint.

    Attributes
    ----------
    link : Link
        With its own places of x and v: they begin at 0.
    joint : Joint
    inertia : Inertia
        In link axes, added mass included.
    gravity : (3,)
    own : Matrix
        A constant matrix that whoever sweeps gives to every body; a law's damping, for instance.
    """

    link: Link
    joint: Joint
    inertia: Inertia
    gravity: Matrix
    own: Matrix

    @classmethod
    def of(cls, model: Tree, i: int, own: Any) -> "BodyMath":
        """Return body i of a machine."""
        link, kind = model.links[i], model.links[i].kind
        link = replace(link, x=slice(0, kind.nx), v=slice(0, kind.nv))
        machine = model.machine
        gravity = ca.SX(constant(machine.gravity))
        return cls(link, machine.joints[i], model.inertias[i], gravity, ca.SX(constant(own)))

    @classmethod
    def for_all(
        cls, model: Tree, members: Sequence[int], own: Sequence[Any], lift: LiftedNumbers
    ) -> "BodyMath":
        """Return one that stands for alike bodies; numbers in which they differ are symbols."""
        links = [model.links[i] for i in members]
        joints = [model.machine.joints[i] for i in members]
        one, of = cls.of(model, members[0], own[members[0]]), lift.matrix
        link = replace(
            one.link,
            start=of([link.start for link in links]),
            to_body=of([link.to_body for link in links]),
            to_joint=of([link.to_joint for link in links]),
            inertia=Inertia.of(of([link.inertia.matrix for link in links])),
            armature=of([link.armature for link in links]),
        )
        names = ["damping"] if np.any(joints[0].damping) else []
        names += ["friction", "friction_width"] if joints[0].has_friction else []
        names += ["stiffness", "rest"] if joints[0].has_spring else []
        numbers = {name: of([ca.DM(getattr(joint, name)) for joint in joints]) for name in names}
        return replace(
            one,
            link=link,
            joint=replace(joints[0], **numbers),
            inertia=Inertia.of(of([model.inertias[i].matrix for i in members])),
            own=of([constant(own[i]) for i in members]),
        )

    @cached_property
    def on_body(self) -> Step:
        """Pose of the body's frame on the link's."""
        return Step(se3.rotation(self.link.to_body), se3.position(self.link.to_body))

    @cached_property
    def on_link(self) -> Step:
        """Pose of the link's frame on the body's."""
        G = se3.inverse(self.link.to_body)
        return Step(se3.rotation(G), se3.position(G))

    @property
    def grounded(self) -> bool:
        """Whether the joint hangs on the world."""
        return self.link.parent < 0

    # ------------------------------------------------------------------ the joint

    def unit(self, x: Matrix) -> Matrix:
        """Return the joint's coordinates, quaternions and (cos, sin) pairs at unit length."""
        return ca.SX(self.link.kind.normalise(x))

    def step(self, x: Matrix) -> Step:
        """Return the pose of the link on its parent's at joint coordinates x of any length."""
        return self.link.step(self.unit(x))

    def subspace(self, x: Matrix) -> Matrix:
        """Return the joint's subspace S (6 x nv) at joint coordinates x of any length."""
        return self.link.subspace(self.unit(x))

    # ------------------------------------------------------------------ between link and body

    def body_pose(self, pose: LinkPose) -> Matrix:
        """Return the pose (4x4) of the body's frame."""
        return se3.compose(pose.matrix, self.link.to_body)

    def body_twist(self, twist: Twist) -> Matrix:
        """Return a twist (6) of the link in body axes."""
        return self.on_body.twist_into(twist).vector

    def twist_to_link(self, twist: Matrix) -> Matrix:
        """Return a twist (6) of the body's frame in link axes."""
        return self.on_link.twist_into(Twist.of(twist)).vector

    def to_body(self, wrench: Matrix) -> Matrix:
        """Return a wrench (6) on the link in body axes."""
        return self.on_link.wrench_out(SpatialWrench.of(wrench)).vector

    def to_link(self, wrench: Matrix) -> Matrix:
        """Return a wrench (6) on the body's frame in link axes."""
        return self.on_body.wrench_out(SpatialWrench.of(wrench)).vector

    # ------------------------------------------------------------------ loads

    def known(self, pose: LinkPose, twist: Twist, passive: Matrix | None) -> Matrix:
        """Return what acts beside joints and port: weight, gyroscopic wrench, and `passive` (6)."""
        rigid = self.link.inertia
        load = rigid.times(Twist(pose.R.T @ self.gravity, ca.SX(3, 1)))
        load = load.minus(twist.cross_wrench(rigid.times(twist))).vector
        return load if passive is None else load + passive

    def resistance(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the force (nv) of the joint's spring, damping and friction; they resist."""
        joint = self.joint
        force = ca.SX(joint.damping_force(v))
        if joint.has_spring:
            force += joint.spring_force(x)
        if joint.has_friction:
            force += joint.friction_force(v)
        return force

    # ------------------------------------------------------------------ elimination

    def factor(self, x: Matrix, step: Step, carried: Matrix | None) -> tuple[BodyFactor, Matrix]:
        """Eliminate the body; return also what its parent feels of its inertia (6x6)."""
        M = self.inertia if carried is None else self.inertia.plus(Inertia.of(carried))
        factor = BodyFactor.of(directions(self.link, x), self.link.armature, M.matrix)
        return factor, step.inertia_out(Inertia.of(factor.shown)).matrix

    def inward(
        self,
        step: Step,
        factor: BodyFactor,
        load: Matrix | None,
        carried: Matrix | None,
        drive: Matrix | None,
        bias: Matrix | None,
    ) -> tuple[EliminatedLoad, Matrix]:
        """Eliminate the body from the right side; return also the load (6) on its parent."""
        total = ca.SX(6, 1) if load is None else load
        total = total if carried is None else total + carried
        drive = ca.SX(self.link.kind.nv, 1) if drive is None else drive
        eliminated = factor.inward(total, drive, bias)
        passed = step.wrench_out(SpatialWrench.of(eliminated.passed)).vector
        return eliminated._replace(passed=ca.SX(6, 1)), passed

    def carried(self, step: Step, parent: Matrix | None, bias: Matrix | None) -> Matrix:
        """Return ``X a_p + b`` (6): how the link moves if its joint does not."""
        carried = ca.SX(6, 1)
        if parent is not None:
            carried = step.twist_into(Twist.of(parent)).vector
        return carried if bias is None else carried + bias


def likeness(model: Tree, i: int) -> Any:
    """Return what bodies must have in common to share code; their numbers may differ."""
    link, joint = model.links[i], model.machine.joints[i]
    kind = type(link.kind).__name__ if link.turned_to_z else plain(link.kind)
    turned = tuple(np.asarray(joint.armature) > 0)
    passive = (joint.has_spring, joint.has_friction, bool(np.any(joint.damping)))
    return (kind, link.parent < 0, turned, passive)
