"""Drives of the multicopters: propellers under a force filter, and arms tilted by servos."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.gallery.machines import multicopters
from framefree.simulate import Drive

Matrix = Any

_TORQUE_CONSTANT, _FRICTION = 0.0105, 0.005
_CURRENTS = (-7.08, 14.16)
_SLOWEST = 40.0
"""rad/s below which a propeller is taken to turn so fast: thrust hardly answers its speed there."""


@dataclass(frozen=True)
class PropellerDrive(Drive):
    """Four motors that make thrust and torques follow their commands through a filter.

    With the wrench f = B kF w^2 of the propeller speeds w, and the reaction f_d of turning rotors
    on the yaw torque,

        f'' + K1 f' + K0 (f + f_d - f_commanded) = 0:

    thrust of second order at 100 rad/s, tilting torques at 125 rad/s, both with damping 0.7071,
    the yaw torque of first order at 66 rad/s. Motor torques stay within those of the currents.
    The machine's inputs are the thrusts that give the same wrench, the reaction included.

    Parameters
    ----------
    limited : bool
        Whether currents are.
    """

    limited: bool = True

    @property
    def _mixer(self) -> np.ndarray:
        """Matrix (4, 4) from thrusts to total thrust and torques about x, y, z."""
        angles = np.array(multicopters.QUADCOPTER_AZIMUTHS)
        spins = np.array(multicopters.QUADCOPTER_SPINS)
        arm = multicopters.ARM
        rows = [np.ones(4), arm * np.sin(angles), -arm * np.cos(angles)]
        return np.array([*rows, -multicopters.TORQUE_RATIO * spins])

    @property
    def _gains(self) -> tuple[np.ndarray, np.ndarray]:
        """K0 and K1; those of the yaw torque cancel the zero of the rotors' reaction at hover."""
        hover = np.sqrt(1.001 * 9.81 / 4 / multicopters.THRUST_COEFFICIENT)
        T = multicopters.ROTOR_INERTIA / (2 * multicopters.TORQUE_COEFFICIENT * hover)
        fast = np.array([100.0, 125.0, 125.0])
        return np.append(fast**2, 66.0 / T), np.append(2 * 0.7071 * fast, 1 / T)

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return the speeds that give thrusts u, and a wrench that does not change."""
        thrusts = np.maximum(np.asarray(u, float), 0.0)
        return np.concatenate([np.sqrt(thrusts / multicopters.THRUST_COEFFICIENT), np.zeros(4)])

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of the speeds, rad/s^2, and of the wrench's rate."""
        wrench, acceleration, reaction = self._physics(z)
        K0, K1 = (ca.DM(gain) for gain in self._gains)
        off = wrench + reaction - ca.DM(self._mixer) @ command
        return ca.vertcat(acceleration, -K1 * z[4:] - K0 * off)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the thrusts that give the wrench of propellers and rotors."""
        wrench, _, reaction = self._physics(z)
        return ca.DM(np.linalg.inv(self._mixer)) @ (wrench + reaction)

    def _physics(self, z: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return the wrench of the air, accelerations of the propellers, their reaction."""
        speed, mixer = ca.fmax(z[:4], _SLOWEST), ca.DM(self._mixer)
        kF, inertia = multicopters.THRUST_COEFFICIENT, multicopters.ROTOR_INERTIA
        wanted = ca.DM(np.linalg.inv(self._mixer)) @ z[4:] / (2 * kF * speed)
        if self.limited:
            lost = multicopters.TORQUE_COEFFICIENT * speed**2
            low, high = (_TORQUE_CONSTANT * i - _FRICTION for i in _CURRENTS)
            wanted = ca.fmax(ca.fmin(wanted, (high - lost) / inertia), (low - lost) / inertia)
        spins = ca.DM(multicopters.QUADCOPTER_SPINS)
        reaction = ca.vertcat(0, 0, 0, -inertia * ca.dot(spins, wanted))
        return mixer @ (kF * speed**2), wanted, reaction


@dataclass(frozen=True)
class TiltDrive(Drive):
    """Propellers on arms that servos tilt; inputs are pairs (F sin t, F cos t).

    Thrust follows its command with 75 1/s, the tilt t with the servo's
    t'' + 2 zeta w t' + w^2 (t - t_commanded) = 0.

    Parameters
    ----------
    count : int
        Number of propellers.
    thrust_rate, servo_rate, servo_damping : float
        1/s, rad/s, 1.
    """

    count: int = 3
    thrust_rate: float = 75.0
    servo_rate: float = 40.11
    servo_damping: float = 0.9154

    def start(self, u: np.ndarray) -> np.ndarray:
        """Return thrusts, tilts, and rates of the tilts: zero."""
        sine, cosine = np.asarray(u, float).reshape(self.count, 2).T
        thrust, tilt = np.hypot(sine, cosine), np.arctan2(sine, cosine)
        return np.concatenate([thrust, tilt, np.zeros(self.count)])

    def rate(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the rates of thrusts, tilts and their rates."""
        n = self.count
        sine, cosine = command[0 : 2 * n : 2], command[1 : 2 * n : 2]
        thrust, tilt = ca.sqrt(sine**2 + cosine**2), ca.atan2(sine, cosine)
        push = self.servo_rate**2 * (tilt - z[n : 2 * n])
        slow = 2 * self.servo_damping * self.servo_rate * z[2 * n :]
        return ca.vertcat(self.thrust_rate * (thrust - z[:n]), z[2 * n :], push - slow)

    def u(self, z: Matrix, command: Matrix) -> Matrix:
        """Return the thrusts' components."""
        n = self.count
        pairs = [(z[k] * ca.sin(z[n + k]), z[k] * ca.cos(z[n + k])) for k in range(n)]
        return ca.vertcat(*(part for pair in pairs for part in pair))
