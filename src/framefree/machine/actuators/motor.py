"""Motors: a force through a gear, with or without a servo of its own."""

from typing import Any

import casadi
import numpy as np

from framefree.machine.actuators.activation import Activation
from framefree.machine.actuators.base import Actuator
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, numbers, scalar


class Motor(Actuator):
    """Base of motors, whose force is f = gain u + bias[0] + bias[1] gear . x + bias[2] gear . v.

    x and v are position and velocity of what it drives, a joint or a tendon, which feels gear f. A
    plain force motor has gain 1 and no bias; a position servo of stiffness k and damping d has gain
    k and bias (0, -k, -d).
    """

    gear: Any
    gain: Any
    bias_terms: Any
    force_lower: Any
    force_upper: Any

    def __post_init__(self) -> None:
        checked_name(self.name, "an actuator")
        gear = self.gear if is_symbolic(self.gear) else np.atleast_1d(np.asarray(self.gear, float))
        size = gear.shape[0]
        set_field(self, "gear", numbers(gear, (size,), f"the gear of actuator `{self.name}`"))
        set_field(self, "gain", scalar(self.gain, f"the gain of actuator `{self.name}`"))
        what = f"the bias terms of actuator `{self.name}`"
        set_field(self, "bias_terms", numbers(self.bias_terms, (3,), what))
        self._check_name_and_limits()
        for field in ("force_lower", "force_upper"):
            what = f"`{field}` of actuator `{self.name}`"
            set_field(self, field, float(numbers(getattr(self, field), (), what, finite=False)))
        if self.activation is not None and not isinstance(self.activation, Activation):
            raise MachineError(f"`activation` of actuator `{self.name}` must be an Activation")
        if self.force_lower > self.force_upper:
            raise MachineError(f"the force limits of actuator `{self.name}` are inverted")

    @property
    def columns(self) -> Any:
        """Gear times gain (nv x 1)."""
        return constant(self.gear) * self.gain

    @property
    def force_limited(self) -> bool:
        """Whether the motor's force has limits of its own."""
        return bool(np.isfinite([self.force_lower, self.force_upper]).any())

    def force(self, x: Any, v: Any, u: Any) -> Any:
        """Return the motor's force f at an input, without its limits: gain u + (servo)."""
        gear, terms = constant(self.gear), self.bias_terms
        force = self.gain * u + terms[0] + terms[2] * casadi.dot(gear, v)
        if is_symbolic(terms) or terms[1] != 0.0:
            force = force + terms[1] * casadi.dot(gear, x)
        return force

    def bias(self, x: Any, v: Any) -> Any:
        """Return the servo's force on what it drives (nv) without input, or None."""
        if not is_symbolic(self.bias_terms) and not self.bias_terms.any():
            return None
        return constant(self.gear) * self.force(x, v, 0)
