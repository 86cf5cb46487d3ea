"""Two boxes: corners in the other box, and edges that cross.

First the direction u is found along which they overlap least, of the normals of all faces and of
all pairs of edges [Gottschalk1996]. What can touch then lies on the face of a that u points out of
most, and on the face of b that it points into most. Axes are exchanged so that these are the faces
z = Z of a and z = -Z of b; what is left are four corners and four edges of each.
"""

from itertools import product
from typing import Any, NamedTuple

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.contact_pairs import solids
from framefree.machine.contact_pairs.base import (
    FAR,
    NEAR,
    ROUNDED,
    SIDES,
    Matrix,
    TouchPoint,
    half_sizes,
    rigid_slope,
    seen_from_other,
    sign_of,
)
from framefree.machine.contact_pairs.corners import Ball, in_solid
from framefree.machine.contact_pairs.edges import (
    PARALLEL,
    between_faces,
    crossing_share,
    leaving,
    overlapping,
    share_of,
    within,
)


class ExchangedBox(NamedTuple):
    """A box with its axes exchanged: their directions in its own axes, and half widths.

    `smallest` is the smallest half width.
    """

    axes: Matrix
    half: Matrix
    smallest: float

    @classmethod
    def facing(cls, size: Any, u: Matrix) -> "ExchangedBox":
        """Return a box whose last axis is that which u is nearest to, on its side."""
        half = half_sizes(size)
        large = [casadi.fabs(u[i]) for i in range(3)]
        first = casadi.logic_and(large[0] >= large[1], large[0] >= large[2])
        second = casadi.logic_and(casadi.logic_not(first), large[1] >= large[2])
        third = casadi.logic_not(casadi.logic_or(first, second))
        columns = [(third, first, second), (second, third, first), (first, second, third)]
        columns = [casadi.vertcat(*column) for column in columns]
        side = sign_of(casadi.dot(columns[2], u))
        axes = casadi.horzcat(columns[0], side * columns[1], side * columns[2])
        halves = casadi.vertcat(*(casadi.dot(column, casadi.DM(half)) for column in columns))
        return cls(axes, halves, float(half.min()))

    def corners(self, side: float) -> list[Ball]:
        """Return the rounded corners of the face on one side of the last axis."""
        radius = ROUNDED * self.smallest
        x, y, z = (self.half[i] - radius for i in range(3))
        return [
            Ball(casadi.vertcat(s * x, t * y, side * z), radius) for s, t in product(SIDES, SIDES)
        ]

    @property
    def solid(self) -> solids.Solid:
        """The distance from it."""
        return solids.box_of_halves(self.half, self.smallest)


def box_box(size_a: Any, size_b: Any, G: Matrix) -> list[TouchPoint]:
    """Return corners in the other box, and edges that cross."""
    u, overlap = _least_overlap(size_a, size_b, G)
    a = ExchangedBox.facing(size_a, u)
    b = ExchangedBox.facing(size_b, se3.rotation(G).T @ u)
    turned = se3.pose(a.axes.T @ se3.rotation(G) @ b.axes, a.axes.T @ se3.position(G))
    in_b = in_solid(b.solid, a.corners(1.0), se3.inverse(turned))
    places = [
        *in_solid(a.solid, b.corners(-1.0), turned),
        *(seen_from_other(place, turned) for place in in_b),
        *_edges(a, b, overlap, turned),
        overlapping(overlap),
    ]
    back = se3.pose(b.axes, casadi.SX.zeros(3))
    return [place.moved(back) for place in places]


def _least_overlap(size_a: Any, size_b: Any, G: Matrix) -> tuple[Matrix, Matrix]:
    """Return the unit vector along which two boxes overlap least, and by how much.

    In a's axes, from a to b.
    """
    half_a, half_b = half_sizes(size_a), half_sizes(size_b)
    R, r = se3.rotation(G), se3.position(G)
    candidates = [casadi.SX(axis) for axis in np.eye(3)] + [R[:, j] for j in range(3)]
    parallel = [casadi.SX(0)] * len(candidates)
    for i, j in product(range(3), repeat=2):
        across = casadi.cross(casadi.SX(np.eye(3)[i]), R[:, j])
        square = casadi.sumsqr(across)
        candidates.append(across / casadi.sqrt(square + NEAR**2))
        parallel.append(square < PARALLEL**2)
    best, least = candidates[0], casadi.SX(FAR)
    for u, skipped in zip(candidates, parallel, strict=True):
        in_b, along = R.T @ u, casadi.dot(u, r)
        wide = casadi.dot(casadi.DM(half_a), casadi.fabs(u))
        wide += casadi.dot(casadi.DM(half_b), casadi.fabs(in_b))
        overlap = wide - casadi.fabs(along) + FAR * skipped
        best = casadi.if_else(overlap < least, sign_of(along) * u, best)
        least = casadi.fmin(overlap, least)
    return best, least


def _edges(a: ExchangedBox, b: ExchangedBox, overlap: Matrix, G: Matrix) -> list[TouchPoint]:
    """Return where edges of the upper face of a and the lower face of b cross."""
    R, r = se3.rotation(G), se3.position(G)
    width = ROUNDED * min(a.smallest, b.smallest)
    places = []
    for i, j in product(range(2), repeat=2):
        k, m = 1 - i, 1 - j
        across = casadi.cross(casadi.SX(np.eye(3)[i]), R[:, j])
        square = casadi.sumsqr(across) + NEAR**2
        u = sign_of(across[2]) * across / casadi.sqrt(square)
        normal, crossing = R.T @ u, crossing_share(square)
        for s_a, s_b in product(SIDES, SIDES):
            faces_a = [(u[2], R[2, j]), (s_a * u[k], s_a * R[k, j])]
            faces_b = [(normal[2], -R[i, 2]), (-s_b * normal[m], s_b * R[i, m])]
            on_a, on_b = casadi.SX.zeros(3), casadi.SX.zeros(3)
            on_a[k], on_a[2], on_b[m], on_b[2] = (
                s_a * a.half[k],
                a.half[2],
                s_b * b.half[m],
                -b.half[2],
            )
            way = r + R @ on_b - on_a
            t = (R[i, j] * way[i] - casadi.dot(way, R[:, j])) / square
            s, depth = way[i] + R[i, j] * t, -casadi.dot(way, u)
            conditions = [
                *within(s, a.half[i], width, depth, leaving(faces_b)),
                *within(t, b.half[j], width, depth, leaving(faces_a)),
                between_faces([cosine for cosine, _ in faces_a + faces_b], depth, width),
                # Nothing that touches is deeper than the least overlap.
                3 - 2 * depth / (casadi.fmax(overlap, 0) + width),
            ]
            point = on_b + t * casadi.SX(np.eye(3)[j])
            slope, middle = rigid_slope(point, normal), point + depth / 2 * normal
            share = crossing * share_of(conditions)
            places.append(TouchPoint(depth, middle, normal, share, slope))
    return places
