"""A machine as a model of Pinocchio, joint by joint."""

from typing import Any

import numpy as np

from framefree.errors import FramefreeError
from framefree.machine import (
    Continuous,
    Cylindrical,
    Free,
    Helical,
    Joint,
    Machine,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.loop import across

_ABOUT_Z = {Revolute: "RZ", Continuous: "RUBZ", Prismatic: "PZ"}


def pinocchio_model(pin: Any, machine: Machine) -> Any:
    """Return a `pinocchio.Model` whose joint frames are our joint frames on the children.

    Bodies on joints without motion become part of what carries them. Nothing but inertia and
    gravity is handed over. Joints are in our order.

    Parameters
    ----------
    pin : module
        `pinocchio`.
    machine : Machine
    """
    model = pin.Model()
    model.gravity.linear = np.array(machine.gravity)
    # For each body the Pinocchio joint that carries it, and its frame seen from that joint.
    carriers: list[tuple[int, np.ndarray]] = []
    for body, joint, parent in zip(machine.bodies, machine.joints, machine.parent, strict=True):
        carrier, pose = carriers[parent] if parent >= 0 else (0, np.eye(4))
        at = pose @ joint.parent_pose
        to_body = np.linalg.inv(joint.child_pose)
        if joint.nv:
            motion, turn = _motion(pin, joint)
            carrier = model.addJoint(carrier, motion, pin.SE3(at @ turn), joint.name)
            carriers.append((carrier, turn.T @ to_body))
        else:
            fixed = np.array(joint.kind.pose(np.zeros(0)))
            carriers.append((carrier, at @ fixed @ to_body))
        if not body.massless:
            moments = body.moments.moved(carriers[-1][1])
            inertia = pin.Inertia(moments.total, moments.center, moments.moment_at_center)
            model.appendBodyToJoint(carrier, inertia, pin.SE3.Identity())
    return model


def _motion(pin: Any, joint: Joint) -> tuple[Any, np.ndarray]:
    """Return Pinocchio's joint, and the turn (4x4) of our joint frame in which it works."""
    kind, turn = joint.kind, np.eye(4)
    if isinstance(kind, Free):
        return pin.JointModelFreeFlyer(), turn
    if isinstance(kind, Spherical):
        return pin.JointModelSpherical(), turn
    if isinstance(kind, Universal):
        first, second = (np.array(axis) for axis in (kind.axis1, kind.axis2))
        revolute = pin.JointModelRevoluteUnaligned
        return _both(pin, revolute(first), revolute(second)), turn
    if isinstance(kind, Planar):
        turn[:3, :3] = kind.basis
        return pin.JointModelPlanar(), turn
    axis = getattr(kind, "axis", None)
    if axis is not None:
        turn[:3, :3] = np.column_stack([across(np.asarray(axis)), axis])
    if isinstance(kind, Cylindrical):
        return _both(pin, pin.JointModelPZ(), pin.JointModelRZ()), turn
    if isinstance(kind, Helical):
        return pin.JointModelHZ(float(kind.pitch)), turn
    if type(kind) in _ABOUT_Z:
        return getattr(pin, f"JointModel{_ABOUT_Z[type(kind)]}")(), turn
    raise FramefreeError(f"Pinocchio has no joint like `{joint.name}` ({type(kind).__name__})")


def _both(pin: Any, first: Any, second: Any) -> Any:
    joint = pin.JointModelComposite(2)
    joint.addJoint(first)
    joint.addJoint(second)
    return joint
