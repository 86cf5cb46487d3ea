"""Edges that touch in the middle: those of boxes with each other, with rims, and with round sides.

Two edges with directions a and b touch along u = a x b / |a x b|, oriented out of shape a, at the
points in which their lines are nearest. The depth is the distance of the lines along u, with its
sign. That they touch means that u lies between the normals of the faces that meet in either edge,
within a tolerance, so that edges of two faces that lie on each other still touch where they cross.
Near their ends edges hand over to corners. Parallel edges touch with their corners alone.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import casadi

from framefree.geometry import se3
from framefree.machine.contact_pairs.base import (
    ALONG,
    FAR,
    FLAT,
    NEAR,
    ROUNDED,
    SIDES,
    Matrix,
    TouchPoint,
    half_sizes,
    ramp,
    round_sizes,
    sign_of,
    unit,
)
from framefree.machine.contact_pairs.round import two_spheres

_OUTSIDE = 0.1
"""Sine of the angle outside the two faces of an edge at which it ceases to touch."""
PARALLEL = 0.03
"""Sine of the angle below which two edges are taken as parallel."""
_APPROACHED, _SEARCHED = 3, 3
"""Steps in which the point of a rim that is nearest to an edge is looked for: of a round side from
afar, and close by."""
_ALWAYS = [1.0, 1.0]
_ENDS = 0.1
"""Share of a half length within which the ends of a round side take over."""
_CHORD = 0.1
"""Half chord in a rim below which an edge passes by, as a share of the radius."""


class Edge(NamedTuple):
    """A straight edge: middle, direction, half length and radius.

    And the outward normals of the faces that meet in it.
    """

    middle: Matrix
    direction: Matrix
    half: Matrix
    radius: float = 0.0
    faces: tuple[Matrix, ...] = ()


# ------------------------------------------------------------------ shares


def crossing_share(square: Matrix) -> Matrix:
    """Return the share of two directions by the square of the sine between them."""
    return (1 + PARALLEL**4) * square**2 / (square**2 + PARALLEL**4)


def share_of(conditions: list[Matrix]) -> Matrix:
    """Return 1 where all conditions are 1 or more, 0 where one is negative, smooth between."""
    least = conditions[0]
    for condition in conditions[1:]:
        least = casadi.fmin(least, condition)
    return ramp(least, 1.0)


def between_faces(cosines: list[Matrix], depth: Matrix, width: float) -> Matrix:
    """Return the condition that a normal lies between faces: that no cosine is negative.

    It fails also where the other edge, at this depth, is farther outside a face than `width`.
    """
    outside = sum((casadi.fmin(cosine, 0) for cosine in cosines), casadi.SX(0))
    return 1 + outside * (1 / _OUTSIDE + casadi.fmax(depth, 0) / width)


def leaving(of_faces: list[tuple[Matrix, Matrix]]) -> list[Matrix]:
    """Return how far an edge that is d deep goes on in the other shape to both sides, over d.

    Not more than 1. Faces of the other shape are given by cosines with the normal and the edge.
    """
    found = []
    for side in SIDES:
        least = 1.0
        for of_normal, of_edge in of_faces:
            leaves = casadi.fmax(of_normal, 0) / (casadi.fmax(side * of_edge, 0) + NEAR)
            least = casadi.fmin(least, leaves)
        found.append(least)
    return found


def within(
    along: Matrix, half: Matrix, width: float, depth: Matrix, leaving: list[Matrix]
) -> list[Matrix]:
    """Return the conditions that a point lies on an edge: not beyond its ends.

    Nor where an end of the edge is in the other shape and nearer than the depth: there the way out
    is along the edge, and its corner is what touches.
    """
    deep = casadi.fmax(depth, 0)
    return [
        (half - side * along - deep * left) / width
        for side, left in zip(SIDES, leaving, strict=True)
    ]


def not_deeper(
    places: list[TouchPoint],
    normals: list[Matrix],
    extents: tuple[Callable[[Matrix], Matrix], Callable[[Matrix], Matrix]],
    width: float,
    G: Matrix,
) -> list[TouchPoint]:
    """Return places of edges, without a share where they are deeper than the shapes overlap.

    Along no direction do two shapes overlap less than they are deep in each other; so edges that
    are deeper than the overlap along one of the normals touch nothing. Normals are in b's axes.
    """
    R, r, least = se3.rotation(G), se3.position(G), casadi.SX(FAR)
    for normal in normals:
        u = R @ normal
        overlap = extents[0](u) + extents[1](normal) - casadi.fabs(casadi.dot(u, r))
        least = casadi.fmin(least, overlap)
    most = casadi.fmax(least, 0) + width
    limited = [
        place._replace(share=place.share * ramp(3 - 2 * place.depth / most, 1.0))
        for place in places
    ]
    return [*limited, overlapping(least)]


def overlapping(depth: Matrix) -> TouchPoint:
    """Return a place that has no force and tells how far two shapes overlap."""
    nowhere, up = casadi.SX.zeros(3), casadi.SX([0, 0, 1])
    return TouchPoint(depth, nowhere, up, 0.0, casadi.SX.zeros(6), -depth)


# ------------------------------------------------------------------ round sides


def edges_of_box(size: Any, other: Matrix, G: Matrix | None = None) -> list[Edge]:
    """Return the edges of a box that a shape with its middle at `other` may touch.

    In the box's axes, or those in which it has pose G. All of a shape that touches an edge is on
    the outer side of a plane through it, so that its middle is beyond one of the two faces that
    meet there: of the axes across the edges, the one along which the middle is farther beyond the
    face tells on which side they lie. Along the other axis both sides count.
    """
    half, found = half_sizes(size), []
    R = casadi.SX.eye(3) if G is None else se3.rotation(G)
    r = casadi.SX.zeros(3) if G is None else se3.position(G)
    beyond = [casadi.fabs(other[i]) - float(half[i]) for i in range(3)]
    for i, side in product(range(3), SIDES):
        j, k = (i + 1) % 3, (i + 2) % 3
        farther = beyond[j] >= beyond[k]
        s = casadi.if_else(farther, sign_of(other[j]), side)
        t = casadi.if_else(farther, side, sign_of(other[k]))
        faces = (s * R[:, j], t * R[:, k])
        middle = faces[0] * float(half[j]) + faces[1] * float(half[k]) + r
        found.append(Edge(middle, R[:, i], float(half[i]), faces=faces))
    return found


def edges_and_axis(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return where edges of a box a touch the round side of a capsule or cylinder b."""
    return [_side_by_side(edge, size_b, G) for edge in edges_of_box(size_a, se3.position(G))]


def axis_and_axis(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return where the round sides of two capsules or cylinders touch."""
    radius, half = round_sizes(size_a)
    axis = Edge(casadi.SX.zeros(3), casadi.SX([0, 0, 1]), half, radius)
    return [_side_by_side(axis, size_b, G)]


def _side_by_side(edge: Edge, size: Any, G: Matrix) -> TouchPoint:
    """Return where the line of an edge of a and the axis of b are nearest.

    With s and t along the lines, the points minimise |way|^2 + ALONG^2 (s^2 + t^2), so that they
    are where the middles are nearest if the lines are parallel. There they move fast as the lines
    turn, so that the ends take over within `_ENDS` of the half lengths.
    """
    radius, half = round_sizes(size)
    width = _ENDS * min(edge.half, half)
    R, r = se3.rotation(G), se3.position(G)
    axis, start = R[:, 2], r - edge.middle
    pairs = ((edge.direction, axis), (start, edge.direction), (start, axis))
    u, p, q = (casadi.dot(*pair) for pair in pairs)
    one = 1 + ALONG**2
    s = (one * p - u * q) / (one**2 - u**2)
    t = (u * s - q) / one
    place = two_spheres(start + t * axis - s * edge.direction, edge.radius, radius, G)
    ends = ((s, edge.half), (t, half))
    conditions = [c for end in ends for c in within(*end, width, place.depth, _ALWAYS)]
    point = place.point + casadi.vertcat(0, 0, t)
    return place._replace(point=point, share=share_of(conditions))


# ------------------------------------------------------------------ rims


def edges_and_rims(edges: list[Edge], size: Any, width: float) -> list[TouchPoint]:
    """Return where edges, in the axes of a cylinder, cross its rims.

    In these axes, with normals out of the cylinder. An edge is near a rim in up to two places,
    found from where it is at the rim's distance from the axis.
    """
    places = []
    for edge, end in product(edges, SIDES):
        start, root = _at_rims_distance(edge, end, float(size[0]))
        up = sign_of((edge.middle + start * edge.direction)[2])
        steep = edge.direction[0] ** 2 + edge.direction[1] ** 2
        conditions = [root / (_CHORD * float(size[0]))]
        place = _edge_and_rim(edge, start, up, size, width, conditions)
        places.append(place._replace(share=place.share * crossing_share(steep)))
    return places


def side_and_rims(
    edge: Edge, size: Any, width: float, side: Matrix | None = None
) -> list[TouchPoint]:
    """Return where the round side about an edge lies on the rims of a cylinder or disk.

    As `edges_and_rims`; and, for an edge that is steep or passes by, from where it goes through the
    plane of either rim.
    """
    half, e, a = round_sizes(size)[1], edge.middle, edge.direction
    starts = []
    for end in SIDES:
        start, root = _at_rims_distance(edge, end, float(size[0]))
        crosses = ramp(root, _CHORD * float(size[0]))
        up = sign_of((e + start * a)[2]) if side is None else side
        starts.append((start, up, crosses))
    for up in SIDES if side is None else (side,):
        starts.append(((up * half - e[2]) * a[2] / (a[2] ** 2 + FLAT**2), up, 1 - crosses))
    places = []
    for start, up, share in starts:
        s, on_rim, _ = _nearest_to_rim(edge, start, up, size, _APPROACHED)
        way = e + s * a - on_rim
        far = casadi.sqrt(casadi.sumsqr(way) + (NEAR * edge.radius) ** 2)
        depth, normal = edge.radius - far, way / far
        share *= share_of(within(s, edge.half, width, depth, _ALWAYS))
        places.append(TouchPoint(depth, on_rim - depth / 2 * normal, normal, share))
    return places


def _nearest_to_rim(
    edge: Edge, s: Matrix, up: Matrix, size: Any, approached: int = 0
) -> tuple[Matrix, Matrix, Matrix]:
    """Return where the line of an edge is nearest to the rim on the side `up`, from its point s.

    Along the line, on the rim, and the direction from the axis to there.
    """
    radius, half = round_sizes(size)
    e, a, top = edge.middle, edge.direction, casadi.vertcat(0, 0, up)
    for _ in range(approached):
        # The nearest point of the rim, and that of the line to it.
        s = casadi.dot(radius * _outward(e + s * a, radius) + half * top - e, a)
    for _ in range(_SEARCHED):
        # Newton's step to where the way to the rim is across the line.
        point = e + s * a
        across = casadi.sqrt(point[0] ** 2 + point[1] ** 2 + (NEAR * radius) ** 2)
        outward = casadi.vertcat(point[0], point[1], 0) / across
        c = casadi.dot(a, casadi.cross(top, outward))
        slope = 1 - c**2 * casadi.fmin(radius / across, 1) + FLAT**2
        s -= casadi.dot(point - radius * outward - half * top, a) / slope
    outward = _outward(e + s * a, radius)
    return s, radius * outward + half * top, outward


def _at_rims_distance(edge: Edge, end: float, radius: float) -> tuple[Matrix, Matrix]:
    """Return where an edge is at the rim's distance from the axis, and a half chord there."""
    e, a = edge.middle, edge.direction
    square = a[0] ** 2 + a[1] ** 2
    along = e[0] * a[0] + e[1] * a[1]
    apart = along**2 - square * (e[0] ** 2 + e[1] ** 2 - radius**2)
    root = casadi.sqrt(casadi.fmax(apart, 0) + (NEAR * radius) ** 2)
    return (end * root - along) / (square + NEAR), root


def _edge_and_rim(
    edge: Edge, s: Matrix, up: Matrix, size: Any, width: float, conditions: list[Matrix]
) -> TouchPoint:
    """Return where an edge crosses the rim on the side `up`, from near its point s."""
    radius, e, a = float(size[0]), edge.middle, edge.direction
    start = s
    s, on_rim, outward = _nearest_to_rim(edge, start, up, size)
    across = casadi.cross(a, casadi.cross(casadi.vertcat(0, 0, up), outward))
    sine2 = casadi.sumsqr(across) + NEAR**2
    u = across / casadi.sqrt(sine2)
    u = sign_of(up * u[2] + casadi.dot(u, outward)) * u
    way = e + s * a - on_rim
    depth = -casadi.dot(way, u)
    own = [(up * u[2], up * a[2]), (casadi.dot(u, outward), casadi.dot(a, outward))]
    others = [-casadi.dot(u, face) for face in edge.faces]
    conditions = [
        *conditions,
        *within(s, edge.half, width, depth, leaving(own)),
        between_faces([*(cosine for cosine, _ in own), *others], depth, width),
        # The search has found the nearest points where the way between them is along u, and not
        # those of the other place if it has stayed near its start.
        2 - casadi.sqrt(casadi.sumsqr(way + depth * u) + NEAR**2 * radius**2) / width,
        2 - 4 * casadi.fabs(s - start) / radius,
    ]
    share = crossing_share(sine2) * share_of(conditions)
    return TouchPoint(depth, on_rim - depth / 2 * u, u, share)


def _outward(point: Matrix, radius: float) -> Matrix:
    """Return the direction away from the axis."""
    return unit(casadi.vertcat(point[0], point[1], 0), NEAR * radius)


def two_rims(point: Matrix, side: float, size_a: Any, size_b: Any, G: Matrix) -> TouchPoint:
    """Return where rims of cylinders a and b cross, near a point on the rim on a side of b.

    Both rims are replaced by their tangents, from the nearest points of which the next ones begin.
    """
    (radius_a, half_a), (radius_b, half_b) = round_sizes(size_a), round_sizes(size_b)
    R, r = se3.rotation(G), se3.position(G)
    near_b = R @ point + r
    near_a, up, axis = near_b, sign_of(near_b[2]), R[:, 2]
    top, middle = casadi.vertcat(0, 0, up), r + side * half_b * axis
    reach, width = min(radius_a, radius_b) / 2, ROUNDED * min(half_a, radius_a, half_b, radius_b)
    for _ in range(_SEARCHED + 1):
        out_a = _outward(near_a, radius_a)
        way = near_b - middle
        out_b = unit(way - casadi.dot(way, axis) * axis, NEAR * radius_b)
        on_a, on_b = radius_a * out_a + half_a * top, middle + radius_b * out_b
        along_a, along_b = casadi.cross(top, out_a), casadi.cross(axis, out_b)
        way, c = on_b - on_a, casadi.dot(along_a, along_b)
        p, q = casadi.dot(way, along_a), casadi.dot(way, along_b)
        t = (c * p - q) / (1 - c**2 + PARALLEL**2)
        near_b = on_b + casadi.fmin(casadi.fmax(t, -reach), reach) * along_b
        near_a = on_a + casadi.fmin(casadi.fmax(p + c * t, -reach), reach) * along_a
    across = casadi.cross(along_a, along_b)
    sine2 = casadi.sumsqr(across) + NEAR**2
    u = across / casadi.sqrt(sine2)
    u = sign_of(up * u[2] + casadi.dot(u, out_a)) * u
    depth = -casadi.dot(way, u)
    of_a = [up * u[2], casadi.dot(u, out_a)]
    of_b = [-side * casadi.dot(u, axis), -casadi.dot(u, out_b)]
    conditions = [
        between_faces(of_a + of_b, depth, width),
        2 - casadi.sqrt(casadi.sumsqr(way + depth * u) + NEAR**2 * radius_a**2) / width,
    ]
    share, normal = crossing_share(sine2) * share_of(conditions), R.T @ u
    return TouchPoint(depth, R.T @ (on_b - r) + depth / 2 * normal, normal, share)
