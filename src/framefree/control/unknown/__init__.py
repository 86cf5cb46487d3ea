"""Against forces that the model does not know: observer by momentum, integral action."""

from framefree.control.unknown.correction import Correction, UnknownForce
from framefree.control.unknown.integral import IntegralAction
from framefree.control.unknown.observer import MomentumObserver
from framefree.control.unknown.observing import Observing

__all__ = ["Correction", "IntegralAction", "MomentumObserver", "Observing", "UnknownForce"]
