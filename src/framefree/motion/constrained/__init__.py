"""Constraints A(x, v, t) a = b on top of another formulation (Udwadia-Kalaba, Gauss)."""

from framefree.motion.constrained.constrained import Constrained

__all__ = ["Constrained"]
