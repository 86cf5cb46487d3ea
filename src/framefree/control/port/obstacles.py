"""Obstacles, and the potential by which bodies keep clear of them.

Bodies are covered by spheres of one radius about points; with d the distance from such a sphere to
an obstacle,

    U = sum energy max(reach / d - 1, 0)^4

is zero beyond `reach`, grows without bound at contact, and has three continuous derivatives.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import positive
from framefree.geometry import se3
from framefree.machine import Machine
from framefree.machine.part import set_field
from framefree.machine.values import constant_pose, numbers, unit_axis
from framefree.motion.spatial import Matrix

CLOSEST = 1e-3
"""Distances count as no smaller than this share of `reach`."""


class Obstacle(ABC):
    """A solid that does not move.

    To add one, subclass (a frozen dataclass with a field `frame`) and give ``distance(c)``: from a
    point (3, casadi, in the axes of `frame`) to the distance of its surface in m, negative inside.
    """

    frame: str = "world"

    @abstractmethod
    def distance(self, c: Matrix) -> Matrix:
        """Return the distance (m) from a point (3) to the surface."""

    @cached_property
    def distances(self) -> ca.Function:
        """From points (3 x n) to distances (1 x n)."""
        c = ca.SX.sym("c", 3)
        return ca.Function("distance", [c], [ca.SX(self.distance(c))])


@dataclass(frozen=True, eq=False)
class Sphere(Obstacle):
    """A ball about `center` (3), m, in a frame that is fixed to the world."""

    center: Any
    radius: float
    frame: str = "world"

    def __post_init__(self) -> None:
        set_field(self, "center", numbers(self.center, (3,), "the center of a sphere"))
        positive(self.radius, "radius", "a sphere")

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        return ca.norm_2(c - ca.DM(self.center)) - self.radius


@dataclass(frozen=True, eq=False)
class Capsule(Obstacle):
    """All points within `radius` of the line from `start` to `end` (3 each), m.

    The curvature of its surface jumps where the round ends begin: references near it have
    accelerations that jump.
    """

    start: Any
    end: Any
    radius: float
    frame: str = "world"

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            set_field(self, name, numbers(getattr(self, name), (3,), f"the {name} of a capsule"))
        positive(self.radius, "radius", "a capsule")
        if not np.linalg.norm(self.end - self.start) > 0:
            raise ControlError("`start` and `end` of a capsule must differ; use a sphere")

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        start, along = ca.DM(self.start), ca.DM(self.end - self.start)
        share = ca.fmin(ca.fmax(ca.dot(c - start, along) / ca.sumsqr(along), 0), 1)
        return ca.norm_2(c - start - share * along) - self.radius


@dataclass(frozen=True, eq=False)
class HalfSpace(Obstacle):
    """All points c with ``normal . c < offset``: a floor or a wall; the normal points out of it."""

    normal: Any
    offset: float = 0.0
    frame: str = "world"

    def __post_init__(self) -> None:
        set_field(self, "normal", unit_axis(self.normal, "the normal of a half-space"))

    def distance(self, c: Matrix) -> Matrix:
        """Return the distance of a point (3)."""
        return ca.dot(ca.DM(self.normal), c) - self.offset


@dataclass(frozen=True, eq=False)
class Avoidance:
    """How bodies keep clear of obstacles.

    Parameters
    ----------
    obstacles : sequence of Obstacle
    reach : float
        Distance in m at which bodies begin to yield.
    energy : float
        J; U at half the reach.
    gain : float
        kappa in s: of the velocity -kappa Phi_c grad U.
    radius : float
        Of the spheres that cover the bodies, m.
    points : int or mapping of str to (k, 3)
        How many of them along each line from a body's joint to those of its children (from tip to
        tip for others); or their centers for bodies by name, in body axes.
    """

    obstacles: Any
    reach: float = 0.15
    energy: float = 1.0
    gain: float = 1.0
    radius: float = 0.0
    points: int | Mapping[str, Any] = field(default=3)

    def __post_init__(self) -> None:
        set_field(self, "obstacles", tuple(self.obstacles))
        for item in self.obstacles:
            if not isinstance(item, Obstacle):
                raise ControlError(f"`obstacles` must be obstacles, got {type(item).__name__}")
        for name in ("reach", "energy", "gain"):
            positive(getattr(self, name), name)
        positive(self.radius, "radius", "a covering sphere", zero=True)

    def check(self, machine: Machine) -> None:
        """Raise `ControlError` where an obstacle sits on something that moves."""
        for item in self.obstacles:
            if machine.body_index[machine.frame(item.frame).body] >= 0:
                raise ControlError(
                    f"an obstacle must be fixed to the world, but its frame `{item.frame}` is on "
                    f"the body `{machine.frame(item.frame).body}`"
                )

    def points_of(self, machine: Machine) -> Mapping[str, np.ndarray]:
        """Return centers (k, 3) of the covering spheres of every body, in body axes."""
        if isinstance(self.points, Mapping):
            centers = {name: np.atleast_2d(value) for name, value in self.points.items()}
            for name in centers:
                machine.body(name)
            return MappingProxyType({b.name: centers.get(b.name, _NONE) for b in machine.bodies})
        return MappingProxyType(
            {b.name: spine(machine, b.name, int(self.points)) for b in machine.bodies}
        )

    def pushes(self, machine: Machine, c: Matrix, dc: Matrix) -> tuple[Matrix, Matrix]:
        """Return ``-gain grad U`` (3) of one covering sphere, and its rate, in world axes.

        c and dc are position and velocity (3) of its center.
        """
        force, rate = ca.SX(3, 1), ca.SX(3, 1)
        for item, slope in zip(self.obstacles, self._slopes, strict=True):
            pose = constant_pose(machine.frame(item.frame).pose)
            R, r = se3.rotation(pose), se3.position(pose)
            gradient, turned = slope(R.T @ (c - r), R.T @ dc)
            force, rate = force - R @ gradient, rate - R @ turned
        return self.gain * force, self.gain * rate

    @cached_property
    def _slopes(self) -> list[ca.Function]:
        slopes = []
        for item in self.obstacles:
            c, dc = ca.SX.sym("c", 3), ca.SX.sym("dc", 3)
            gradient = ca.gradient(self._energy(item.distance(c) - self.radius), c)
            slopes.append(ca.Function("slope", [c, dc], [gradient, ca.jtimes(gradient, c, dc)]))
        return slopes

    def potential(self, machine: Machine, c: Matrix) -> Matrix:
        """Return U (J) of one covering sphere."""
        total = ca.SX(0)
        for d in self._gaps(machine, c):
            total += self._energy(d)
        return total

    def _energy(self, d: Matrix) -> Matrix:
        """Return U (J) at a distance (m)."""
        return self.energy * ca.fmax(self.reach / ca.fmax(d, CLOSEST * self.reach) - 1, 0) ** 4

    def clearance(self, machine: Machine, c: Matrix) -> Matrix:
        """Return the least distance (m) of one covering sphere to the obstacles."""
        least = ca.SX(np.inf)
        for d in self._gaps(machine, c):
            least = ca.fmin(least, d)
        return least

    def _gaps(self, machine: Machine, c: Matrix) -> list[Matrix]:
        gaps = []
        for item in self.obstacles:
            local = se3.inverse(constant_pose(machine.frame(item.frame).pose))
            point = se3.rotation(local) @ c + se3.position(local)
            gaps.append(item.distance(point) - self.radius)
        return gaps


_NONE = np.zeros((0, 3))


def spine(machine: Machine, body: str, count: int) -> np.ndarray:
    """Return points (k, 3) along a body: from its joint to those of its children, in body axes.

    A body without children ends where its mass center lies in the middle; so does the first body of
    a machine that floats.
    """
    if count < 1:
        raise ControlError(f"a body must be covered by at least one sphere, got {count}")
    i = machine.body_index[body]
    center = np.asarray(machine.bodies[i].moments.center if machine.bodies[i].inertia else 0.0)
    center = np.broadcast_to(center, 3).astype(float)
    start = np.asarray(machine.joints[i].child_pose, float)[:3, 3]
    ends = [
        np.asarray(machine.joints[k].parent_pose, float)[:3, 3]
        for k, parent in enumerate(machine.parent)
        if parent == i
    ]
    if machine.parent[i] < 0 and machine.joints[i].nv == 6:
        start = 2 * center - ends[0] if ends else center
    ends = ends or [2 * center - start]
    share = np.linspace(0, 1, count)[:, None] if count > 1 else np.array([[0.5]])
    points = np.concatenate([start + share * (end - start) for end in ends])
    return np.unique(points.round(12), axis=0)
