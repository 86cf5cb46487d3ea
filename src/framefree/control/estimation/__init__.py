"""Estimation: states from sensors, and forces that the model does not know."""

from framefree.control.estimation.base import Reading, StateEstimate, StateEstimator
from framefree.control.estimation.encoders import EncoderFilter
from framefree.control.estimation.force import ForceObserver
from framefree.control.estimation.invariant import InvariantFilter

__all__ = [
    "EncoderFilter",
    "ForceObserver",
    "InvariantFilter",
    "Reading",
    "StateEstimate",
    "StateEstimator",
]
