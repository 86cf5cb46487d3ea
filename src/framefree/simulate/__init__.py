"""Running machines in time: integrators, plants, runs and their records.

The package may itself be called: ``framefree.simulate(machine, ...)`` is
``framefree.simulate.simulate(machine, ...)``.
"""

from framefree.lazy import make_callable
from framefree.simulate.actuation import Drive, FirstOrder
from framefree.simulate.disturbances import Disturbance, Pulse, Push
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Change, Event, Grasp, Release, SetParameters
from framefree.simulate.noise import Noise
from framefree.simulate.propellers import PropellerDrive
from framefree.simulate.rotors import Rotor, RotorDrive, TiltServo
from framefree.simulate.run import Run
from framefree.simulate.runners.adaptive import Adaptive
from framefree.simulate.sensors import (
    Encoders,
    ForceSensor,
    Imu,
    JointAccelerations,
    PoseSensor,
    Sensor,
)
from framefree.simulate.simulation import RepeatedSimulation, simulate

__all__ = [
    "Adaptive",
    "Change",
    "Disturbance",
    "Drive",
    "Encoders",
    "Event",
    "FirstOrder",
    "ForceSensor",
    "Grasp",
    "Imu",
    "JointAccelerations",
    "Noise",
    "PoseSensor",
    "PropellerDrive",
    "Pulse",
    "Push",
    "Release",
    "RepeatedSimulation",
    "Rotor",
    "RotorDrive",
    "Run",
    "Sensor",
    "SetParameters",
    "SimulationError",
    "TiltServo",
    "simulate",
]


make_callable(__name__, simulate)
