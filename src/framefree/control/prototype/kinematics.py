"""Pose and Jacobian of any frame relative to any other, and the joints between them.

Only joints between the two frames enter, so that parameters on a pair of neighbours stay as sparse
as the joint between them, and nothing cancels.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import Joint, Machine
from framefree.motion.state import State

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


def relative_kinematics(state: State, a: str, b: str) -> RelativeKinematics:
    """Return how frame b moves, seen from frame a, at a state of the law's model."""
    G, jacobian, _ = state.relative(a, b)
    return RelativeKinematics(G, ca.sparsify(jacobian.value), ca.sparsify(jacobian.rate))
