"""Closed chains in minimal coordinates q, all others being q_hat = Xi(q)."""

from framefree.motion.embedded.embedded import Embedded
from framefree.motion.embedded.maps import Embedding

__all__ = ["Embedded", "Embedding"]
