"""Actuators turn inputs u into forces on joints and tendons or wrenches on frames, within limits.

To add one, subclass `JointActuator`, `TendonActuator` or `FrameActuator` and give

1. ``nu`` and ``u_names``: its inputs;
2. ``columns``: the generalised force on its joint (nv x nu), the force along its tendon (1 x nu),
   or the wrench on its frame in the frame's axes (6 x nu, linear part first), per unit of each
   input; ``columns_at(x, v)`` instead where they are not constant;
3. ``bias(x, v)``: the force or wrench without input, a function of the coordinates and velocities
   of its joint, or of length and rate of its tendon, over casadi; None where there is none.

Forces act on the right side: M a + c + ... = B u + bias. The machine's B(x) is assembled from these
by `framefree.motion`, where Jacobians live.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import numbers


class Actuator(Part, ABC):
    """Base of all actuators; see the contract at the top of this file."""

    name: str
    lower: Any
    upper: Any
    activation: Any = None
    """What the input follows as a state of its own, or None."""
    speed_dependent: ClassVar[bool] = False
    """Whether force or wrench per input depends on speed."""

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return 1

    @property
    def u_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return (self.name,)

    @property
    @abstractmethod
    def columns(self) -> Any:
        """Force or wrench per unit of each input."""

    def columns_at(self, x: Any, v: Any) -> Any:
        """Force or wrench per unit of each input at a position and velocity, if they matter."""
        return self.columns

    def bias(self, x: Any, v: Any) -> Any:
        """Force or wrench without input, or None."""
        return None

    @property
    def sensed_joint(self) -> str | None:
        """Joint whose coordinates and velocities `bias` is a function of; None for none."""
        return None

    @property
    def polytope(self) -> tuple[np.ndarray, np.ndarray]:
        """Further limits A u <= b: A (rows x nu) and b (rows)."""
        return np.zeros((0, self.nu)), np.zeros(0)

    def _check_name_and_limits(self) -> None:
        checked_name(self.name, "an actuator")
        for field in ("lower", "upper"):
            what = f"`{field}` of actuator `{self.name}`"
            value = numbers(getattr(self, field), (self.nu,), what, finite=False)
            set_field(self, field, value)
        if (self.lower > self.upper).any():
            raise MachineError(
                f"the limits of actuator `{self.name}` are inverted: `lower` {self.lower.tolist()} "
                f"exceeds `upper` {self.upper.tolist()}"
            )


class JointActuator(Actuator):
    """An actuator that pushes the velocities of one joint."""

    joint: str
    joint_fields = ("joint",)

    @property
    def sensed_joint(self) -> str | None:
        """The joint that is pushed."""
        return self.joint


class TendonActuator(Actuator):
    """An actuator that exerts a force along a tendon; a positive one lengthens it."""

    tendon: str
    gear: Any = 1.0
    """Force along the tendon per force of the actuator, which the tendon's limits bound."""
    tendon_fields = ("tendon",)


class FrameActuator(Actuator):
    """An actuator that puts a wrench on the body of a frame."""

    frame: str
    frame_fields = ("frame",)
