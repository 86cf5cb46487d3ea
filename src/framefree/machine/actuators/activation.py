"""Activation: dynamics between the command of an actuator and its input u.

The input u of an actuator with an activation is a state of its own, which follows the command of a
controller. Equations of motion take u as it is; a simulation moves it by ``rate(u, command)``
within the limits of the actuator's input, and keeps commands within those given here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError

SHORTEST = 1e-15
"""Smallest time constant, s, as in MuJoCo."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Activation(Part, ABC):
    """Base of all activations; see the top of this file.

    Parameters
    ----------
    command_lower, command_upper : number
        Limits of the command.
    """

    command_lower: float = -np.inf
    command_upper: float = np.inf

    def __post_init__(self) -> None:
        for name in ("command_lower", "command_upper"):
            set_field(self, name, float(getattr(self, name)))
        if not self.command_lower <= self.command_upper:
            raise MachineError(
                f"the limits of a command are inverted: {self.command_lower:g} exceeds "
                f"{self.command_upper:g}"
            )

    @abstractmethod
    def rate(self, u: Any, command: Any) -> Any:
        """Return du/dt."""

    def _check_times(self, *names: str) -> None:
        for name in names:
            value = float(getattr(self, name))
            set_field(self, name, value)
            if not (np.isfinite(value) and value >= 0):
                raise MachineError(f"`{name}` of an activation must not be negative, got {value}")


@dataclass(frozen=True, eq=False)
class LaggedActivation(Activation):
    """A first-order lag: time_constant du/dt = command - u. MJCF calls it a filter.

    Parameters
    ----------
    time_constant : number
        s.
    """

    time_constant: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_times("time_constant")

    def rate(self, u: Any, command: Any) -> Any:
        """Return (command - u) / time_constant."""
        return (command - u) / max(self.time_constant, SHORTEST)


@dataclass(frozen=True, eq=False)
class IntegratedActivation(Activation):
    """The command is the rate of the input: du/dt = command. MJCF calls it an integrator."""

    def rate(self, u: Any, command: Any) -> Any:
        """Return the command."""
        return command


@dataclass(frozen=True, eq=False)
class MuscleActivation(Activation):
    """Activation of a muscle, which rises faster than it falls [Millard2013].

    du/dt = (c - u)/T, with the command c from 0 to 1, and T = rise (0.5 + 1.5 u) if it rises, T =
    fall / (0.5 + 1.5 u) if it falls. With a width the change between both is smooth.

    Parameters
    ----------
    rise, fall : number
        Time constants, s.
    width : number
        Of the command's excess over u within which one time constant becomes the other.
    """

    rise: float = 0.01
    fall: float = 0.04
    width: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_times("rise", "fall", "width")

    def rate(self, u: Any, command: Any) -> Any:
        """Return (c - u)/T."""
        excess = casadi.fmin(casadi.fmax(command, 0), 1) - u
        level = 0.5 + 1.5 * casadi.fmin(casadi.fmax(u, 0), 1)
        rise, fall = self.rise * level, self.fall / level
        if self.width < SHORTEST:
            time = casadi.if_else(excess > 0, rise, fall)
        else:
            time = fall + (rise - fall) * _smooth_step(excess / self.width + 0.5)
        return excess / casadi.fmax(time, SHORTEST)


def _smooth_step(s: Any) -> Any:
    """Return a polynomial from 0 at s = 0 to 1 at s = 1, with two derivatives zero at both."""
    s = casadi.fmin(casadi.fmax(s, 0), 1)
    return s**3 * (3 * s * (2 * s - 5) + 10)
