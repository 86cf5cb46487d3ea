"""Pose and Jacobian of any frame relative to any other, along the joints between them.

    G_ac = G_ab G_bc,    J_ac = Ad_{G_cb} J_ab + J_bc,
    dJ_ac = Ad_{G_cb} dJ_ab - ad_{xi_bc} Ad_{G_cb} J_ab + dJ_bc

Only joints on the way enter, so that parameters on a pair of neighbours stay as sparse as the joint
between them, and nothing cancels.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine import Joint, Machine
from framefree.machine.values import constant_pose

Matrix = Any


class RelativeKinematics(NamedTuple):
    """Of frame b seen from frame a: pose (4x4), Jacobian (6 x nv) in b's axes, and its rate."""

    G: Matrix
    J: Matrix
    J_rate: Matrix

    def twist(self, v: Matrix) -> Matrix:
        """Body twist (6) at velocities v."""
        return self.J @ v

    def acceleration(self, v: Matrix, a: Matrix) -> Matrix:
        """Rate (6) of the twist at velocities v and accelerations a."""
        return self.J @ a + self.J_rate @ v


class JointRoute(NamedTuple):
    """Joints from frame a up to where it meets the way of b, and down to b."""

    start: np.ndarray
    up: tuple[Joint, ...]
    down: tuple[Joint, ...]
    end: np.ndarray

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Joints that move the two frames against each other."""
        return tuple(joint for joint in (*self.up, *self.down) if joint.nv)


def route_between(machine: Machine, a: str, b: str) -> JointRoute:
    """Return the way from frame a to frame b of a machine."""
    first, last = machine.frame(a), machine.frame(b)
    from_a = _ancestors(machine, machine.body_index[first.body])
    from_b = _ancestors(machine, machine.body_index[last.body])
    while from_a and from_b and from_a[-1] == from_b[-1]:
        from_a, from_b = from_a[:-1], from_b[:-1]
    up = tuple(machine.joints[i] for i in from_a)
    down = tuple(machine.joints[i] for i in reversed(from_b))
    return JointRoute(first.pose, up, down, last.pose)


def _ancestors(machine: Machine, index: int) -> list[int]:
    """Return a body's index and those of all that carry it."""
    carriers = []
    while index >= 0:
        carriers.append(index)
        index = machine.parent[index]
    return carriers


def along(machine: Machine, route: JointRoute, x: Matrix, v: Matrix) -> RelativeKinematics:
    """Return how the end of a way moves, seen from its start, at a state of the machine."""
    nv = machine.nv
    at = RelativeKinematics(ca.SX.eye(4), ca.SX(6, nv), ca.SX(6, nv))
    at = _carried(at, se3.inverse(constant_pose(route.start)))
    # A frame's own pose leads from the body to the frame; the way begins at the frame.
    for joint in route.up:
        at = _carried(at, constant_pose(joint.child_pose))
        at = _moved(at, _backwards(*_joint(machine, joint, x, v)), v)
        at = _carried(at, se3.inverse(constant_pose(joint.parent_pose)))
    for joint in route.down:
        at = _carried(at, constant_pose(joint.parent_pose))
        at = _moved(at, _joint(machine, joint, x, v)[0], v)
        at = _carried(at, se3.inverse(constant_pose(joint.child_pose)))
    return _carried(at, constant_pose(route.end))


def _joint(
    machine: Machine, joint: Joint, x: Matrix, v: Matrix
) -> tuple[RelativeKinematics, Matrix]:
    """Return pose, Jacobian and its rate of a joint alone, and the joint's twist."""
    own = machine.v_slice[joint.name]
    q, rate = x[machine.x_slice[joint.name], :], v[own, :]
    J, J_rate = ca.SX(6, machine.nv), ca.SX(6, machine.nv)
    S = ca.sparsify(ca.SX(joint.kind.jacobian(q)))
    J[:, own] = S
    if not joint.kind.constant_jacobian:
        J_rate[:, own] = _subspace_rate(joint)(q, rate)
    return RelativeKinematics(joint.kind.pose(q), J, J_rate), S @ rate


def _subspace_rate(joint: Joint) -> ca.Function:
    x, v = ca.SX.sym("x", joint.nx), ca.SX.sym("v", joint.nv)
    S = ca.densify(ca.SX(joint.kind.jacobian(x)))
    rate = ca.jtimes(ca.vec(S), x, ca.mtimes(joint.kind.rate(x), v))
    return ca.Function("subspace_rate", [x, v], [ca.reshape(rate, *S.shape)])


def _backwards(step: RelativeKinematics, twist: Matrix) -> RelativeKinematics:
    """Return the same motion seen from the other side."""
    Ad = se3.adjoint(step.G)
    turned = step.J_rate + se3.little_adjoint(ca.densify(twist)) @ step.J
    return RelativeKinematics(se3.inverse(step.G), -Ad @ step.J, -Ad @ turned)


def _moved(at: RelativeKinematics, step: RelativeKinematics, v: Matrix) -> RelativeKinematics:
    Ad = se3.adjoint(se3.inverse(step.G))
    J, twist = Ad @ at.J, ca.densify(step.J @ v)
    rate = Ad @ at.J_rate - se3.little_adjoint(twist) @ J
    G = se3.compose(at.G, step.G)
    return RelativeKinematics(G, ca.sparsify(J + step.J), ca.sparsify(rate + step.J_rate))


def _carried(at: RelativeKinematics, pose: Matrix) -> RelativeKinematics:
    """Return the motion of a frame with this constant pose on the one so far."""
    if ca.DM(ca.SX(pose)).is_eye() if ca.SX(pose).is_constant() else False:
        return at
    Ad = se3.adjoint(se3.inverse(pose))
    G = se3.compose(at.G, pose)
    return RelativeKinematics(G, ca.sparsify(Ad @ at.J), ca.sparsify(Ad @ at.J_rate))
