"""Shapes of a URDF file: <visual> and <collision>, kept by reference. They move nothing."""

from __future__ import annotations

from framefree.machine.formats.markup import Element, Place
from framefree.machine.formats.poses import origin_of
from framefree.machine.formats.source import Source
from framefree.machine.problems import MachineError, Problems
from framefree.machine.shape import Shape

_SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}
MISSING = "missing:"
"""Prefix of the address of a mesh file that is missing or may not be read."""

SOLIDS = "contact is not modelled, except by MuJoCo itself as the plant"
"""What is said of solids that may touch."""
ADDRESSES = ("package://", "model://", "http://", "https://")
_EXPECTED = "a box, sphere, cylinder, capsule or mesh"


class ShapeReader:
    """Reads shapes; a broken one is left out with a remark, because it cannot change the motion.

    Attributes
    ----------
    remarks : list of str
    missing : set of str
        Mesh files that are not there, or may not be read.
    """

    def __init__(self, source: Source, robot: Element) -> None:
        self.source = source
        self.remarks: list[str] = []
        self.missing: set[str] = set()
        self.colors: dict[str, tuple[float, ...] | None] = {}
        self._used: set[str] = set()
        for material in robot.all("material"):
            place = Place(source.name, material, "<material>", Problems())
            name = material.get("name") or ""
            if name in self.colors:
                self.remarks.append(f"{place.words}: a second material `{name}`; the last counts")
            self.colors[name] = self._own_color(place)
            self.remarks.extend(place.problems.messages)

    def shapes(self, link: Place, name: str) -> tuple[Shape, ...]:
        """Return the shapes of a link of this name."""
        result = []
        for element in link.element.all("visual", "collision"):
            problems = Problems()
            place = Place(link.file, element, f"<{element.tag}> of {link.label}", problems)
            with problems.at(place.words):
                result.append(self._shape(place, name))
            self.remarks.extend(f"{message} (left out)" for message in problems.messages)
            if problems.messages:
                element.take_whole()
        return tuple(shape for shape in result if shape is not None)

    def idle_colors(self) -> list[str]:
        """Return the materials of the robot that no shape refers to."""
        return [name for name in self.colors if name not in self._used]

    def _shape(self, place: Place, frame: str) -> Shape | None:
        geometry = place.element.first("geometry")
        if geometry is None or not geometry.children:
            raise MachineError(f"<geometry> must hold {_EXPECTED}")
        solid = geometry.children[0]
        solid.taken = True
        pose, size, file = origin_of(place), self._size(place.inside(solid)), ""
        if solid.tag == "mesh":
            file = self._file(place.inside(solid))
        if pose is None or size is None or file is None:
            return None
        return Shape(frame, solid.tag, size, pose, file, self._color(place), place.element.tag)

    def _size(self, place: Place) -> tuple[float, ...] | None:
        tag = place.element.tag
        if tag == "mesh":
            return place.numbers("scale", 3, (1.0, 1.0, 1.0))
        if tag not in _SIZES:
            raise MachineError(f"<geometry> must hold {_EXPECTED}, got <{tag}>")
        parts = [place.numbers(name, count, None) for name, count in _SIZES[tag]]
        return None if None in parts else tuple(number for part in parts for number in part or ())

    def _file(self, place: Place) -> str | None:
        """Path of a mesh where it may be read and is there, else an address that cannot be opened.

        What is not there, or may not be read, must not become a path that a viewer would open.
        """
        reference = place.text("filename")
        path = self.source.find_mesh(reference) if reference else None
        if path or not reference:
            return str(path) if path else None
        self.missing.add(reference)
        return reference if reference.startswith(ADDRESSES) else f"{MISSING}{reference}"

    def _color(self, place: Place) -> tuple[float, ...]:
        material = place.element.first("material")
        if material is None:
            return Shape.color
        own = self._own_color(place.inside(material))
        if own:
            return own
        name = material.get("name") or ""
        self._used.add(name)
        return self.colors.get(name) or Shape.color

    def _own_color(self, material: Place) -> tuple[float, ...] | None:
        color = material.element.first("color")
        return None if color is None else material.inside(color).numbers("rgba", 4, None)
