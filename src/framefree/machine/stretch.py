"""The length of a body, and stretching it; `paths.py` says what that means."""

from dataclasses import replace
from typing import Any

import casadi
import numpy as np

from framefree.machine.problems import MachineError
from framefree.machine.values import constant_pose, is_symbolic


def length_of(machine: Any, name: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Return length, own joint's origin and direction of the tip, in body axes."""
    origin = machine.joints[machine.body_index[name]].child_pose[:3, 3]
    tips = [j.parent_pose[:3, 3] for j in machine.joints if j.parent == name]
    tips = tips or [frame.pose[:3, 3] for frame in machine.frames if frame.body == name]
    reach = max((tip - origin for tip in tips), key=np.linalg.norm, default=np.zeros(3))
    length = float(np.linalg.norm(reach))
    if length <= 1e-12 * max(np.linalg.norm(point) for point in (origin, *tips, np.zeros(3))):
        raise MachineError(
            f"`{name}.length`: body `{name}` has no outgoing joint or frame away from its own joint"
        )
    return length, origin, reach / length


def stretched(machine: Any, fields: dict[str, Any], name: str, length: Any) -> dict[str, Any]:
    """Return joints and frames moved so that a body has this length.

    `fields` holds sequences of the machine that have been changed already.
    """
    old, origin, direction = length_of(machine, name)
    ratio = length / old - 1.0

    def moved(pose: Any) -> Any:
        along = casadi.dot(casadi.DM(direction), pose[:3, 3] - casadi.DM(origin))
        position = pose[:3, 3] + ratio * along * casadi.DM(direction)
        return _with_position(pose, position)

    joints = fields.get("joints", machine.joints)
    frames = fields.get("frames", machine.frames)
    return {
        "joints": tuple(
            replace(j, parent_pose=moved(j.parent_pose)) if j.parent == name else j for j in joints
        ),
        "frames": tuple(replace(f, pose=moved(f.pose)) if f.body == name else f for f in frames),
    }


def _with_position(pose: Any, position: Any) -> Any:
    if is_symbolic(pose) or is_symbolic(position):
        base = casadi.SX(constant_pose(pose))
        return casadi.horzcat(base[:, :3], casadi.vertcat(position, 1))
    result = np.array(pose)
    result[:3, 3] = np.array(position).ravel()
    return result
