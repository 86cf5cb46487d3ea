"""From commands to what acts on the machine: limits, drives that lag behind, actuators.

command --limits--> drive (dz/dt = rate(z, command)) --> u --> joint forces and wrenches
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.motion.actuation import clip, effort, limited_effort, push
from framefree.motion.load import Load
from framefree.motion.state import State
from framefree.simulate.errors import SimulationError

Matrix = Any


class Drive(ABC):
    """Dynamics between the commands of a law and the inputs of the machine.

    To add one, subclass and give ``start(u)``, ``rate(z, command)`` and ``u(z, command)``.
    """

    @abstractmethod
    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the state z that has given the inputs u for long."""

    @abstractmethod
    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return dz/dt."""

    @abstractmethod
    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the inputs of the machine."""

    def check(self, machine: Machine, dt: float) -> None:  # noqa: B027, most drives fit all
        """Raise `SimulationError` if it does not fit the machine or the step."""


@dataclass(frozen=True)
class FirstOrder(Drive):
    """A first-order lag of every input: ``T du/dt = command - u``.

    Parameters
    ----------
    time_constants : float or (nu,)
        T in s; inputs with T = 0 follow at once.
    """

    time_constants: Any

    def __post_init__(self) -> None:
        times = np.atleast_1d(np.asarray(self.time_constants, float))
        if times.ndim != 1 or not (np.isfinite(times).all() and (times >= 0).all()):
            raise SimulationError(
                f"time constants of a lag must be finite and not negative, got {times.tolist()}"
            )
        object.__setattr__(self, "time_constants", times)

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the inputs that lag."""
        return u[self._lagging(len(u))]

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return (command - z)/T."""
        lagging = self._lagging(command.shape[0])
        times = np.broadcast_to(self.time_constants, command.shape[0])[lagging]
        return (command[lagging.tolist()] - z) / ca.DM(times)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return z where there is a lag, the command elsewhere."""
        u = ca.SX(command)
        u[self._lagging(command.shape[0]).tolist()] = z
        return u

    def check(self, machine: Machine, dt: float) -> None:
        """Refuse wrong sizes, and lags that are over within a step."""
        if self.time_constants.size not in (1, machine.nu):
            raise SimulationError(
                f"a lag needs one time constant or {machine.nu}, got {self.time_constants.size}"
            )
        lags = self.time_constants[self.time_constants > 0]
        if lags.size and lags.min() < dt:
            raise SimulationError(
                f"the step of {dt:g} s is longer than the time constant {lags.min():g} s of a lag"
            )

    def _lagging(self, nu: int) -> np.ndarray:
        return np.flatnonzero(np.broadcast_to(self.time_constants, nu))


@dataclass(frozen=True)
class OwnActivations(Drive):
    """The activations that a machine's actuators have themselves.

    Parameters
    ----------
    machine : Machine
    """

    machine: Machine

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the inputs that are states."""
        return np.asarray(u)[self._places]

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of the activations; those at a limit do not pass it."""
        lower, upper = self.machine.input_limits
        rates = []
        for k, (place, activation) in enumerate(self._parts):
            rate = activation.rate(z[k], command[place])
            held = ca.logic_or(
                ca.logic_and(z[k] >= upper[place], rate > 0),
                ca.logic_and(z[k] <= lower[place], rate < 0),
            )
            rates.append(ca.if_else(held, 0, rate))
        return ca.vertcat(ca.SX(0, 1), *rates)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return activations, within their limits, and commands where there is none."""
        lower, upper = self.machine.input_limits
        u = ca.SX(command)
        for k, place in enumerate(self._places):
            u[place] = clip(z[k], lower[place], upper[place])
        return u

    @property
    def _parts(self) -> list[tuple[int, Any]]:
        slices = self.machine.u_slice
        active = [a for a in self.machine.actuators if a.activation is not None]
        return [(slices[a.name].start, a.activation) for a in active]

    @property
    def _places(self) -> list[int]:
        return [place for place, _ in self._parts]


def drive_of(machine: Machine, lag: Drive | None) -> Drive | None:
    """Return what lies between commands and inputs: the given drive, or the machine's own."""
    active = [a.name for a in machine.actuators if a.activation is not None]
    if active and lag is not None:
        raise SimulationError(
            f"`lag` must be left out: actuator `{active[0]}` has an activation of its own"
        )
    return OwnActivations(machine) if active else lag


def limited(machine: Machine, command: Matrix) -> Matrix:
    """Return a command within its limits."""
    result = ca.SX(command)
    for k, ends in enumerate(zip(*machine.command_limits, strict=True)):
        result[k] = clip(result[k], *ends)
    return result


def actuate(load: Load, state: State, u: Matrix, *, limits: bool) -> None:
    """Add what the actuators do at inputs u to a load.

    With `limits`, forces of motors stay within their limits (`limited_effort`), and all of that at
    a joint within the joint's `effort_range`.
    """
    machine, total = state.machine, Load(state.machine)
    for actuator in machine.actuators:
        force = limited_effort(state, actuator, u) if limits else effort(state, actuator, u)
        push(total, state, actuator, force)
    for joint in machine.joints if limits else ():
        start = machine.v_slice[joint.name].start
        for i, ends in enumerate(zip(*joint.effort_range, strict=True), start):
            total.joint_force[i] = clip(total.joint_force[i], *ends)
    load.joint_force = load.joint_force + total.joint_force
    for index, wrench in enumerate(total.wrenches):
        if wrench is not None:
            load.on_body(index, wrench)
