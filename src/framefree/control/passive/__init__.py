"""Passivity laws for any base: under water, in space, on wheels [From2010]."""

from framefree.control.passive.adaptive import AdaptivePassivity
from framefree.control.passive.end_effector import EndEffectorPassivity
from framefree.control.passive.euler import EulerPassivity
from framefree.control.passive.frames import FramesPassivity
from framefree.control.passive.freedom import CarriedBase, Freedom, FreeFloating, Rolling, Whole
from framefree.control.passive.goals import PassiveGoal
from framefree.control.passive.law import PassiveLaw
from framefree.control.passive.lean import HorizontalLean
from framefree.control.passive.tracking import PassivityControl, StationKeeping
from framefree.control.passive.underactuated import (
    Underactuated,
    unactuated,
    unactuated_force,
)

__all__ = [
    "AdaptivePassivity",
    "CarriedBase",
    "EndEffectorPassivity",
    "EulerPassivity",
    "FramesPassivity",
    "FreeFloating",
    "Freedom",
    "HorizontalLean",
    "PassiveGoal",
    "PassiveLaw",
    "PassivityControl",
    "Rolling",
    "StationKeeping",
    "Underactuated",
    "Whole",
    "unactuated",
    "unactuated_force",
]
