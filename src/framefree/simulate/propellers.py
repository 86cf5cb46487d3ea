"""A drive of any number of propellers whose thrusts, or combinations of them, are filtered."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine, Propeller
from framefree.simulate.actuation import Drive
from framefree.simulate.errors import SimulationError

Matrix = Any

GIVEN = 1e-9
"""Share of the rotors' reaction that thrusts may fail to give."""


@dataclass(frozen=True, eq=False)
class PropellerDrive(Drive):
    """Motors that make the thrusts of propellers follow their commands, within motor torques.

    A propeller at speed w gives the thrust kF w^2 against the air's torque kT w^2. Combinations
    f = T kF w^2 of the thrusts follow those of the commands through a filter of second order,

        f'' + 2 ratio rate f' + rate^2 (f + T r - T command) = 0,

    as far as motor torques J w' + kT w^2 stay within their limits. r are the thrusts that would
    give the same moment as rotors that speed up, -J spin w' about their axes: what the machine gets
    is kF w^2 + r.

    Parameters
    ----------
    machine : Machine
        With `Propeller` actuators only, all on one body, whose inertia counts the rotors.
    thrust_coefficient, rotor_inertia : number or (nu,)
        kF (N s^2/rad^2) and J (kg m^2); kT is kF times the propellers' `torque_ratio`.
    rates, ratios : number or (nu,)
        Of the filter, rad/s and 1, one for each row of `modes`.
    modes : (nu, nu), optional
        T; by default every thrust by itself.
    torques : (2,)
        Smallest and largest torque of a motor, Nm.
    slowest : float
        rad/s below which a propeller is taken to turn so fast: thrust hardly answers its speed
        there.

    Raises
    ------
    SimulationError
        If the rotors' reaction is none that thrusts can give, as of propellers that all turn the
        same way without drag torque: such rotors must be bodies (`SpinningPropeller`).
    """

    machine: Machine
    thrust_coefficient: Any
    rotor_inertia: Any
    rates: Any = 100.0
    ratios: Any = 0.7071
    modes: Any = None
    torques: tuple[float, float] = (-np.inf, np.inf)
    slowest: float = 40.0

    def __post_init__(self) -> None:
        actuators = self.machine.actuators
        wrong = [a.name for a in actuators if not isinstance(a, Propeller)]
        bodies = {self.machine.frame(a.frame).body for a in actuators if isinstance(a, Propeller)}
        if wrong or len(bodies) != 1:
            what = (
                f"actuator `{wrong[0]}` is none" if wrong else f"they are on {len(bodies)} bodies"
            )
            raise SimulationError(f"a PropellerDrive moves propellers of one body, but {what}")
        for name in ("thrust_coefficient", "rotor_inertia", "rates", "ratios"):
            self._each(name)
        low, high = self.torques
        if not low < 0 < high:
            raise SimulationError(
                f"`torques` must be one below and one above zero, got {low, high}"
            )
        _ = self._reaction, self._mix

    @property
    def count(self) -> int:
        """Number of propellers."""
        return self.machine.nu

    def _each(self, name: str) -> np.ndarray:
        """Return a positive number for every propeller or mode."""
        value = np.asarray(getattr(self, name), float)
        if value.shape not in ((), (self.count,)) or not (np.isfinite(value) & (value > 0)).all():
            raise SimulationError(
                f"`{name}` of a PropellerDrive must be one positive number or {self.count}, got "
                f"{value.tolist()}"
            )
        return np.broadcast_to(value, self.count)

    @cached_property
    def _propellers(self) -> tuple[Propeller, ...]:
        return tuple(a for a in self.machine.numeric.actuators if isinstance(a, Propeller))

    @cached_property
    def _mix(self) -> tuple[np.ndarray, np.ndarray]:
        """T and its inverse."""
        T = np.eye(self.count) if self.modes is None else np.asarray(self.modes, float)
        if T.shape != (self.count,) * 2 or not np.linalg.cond(T) < 1e12:
            raise SimulationError(
                f"`modes` must be a regular matrix {self.count} x {self.count}, got {T.tolist()}"
            )
        return T, np.linalg.inv(T)

    @cached_property
    def _reaction(self) -> np.ndarray:
        """Thrusts (nu, nu) that give the moments of rotors that speed up by one rad/s^2."""
        inertia = self._each("rotor_inertia")
        moments = [
            -J * one.spin * np.asarray(one.axis, float)[:, None]
            for one, J in zip(self._propellers, inertia, strict=True)
        ]
        return inputs_for_moments(self.machine, self._propellers, moments)

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the speeds that give thrusts u, and combinations that do not change."""
        thrusts = np.maximum(np.asarray(u, float), 0.0)
        speeds = np.sqrt(thrusts / self._each("thrust_coefficient"))
        return np.concatenate([speeds, np.zeros(self.count)])

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of the speeds, rad/s^2, and of the combinations' rates."""
        thrust, acceleration = self._physics(z)
        rates, ratios = self._each("rates"), self._each("ratios")
        off = ca.DM(self._mix[0]) @ (thrust + ca.DM(self._reaction) @ acceleration - command)
        push = ca.DM(2 * ratios * rates) * z[self.count :] + ca.DM(rates**2) * off
        return ca.vertcat(acceleration, -push)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return thrusts that give the wrench of the air and of the rotors."""
        thrust, acceleration = self._physics(z)
        return thrust + ca.DM(self._reaction) @ acceleration

    def check(self, machine: Machine, dt: float) -> None:
        """Refuse another machine's propellers."""
        if machine.u_names != self.machine.u_names:
            raise SimulationError(
                f"a PropellerDrive for {', '.join(self.machine.u_names)} does not fit "
                f"`{machine.name}` with {', '.join(machine.u_names)}"
            )

    def _physics(self, z: Matrix) -> tuple[Matrix, Matrix]:
        """Return the thrusts of the air, and the accelerations of the propellers."""
        kF, J = (ca.DM(self._each(name)) for name in ("thrust_coefficient", "rotor_inertia"))
        ratios = [float(propeller.torque_ratio) for propeller in self._propellers]
        speed = ca.fmax(z[: self.count], self.slowest)
        wanted = ca.DM(self._mix[1]) @ z[self.count :] / (2 * kF * speed)
        low, high = self.torques
        lost = kF * ca.DM(ratios) * speed**2
        if np.isfinite(high):
            wanted = ca.fmin(wanted, (high - lost) / J)
        if np.isfinite(low):
            wanted = ca.fmax(wanted, (low - lost) / J)
        return kF * speed**2, wanted


def inputs_for_moments(machine: Machine, propellers: Any, moments: Any) -> np.ndarray:
    """Return thrusts (k, m) of propellers on one body that give moments about their places.

    Parameters
    ----------
    machine : Machine
    propellers : sequence of Propeller or TiltingPropeller
        With k inputs in all.
    moments : sequence of (3, n)
        For every propeller some moments, in its frame's axes; m in all.
    """
    machine = machine.numeric
    bodies = {machine.frame(actuator.frame).body for actuator in propellers}
    if len(bodies) != 1:
        raise SimulationError(
            f"rotors that react on each other must be on one body, but they are on {len(bodies)}: "
            + ", ".join(sorted(bodies))
        )
    columns, wanted = [], []
    for actuator, own in zip(propellers, moments, strict=True):
        pose = np.asarray(machine.frame(actuator.frame).pose, float)
        R, r = pose[:3, :3], pose[:3, 3]
        wrench = np.array(ca.DM(actuator.columns))
        force, moment = R @ wrench[:3], R @ wrench[3:]
        columns.append(np.vstack([force, moment + np.cross(r, force, axisb=0, axisc=0)]))
        wanted.append(np.vstack([np.zeros_like(own), R @ own]))
    B, turned = np.hstack(columns), np.hstack(wanted)
    thrusts = np.linalg.lstsq(B, turned, rcond=1e-9)[0]
    left = np.abs(B @ thrusts - turned).max() / max(np.abs(turned).max(), 1e-300)
    if left > GIVEN:
        raise SimulationError(
            f"the propellers of `{machine.name}` cannot give the reaction of their rotors: "
            f"{left:.2g} of it is left; make the rotors bodies, each with a `SpinningPropeller`"
        )
    return thrusts
