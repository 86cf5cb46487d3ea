"""How a taut string runs from one point to another around a sphere or a cylinder, or inside one.

The rules are those of MuJoCo: which way round, and when it touches. Points are in the obstacle's
own axes, a cylinder along z. Everything is an expression of casadi: what is chosen between is
computed on both sides, so that roots and quotients are kept away from where they have no slope.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

SMALL = 1e-15
"""MuJoCo's smallest number."""
NOTHING = 1e-30
"""Below it a square is taken for zero; it keeps slopes finite."""
INSIDE_STEPS = 12
INSIDE_ERROR = 1e-6
"""How far MuJoCo goes to find where a string inside a circle touches it, rad."""

Matrix = Any


class WrapContact(NamedTuple):
    """Where a string touches: whether at all, the first and last point, and the way between."""

    touches: Matrix
    first: Matrix
    last: Matrix
    length: Matrix


def around_sphere(p0: Matrix, p1: Matrix, radius: float, side: Any) -> WrapContact:
    """Return the contact of a string from p0 to p1 (3) with a sphere about the origin.

    `side` (3) is a point on the side where the string runs, or None; if it is inside of the sphere,
    the string runs through the sphere and touches it from within.
    """
    e0 = p0 / length_of(p0)
    across = ca.cross(p0, p1)
    plain = ca.dot(across, across) >= SMALL**2
    normal = ca.if_else(plain, across / length_of(across), _any_normal(e0))
    e1 = ca.cross(normal, e0)
    axes = ca.horzcat(e0, e1)
    flat = _in_plane(axes.T @ p0, axes.T @ p1, radius, side, axes)
    touches = ca.logic_and(flat.touches, _off_center(p0, p1))
    return WrapContact(touches, axes @ flat.first, axes @ flat.last, flat.length)


def around_cylinder(p0: Matrix, p1: Matrix, radius: float, side: Any) -> WrapContact:
    """Return the contact with a cylinder about the z axis; see `around_sphere`.

    Seen along z it is a circle; the string rises evenly along its way.
    """
    axes = ca.DM([[1, 0], [0, 1], [0, 0]])
    flat = _in_plane(p0[:2], p1[:2], radius, side, axes)
    before, after = (length_of(p[:2] - q) for p, q in ((p0, flat.first), (p1, flat.last)))
    rise = (p1[2] - p0[2]) / (before + flat.length + after)
    heights = [p0[2] + rise * before, p0[2] + rise * (before + flat.length)]
    length = _root(flat.length**2 + (heights[1] - heights[0]) ** 2)
    touches = ca.logic_and(flat.touches, _off_center(p0, p1))
    first, last = ca.vertcat(flat.first, heights[0]), ca.vertcat(flat.last, heights[1])
    return WrapContact(touches, first, last, length)


def length_of(vector: Matrix) -> Matrix:
    """Return |vector|, above zero and with a slope everywhere."""
    return _root(ca.dot(vector, vector))


def _in_plane(d0: Matrix, d1: Matrix, radius: float, side: Any, axes: Matrix) -> WrapContact:
    if side is None:
        return _outside(d0, d1, radius, None)
    if float(np.linalg.norm(side)) < radius:
        return _inside(d0, d1, radius)
    seen = axes.T @ ca.DM(side)
    return _outside(d0, d1, radius, radius * seen / length_of(seen))


# ---------------------------------------------------------------------- circles, from outside


def _outside(d0: Matrix, d1: Matrix, radius: float, side: Matrix | None) -> WrapContact:
    """Return the contact with a circle: the direct way round, or the other one.

    The string goes the other way, touching or not, where the side lies opposite to all points
    between the directions of d0 and d1.
    """
    near, turn = _nearest(d0, d1), _wedge(d0, d1)
    hits = ca.dot(near, near) <= radius**2
    apart = ca.dot(d1 - d0, d1 - d0) >= SMALL
    beyond = ca.logic_and(ca.dot(d0, d0) >= radius**2, ca.dot(d1, d1) >= radius**2)
    clockwise = turn < 0
    if side is not None:
        opposite = ca.logic_and(turn * _wedge(d1, side) > 0, turn * _wedge(side, d0) > 0)
        hits = ca.logic_or(hits, opposite)
        clockwise = ca.if_else(opposite, ca.logic_not(clockwise), clockwise)
    ways = [_tangents(d0, d1, radius, sign) for sign in (1, -1)]
    first, last = (ca.if_else(clockwise, a, b) for a, b in zip(*ways, strict=True))
    length = radius * ca.if_else(clockwise, _turn(*ways[0]), _turn(*reversed(ways[1])))
    return WrapContact(ca.logic_and(ca.logic_and(beyond, apart), hits), first, last, length)


def _nearest(d0: Matrix, d1: Matrix) -> Matrix:
    """Return the point of the segment from d0 to d1 that is nearest to the origin."""
    step = d1 - d0
    share = -ca.dot(step, d0) / ca.fmax(ca.dot(step, step), NOTHING)
    return d0 + ca.fmin(ca.fmax(share, 0), 1) * step


def _tangents(d0: Matrix, d1: Matrix, radius: float, sign: int) -> tuple[Matrix, Matrix]:
    """Return where tangents from d0 and d1 touch the circle, one way round (+1) or the other."""
    points = []
    for d, turn in ((d0, sign), (d1, -sign)):
        square = ca.fmax(ca.dot(d, d), NOTHING)
        along = turn * radius * _root(square - radius**2)
        points.append((radius**2 * d + along * ca.vertcat(d[1], -d[0])) / square)
    return points[0], points[1]


def _turn(first: Matrix, last: Matrix) -> Matrix:
    """Return the angle, 0 to 2 pi, by which one turns clockwise from one point to another."""
    sine, cosine = first[1] * last[0] - first[0] * last[1], ca.dot(first, last)
    defined = sine**2 + cosine**2 > NOTHING
    angle = ca.atan2(sine, ca.if_else(defined, cosine, 1))
    return ca.if_else(sine < 0, angle + 2 * np.pi, angle)


def _wedge(a: Matrix, b: Matrix) -> Matrix:
    """Return a x b, positive where b is counter-clockwise of a."""
    return a[0] * b[1] - a[1] * b[0]


# ---------------------------------------------------------------------- circles, from inside


def _inside(d0: Matrix, d1: Matrix, radius: float) -> WrapContact:
    """Return the one point at which a string between points outside runs through a circle.

    Both its parts make the same angle t with the radius there: asin(A sin t) + asin(B sin t) + G =
    2 t, with A and B radius over distance, and G the angle between d0 and d1.
    """
    long0, long1 = length_of(d0), length_of(d1)
    A, B = radius / ca.fmax(long0, radius), radius / ca.fmax(long1, radius)
    beyond = ca.logic_and(long0 > radius, long1 > radius)
    near, gap = _nearest(d0, d1), d1 - d0
    crosses = ca.dot(near, near) <= radius**2  # outside points: it is within the segment then
    cosine = (long0**2 + long1**2 - ca.dot(gap, gap)) / (2 * long0 * long1)
    opposite, same = cosine < -1 + SMALL, cosine > 1 - SMALL
    t = _equal_angles(A, B, ca.acos(ca.fmin(ca.fmax(cosine, -1 + SMALL), 1 - SMALL)))
    ahead = _wedge(d0, d1) > 0
    start = ca.if_else(ahead, d0 / long0, d1 / long1)
    angle = t - ca.asin(ca.fmin(ca.if_else(ahead, A, B) * ca.sin(t), 1 - SMALL))
    c, s = ca.cos(angle), ca.sin(angle)
    turned = ca.vertcat(c * start[0] - s * start[1], s * start[0] + c * start[1])
    middle = (d0 + d1) / length_of(d0 + d1)
    point = radius * ca.if_else(same, middle, turned)
    touches = ca.logic_and(beyond, ca.logic_not(ca.logic_or(crosses, opposite)))
    return WrapContact(touches, point, point, ca.SX(0))


def _equal_angles(A: Matrix, B: Matrix, G: Matrix) -> Matrix:
    """Return t by Newton's method from a right angle, as near as MuJoCo: to `INSIDE_ERROR`.

    The point is then wrong by as much, and so are moment arms, which MuJoCo takes from it.
    """
    t = ca.SX(np.pi / 2)
    for _ in range(INSIDE_STEPS):
        c, s = ca.cos(t), ca.sin(t)
        error = sum((ca.asin(ca.fmin(k * s, 1 - SMALL)) for k in (A, B)), G - 2 * t)
        slope = sum((k * c / _root(1 - (k * s) ** 2) for k in (A, B)), -2)
        t = ca.if_else(ca.fabs(error) > INSIDE_ERROR, t - error / ca.fmin(slope, -SMALL), t)
    return t


# ---------------------------------------------------------------------- small things


def _any_normal(e: Matrix) -> Matrix:
    """Return a unit vector across e (3), where the plane of a string is not determined."""
    size = ca.fabs(e)
    y_most = ca.logic_and(size[1] > size[0], size[1] > size[2])
    z_most = ca.logic_and(size[2] > size[0], size[2] > size[1])
    other = ca.if_else(
        z_most, ca.DM([1, 1, 0]), ca.if_else(y_most, ca.DM([1, 0, 1]), ca.DM([0, 1, 1]))
    )
    across = ca.cross(e, other)
    return across / length_of(across)


def _off_center(p0: Matrix, p1: Matrix) -> Matrix:
    return ca.logic_and(*(ca.dot(p, p) >= SMALL**2 for p in (p0, p1)))


def _root(square: Matrix) -> Matrix:
    return ca.sqrt(ca.fmax(square, NOTHING))
