"""Against what the model does not know: observer by momentum, integral action, adaptation."""

from framefree.control.unknown.adaptation import Adaptation
from framefree.control.unknown.correction import Correction, UnknownForce
from framefree.control.unknown.integral import IntegralAction
from framefree.control.unknown.observer import MomentumObserver
from framefree.control.unknown.observing import Observing

__all__ = [
    "Adaptation",
    "Correction",
    "IntegralAction",
    "MomentumObserver",
    "Observing",
    "UnknownForce",
]
