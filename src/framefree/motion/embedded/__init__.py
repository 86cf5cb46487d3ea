"""Closed chains in minimal coordinates q, all others being q_hat = Xi(q)."""

from framefree.motion.embedded.embedded import Embedded
from framefree.motion.embedded.exchange import body_values, tunable_body
from framefree.motion.embedded.follow import follow
from framefree.motion.embedded.maps import Embedding
from framefree.motion.embedded.shares import Shares, shares

__all__ = ["Embedded", "Embedding", "Shares", "body_values", "follow", "shares", "tunable_body"]
