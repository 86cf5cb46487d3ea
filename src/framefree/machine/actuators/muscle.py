"""Muscles: forces that depend on length, on speed and on activation."""

from dataclasses import dataclass, field
from typing import Any

import casadi
import numpy as np

from framefree.machine.actuators.activation import SHORTEST, Activation, MuscleActivation
from framefree.machine.actuators.base import Actuator, JointActuator, TendonActuator
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import numbers


class Muscle(Actuator):
    """Base of muscles: f = -force (FL(L) FV(V) u + passive FP(L)), pulling.

    FL, FV and FP are MuJoCo's curves of the length L and the speed V, scaled: L = 1 is the length
    of the largest force, V = -1 the largest speed of shortening. The muscle-tendon length, gear
    times the joint's coordinate or the tendon's length, is mapped so that `lengths` become `range`.
    """

    gear: Any
    force: Any
    lengths: Any
    range: Any
    l_min: float
    l_max: float
    v_max: float
    passive: float
    f_v_max: float
    lower: Any = np.zeros(1)
    upper: Any = np.ones(1)
    speed_dependent = True

    def __post_init__(self) -> None:
        checked_name(self.name, "an actuator")
        for name in ("gear", "force", "l_min", "l_max", "v_max", "passive", "f_v_max"):
            value = numbers(getattr(self, name), (), self._words(name))
            set_field(self, name, float(value))
        for name in ("lengths", "range"):
            set_field(self, name, numbers(getattr(self, name), (2,), self._words(name)))
            low, high = getattr(self, name)
            if not low < high:
                raise MachineError(f"{self._words(name)} must increase, got {[low, high]}")
        if not self.l_min < 1 < self.l_max or not min(self.v_max, self.f_v_max) > 0:
            raise MachineError(
                f"muscle `{self.name}` needs `l_min` < 1 < `l_max`, `v_max` > 0 and `f_v_max` > 0"
            )
        if self.activation is not None and not isinstance(self.activation, Activation):
            raise MachineError(f"`activation` of muscle `{self.name}` must be an Activation")

    @property
    def columns(self) -> Any:
        """Not constant: see `columns_at`."""
        raise MachineError(f"the force of muscle `{self.name}` depends on its length and speed")

    def columns_at(self, x: Any, v: Any) -> Any:
        """Return -gear force FL FV (1 x 1)."""
        L, optimum = self._scaled(x)
        V = self.gear * v / (optimum * self.v_max)
        return -self.gear * self.force * self.by_length(L) * self.by_speed(V)

    def bias(self, x: Any, v: Any) -> Any:
        """Return -gear force passive FP."""
        if self.passive == 0.0:
            return None
        L, _ = self._scaled(x)
        reach = (self.l_max - 1) / 2
        s = (L - 1) / reach
        curve = casadi.if_else(s <= 1, s**2 / 2, s - 0.5)
        return -self.gear * self.force * self.passive * casadi.if_else(s <= 0, 0, curve)

    def by_length(self, L: Any) -> Any:
        """Return FL: a bump of parabolas from `l_min` to `l_max`, 1 at L = 1."""
        s = casadi.fmax((L - 1) / (self.l_min - 1), (L - 1) / (self.l_max - 1))  # 1 at the ends
        curve = casadi.if_else(s <= 0.5, 1 - 2 * s**2, 2 * (1 - s) ** 2)
        return casadi.if_else(s <= 1, curve, 0)

    def by_speed(self, V: Any) -> Any:
        """Return FV: 0 at V = -1, 1 at V = 0, `f_v_max` beyond V = f_v_max - 1."""
        more = self.f_v_max - 1
        shortening = casadi.if_else(V <= -1, 0, (V + 1) ** 2)
        rising = self.f_v_max - (more - V) ** 2 / max(more, SHORTEST)
        lengthening = casadi.if_else(more >= V, rising, self.f_v_max)
        return casadi.if_else(V <= 0, shortening, lengthening)

    def _scaled(self, x: Any) -> tuple[Any, float]:
        """Return L, and the length at L = 1 beyond that at L = 0."""
        optimum = float((self.lengths[1] - self.lengths[0]) / (self.range[1] - self.range[0]))
        return self.range[0] + (self.gear * x - self.lengths[0]) / optimum, optimum

    def _words(self, name: str) -> str:
        return f"`{name}` of muscle `{self.name}`"


@dataclass(frozen=True, eq=False)
class TendonMuscle(Muscle, TendonActuator):
    """A muscle along a tendon; see `Muscle`.

    Parameters
    ----------
    name, tendon : str
    force : number
        Largest active force at rest, N.
    lengths : (2,)
        Shortest and longest muscle-tendon length, m.
    range : (2,)
        L at these two lengths.
    l_min, l_max, v_max, f_v_max : number
        Where FL ends, the largest speed of shortening in optimal lengths per second, and FV at fast
        lengthening.
    passive : number
        Passive force at L = `l_max`, halved and slanted as MuJoCo has it, as a share of `force`.
    gear : number
    activation : Activation or None
        How u follows commands; None where u itself is commanded.
    """

    name: str
    tendon: str
    force: Any
    lengths: Any
    range: Any = (0.75, 1.05)
    l_min: float = 0.5
    l_max: float = 1.6
    v_max: float = 1.5
    passive: float = 1.3
    f_v_max: float = 1.2
    gear: Any = 1.0
    activation: Any = field(default_factory=MuscleActivation)


@dataclass(frozen=True, eq=False)
class JointMuscle(Muscle, JointActuator):
    """A muscle on a joint with one plain coordinate; see `Muscle` and `TendonMuscle`."""

    name: str
    joint: str
    force: Any
    lengths: Any
    range: Any = (0.75, 1.05)
    l_min: float = 0.5
    l_max: float = 1.6
    v_max: float = 1.5
    passive: float = 1.3
    f_v_max: float = 1.2
    gear: Any = 1.0
    activation: Any = field(default_factory=MuscleActivation)
