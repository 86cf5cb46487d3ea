"""Writing MJCF: activations of actuators, and muscles."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.actuators import (
    Actuator,
    IntegratedActivation,
    LaggedActivation,
    Muscle,
    MuscleActivation,
)
from framefree.machine.formats.markup import Element
from framefree.machine.formats.write_mjcf_joints import limits_of
from framefree.machine.formats.writing import node
from framefree.machine.problems import MachineError


def input_of(actuator: Actuator, k: int = 0) -> dict[str, Any]:
    """Return the attributes of an actuator's input k: limits of control, activation, dynamics."""
    own = (float(actuator.lower[k]), float(actuator.upper[k]))
    activation = actuator.activation
    if activation is None:
        return limits_of("ctrl", *own)
    command = (activation.command_lower, activation.command_upper)
    attributes = limits_of("ctrl", *command)
    if isinstance(activation, LaggedActivation):
        attributes |= {"dyntype": "filter", "dynprm": activation.time_constant}
        implied = command
    elif isinstance(activation, IntegratedActivation):
        attributes |= {"dyntype": "integrator", "dynprm": 1.0}
        implied = (-np.inf, np.inf)
    elif isinstance(activation, MuscleActivation):
        times = (activation.rise, activation.fall, activation.width)
        attributes |= {"dyntype": "muscle", "dynprm": times}
        implied = (0.0, 1.0)
    else:
        raise MachineError(f"MJCF has no {type(activation).__name__}")
    return attributes if own == implied else attributes | limits_of("act", *own)


def muscle(actuator: Muscle) -> Element:
    """Return a muscle, with its numbers as they are."""
    numbers = (
        *actuator.range,
        actuator.force,
        1.0,  # of a force that MuJoCo finds itself
        actuator.l_min,
        actuator.l_max,
        actuator.v_max,
        actuator.passive or 1.0,
        actuator.f_v_max,
    )
    target = {
        name: getattr(actuator, name) for name in ("tendon", "joint") if hasattr(actuator, name)
    }
    return node(
        "general",
        name=actuator.name,
        **target,
        gear=[actuator.gear, 0, 0, 0, 0, 0],
        gaintype="muscle",
        gainprm=numbers,
        biastype="muscle" if actuator.passive else "none",
        biasprm=numbers if actuator.passive else None,
        lengthrange=actuator.lengths,
        **input_of(actuator),
    )
