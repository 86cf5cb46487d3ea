"""Matched prototypes: found for any machine about rest, or said not to exist."""

from framefree.control.prototype.matched.existence import NoPrototypeError, NoPrototypeProof
from framefree.control.prototype.matched.solver import (
    MatchedPrototype,
    matched_prototype,
)

__all__ = ["MatchedPrototype", "NoPrototypeError", "NoPrototypeProof", "matched_prototype"]
