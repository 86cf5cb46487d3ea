"""Closed chains in minimal coordinates q, all others being q_hat = Xi(q)."""

from framefree.motion.embedded.embedded import Embedded

__all__ = ["Embedded"]
