"""Sizes of what a few words of MJCF can ask for, refused before they cost time or memory."""

from __future__ import annotations

import re

from framefree.machine.formats.markup import MAX_DEPTH, MAX_ELEMENTS, Element, Place

MAX_CELLS = 1_000_000
"""Cells of all height fields together."""
MAX_REPLICATED = 5_000
"""Elements that all <replicate> together may make: bodies cost milliseconds each."""
MAX_MADE = 40_000
"""Squares of all meshes together that MuJoCo makes itself, from `params`."""


class Sizes:
    """Adds up what a model asks for, and notes a problem where it is too much."""

    def __init__(self) -> None:
        self.elements = 0
        self.replicated = 0
        self.cells = 0
        self.made = 0

    def fits(self, place: Place, times: int, depth: int) -> bool:
        """Count an element that is repeated; tell whether the model is small enough to go on."""
        self.elements += times
        self.replicated += times if times > 1 else 0
        if self.elements > MAX_ELEMENTS or depth > MAX_DEPTH:
            place.problem(f"refused: more than {MAX_ELEMENTS} elements, or {MAX_DEPTH} levels")
        elif self.replicated > MAX_REPLICATED:
            place.problem(
                f"refused: <replicate> would make more than {MAX_REPLICATED} elements in all"
            )
        else:
            return self._fits_in_memory(place)
        return False

    def _fits_in_memory(self, place: Place) -> bool:
        """Count the cells of a height field, or of a mesh that MuJoCo makes itself."""
        element = place.element
        if element.tag == "hfield":
            self.cells += whole(place, "nrow") * whole(place, "ncol")
        if element.tag == "mesh" and "builtin" in element.attributes:
            self.made += _squares(element)
        if self.cells > MAX_CELLS:
            place.problem(f"refused: height fields have at most {MAX_CELLS} cells in all")
        elif self.made > MAX_MADE:
            place.problem(
                f"refused: `params` of made meshes ask for more than {MAX_MADE} squares in all"
            )
        else:
            return True
        return False


def whole(place: Place, name: str) -> int:
    """Return a whole number of an element, 1 by default, and too many for any other text."""
    value = (place.element.get(name) or "1").strip()
    if not re.fullmatch(r"\+?[0-9]{1,9}", value):
        return 1 if place.number(name, 1.0) is None else MAX_ELEMENTS + 1
    return int(value)


def _squares(element: Element) -> int:
    """Return how many squares a made mesh has at most: the larger of product and square."""
    counts = [1]
    for word in (element.get("params") or "").split():
        if not re.fullmatch(r"[+-]?[0-9]{0,6}(\.[0-9]*)?", word):
            return MAX_MADE + 1  # powers of ten, and no numbers
        counts.append(int(abs(float(word))) if word.strip("+-.") else 0)
    largest = sorted(counts)[-2:]
    return max(largest[-1] ** 2, largest[0] * largest[-1])
