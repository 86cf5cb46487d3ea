"""Drives of any rotors: motors with thrust curves, and servos that tilt them.

    speed     w' = rate (w_commanded - w),  within speeds and motor torques
    thrust    F = c0 + c1 w + c2 w^2
    tilt      t'' + 2 damping rate t' + rate^2 (t - t_commanded) = 0

with w_commanded the speed that gives the commanded thrust. Actuators that are neither propellers
nor tilting ones follow their commands at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.machine import Machine, Propeller, TiltingPropeller
from framefree.simulate.actuation import Drive
from framefree.simulate.errors import SimulationError
from framefree.simulate.propellers import inputs_for_moments

Matrix = Any


@dataclass(frozen=True)
class Rotor:
    """A motor with its propeller.

    Parameters
    ----------
    thrust : (2,) or (3,)
        Coefficients c0, c1, c2 of the thrust (N) over the speed (rad/s), lowest first; rising over
        all `speeds`. (0, 0, kF) is thrust by the square, (0, 1) a lag of the thrust itself.
    rate : float
        1/s, with which the speed follows.
    speeds : (2,)
        Smallest and largest speed, rad/s.
    inertia : float
        kg m^2, of rotor and propeller: what it takes to speed up turns the craft back.
    torques : (2,)
        Smallest and largest torque of the motor, Nm; needs `inertia`. The air takes the actuator's
        `torque_ratio` times the thrust of it.
    """

    thrust: Any
    rate: float = 50.0
    speeds: tuple[float, float] = (0.0, np.inf)
    inertia: float = 0.0
    torques: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        c = np.asarray(self.thrust, float)
        if c.shape not in ((2,), (3,)) or not np.isfinite(c).all():
            raise SimulationError(
                f"`thrust` of a Rotor must be two or three coefficients, got {self.thrust!r}"
            )
        object.__setattr__(self, "thrust", (*c, *np.zeros(3 - len(c))))
        low, high = self.speeds
        if not 0 <= low < high:
            raise SimulationError(
                f"`speeds` of a Rotor must be increasing and not negative, got {low, high}"
            )
        c0, c1, c2 = self.thrust
        if c1 + 2 * c2 * low < 0 or not c1 + 2 * c2 * min(high, low + 1e6) > 0:
            raise SimulationError(
                f"the thrust {c0:g} + {c1:g} w + {c2:g} w^2 of a Rotor must rise over its speeds "
                f"{low, high}"
            )
        if not self.rate > 0 or self.inertia < 0:
            raise SimulationError(
                f"a Rotor needs a positive `rate` and no negative `inertia`, got {self.rate} and "
                f"{self.inertia}"
            )
        if not self.torques[0] < self.torques[1] or (
            np.isfinite(self.torques).any() and not self.inertia > 0
        ):
            raise SimulationError(
                "`torques` of a Rotor must be increasing, and need its `inertia`; got "
                f"{self.torques} and {self.inertia} kg m^2"
            )

    def thrust_at(self, w: Matrix) -> Matrix:
        """Return the thrust, N, at a speed."""
        c0, c1, c2 = self.thrust
        return c0 + w * (c1 + c2 * w)

    def speed_for(self, thrust: Matrix) -> Matrix:
        """Return the speed, rad/s, that gives a thrust, or the nearest there is."""
        c0, c1, c2 = self.thrust
        if c2 == 0:
            w = (thrust - c0) / c1
        else:
            # Where there is no such speed the root is taken of zero: the lowest of the curve.
            root = ca.sqrt(ca.fmax(c1 * c1 + 4 * c2 * (thrust - c0), 0.0))
            w = (root - c1) / (2 * c2)
        low, high = self.speeds
        w = ca.fmax(w, low)
        return ca.fmin(w, high) if np.isfinite(high) else w

    def speeding(self, w: Matrix, commanded: Matrix, air: Matrix) -> Matrix:
        """Return dw/dt, rad/s^2, under the air's torque (Nm)."""
        change = self.rate * (commanded - w)
        low, high = self.torques
        if np.isfinite(high):
            change = ca.fmin(change, (high - air) / self.inertia)
        return ca.fmax(change, (low - air) / self.inertia) if np.isfinite(low) else change


@dataclass(frozen=True)
class TiltServo:
    """A servo that tilts a propeller.

    Parameters
    ----------
    rate, damping : float
        rad/s and 1.
    range : (2,)
        Within which it is commanded, rad.
    """

    rate: float = 40.0
    damping: float = 0.9
    range: tuple[float, float] = (-np.pi, np.pi)

    def __post_init__(self) -> None:
        low, high = self.range
        if not (self.rate > 0 and self.damping > 0 and low < high):
            raise SimulationError(
                "a TiltServo needs a positive `rate` and `damping` and an increasing `range`, got "
                f"{self.rate}, {self.damping} and {self.range}"
            )

    def acceleration(self, tilt: Matrix, turning: Matrix, commanded: Matrix) -> Matrix:
        """Return t'', rad/s^2."""
        target = ca.fmax(self.range[0], ca.fmin(self.range[1], commanded))
        return self.rate**2 * (target - tilt) - 2 * self.damping * self.rate * turning


class _Driven(NamedTuple):
    """A propeller: where its inputs stand, what drives it, and which servo (-1: none) tilts it."""

    actuator: Any
    inputs: slice
    rotor: Rotor
    servo: int


@dataclass(frozen=True, eq=False)
class RotorDrive(Drive):
    """Motors and servos between a law's thrusts and those of a machine, of any number and kind.

    Parameters
    ----------
    machine : Machine
        With `Propeller` and `TiltingPropeller` actuators, and others, which follow at once.
    rotors : Rotor, or mapping of actuator name to Rotor
        For all propellers.
    servos : TiltServo, or mapping of actuator name to TiltServo
        For all tilting propellers.

    Raises
    ------
    SimulationError
        If a rotor or servo is missing, or if rotors have inertia whose reaction no thrusts can
        give, as on a tricopter with one servo: leave `inertia` zero there, or make them bodies
        (`SpinningPropeller`).
    """

    machine: Machine
    rotors: Any
    servos: Any = TiltServo()

    def __post_init__(self) -> None:
        _ = self._driven, self._servos, self._reaction

    @cached_property
    def _driven(self) -> tuple[_Driven, ...]:
        machine, driven, servos = self.machine.numeric, [], 0
        for actuator in machine.actuators:
            if not isinstance(actuator, Propeller | TiltingPropeller):
                continue
            tilts = isinstance(actuator, TiltingPropeller)
            rotor = _chosen(self.rotors, actuator.name, Rotor)
            driven.append(
                _Driven(actuator, machine.u_slice[actuator.name], rotor, servos if tilts else -1)
            )
            servos += tilts
        if not driven:
            raise SimulationError(f"`{machine.name}` has no propellers for a RotorDrive")
        return tuple(driven)

    @cached_property
    def _servos(self) -> tuple[TiltServo, ...]:
        names = [one.actuator.name for one in self._driven if one.servo >= 0]
        return tuple(_chosen(self.servos, name, TiltServo) for name in names)

    @cached_property
    def _reaction(self) -> np.ndarray | None:
        """Inputs (nu, rows) per unit of J w' along each propeller's one or two directions."""
        if not any(one.rotor.inertia > 0 for one in self._driven):
            return None
        chosen, moments = [one.actuator for one in self._driven], []
        for actuator in chosen:
            directions = np.array(ca.DM(actuator.columns))[:3]
            moments.append(-actuator.spin * directions)
        own = inputs_for_moments(self.machine, chosen, moments)
        places = np.concatenate([np.r_[one.inputs] for one in self._driven])
        whole = np.zeros((self.machine.nu, own.shape[1]))
        whole[places] = own
        return whole

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return speeds, tilts and rates of the tilts that have given the inputs u for long."""
        u = np.asarray(u, float)
        speeds, tilts = [], np.zeros(len(self._servos))
        for one in self._driven:
            thrust, tilt = _polar(u[one.inputs])
            speeds.append(float(ca.DM(one.rotor.speed_for(thrust))))
            if one.servo >= 0:
                tilts[one.servo] = float(ca.DM(tilt))
        return np.concatenate([speeds, tilts, np.zeros(len(tilts))])

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of speeds, tilts and rates of the tilts."""
        tilts, turning = self._tilts(z)
        changes = []
        for one, servo in ((d, self._servos[d.servo]) for d in self._driven if d.servo >= 0):
            wanted = _polar(command[one.inputs])[1]
            changes.append(servo.acceleration(tilts[one.servo], turning[one.servo], wanted))
        return ca.vertcat(*self._speeding(z, command), turning, *changes)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the inputs that give the wrench of the air and of rotors that speed up."""
        tilts, u = self._tilts(z)[0], ca.SX(command)
        pushes = []
        for k, (one, change) in enumerate(
            zip(self._driven, self._speeding(z, command), strict=True)
        ):
            along = ca.SX(1)
            if one.servo >= 0:
                along = ca.vertcat(ca.sin(tilts[one.servo]), ca.cos(tilts[one.servo]))
            u[one.inputs] = one.rotor.thrust_at(z[k]) * along
            pushes.append(one.rotor.inertia * change * along)
        return u if self._reaction is None else u + ca.DM(self._reaction) @ ca.vertcat(*pushes)

    def check(self, machine: Machine, dt: float) -> None:
        """Refuse another machine's actuators, and drives that are faster than the step."""
        if machine.u_names != self.machine.u_names:
            raise SimulationError(
                f"a RotorDrive for {', '.join(self.machine.u_names)} does not fit "
                f"`{machine.name}` with {', '.join(machine.u_names)}"
            )
        fastest = max(*(d.rotor.rate for d in self._driven), *(s.rate for s in self._servos), 0.0)
        if fastest * dt > 1:
            raise SimulationError(
                f"the step of {dt:g} s is longer than 1/rate, {1 / fastest:g} s, of a drive"
            )

    def _tilts(self, z: Matrix) -> tuple[Matrix, Matrix]:
        rotors, servos = len(self._driven), len(self._servos)
        return z[rotors : rotors + servos], z[rotors + servos :]

    def _speeding(self, z: Matrix, command: Matrix) -> list[Matrix]:
        """Return dw/dt of every rotor."""
        changes = []
        for k, one in enumerate(self._driven):
            rotor, wanted = one.rotor, _polar(command[one.inputs])[0]
            air = float(one.actuator.torque_ratio) * rotor.thrust_at(z[k])
            changes.append(rotor.speeding(z[k], rotor.speed_for(wanted), air))
        return changes


def _polar(inputs: Any) -> tuple[Any, Any]:
    """Return thrust and tilt of one input (the thrust) or two (F sin t, F cos t)."""
    if inputs.shape[0] == 1:
        return inputs[0], 0.0
    return ca.sqrt(inputs[0] ** 2 + inputs[1] ** 2), ca.atan2(inputs[0], inputs[1])


def _chosen(given: Any, name: str, kind: type) -> Any:
    """Return the one that is given for all, or by an actuator's name."""
    chosen = given.get(name) if isinstance(given, Mapping) else given
    if not isinstance(chosen, kind):
        known = f"; given are {', '.join(given)}" if isinstance(given, Mapping) else ""
        raise SimulationError(
            f"a RotorDrive needs a {kind.__name__} for `{name}`, got {chosen!r}{known}"
        )
    return chosen
