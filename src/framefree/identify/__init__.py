"""From data to parameters: fits of unknown numbers, excitation, and what data can tell."""

from framefree.identify.base import BaseParameters, base_parameters
from framefree.identify.errors import IdentifyError
from framefree.identify.fitting import Fit, Prediction, fit
from framefree.identify.recording import Recording

__all__ = [
    "BaseParameters",
    "Fit",
    "IdentifyError",
    "Prediction",
    "Recording",
    "base_parameters",
    "fit",
]
