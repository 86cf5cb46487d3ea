"""Runners: what moves a loop on in time, one file each."""

from framefree.simulate.runners.adaptive import Adaptive, AdaptiveRunner
from framefree.simulate.runners.asking import AskingRunner
from framefree.simulate.runners.base import Clock, Rows, Runner
from framefree.simulate.runners.rollout import RolloutRunner

__all__ = ["Adaptive", "AdaptiveRunner", "AskingRunner", "Clock", "RolloutRunner", "Rows", "Runner"]
