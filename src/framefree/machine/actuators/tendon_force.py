"""A motor on a tendon."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.actuators.base import TendonActuator
from framefree.machine.actuators.motor import Motor


@dataclass(frozen=True, eq=False)
class TendonForce(Motor, TendonActuator):
    """A motor that pulls or pushes a tendon, through a gear, with or without a servo of its own.

    The motor's force is f = gain u + bias[0] + bias[1] gear L + bias[2] gear dL/dt with the
    tendon's length L, and the tendon feels gear f: a positive force lengthens it.

    Parameters
    ----------
    name, tendon : str
    gear : number
        Force along the tendon per motor force.
    gain : number
    bias_terms : (3,)
    lower, upper : number
        Limits of the input u.
    activation : Activation or None
        How u follows commands, where it is a state of its own.
    force_lower, force_upper : number
        Limits of the motor's force f, N, for controllers and checks.
    """

    name: str
    tendon: str
    gear: Any = 1.0
    gain: Any = 1.0
    bias_terms: Any = (0.0, 0.0, 0.0)
    lower: Any = -np.inf
    upper: Any = np.inf
    force_lower: Any = -np.inf
    force_upper: Any = np.inf
    activation: Any = None
