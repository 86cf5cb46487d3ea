"""Shapes that touch, and how deep one is in the other.

Two shapes touch in one or several places. Each has a depth d(G), positive where they overlap, a
normal n that points from shape a into shape b, and a point p in the middle of the overlap. The
depth is a smooth function of the relative pose while they touch, so that the normal force, which
acts along its slope, has an energy.

=======================  ==========================================================================
sphere, half-space       the lowest point
capsule, half-space      its two end spheres
box, half-space          its eight corners
cylinder, half-space     the lowest point of either rim
disk, half-space         the lowest point of its rim
sphere, sphere           along the line of centers
sphere, capsule          nearest point of the capsule's axis
sphere, box              nearest point of the box, as long as the center is outside
capsule, capsule         nearest points of the two axes
=======================  ==========================================================================

The lowest point of a rim jumps when a disk passes through lying flat. It is made smooth: with s the
sine of the tilt the point lies at radius r s / sqrt(s^2 + FLAT^2) (times a factor that makes an
upright wheel exact), so that a disk lying flat resists tilting like a spring. The nearest points of
two capsules jump in the same way where their axes are parallel: the points minimise

    |a + s - b - t|^2 + FLAT^2 (s^2 + t^2),    s, t along the axes from their middles

so that two capsules side by side touch in the middle of where they face each other, and resist
turning about each other like a spring while they are parallel to about FLAT. Other pairs have no
point that moves smoothly, or many at once, and are refused by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi
import numpy as np

from framefree.geometry import se3
from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError, known_names
from framefree.machine.values import constant, numbers, pose

FLAT = 1e-3
"""Sine of the tilt below which the lowest point of a rim moves to its center."""

_NEAR = 1e-12
"""Share of a radius below which the distance of two points is smooth rather than exact."""

SIZES = {
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "cylinder": ("radius", "length"),
    "disk": ("radius",),
    "box": ("x", "y", "z"),
    "half_space": (),
}
"""What the sizes of each kind are, m; `length` is along z, without the ends of a capsule."""


class TouchPoint(NamedTuple):
    """One place in which shapes touch: depth (m), and point and normal in the axes of frame b."""

    depth: Any
    point: Any
    normal: Any


@dataclass(frozen=True, eq=False)
class ContactShape(Part):
    """A solid for contact, placed in a frame.

    Parameters
    ----------
    kind : str
        "sphere", "capsule", "cylinder", "disk" (a rim without thickness), "box", or "half_space",
        which fills z <= 0; "plane" means the same.
    size : number or sequence
        See `SIZES`: radius; radius and length; or the three edges of a box; m.
    pose : pose
        In its frame; default the identity.
    """

    kind: str
    size: Any = ()
    pose: Any = None

    def __post_init__(self) -> None:
        kind = "half_space" if self.kind == "plane" else self.kind
        if kind not in SIZES:
            raise MachineError(
                f"there is no contact shape `{self.kind}`; there are {known_names(SIZES)}"
            )
        set_field(self, "kind", kind)
        words, what = SIZES[kind], f"the size of a contact shape `{kind}`"
        if np.size(self.size) != len(words):
            listed = ", ".join(words) or "nothing"
            raise MachineError(f"{what} is {listed}, got {self.size!r}")
        size = numbers(np.atleast_1d(np.asarray(self.size, float)).ravel(), (len(words),), what)
        if not (size > 0).all():
            raise MachineError(f"{what} must be positive, got {size.tolist()}")
        set_field(self, "size", size)
        set_field(self, "pose", pose(self.pose, f"the pose of a contact shape `{kind}`"))

    @property
    def extent(self) -> float:
        """Smallest half width, m: no depth can be larger; infinite for a half-space."""
        if self.kind == "half_space":
            return np.inf
        return float(self.size.min() / 2 if self.kind == "box" else self.size[0])


def touching(a: ContactShape, b: ContactShape, pose_ab: Any) -> list[TouchPoint]:
    """Return where two shapes touch, from the pose of frame b seen from frame a."""
    on_a, on_b = constant(a.pose), constant(b.pose)
    G = se3.compose(se3.inverse(on_a), pose_ab, on_b)
    if (a.kind, b.kind) in PAIRS:
        points = PAIRS[a.kind, b.kind](a.size, b.size, G)
    else:
        back = PAIRS[b.kind, a.kind](b.size, a.size, se3.inverse(G))
        points = [_seen_from_other(point, G) for point in back]
    R, r = se3.rotation(on_b), se3.position(on_b)
    return [TouchPoint(d, R @ p + r, R @ n) for d, p, n in points]


def refusal(a: ContactShape, b: ContactShape) -> str:
    """Return why two shapes cannot touch, empty where they can."""
    if (a.kind, b.kind) in PAIRS or (b.kind, a.kind) in PAIRS:
        return ""
    if a.kind == b.kind == "half_space":
        return "two half-spaces have no relative motion that contact could limit"
    return (
        f"`{a.kind}` and `{b.kind}` touch in points that jump as they turn, or along lines and "
        "faces; put spheres where they touch, such as on corners, one contact for each. Pairs that "
        "work: " + ", ".join(f"{one} and {other}" for one, other in PAIRS)
    )


def _seen_from_other(point: TouchPoint, G: Any) -> TouchPoint:
    """Return a place, given in a's axes with its normal from b into a, in b's axes."""
    R = se3.rotation(G)
    return TouchPoint(point.depth, R.T @ (point.point - se3.position(G)), -R.T @ point.normal)


# ------------------------------------------------------------------ pairs; shape b seen from a


def _on_ground(center: Any, radius: float, G: Any) -> TouchPoint:
    """Return where a sphere around a point of b (in b's axes) touches the half-space of a."""
    up = se3.rotation(G).T[:, 2]
    depth = radius - (se3.position(G)[2] + casadi.dot(up, center))
    return TouchPoint(depth, center - (radius - depth / 2) * up, up)


def _ground_sphere(_: Any, size: Any, G: Any) -> list[TouchPoint]:
    return [_on_ground(casadi.SX.zeros(3), float(size[0]), G)]


def _ground_capsule(_: Any, size: Any, G: Any) -> list[TouchPoint]:
    ends = [casadi.SX([0, 0, side * float(size[1]) / 2]) for side in (-1, 1)]
    return [_on_ground(end, float(size[0]), G) for end in ends]


def _ground_box(_: Any, size: Any, G: Any) -> list[TouchPoint]:
    signs = [(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    corners = [casadi.SX(np.array(sign) * np.asarray(size) / 2) for sign in signs]
    return [_on_ground(corner, 0.0, G) for corner in corners]


def _rim(radius: float, height: float, G: Any) -> TouchPoint:
    """Return the lowest point of a circle about z of b, at a height along z."""
    up = se3.rotation(G).T[:, 2]
    across = casadi.vertcat(up[0], up[1], 0)
    factor = np.sqrt(1 + FLAT**2) / casadi.sqrt(casadi.sumsqr(across) + FLAT**2)
    lowest = casadi.SX([0, 0, height]) - radius * factor * across
    return _on_ground(lowest, 0.0, G)


def _ground_disk(_: Any, size: Any, G: Any) -> list[TouchPoint]:
    return [_rim(float(size[0]), 0.0, G)]


def _ground_cylinder(_: Any, size: Any, G: Any) -> list[TouchPoint]:
    return [_rim(float(size[0]), side * float(size[1]) / 2, G) for side in (-1, 1)]


def _two_spheres(way: Any, radius_a: float, radius_b: float, G: Any) -> TouchPoint:
    """Return where spheres touch; `way` leads from the center of a to that of b, in a's axes."""
    far = casadi.sqrt(casadi.sumsqr(way) + (_NEAR * max(radius_a, radius_b)) ** 2)
    normal = se3.rotation(G).T @ (way / far)
    depth = radius_a + radius_b - far
    return TouchPoint(depth, -(radius_b - depth / 2) * normal, normal)


def _sphere_sphere(size_a: Any, size_b: Any, G: Any) -> list[TouchPoint]:
    return [_two_spheres(se3.position(G), float(size_a[0]), float(size_b[0]), G)]


def _capsule_sphere(size_a: Any, size_b: Any, G: Any) -> list[TouchPoint]:
    center, half = se3.position(G), float(size_a[1]) / 2
    along = casadi.fmin(casadi.fmax(center[2], -half), half)
    way = center - casadi.vertcat(0, 0, along)
    return [_two_spheres(way, float(size_a[0]), float(size_b[0]), G)]


def _box_sphere(size_a: Any, size_b: Any, G: Any) -> list[TouchPoint]:
    center = se3.position(G)
    half, radius = np.asarray(size_a) / 2, float(size_b[0])
    beside = [
        casadi.fmin(casadi.fmax(center[i], -float(half[i])), float(half[i])) for i in range(3)
    ]
    return [_two_spheres(center - casadi.vertcat(*beside), 0.0, radius, G)]


def _capsule_capsule(size_a: Any, size_b: Any, G: Any) -> list[TouchPoint]:
    half_a, half_b = float(size_a[1]) / 2, float(size_b[1]) / 2
    way, axis = se3.position(G), se3.rotation(G)[:, 2]
    s, t = _nearest_on_axes(way, axis, half_a, half_b)
    on_b = t * axis
    nearest = way + on_b - casadi.vertcat(0, 0, s)
    depth, point, normal = _two_spheres(nearest, float(size_a[0]), float(size_b[0]), G)
    return [TouchPoint(depth, point + casadi.vertcat(0, 0, t), normal)]


def _nearest_on_axes(way: Any, axis: Any, half_a: float, half_b: float) -> tuple[Any, Any]:
    """Return s and t of the nearest points s z and way + t axis, within the two half lengths.

    With u = z . axis the function is (1 + e) (s^2 + t^2) - 2 u s t - 2 p s + 2 q t + ..., which is
    convex: its least value along s, cut off, then along t, and once more along s where t is cut
    off, is the least of all.
    """
    u, p, q = axis[2], way[2], casadi.dot(way, axis)
    one = 1 + FLAT**2

    def within(value: Any, half: float) -> Any:
        return casadi.fmin(casadi.fmax(value, -half), half)

    s = within((one * p - u * q) / (one**2 - u**2), half_a)
    t = within((u * s - q) / one, half_b)
    return within((p + u * t) / one, half_a), t


PAIRS: dict[tuple[str, str], Callable[[Any, Any, Any], list[TouchPoint]]] = {
    ("half_space", "sphere"): _ground_sphere,
    ("half_space", "capsule"): _ground_capsule,
    ("half_space", "box"): _ground_box,
    ("half_space", "cylinder"): _ground_cylinder,
    ("half_space", "disk"): _ground_disk,
    ("sphere", "sphere"): _sphere_sphere,
    ("capsule", "sphere"): _capsule_sphere,
    ("box", "sphere"): _box_sphere,
    ("capsule", "capsule"): _capsule_capsule,
}
"""Pairs of kinds, a and b, that can touch."""
