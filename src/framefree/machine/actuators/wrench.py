"""Wrenches on a frame: the general actuator of thrusters and jets."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.actuators.activation import Activation
from framefree.machine.actuators.base import FrameActuator
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import constant, is_symbolic, numbers


@dataclass(frozen=True, eq=False)
class Wrench(FrameActuator):
    """Inputs that each put a wrench on a frame, in the frame's axes.

    Parameters
    ----------
    name, frame : str
    directions : (6,) or (6, nu)
        Wrench per unit of each input, linear part first.
    lower, upper : number or (nu,)
    A, b : (rows, nu), (rows,)
        Further limits A u <= b.
    activation : Activation or None
        How the input follows commands, where it is a state of its own; for one input only.
    """

    name: str
    frame: str
    directions: Any
    lower: Any = -np.inf
    upper: Any = np.inf
    A: Any = None
    b: Any = None
    activation: Any = None

    def __post_init__(self) -> None:
        checked_name(self.name, "an actuator")
        columns = self.directions
        if not is_symbolic(columns):
            columns = np.asarray(columns, dtype=float)
            columns = columns[:, None] if columns.ndim == 1 else columns
        width = columns.shape[1] if len(columns.shape) == 2 else 0
        what = f"the directions of actuator `{self.name}`"
        set_field(self, "directions", numbers(columns, (6, width), what))
        self._check_name_and_limits()
        if self.activation is not None and (
            width != 1 or not isinstance(self.activation, Activation)
        ):
            raise MachineError(
                f"`activation` of actuator `{self.name}` must be an Activation of one input"
            )
        if (self.A is None) != (self.b is None):
            raise MachineError(f"actuator `{self.name}` needs both `A` and `b`, or neither")
        rows = 0 if self.b is None else np.size(self.b)
        none = self.A is None or np.size(self.A) == rows == 0  # a list has no shape of its own
        A = np.zeros((0, width)) if none else self.A
        b = np.zeros(0) if self.b is None else self.b
        set_field(self, "A", numbers(A, (rows, width), f"`A` of actuator `{self.name}`"))
        set_field(self, "b", numbers(b, (rows,), f"`b` of actuator `{self.name}`"))

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return self.directions.shape[1]

    @property
    def u_names(self) -> tuple[str, ...]:
        """The actuator's name, numbered where there are several inputs."""
        return (self.name,) if self.nu == 1 else tuple(f"{self.name}.{i}" for i in range(self.nu))

    @property
    def columns(self) -> Any:
        """The directions (6 x nu)."""
        return constant(self.directions)

    @property
    def polytope(self) -> tuple[np.ndarray, np.ndarray]:
        """The limits A u <= b of the inputs."""
        return self.A, self.b
