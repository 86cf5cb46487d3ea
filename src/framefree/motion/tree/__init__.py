"""Minimal coordinates of a tree: recursions over bodies, and the Coriolis matrices."""

from framefree.motion.tree.tree import Tree

__all__ = ["Tree"]
