"""The robust law in minimal coordinates, its ultimate bound, and what a run says about both."""

from framefree.control.robust.assess import Robustness, UncertaintyWarning, assess
from framefree.control.robust.bound import UltimateBound, ultimate_bound
from framefree.control.robust.law import RobustControl

__all__ = [
    "RobustControl",
    "Robustness",
    "UltimateBound",
    "UncertaintyWarning",
    "assess",
    "ultimate_bound",
]
