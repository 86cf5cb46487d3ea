"""What acts on a machine from outside: joint forces, and wrenches on bodies."""

from collections.abc import Sequence
from typing import Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame, Machine
from framefree.machine.values import constant_pose
from framefree.motion.spatial import Step, Wrench

Matrix = Any


class Load:
    """Joint forces (nv), and a wrench (6) on every body in body axes or None.

    Wrenches are kept apart from joint forces because joints carry them differently.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.force: Matrix = ca.SX(machine.nv, 1)
        self.wrenches: list[Matrix | None] = [None] * len(machine.bodies)

    def on_joint(self, joint: str, force: Matrix) -> None:
        """Add a force on the velocities of a joint."""
        span = self.machine.v_slice[joint]
        self.force[span] = self.force[span] + force

    def on_frame(self, frame: Frame, wrench: Matrix) -> None:
        """Add a wrench on the body of a frame, given in the frame's axes at its origin."""
        index = self.machine.body_index[frame.body]
        if index < 0:
            return
        pose = constant_pose(frame.pose)
        step = Step(se3.rotation(pose), se3.position(pose))
        on_body = step.wrench_out(Wrench.of(ca.densify(ca.SX(wrench)))).vector
        known = self.wrenches[index]
        self.wrenches[index] = on_body if known is None else known + on_body

    @property
    def stacked(self) -> Matrix:
        """Wrenches on all bodies in a column (6N)."""
        return ca.vertcat(*(ca.SX(6, 1) if w is None else w for w in self.wrenches))

    def at_joints(self, jacobians: Sequence[Any]) -> Matrix:
        """Joint forces that amount to the whole load; `jacobians[i]()` is that of body i."""
        total = self.force
        for wrench, jacobian in zip(self.wrenches, jacobians, strict=True):
            if wrench is not None:
                total = total + jacobian().T @ wrench
        return total
