"""Tracking control by a prototype: the machine moves like another, stable one."""

from framefree.control.prototype.integral import PrototypeIntegral
from framefree.control.prototype.law import APPROACHES, PrototypeControl

__all__ = ["APPROACHES", "PrototypeControl", "PrototypeIntegral"]
