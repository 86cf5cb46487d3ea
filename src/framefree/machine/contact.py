"""Compliant contact between two shapes, by Hunt and Crossley, with Coulomb friction.

At each place in which they touch, with depth d, its rate d' along the motion, and the velocity v_t
of b relative to a across the normal:

    f_n = k d^m max(1 + c d', 0) where d > 0, else 0
    f_t = -mu f_n v_t / sqrt(|v_t|^2 + v_s^2)

The normal force acts along the slope of d(G), so that V = k d^(m+1) / (m+1) is exactly the energy
of its elastic part. What is lost is never negative:

    (f_n - k d^m) d' + mu f_n |v_t|^2 / sqrt(|v_t|^2 + v_s^2) >= 0

Where one place takes over from another, as an edge does from a corner that slips off, each has a
share a(G) between 0 and 1. Its energy is a V and its forces a f_n and a f_t, with -V da/dG beside
them, so that energies stay exact.

Friction is smooth through rest: below the friction angle a block creeps, on a slope of angle a at
v_s tan(a) / sqrt(mu^2 - tan(a)^2). The force is zero at the moment of touching, and continuous.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi

from framefree.geometry import se3, so3
from framefree.machine.contact_pairs.base import TouchPoint, rigid_slope
from framefree.machine.contact_shape import ContactShape, refusal, touching
from framefree.machine.pair_force import PairForce
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import is_symbolic, scalar

EXPONENTS = (1.0, 1.5)
"""Powers of the depth: 1 for a flat stamp or a layer, 1.5 for round bodies (Hertz)."""


class PointForces(NamedTuple):
    """What acts in one place.

    Attributes
    ----------
    elastic, normal : scalar
        Forces (N) along the normal: of the elastic part, and in all.
    depth_rate : scalar
        m/s.
    slip : (3,)
        Velocity across the normal, m/s.
    friction : scalar
        Force across the normal over the speed of slipping, N s/m.
    """

    elastic: Any
    normal: Any
    depth_rate: Any
    slip: Any
    friction: Any


@dataclass(frozen=True, eq=False)
class Contact(PairForce):
    """Compliant contact between a shape in frame a and a shape in frame b.

    Parameters
    ----------
    name, frame_a, frame_b : str
        Frames, bodies or "world".
    shape_a, shape_b : ContactShape
    stiffness : number
        k, N/m^m: force at a depth of 1 m.
    damping : number
        c, s/m. About 3/2 (1 - e) / v for a restitution e near 1 at the impact speed v.
    friction : number
        mu.
    slip_speed : number
        v_s, m/s: at this speed friction has 71 percent of its size.
    exponent : 1 or 1.5
        m.
    """

    name: str
    frame_a: str
    frame_b: str
    shape_a: ContactShape
    shape_b: ContactShape
    stiffness: Any
    damping: Any = 0.0
    friction: Any = 0.0
    slip_speed: Any = 1e-3
    exponent: float = 1.5

    smooth = False

    def __post_init__(self) -> None:
        checked_name(self.name, "a contact")
        for field in ("shape_a", "shape_b"):
            if not isinstance(getattr(self, field), ContactShape):
                raise MachineError(
                    f"`{field}` of contact `{self.name}` must be a ContactShape, got "
                    f"{getattr(self, field)!r}"
                )
        reason = refusal(self.shape_a, self.shape_b)
        if reason:
            raise MachineError(f"contact `{self.name}`: {reason}")
        for field in ("stiffness", "damping", "friction", "slip_speed"):
            what = f"`{field}` of contact `{self.name}`"
            set_field(self, field, scalar(getattr(self, field), what))
            value, strict = getattr(self, field), field in ("stiffness", "slip_speed")
            if not is_symbolic(value) and (value < 0 or (strict and value == 0)):
                least = "positive" if strict else "zero or more"
                raise MachineError(f"{what} must be {least}, got {value:g}")
        if self.exponent not in EXPONENTS:
            raise MachineError(
                f"the exponent of contact `{self.name}` must be 1 or 1.5, got {self.exponent!r}"
            )

    def places(self, pose: Any) -> list[TouchPoint]:
        """Return the places in which the shapes touch or may touch."""
        return touching(self.shape_a, self.shape_b, casadi.SX(pose))

    def depth_at(self, pose: Any) -> Any:
        """Return how deep the shapes are in each other, m; negative, the gap, where they do not."""
        places = self.places(pose)
        counted = [casadi.if_else(p.share > _COUNTS, p.depth, -p.apart) for p in places]
        return casadi.mmax(casadi.vertcat(*counted))

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the sum of all forces on frame b (6)."""
        return self._forces.at(pose, twist, [self._forces.wrench])[0]

    @property
    def stores(self) -> bool:
        """True."""
        return True

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the elastic energy k d^(m+1) / (m+1) of all places, J."""
        parts = (p.share * self._energy(p) for p in self.places(pose))
        return sum(parts, casadi.SX(0))

    def energy_of_depth(self, depth: Any) -> Any:
        """Return k d^(m+1) / (m+1) of one place, J."""
        return self.stiffness * depth ** (self.exponent + 1) / (self.exponent + 1)

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return what damping and friction turn into heat, W."""
        lost = casadi.SX(0)
        for one in self._forces.points:
            lost += (one.normal - one.elastic) * one.depth_rate
            lost += one.friction * casadi.sumsqr(one.slip)
        return self._forces.at(pose, twist, [lost])[0]

    def records(self, pose: Any, twist: Any, time: Any) -> dict[str, tuple[Any, str]]:
        """Return gap (negative where the shapes overlap), forces, and the speed of slipping.

        The last is that of all places, each by its normal force; zero where nothing touches.
        """
        forces = self._forces.points
        normal = sum((one.normal for one in forces), casadi.SX(0))
        speeds = [one.normal * casadi.sqrt(casadi.sumsqr(one.slip)) for one in forces]
        tangential = [one.friction * one.slip for one in forces]
        total = sum(tangential[1:], tangential[0])
        floor = casadi.if_else(normal > 0, normal, 1)
        across, slip = casadi.sqrt(casadi.sumsqr(total)), sum(speeds[1:], speeds[0]) / floor
        normal, across, slip = self._forces.at(pose, twist, [normal, across, slip])
        return {
            "gap": (-self.depth_at(pose), "m"),
            "normal_force": (normal, "N"),
            "friction_force": (across, "N"),
            "slip": (slip, "m/s"),
        }

    def drag(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return how damping and friction resist other velocities (6 x 6).

        Friction by its secant -f_t / v_t, which, unlike its slope, holds through rest: with it a
        step brings what slips to rest and never beyond.
        """
        forces, C = self._forces, casadi.SX.zeros(6, 6)
        for place, one in zip(forces.places, forces.points, strict=True):
            slope = place.slope
            if slope is None:
                slope = rigid_slope(place.point, place.normal)
            across = casadi.vertcat(casadi.SX.eye(3), so3.wed(place.point))  # J_p^T
            n = place.normal
            C += self._by_rate(one) * slope @ slope.T
            C += one.friction * across @ (casadi.SX.eye(3) - n @ n.T) @ across.T
        return forces.at(pose, twist, [C])[0]

    def _by_rate(self, one: PointForces) -> Any:
        """Return the slope of a normal force by the rate of its depth, N s/m."""
        return casadi.if_else(one.normal > 0, self.damping * one.elastic, 0)

    def newton_slopes(self, pose: Any, twist: Any, time: Any) -> tuple[Any, Any] | None:
        """Return slopes of the wrench by the motion of b and by the twist.

        Of shapes that touch in many places, as if these were fixed on b with their normals: what is
        left out is as small as depths beside sizes.
        """
        forces, K, D = self._forces, casadi.SX.zeros(6, 6), casadi.SX.zeros(6, 6)
        if all(_is_constant(place.share) for place in forces.places):
            return None
        for place, one in zip(forces.places, forces.points, strict=True):
            slope = place.slope
            if slope is None:
                slope = rigid_slope(place.point, place.normal)
            across = casadi.vertcat(casadi.SX.eye(3), so3.wed(place.point))  # J_p^T
            speed2 = casadi.sumsqr(one.slip) + self.slip_speed**2
            pushed = slope + self.friction / casadi.sqrt(speed2) * (across @ one.slip)
            by_depth = one.normal * self.exponent / casadi.fmax(place.depth, _SMALLEST)
            by_rate = self._by_rate(one)
            n, s = place.normal, one.slip
            drag = one.friction * (casadi.SX.eye(3) - n @ n.T - s @ s.T / speed2)
            K -= (by_depth * pushed) @ slope.T
            D -= (by_rate * pushed) @ slope.T + across @ drag @ across.T
        slopes = forces.at(pose, twist, [K, D])
        return slopes[0], slopes[1]

    def _energy(self, place: TouchPoint) -> Any:
        return self.energy_of_depth(casadi.fmax(place.depth, 0))

    @cached_property
    def _forces(self) -> "_ContactForces":
        """All forces as expressions of symbols."""
        G, xi = casadi.SX.sym("G", 4, 4), casadi.SX.sym("xi", 6)
        places = self.places(G)
        rates = PlaceRates(places, G, xi)
        points = [
            self._point_forces(place, rate, xi)
            for place, rate in zip(places, rates.depths, strict=True)
        ]
        wrench = -rates.wrench([one.normal for one in points], [self._energy(p) for p in places])
        for place, one in zip(places, points, strict=True):
            across = -one.friction * one.slip
            wrench += casadi.vertcat(across, casadi.cross(place.point, across))
        return _ContactForces(G, xi, places, points, wrench)

    def _point_forces(self, place: TouchPoint, rate: Any, twist: Any) -> PointForces:
        elastic = place.share * self.stiffness * casadi.fmax(place.depth, 0) ** self.exponent
        normal = elastic * casadi.fmax(1 + self.damping * rate, 0)
        velocity = twist[:3] + casadi.cross(twist[3:], place.point)
        slip = velocity - casadi.dot(place.normal, velocity) * place.normal
        friction = self.friction * normal / casadi.sqrt(casadi.sumsqr(slip) + self.slip_speed**2)
        return PointForces(elastic, normal, rate, slip, friction)


@dataclass(frozen=True)
class _ContactForces:
    """The forces of a contact as expressions of a pose G_ab and a twist."""

    pose: Any
    twist: Any
    places: list[TouchPoint]
    points: list[PointForces]
    wrench: Any

    def at(self, pose: Any, twist: Any, values: list[Any]) -> list[Any]:
        """Return values at a pose and twist, numbers or expressions."""
        given = [casadi.densify(casadi.SX(part)) for part in (pose, twist)]
        return casadi.substitute(values, [self.pose, self.twist], given)


class PlaceRates:
    """How depths and shares of places change along a motion.

    Depths and shares are functions of the pose; what they do to a twist xi is linear. The slopes of
    those that do not say it themselves are derived, all at once.
    """

    def __init__(self, places: list[TouchPoint], pose: Any, twist: Any) -> None:
        self._places, self._pose, self._twist = places, pose, twist
        self._derived = [k for k, place in enumerate(places) if place.slope is None]
        self._shared = [k for k, place in enumerate(places) if not _is_constant(place.share)]

    @property
    def depths(self) -> list[Any]:
        """Rates of all depths, m/s."""
        derived = casadi.vertcat(casadi.SX(0, 1), *(self._places[k].depth for k in self._derived))
        motion = casadi.vec(self._pose @ se3.wed(self._twist))
        found = casadi.vertsplit(casadi.jtimes(derived, casadi.vec(self._pose), motion))
        rates = dict(zip(self._derived, found, strict=True))
        return [
            rates[k] if place.slope is None else casadi.dot(place.slope, self._twist)
            for k, place in enumerate(self._places)
        ]

    def wrench(self, by_depth: list[Any], by_share: list[Any]) -> Any:
        """Return the sum (6) of the slopes of depths and shares, each times its factor."""
        pairs = [(self._places[k].depth, by_depth[k]) for k in self._derived]
        pairs += [(self._places[k].share, by_share[k]) for k in self._shared]
        total = casadi.SX.zeros(6)
        if pairs:
            values, factors = (casadi.vertcat(*column) for column in zip(*pairs, strict=True))
            by_pose = casadi.jtimes(values, casadi.vec(self._pose), factors, True)
            total += _along_twists(self._pose, casadi.reshape(by_pose, 4, 4))
        for place, factor in zip(self._places, by_depth, strict=True):
            if place.slope is not None:
                total += factor * place.slope
        return total


def _along_twists(pose: Any, by_pose: Any) -> Any:
    """Return the slopes (6) along twists, dG/dt = G wed(xi), from those by entries of G."""
    R = pose[:3, :3]
    turned = R.T @ by_pose[:3, :3]
    moment = (turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1])
    return casadi.vertcat(R.T @ by_pose[:3, 3], *moment)


_SMALLEST = 1e-12
"""Depth (m) below which slopes of forces are those at this depth."""
_COUNTS = 0.5
"""Share from which on a place counts for the gap."""


def _is_constant(share: Any) -> bool:
    return not is_symbolic(share) or share.is_constant()
