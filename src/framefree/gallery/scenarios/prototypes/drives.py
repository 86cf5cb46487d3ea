"""Drives of the recorded craft: filtered thrust and torques, and arms that tilt."""

import numpy as np

from framefree.gallery.machines import multicopters
from framefree.machine import Machine
from framefree.simulate import PropellerDrive, Rotor, RotorDrive, TiltServo

_TORQUE_CONSTANT, _FRICTION = 0.0105, 0.005
_CURRENTS = (-7.08, 14.16)


def quadcopter_drive(machine: Machine, limited: bool = True) -> PropellerDrive:
    """Return the drive that was identified on the vehicle [Konz2024, ch. 5].

    Total thrust follows with 100 rad/s, tilting torques with 125 rad/s, both with damping 0.7071,
    the yaw torque like first order with 66 rad/s: its filter cancels the zero of the rotors'
    reaction at hover. `limited` is whether currents are.
    """
    angles = np.array(multicopters.QUADCOPTER_AZIMUTHS)
    spins = np.array(multicopters.QUADCOPTER_SPINS)
    rows = [np.ones(4), multicopters.ARM * np.sin(angles), -multicopters.ARM * np.cos(angles)]
    mixer = np.array([*rows, -multicopters.TORQUE_RATIO * spins])
    hover = np.sqrt(1.001 * 9.81 / 4 / multicopters.THRUST_COEFFICIENT)
    T = multicopters.ROTOR_INERTIA / (2 * multicopters.TORQUE_COEFFICIENT * hover)
    yaw = float(np.sqrt(66.0 / T))
    low, high = (_TORQUE_CONSTANT * i - _FRICTION for i in _CURRENTS)
    return PropellerDrive(
        machine,
        multicopters.THRUST_COEFFICIENT,
        multicopters.ROTOR_INERTIA,
        rates=[100.0, 125.0, 125.0, yaw],
        ratios=[0.7071, 0.7071, 0.7071, 1 / (2 * T * yaw)],
        modes=mixer,
        torques=(low, high) if limited else (-np.inf, np.inf),
    )


def tricopter_drive(machine: Machine) -> RotorDrive:
    """Return the drive that was identified on the vehicle [Konz2024, ch. 5].

    Thrusts follow with 75 1/s, and servos tilt the arms with 40.11 rad/s and damping 0.9154.
    """
    return RotorDrive(machine, Rotor((0.0, 1.0), rate=75.0), TiltServo(40.11, 0.9154))
