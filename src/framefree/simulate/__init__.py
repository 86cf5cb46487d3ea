"""Running machines in time: integrators, plants, runs and their records.

The package may itself be called: ``framefree.simulate(machine, ...)`` is
``framefree.simulate.simulate(machine, ...)``.
"""

import inspect
import sys
from types import ModuleType
from typing import Any

from framefree.simulate.actuation import Drive, FirstOrder
from framefree.simulate.disturbances import Disturbance, Pulse, Push
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Change, Event, Grasp, Release, SetParameters
from framefree.simulate.noise import Noise
from framefree.simulate.run import Run
from framefree.simulate.runners.adaptive import Adaptive
from framefree.simulate.sensors import Encoders, ForceSensor, Imu, PoseSensor, Sensor
from framefree.simulate.simulation import simulate

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
    "Noise",
    "PoseSensor",
    "Pulse",
    "Push",
    "Release",
    "Run",
    "Sensor",
    "SetParameters",
    "SimulationError",
    "simulate",
]


class _CallableModule(ModuleType):
    """The package as a function, so that the two do not shadow each other in `framefree`."""

    __signature__ = inspect.signature(simulate)

    def __call__(self, *arguments: Any, **options: Any) -> Run:
        """Simulate a machine; see `simulate`."""
        return simulate(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
