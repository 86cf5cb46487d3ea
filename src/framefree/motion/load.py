"""What acts on a machine from outside: forces on its velocities, forces at joints, wrenches."""

from typing import Any

import casadi as ca

from framefree.geometry import se3
from framefree.machine import Frame, Machine
from framefree.machine.values import constant_pose
from framefree.motion.spatial import SpatialWrench, Step
from framefree.motion.tendons import TendonMotion

Matrix = Any


class Load:
    """Everything that acts on a machine from outside, at one symbolic state.

    The three kinds are kept apart because joints carry them differently.

    Parameters
    ----------
    machine : Machine
    force : column (nv of the formulation), optional
        On the velocities of the formulation itself; its power is ``v . force``.
    joint_force : column (nv of the machine), optional
        At the machine's joints, as motors exert it.
    wrenches : list of columns (6) or None, optional
        On every body, in body axes at its origin.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        force: Matrix | None = None,
        joint_force: Matrix | None = None,
        wrenches: list[Matrix | None] | None = None,
    ) -> None:
        self.machine, self.force = machine, force
        self.joint_force: Matrix = ca.SX(machine.nv, 1) if joint_force is None else joint_force
        self.wrenches: list[Matrix | None] = (
            [None] * len(machine.bodies) if wrenches is None else list(wrenches)
        )

    def on_joint(self, joint: str, force: Matrix) -> None:
        """Add a force on the velocities of a joint."""
        span = self.machine.v_slice[joint]
        self.joint_force[span] = self.joint_force[span] + force

    def on_frame(self, frame: Frame, wrench: Matrix) -> None:
        """Add a wrench on the body of a frame, given in the frame's axes at its origin."""
        index = self.machine.body_index[frame.body]
        if index < 0:
            return
        pose = constant_pose(frame.pose)
        step = Step(se3.rotation(pose), se3.position(pose))
        self.on_body(index, step.wrench_out(SpatialWrench.of(ca.densify(ca.SX(wrench)))).vector)

    def on_tendon(self, tendon: TendonMotion, force: Matrix) -> None:
        """Add a force along a tendon; a positive one lengthens it."""
        if tendon.on_joints is not None:
            self.joint_force = self.joint_force + tendon.on_joints * force
        for frame, wrench in tendon.on_frames:
            self.on_frame(frame, wrench * force)

    def on_body(self, index: int, wrench: Matrix) -> None:
        """Add a wrench on a body, in its own axes at its origin."""
        known = self.wrenches[index]
        self.wrenches[index] = wrench if known is None else known + wrench

    def plus(
        self, *, force: Matrix | None = None, wrenches: list[Matrix | None] | None = None
    ) -> "Load":
        """Return this load with a force on the velocities, or wrenches on bodies, added."""
        total = Load(self.machine, joint_force=self.joint_force, wrenches=self.wrenches)
        total.force = self.force
        if force is not None:
            total.force = force if self.force is None else self.force + force
        for index, wrench in enumerate(wrenches or []):
            if wrench is not None:
                total.on_body(index, wrench)
        return total

    @property
    def stacked(self) -> Matrix:
        """Wrenches on all bodies in a column (6N)."""
        return ca.vertcat(ca.SX(0, 1), *(ca.SX(6, 1) if w is None else w for w in self.wrenches))
