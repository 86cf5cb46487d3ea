"""The same machine in Pinocchio, for comparison."""

from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import Continuous, Free, Machine, Prismatic, Revolute, Spherical


def pinocchio() -> Any:
    """Return the module, or say how to install it."""
    try:
        import pinocchio as pin
    except ImportError:
        raise FramefreeError(
            "this needs Pinocchio, which is not installed; install it with: "
            'pip install "framefree[peers]"'
        ) from None
    return pin


def to_pinocchio(machine: Machine) -> Any:
    """Return the machine as a pinocchio.Model with the same bodies, joints and velocities.

    Revolute, continuous, prismatic, ball and free joints; joint i + 1 carries body i.
    """
    pin = pinocchio()
    model = pin.Model()
    model.gravity.linear = np.array(machine.gravity)
    for body, joint, parent in zip(machine.bodies, machine.joints, machine.parent, strict=True):
        child = np.array(joint.child_pose)
        before = np.eye(4) if parent < 0 else np.linalg.inv(machine.joints[parent].child_pose)
        placement = pin.SE3(before @ joint.parent_pose)
        index = model.addJoint(parent + 1, _joint_model(pin, joint.kind), placement, joint.name)
        moments = body.moments.moved(np.linalg.inv(child))
        inertia = pin.Inertia(
            moments.total, np.array(moments.center), np.array(moments.moment_at_center)
        )
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    return model


def _joint_model(pin: Any, kind: Any) -> Any:
    if isinstance(kind, Free):
        return pin.JointModelFreeFlyer()
    if isinstance(kind, Spherical):
        return pin.JointModelSpherical()
    names = {Revolute: "R", Continuous: "RUB", Prismatic: "P"}
    if type(kind) not in names:
        raise FramefreeError(f"no Pinocchio joint for the kind {type(kind).__name__}")
    name, axis = names[type(kind)], np.asarray(kind.axis)
    for letter, unit in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(axis, unit):
            return getattr(pin, f"JointModel{name}{letter}")()
    unaligned = {"R": "RevoluteUnaligned", "RUB": "RevoluteUnboundedUnaligned"}
    return getattr(pin, f"JointModel{unaligned.get(name, 'PrismaticUnaligned')}")(axis)
