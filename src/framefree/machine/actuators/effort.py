"""What the limits of motors mean for the joints that they drive."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from framefree.machine.actuators.base import JointActuator, TendonActuator
from framefree.machine.actuators.joint_force import JointForce
from framefree.machine.joint import Joint
from framefree.machine.values import is_symbolic


def motor_range(joint: Joint, actuators: Iterable[Any], tendons: Iterable[Any]) -> np.ndarray:
    """Return the ends (2,) of what all actuators together can do to a joint with one velocity.

    Infinite where they have no limits, or where a tendon that is driven runs over the joint.
    """
    ends, pulled = np.zeros(2), set()
    for actuator in actuators:
        if isinstance(actuator, TendonActuator):
            pulled.add(actuator.tendon)
        elif isinstance(actuator, JointActuator) and actuator.joint == joint.name:
            ends = ends + _range(actuator)
    over = [t for t in tendons if t.name in pulled and set(t.coordinates) & set(joint.x_names)]
    return np.array([-np.inf, np.inf]) if over else ends


def _range(actuator: JointActuator) -> np.ndarray:
    """Return the ends of what one actuator does to its joint."""
    unlimited = np.array([-np.inf, np.inf])
    if not isinstance(actuator, JointForce) or is_symbolic(actuator.gear):
        return unlimited
    ends = np.array([actuator.force_lower, actuator.force_upper])
    terms, gain = actuator.bias_terms, actuator.gain
    known = not (is_symbolic(terms) or is_symbolic(gain)) and actuator.activation is None
    if known and gain and not np.any(terms[1:]):  # without feedback the input bounds the force
        by_input = np.sort(np.array([actuator.lower[0], actuator.upper[0]]) * gain) + terms[0]
        ends = np.array([max(ends[0], by_input[0]), min(ends[1], by_input[1])])
    gear = float(actuator.gear[0])
    return np.sort(gear * ends) if gear else np.zeros(2)
