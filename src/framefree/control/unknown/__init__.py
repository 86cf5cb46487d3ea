"""Against what the model does not know: observer, integral action, adaptation, learned wrench."""

from framefree.control.unknown.adaptation import Adaptation
from framefree.control.unknown.correction import Correction, UnknownForce
from framefree.control.unknown.integral import IntegralAction
from framefree.control.unknown.learned import Adaptive, Assisted, LearnedAdaptation
from framefree.control.unknown.mapped import Mapped
from framefree.control.unknown.observer import MomentumObserver
from framefree.control.unknown.observing import Observing
from framefree.control.unknown.together import CorrectionsTogether

__all__ = [
    "Adaptation",
    "Adaptive",
    "Assisted",
    "Correction",
    "CorrectionsTogether",
    "IntegralAction",
    "LearnedAdaptation",
    "Mapped",
    "MomentumObserver",
    "Observing",
    "UnknownForce",
]
