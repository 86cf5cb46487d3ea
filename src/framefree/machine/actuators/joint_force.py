"""A motor on a joint."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.actuators.base import JointActuator
from framefree.machine.actuators.motor import Motor
from framefree.machine.joint import Joint
from framefree.machine.problems import MachineError


@dataclass(frozen=True, eq=False)
class JointForce(Motor, JointActuator):
    """A motor on a joint, through a gear, with or without a servo of its own.

    The motor's force is f = gain u + bias[0] + bias[1] gear . x + bias[2] gear . v, and the joint
    feels gear f. A plain force motor has gain 1 and no bias; a position servo of stiffness k and
    damping d has gain k and bias (0, -k, -d).

    Parameters
    ----------
    name, joint : str
    gear : number or (nv,)
        Joint force per motor force: 1 for direct drive. One number per velocity of the joint.
    gain : number
    bias_terms : (3,)
    lower, upper : number
        Limits of the input u.
    activation : Activation or None
        How u follows commands, where it is a state of its own.
    force_lower, force_upper : number
        Limits of the motor's force f, Nm or N, for controllers and checks.
    """

    name: str
    joint: str
    gear: Any = 1.0
    gain: Any = 1.0
    bias_terms: Any = (0.0, 0.0, 0.0)
    lower: Any = -np.inf
    upper: Any = np.inf
    force_lower: Any = -np.inf
    force_upper: Any = np.inf
    activation: Any = None


def motors(joints: Iterable[Joint], suffix: str = "") -> tuple[JointForce, ...]:
    """Return one motor for every velocity of these joints, limited by the joints' effort limits."""
    if isinstance(joints, str) or not isinstance(joints, Iterable):
        raise MachineError(f"`motors` takes joints, such as `machine.joints`, got {joints!r}")
    actuators = []
    for joint in joints:
        if not isinstance(joint, Joint):
            raise MachineError(f"`motors` takes joints, such as `machine.joints`, got {joint!r}")
        lower, upper = joint.effort_range
        for i, name in enumerate(joint.v_names):
            gear, ends = np.eye(joint.nv)[i], {"lower": lower[i], "upper": upper[i]}
            actuators.append(JointForce(name + suffix, joint.name, gear, **ends))
    return tuple(actuators)
