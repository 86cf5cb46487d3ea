"""Passivity laws for any base: under water, in space, on wheels [From2010]."""

from framefree.control.passive.adaptive import AdaptivePassivity
from framefree.control.passive.end_effector import EndEffectorPassivity
from framefree.control.passive.euler import EulerPassivity
from framefree.control.passive.freedom import CarriedBase, Freedom, FreeFloating, Rolling, Whole
from framefree.control.passive.law import PassiveLaw
from framefree.control.passive.tracking import PassivityControl, StationKeeping

__all__ = [
    "AdaptivePassivity",
    "CarriedBase",
    "EndEffectorPassivity",
    "EulerPassivity",
    "FreeFloating",
    "Freedom",
    "PassiveLaw",
    "PassivityControl",
    "Rolling",
    "StationKeeping",
    "Whole",
]
