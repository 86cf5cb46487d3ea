"""How deep two shapes are in each other: one function for each pair of kinds.

A function takes the sizes of shapes a and b and the pose G_ab of b seen from a, and returns the
places in which they touch or may touch (`TouchPoint`). Each has a depth d(G), positive where the
shapes overlap, that is smooth while they touch, so that the normal force, which acts along its
slope, has an energy.

=======================  ==========================================================================
sphere, half-space       the lowest point
capsule, half-space      its two end spheres
box, half-space          its eight corners
cylinder, half-space     the lowest point of either rim
disk, half-space         the lowest point of its rim
sphere, any other        nearest point of the other, as long as the center is outside
capsule, capsule         nearest points of the two axes
capsule, box             ends in the box, corners in the capsule, edges across its side
box, box                 corners in the other, edges that cross
box, cylinder            corners and rims in the other, edges across the side and the rims
cylinder, capsule        ends in the cylinder, axes side by side, the side across the rims
cylinder, cylinder       rims in the other, axes side by side
disk, sphere or capsule  as a disk without thickness
disk, any other          as a cylinder of `THIN` of its radius in half length
=======================  ==========================================================================

`corners` has points of one shape in the other, `edges` has edges that cross. A face that lies on
another touches with the corners of what they have in common.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import casadi

from framefree.geometry import se3
from framefree.machine.contact_pairs import ground, round, solids
from framefree.machine.contact_pairs.base import (
    ROUNDED,
    SIDES,
    THIN,
    Matrix,
    TouchPoint,
    half_sizes,
    round_sizes,
    seen_from_other,
    sign_of,
)
from framefree.machine.contact_pairs.boxes import box_box
from framefree.machine.contact_pairs.corners import (
    Ball,
    corners,
    deepest_samples,
    ends,
    in_solid,
    rims,
)
from framefree.machine.contact_pairs.edges import (
    Edge,
    axis_and_axis,
    edges_and_axis,
    edges_and_rims,
    edges_of_box,
    not_deeper,
    side_and_rims,
    two_rims,
)

PairFunction = Callable[[Any, Any, Matrix], list[TouchPoint]]


def _others_in_b(solid: solids.Solid, balls: list[Ball], G: Matrix) -> list[TouchPoint]:
    """Return where balls of a touch a solid in the axes of b."""
    back = se3.inverse(G)
    return [seen_from_other(place, G) for place in in_solid(solid, balls, back)]


def _width(*sizes: float) -> float:
    """Return the length over which edges take over from corners."""
    return ROUNDED * min(size for size in sizes if size)


def _faces_of_box(size: Any) -> dict[int, float]:
    return dict(enumerate(half_sizes(size).tolist()))


def _caps_of(size: Any) -> dict[int, float]:
    return {2: round_sizes(size)[1]}


def box_capsule(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return ends in the box, corners in the capsule, and edges across its side."""
    return [
        *in_solid(solids.box(size_a), ends(size_b), G),
        *_others_in_b(solids.capsule(size_b), corners(size_a), G),
        *edges_and_axis(size_a, size_b, G),
    ]


def box_cylinder(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return corners and rims in the other, and edges across the side and the rims."""
    width = _width(*half_sizes(size_a), *round_sizes(size_b))
    points = [
        *in_solid(solids.box(size_a), rims(size_b, _faces_of_box(size_a), G), G),
        *_others_in_b(solids.cylinder(size_b), corners(size_a), G),
    ]
    edges = [
        *edges_and_axis(size_a, size_b, G),
        *_box_over_rims(size_a, size_b, width, G),
    ]
    return _limited_box(points, edges, size_a, size_b, width, G)


def box_disk(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the places of a box and a thin cylinder."""
    return box_cylinder(size_a, _thin(size_b), G)


def _thin(size: Any) -> tuple[float, float]:
    """Return radius and length of the cylinder that a disk counts as."""
    return float(size[0]), 2 * THIN * float(size[0])


def _limited_box(
    points: list[TouchPoint],
    edges: list[TouchPoint],
    size_a: Any,
    size_b: Any,
    width: float,
    G: Matrix,
) -> list[TouchPoint]:
    """Return places of a box and a cylinder or disk, of edges only those that are not too deep."""
    extents = partial(solids.extent_of_box, size_a), partial(solids.extent_of_round, size_b)
    axes = [se3.rotation(G)[i, :].T for i in range(3)] + [casadi.SX([0, 0, 1])]
    normals = [*axes, *(place.normal for place in (*points, *edges))]
    return [*points, *not_deeper(edges, normals, extents, width, G)]


def _box_over_rims(size_a: Any, size_b: Any, width: float, G: Matrix) -> list[TouchPoint]:
    """Return where edges of a box a cross the rims of a cylinder b."""
    edges = edges_of_box(size_a, se3.position(G), se3.inverse(G))
    places = edges_and_rims(edges, size_b, width)
    return [place._replace(normal=-place.normal) for place in places]


def cylinder_capsule(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return ends in the cylinder, and the round side of the capsule across side and rims."""
    points = in_solid(solids.cylinder(size_a), ends(size_b), G)
    crossing = [*axis_and_axis(size_a, size_b, G), *_side_over_rims(size_a, size_b, G)]
    extents = (solids.extent_of_round, solids.extent_of_capsule)
    return _limited_round(points, crossing, extents, (size_a, size_b), G)


def disk_capsule(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the ends on the disk, and the round side of the capsule across its rim."""
    points = in_solid(solids.disk(size_a), ends(size_b), G)
    crossing = _side_over_rims(size_a, size_b, G, sign_of(se3.position(G)[2]))
    extents = (solids.extent_of_round, solids.extent_of_capsule)
    return _limited_round(points, crossing, extents, (size_a, size_b), G)


def _limited_round(
    points: list[TouchPoint],
    crossing: list[TouchPoint],
    extents: tuple[Any, Any],
    sizes: tuple[Any, Any],
    G: Matrix,
) -> list[TouchPoint]:
    """Return places of two round shapes, of sides and rims only those that are not too deep."""
    width = _width(*(length for size in sizes for length in round_sizes(size)))
    own = partial(extents[0], sizes[0]), partial(extents[1], sizes[1])
    axes = [se3.rotation(G)[2, :].T, casadi.SX([0, 0, 1])]
    normals = [*axes, *(place.normal for place in (*points, *crossing))]
    return [*points, *not_deeper(crossing, normals, own, width, G)]


def _side_over_rims(
    size_a: Any, size_b: Any, G: Matrix, side: Matrix | None = None
) -> list[TouchPoint]:
    """Return where the round side of a capsule or cylinder b lies on rims of a."""
    radius, half = round_sizes(size_b)
    axis = Edge(se3.position(G), se3.rotation(G)[:, 2], half, radius)
    places = side_and_rims(axis, size_a, _width(radius, float(size_a[0])), side)
    return [place.moved(se3.inverse(G)) for place in places]


def cylinder_cylinder(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return rims on the caps of the other, and sides and rims across each other."""
    a, b, back = solids.cylinder(size_a), solids.cylinder(size_b), se3.inverse(G)
    samples = zip(deepest_samples(size_b, a, G), SIDES, strict=True)
    crossing = [
        *axis_and_axis(size_a, size_b, G),
        *_side_over_rims(size_a, size_b, G),
        *(seen_from_other(place, G) for place in _side_over_rims(size_b, size_a, back)),
        *(two_rims(point, side, size_a, size_b, G) for point, side in samples),
    ]
    extents = (solids.extent_of_round, solids.extent_of_round)
    points = [
        *in_solid(a, rims(size_b, _caps_of(size_a), G), G),
        *_others_in_b(b, rims(size_a, _caps_of(size_b), back), G),
    ]
    return _limited_round(points, crossing, extents, (size_a, size_b), G)


def cylinder_disk(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the places of a cylinder and a thin one."""
    return cylinder_cylinder(size_a, _thin(size_b), G)


def disk_disk(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return the places of two thin cylinders."""
    return cylinder_cylinder(_thin(size_a), _thin(size_b), G)


def _sphere_in(solid: Callable[[Any], solids.Solid]) -> PairFunction:
    """Return the function of a pair of a solid a and a sphere b."""

    def places(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
        return in_solid(solid(size_a), [Ball(casadi.SX.zeros(3), float(size_b[0]))], G)

    return places


PAIRS: dict[tuple[str, str], PairFunction] = {
    ("half_space", "sphere"): ground.ground_sphere,
    ("half_space", "capsule"): ground.ground_capsule,
    ("half_space", "box"): ground.ground_box,
    ("half_space", "cylinder"): ground.ground_cylinder,
    ("half_space", "disk"): ground.ground_disk,
    ("sphere", "sphere"): round.sphere_sphere,
    ("capsule", "sphere"): round.capsule_sphere,
    ("box", "sphere"): round.box_sphere,
    ("cylinder", "sphere"): _sphere_in(solids.cylinder),
    ("disk", "sphere"): _sphere_in(solids.disk),
    ("capsule", "capsule"): round.capsule_capsule,
    ("box", "capsule"): box_capsule,
    ("cylinder", "capsule"): cylinder_capsule,
    ("disk", "capsule"): disk_capsule,
    ("box", "box"): box_box,
    ("box", "cylinder"): box_cylinder,
    ("box", "disk"): box_disk,
    ("cylinder", "cylinder"): cylinder_cylinder,
    ("cylinder", "disk"): cylinder_disk,
    ("disk", "disk"): disk_disk,
}
"""Pairs of kinds, a and b; the other order is found by exchanging them."""
