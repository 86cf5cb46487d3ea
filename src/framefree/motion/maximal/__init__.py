"""The pose and twist of every body, and the force of every joint (KKT)."""

from framefree.motion.maximal.maximal import Maximal

__all__ = ["Maximal"]
