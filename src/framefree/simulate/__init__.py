"""Running machines in time: integrators, plants, runs and their records."""

from framefree.simulate.actuation import Drive, FirstOrder
from framefree.simulate.disturbances import Disturbance, Pulse, Push
from framefree.simulate.errors import SimulationError
from framefree.simulate.events import Change, Event, Grasp, Release, SetParameters
from framefree.simulate.noise import Noise
from framefree.simulate.run import Run
from framefree.simulate.runners.adaptive import Adaptive
from framefree.simulate.simulation import simulate

__all__ = [
    "Adaptive",
    "Change",
    "Disturbance",
    "Drive",
    "Event",
    "FirstOrder",
    "Grasp",
    "Noise",
    "Pulse",
    "Push",
    "Release",
    "Run",
    "SetParameters",
    "SimulationError",
    "simulate",
]
