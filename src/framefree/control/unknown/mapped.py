"""`Mapped`: a law whose inputs pass imperfect actuators, by what was learned of them.

A law asks for values w of the port, the inputs of ideal actuators. Real ones have gains, dead
zones, lags and couplings (`framefree.learn.ActuatorMap`):

    T da/dt = phi(c) - a,      port = C a

The commands are those that give w. What every actuator is to give is a_d = C^-1 w. Where it lags, a
faster pace is asked for, with the output a that the model itself expects:

    phi(c) = a + T / response (a_d - a),      so that      response da/dt = a_d - a

as long as commands stay within their limits; the model knows the commands as they were limited, so
that nothing winds up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import casadi as ca
import numpy as np

from framefree.control.law import Command, ControlError, Law, Timing
from framefree.control.shared.gains import positive
from framefree.machine import Machine

Matrix = Any


class LearnedActuators(Protocol):
    """What a model of actuators has; `framefree.learn.ActuatorMap` is one."""

    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def coupling(self) -> np.ndarray: ...  # noqa: D102
    @property
    def time_constants(self) -> np.ndarray: ...  # noqa: D102

    def outputs(self, c: Matrix) -> Matrix:
        """Return phi(c) (n)."""
        ...

    def commands(self, a: Matrix) -> Matrix:
        """Return phi^-1(a) (n)."""
        ...

    def limited(self, c: Matrix) -> Matrix:
        """Return commands (n) within their limits."""
        ...


@dataclass(frozen=True, eq=False)
class Mapped(Law):
    """A law, and commands for imperfect actuators; see the top of this file.

    Beside the law's signals it records `port_wanted` (nu), `port` (nu), what the actuators are
    expected to give now, and `port_missed` (nu), what commands within their limits could not give
    even in the end. The law's own `V_rate` holds for a port that gives what is wanted, and is not
    recorded.

    Parameters
    ----------
    law : Law
        Made for a machine with ideal actuators.
    actuators : LearnedActuators
        One for every input of the machine.
    response : float
        s, in which outputs are to follow; actuators that lag less count as if they did not.
    timing : Timing
        Of the loop; `simulate` fills it in.
    """

    law: Law
    actuators: LearnedActuators
    response: float = 5e-3
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        positive(self.response, "response", "Mapped")
        if self.actuators.size != self.law.machine.nu:
            raise ControlError(
                f"`{self.law.machine.name}` has {self.law.machine.nu} inputs, the map of actuators "
                f"has {self.actuators.size}"
            )

    # ------------------------------------------------------------------ what the law has

    @property
    def machine(self) -> Machine:  # type: ignore[override]
        """The law's."""
        return self.law.machine

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The law's reference signals."""
        return self.law.needs

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and columns of these signals."""
        return self.law.shapes

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the law can use."""
        return self.law.takes

    @property
    def follows_time(self) -> bool:  # type: ignore[override]
        """Whether the law does."""
        return self.law.follows_time

    @property
    def units(self) -> Mapping[str, str]:  # type: ignore[override]
        """Units of the law's signals; the port has those of the inputs."""
        return self.law.units

    @property
    def name(self) -> str:
        """What the law is called in records."""
        return f"Mapped {self.law.name}"

    # ------------------------------------------------------------------ memory

    @property
    def _lagging(self) -> list[int]:
        return np.flatnonzero(np.asarray(self.actuators.time_constants) > self.response).tolist()

    @property
    def memory(self) -> np.ndarray:
        """The law's memory, and outputs of actuators that lag."""
        return np.concatenate([self.law.memory, np.zeros(len(self._lagging))])

    def first_memory(self, x: Matrix, v: Matrix) -> Matrix:
        """Return the law's first memory; actuators have given nothing yet."""
        return ca.vertcat(self.law.first_memory(x, v), ca.SX(len(self._lagging), 1))

    def timed(self, timing: Timing) -> "Mapped":
        """Return the same for a control period and a delay."""
        if timing.delay and self._lagging:
            raise ControlError(
                "Mapped expects what lagging actuators give now: commands that act later need a "
                "prediction (`predict=True`)"
            )
        return replace(self, law=self.law.timed(timing), timing=timing)

    # ------------------------------------------------------------------ the law

    def control(
        self, t: Matrix, x: Matrix, v: Matrix, reference: Mapping[str, Matrix], memory: Matrix
    ) -> Command:
        """Return commands that give what the law asks for."""
        actuators, own = self.actuators, len(self.law.memory)
        before, a = memory[:own, :], memory[own:, :]
        command = self.law.control(t, x, v, reference, before)
        lagging, C = self._lagging, ca.DM(np.asarray(actuators.coupling))
        T = ca.DM(np.asarray(actuators.time_constants)[lagging])
        share = ca.DM(np.linalg.inv(np.asarray(actuators.coupling))) @ command.u
        goal = ca.SX(share)
        goal[lagging] = a + T / self.response * (share[lagging] - a)
        c = actuators.limited(actuators.commands(goal))
        given = actuators.outputs(c)
        now = ca.SX(given)
        now[lagging] = a
        best = actuators.outputs(actuators.limited(actuators.commands(share)))
        signals = {name: value for name, value in command.signals.items() if name != "V_rate"}
        signals |= {"port_wanted": command.u, "port": C @ now, "port_missed": C @ (share - best)}
        rate, following = self._output_change(a, given[lagging], T)
        kept = before if command.memory is None else command.memory
        moving = ca.SX(own, 1) if command.rate is None else command.rate
        return Command(c, signals, ca.vertcat(kept, following), ca.vertcat(moving, rate))

    def _output_change(self, a: Matrix, given: Matrix, T: Matrix) -> tuple[Matrix, Matrix]:
        """Return the rate of the outputs, or exactly their next value if the law is sampled."""
        if not self.timing.period:
            return (given - a) / T, a
        return ca.SX(*a.shape), a + (1 - ca.exp(-self.timing.period / T)) * (given - a)
