"""The machine as the recursions see it: a tree of links, each with its joint axis along z.

A link is a body seen in its own joint's frame. For joints with one axis that frame is turned so
that the axis is z: then most entries of the joint's transforms are exact zeros and ones, and a
traced graph has a quarter to a third fewer operations. Nothing outside this folder sees links.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.geometry import Moments, se3
from framefree.machine import Machine
from framefree.machine.joints import Continuous, JointKind, Prismatic, Revolute
from framefree.machine.values import constant, constant_pose
from framefree.motion.spatial import Inertia, Matrix, Step, Twist

ROUNDING = 1e-15
"""Products of inertia smaller than this share of the largest come from rounding."""


@dataclass(frozen=True)
class Link:
    """One body with the joint that carries it.

    Attributes
    ----------
    parent
        Index of the parent link, -1 for the world.
    start
        Pose (4x4) of the joint's frame at rest, seen from the parent link's frame.
    to_body
        Pose (4x4) of the body's frame seen from the link's frame.
    to_joint
        Rotation (3x3) that takes link axes to the axes of the child's joint frame.
    inertia
        Of the body, in the link's frame.
    armature
        Diagonal matrix (nv x nv) of rotor inertias.
    """

    parent: int
    kind: JointKind
    x: slice
    v: slice
    start: Matrix
    to_body: Matrix
    to_joint: np.ndarray
    inertia: Inertia
    armature: Matrix

    def step(self, x: Matrix) -> Step:
        """Pose of the link seen from its parent at configuration x of the machine."""
        q = x[self.x, :]
        R0, r0 = se3.rotation(self.start), se3.position(self.start)
        if isinstance(self.kind, Revolute):
            return Step(R0, r0, (ca.cos(q), ca.sin(q)))
        if isinstance(self.kind, Continuous):
            return Step(R0, r0, (q[0], q[1]))
        if isinstance(self.kind, Prismatic):
            return Step(R0, r0 + R0[:, 2] * q)
        G = self.kind.pose(q)
        return Step(R0 @ se3.rotation(G), r0 + R0 @ se3.position(G))

    def subspace(self, x: Matrix) -> Matrix:
        """Joint subspace S (6 x nv) in link axes: relative twist S v."""
        if self.turned_to_z:
            S = ca.SX(6, 1)
            S[2 if isinstance(self.kind, Prismatic) else 5] = 1
            return S
        return ca.sparsify(ca.SX(self.kind.jacobian(x[self.x, :])))

    def subspace_bias(self, x: Matrix, v: Matrix) -> Twist:
        """Return ``(dS/dt) v`` for a joint whose subspace moves in link axes."""
        return Twist.of(self.subspace_rate(x, v) @ v[self.v, :])

    def subspace_rate(self, x: Matrix, v: Matrix) -> Matrix:
        """Return ``dS/dt`` (6 x nv) in link axes."""
        return self._rate_function(x[self.x, :], v[self.v, :])

    @cached_property
    def _rate_function(self) -> ca.Function:
        x, v = ca.SX.sym("x", self.kind.nx), ca.SX.sym("v", self.kind.nv)
        S = ca.densify(ca.SX(self.kind.jacobian(x)))
        rate = ca.jtimes(ca.vec(S), x, ca.mtimes(self.kind.rate(x), v))
        return ca.Function("subspace_rate", [x, v], [ca.reshape(rate, *S.shape)])

    @property
    def constant_subspace(self) -> bool:
        """Whether S does not depend on x."""
        return self.kind.constant_jacobian

    @property
    def turned_to_z(self) -> bool:
        """Whether the joint has one axis, which is z here."""
        return isinstance(self.kind, Revolute | Continuous | Prismatic)

    @cached_property
    def free_rows(self) -> list[int]:
        """Directions that S frees one by one, if its columns are unit vectors and no rotor turns.

        In these the projected inertia is exactly zero.
        """
        if not self.constant_subspace or not self.armature.is_zero():
            return []
        S = ca.DM(self.subspace(ca.SX(self.x.stop, 1))).full()
        rows = [int(np.argmax(column)) for column in S.T]
        return rows if np.array_equal(S, np.eye(6)[:, rows]) else []


def links_of(machine: Machine) -> list[Link]:
    """Return the links of a machine, in the order of its bodies."""
    links: list[Link] = []
    for body, joint, parent in zip(machine.bodies, machine.joints, machine.parent, strict=True):
        turn = np.eye(4)
        turn[:3, :3] = _frame_with_z_along(joint.kind)
        start = se3.compose(constant_pose(joint.parent_pose), ca.DM(turn))
        length = _length(start)
        if parent >= 0:
            start = se3.compose(links[parent].to_body, start)
            length += _length(links[parent].to_body)
        to_body = se3.compose(ca.DM(turn.T), se3.inverse(constant_pose(joint.child_pose)))
        links.append(
            Link(
                parent=parent,
                kind=joint.kind,
                x=machine.x_slice[joint.name],
                v=machine.v_slice[joint.name],
                start=_snapped(start, length),
                to_body=_snapped(to_body),
                to_joint=turn[:3, :3],
                inertia=_inertia(body.moments.moved(to_body)),
                armature=ca.diag(ca.SX(constant(joint.armature))),
            )
        )
    return links


def _frame_with_z_along(kind: JointKind) -> np.ndarray:
    """Rotation whose third column is the joint's axis; a permutation where the axis allows it."""
    if not isinstance(kind, Revolute | Continuous | Prismatic):
        return np.eye(3)
    z = np.asarray(kind.axis)
    largest = int(np.argmax(np.abs(z)))
    x = np.eye(3)[(largest + 1) % 3]
    x = x - z * (x @ z)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _inertia(moments: Moments) -> Inertia:
    """Return the inertia as a trace-time constant; products lost in rounding become exact zeros."""
    if moments.symbolic:
        return Inertia.of(moments.matrix6)
    second = np.array(moments.second)
    first = np.array(moments.first)
    second[np.abs(second) <= ROUNDING * np.abs(second).max()] = 0.0
    first[np.abs(first) <= ROUNDING * np.abs(first).max()] = 0.0
    return Inertia.of(ca.SX(ca.DM(Moments(moments.total, first, second).matrix6)))


def _snapped(value: Matrix, length: float = 0.0) -> Matrix:
    """Return a pose as a trace-time constant with exact zeros and ones.

    `length` (m) is what its position was computed from: sums that cancel leave rounding of it.
    """
    if isinstance(value, ca.SX) and not value.is_constant():
        return value
    return ca.SX(constant_pose(ca.DM(value).full(), length))


def _length(pose: Matrix) -> float:
    """Return the distance of a pose's origin, m; zero where it is tunable."""
    position = ca.SX(se3.position(pose))
    return float(ca.norm_2(ca.DM(position))) if position.is_constant() else 0.0
