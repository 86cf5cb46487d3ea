"""Links of SDFormat: mass and shapes."""

from __future__ import annotations

import numpy as np

from framefree.machine.formats.markup import Place
from framefree.machine.formats.records import LinkRecord, moments_of
from framefree.machine.formats.sdf_include import Includer
from framefree.machine.formats.sdf_scope import Scope, boolean, read_pose
from framefree.machine.formats.urdf_shapes import ADDRESSES, MISSING, SOLIDS
from framefree.machine.problems import MachineError, Problems
from framefree.machine.shape import Shape

_SIZES = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
    "plane": (("size", 2),),
}
_ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_DEFAULTS = dict(zip(_ENTRIES, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0), strict=True))


class LinkReader:
    """Reads links.

    Attributes
    ----------
    static : set of str
        Links of static models.
    remarks : list of str
    """

    def __init__(self, includer: Includer, problems: Problems) -> None:
        self.includer = includer
        self.problems = problems
        self.static: set[str] = set()
        self.remarks: list[str] = []
        self.missing: set[str] = set()
        self.solids = 0

    def link(self, scope: Scope, name: str, place: Place) -> LinkRecord | None:
        """Return a link of a model."""
        full = scope.full_name(name)
        if scope.static:
            self.static.add(full)
        self._refuse(place)
        with self.problems.at(place.words):
            pose = scope.in_world() @ scope.pose(name)
            moments, doubt = self._moments(place)
            shapes = self._shapes(place, scope, full)
            return LinkRecord(full, place, moments, doubt, shapes, pose)
        return None

    def ignored(self) -> list[str]:
        """Return what the shapes leave out."""
        result = []
        if self.solids:
            result.append(f"contact of {self.solids} <collision> shapes: {SOLIDS}")
        if self.missing:
            first = min(self.missing)
            result.append(
                f"{len(self.missing)} mesh files that were not found, the first `{first}`; "
                "`packages` says where packages are"
            )
        return result

    def _refuse(self, link: Place) -> None:
        """Refuse what changes the motion of a link and is not supported."""
        element = link.element
        for tag, normal in (("gravity", True), ("kinematic", False)):
            child = element.first(tag)
            inside = None if child is None else link.inside(child)
            if (
                inside is not None
                and boolean(inside, inside.element.content(), f"<{tag}>") != normal
            ):
                inside.problem(f"<{tag}> {str(not normal).lower()} is not supported")
        decay = element.first("velocity_decay")
        for tag in ("linear", "angular"):
            child = None if decay is None else decay.first(tag)
            if child is None:
                continue
            inside = link.inside(child)
            if inside.content_number() not in (0.0, None):
                inside.problem("the decay of velocities is not supported; use damping of joints")

    # ------------------------------------------------------------------ mass

    def _moments(self, link: Place) -> tuple:
        inertial = link.element.first("inertial")
        if inertial is None:
            self.remarks.append(f"{link.words}: without <inertial> the format gives it 1 kg")
            return moments_of(1.0, np.eye(4), list(_DEFAULTS.values()))
        place = link.inside(inertial)
        if boolean(place, inertial.get("auto") or "false", "`auto`"):
            raise MachineError('<inertial auto="true"> is not supported; write the inertia out')
        if inertial.first("fluid_added_mass") is not None:
            raise MachineError("<fluid_added_mass> is not supported; use a Fluid in Python")
        pose, relative = np.eye(4), None
        element = inertial.first("pose")
        if element is not None:
            pose, relative = read_pose(place.inside(element))
        if relative is not None:
            raise MachineError("the <pose> of <inertial> must not have `relative_to`")
        mass, matrix = inertial.first("mass"), inertial.first("inertia")
        total = 1.0 if mass is None else place.inside(mass).content_number()
        entries: dict[str, float | None] = {**_DEFAULTS}
        inside = None if matrix is None else place.inside(matrix)
        for tag in _ENTRIES if inside is not None else ():
            child = inside.element.first(tag) if inside is not None else None
            if child is not None and inside is not None:
                entries[tag] = inside.inside(child).content_number()
        if total is None or None in entries.values():
            return None, ""
        if total < 0:
            raise MachineError(f"the mass must be positive, got {total:g} kg")
        return moments_of(total, pose, list(entries.values()))

    # ------------------------------------------------------------------ shapes

    def _shapes(self, link: Place, scope: Scope, frame: str) -> tuple[Shape, ...]:
        """Return the shapes; a broken one is left out with a remark: it cannot move anything."""
        result = []
        for element in link.element.all("visual", "collision"):
            problems = Problems()
            place = Place(link.file, element, f"<{element.tag}> of {link.label}", problems)
            with problems.at(place.words):
                result.append(self._shape(place, scope, frame, link))
                self.solids += element.tag == "collision"
            self.remarks += [f"{message} (left out)" for message in problems.messages]
            if problems.messages:
                element.take_whole()
        return tuple(shape for shape in result if shape is not None)

    def _shape(self, place: Place, scope: Scope, frame: str, link: Place) -> Shape | None:
        geometry = place.element.first("geometry")
        if geometry is None or not geometry.children:
            raise MachineError(f"<geometry> must hold one of {', '.join(_SIZES)}, mesh")
        solid = geometry.children[0]
        solid.taken = True
        element = place.element.first("pose")
        pose, relative = (np.eye(4), None) if element is None else read_pose(place.inside(element))
        if relative is not None:
            own = (link.element.attributes.get("name") or "").strip()
            pose = np.linalg.inv(scope.pose(own)) @ scope.pose(relative) @ pose
        inside = place.inside(solid)
        if solid.tag == "mesh":
            size, file = self._mesh(inside)
        elif solid.tag in _SIZES:
            size, file = self._size(inside), ""
        elif solid.tag == "empty":
            return None
        else:
            raise MachineError(f"a <{solid.tag}> is not drawn")
        if size is None:
            return None
        color = self._color(place)
        return Shape(frame, solid.tag, size, pose, file, color, place.element.tag)

    def _size(self, place: Place) -> list[float] | None:
        sizes: list[float] = []
        if place.element.tag == "plane" and place.element.first("size") is None:
            return [1.0, 1.0]
        for tag, count in _SIZES[place.element.tag]:
            child = place.element.first(tag)
            if child is None:
                raise MachineError(f"<{place.element.tag}> needs an element <{tag}>")
            numbers = place.inside(child).content_numbers(count)
            if numbers is None:
                return None
            sizes += numbers
        return sizes

    def _mesh(self, place: Place) -> tuple[tuple | None, str]:
        uri, scale = place.element.first("uri"), place.element.first("scale")
        reference = "" if uri is None else uri.content()
        if not reference:
            raise MachineError("<mesh> needs an element <uri>")
        size = (1.0, 1.0, 1.0) if scale is None else place.inside(scale).content_numbers(3)
        path = self.includer.sources[place.file].find_mesh(reference)
        if path is not None:
            return size, str(path)
        self.missing.add(reference)
        return size, reference if reference.startswith(ADDRESSES) else f"{MISSING}{reference}"

    def _color(self, place: Place) -> tuple:
        material = place.element.first("material")
        diffuse = None if material is None else material.first("diffuse")
        if diffuse is None:
            return Shape.color
        size = len(diffuse.content().split())
        numbers = place.inside(diffuse).content_numbers(3 if size == 3 else 4)
        return Shape.color if numbers is None else (*numbers, 1.0)[:4]
