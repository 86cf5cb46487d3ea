"""Runners: what moves a loop on in time, one file each."""

from framefree.simulate.runners.adaptive import Adaptive, AdaptiveRunner
from framefree.simulate.runners.base import Clock, KeptRows, Runner
from framefree.simulate.runners.python_law import PythonLawRunner
from framefree.simulate.runners.rollout import RolloutRunner

__all__ = [
    "Adaptive",
    "AdaptiveRunner",
    "Clock",
    "KeptRows",
    "PythonLawRunner",
    "RolloutRunner",
    "Runner",
]
