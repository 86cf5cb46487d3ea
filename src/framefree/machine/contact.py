"""Compliant contact between two shapes, by Hunt and Crossley, with Coulomb friction.

At each place in which they touch, with depth d, its rate d' along the motion, and the velocity v_t
of b relative to a across the normal:

    f_n = k d^m max(1 + c d', 0) where d > 0, else 0
    f_t = -mu f_n v_t / sqrt(|v_t|^2 + v_s^2)

The normal force acts along the slope of d(G), so that V = k d^(m+1) / (m+1) is exactly the energy
of its elastic part. What is lost is never negative:

    (f_n - k d^m) d' + mu f_n |v_t|^2 / sqrt(|v_t|^2 + v_s^2) >= 0

Friction is smooth through rest: below the friction angle a block creeps, on a slope of angle a at
v_s tan(a) / sqrt(mu^2 - tan(a)^2). The force is zero at the moment of touching, and continuous.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi

from framefree.geometry import se3
from framefree.machine.contact_shape import ContactShape, TouchPoint, refusal, touching
from framefree.machine.pair_force import PairForce
from framefree.machine.part import checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import is_symbolic, scalar

EXPONENTS = (1.0, 1.5)
"""Powers of the depth: 1 for a flat stamp or a layer, 1.5 for round bodies (Hertz)."""


class PointForces(NamedTuple):
    """What acts in one place: forces along and across the normal, their parts and velocities."""

    elastic: Any
    normal: Any
    depth_rate: Any
    slip: Any
    friction: Any
    wrench: Any


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

    def wrench_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return the sum of all forces on frame b (6)."""
        return sum((one.wrench for one in self.forces(pose, twist)), casadi.SX.zeros(6))

    @property
    def stores(self) -> bool:
        """True."""
        return True

    def energy_at(self, pose: Any, time: Any) -> Any:
        """Return the elastic energy k d^(m+1) / (m+1) of all places, J."""
        parts = (self.energy_of_depth(casadi.fmax(p.depth, 0)) for p in self.places(pose))
        return sum(parts, casadi.SX(0))

    def energy_of_depth(self, depth: Any) -> Any:
        """Return k d^(m+1) / (m+1) of one place, J."""
        return self.stiffness * depth ** (self.exponent + 1) / (self.exponent + 1)

    def dissipation_at(self, pose: Any, twist: Any, time: Any) -> Any:
        """Return what damping and friction turn into heat, W."""
        lost = casadi.SX(0)
        for one in self.forces(pose, twist):
            lost += (one.normal - one.elastic) * one.depth_rate
            lost += one.friction * casadi.sumsqr(one.slip)
        return lost

    def records(self, pose: Any, twist: Any, time: Any) -> dict[str, tuple[Any, str]]:
        """Return gap (negative where the shapes overlap), forces, and the speed of slipping.

        The last is that of all places, each by its normal force; zero where nothing touches.
        """
        depth = [place.depth for place in self.places(pose)]
        forces = self.forces(pose, twist)
        normal = sum((one.normal for one in forces), casadi.SX(0))
        speeds = [one.normal * casadi.sqrt(casadi.sumsqr(one.slip)) for one in forces]
        tangential = [one.friction * one.slip for one in forces]
        total = sum(tangential[1:], tangential[0])
        floor = casadi.if_else(normal > 0, normal, 1)
        return {
            "gap": (-casadi.mmax(casadi.vertcat(*depth)), "m"),
            "normal_force": (normal, "N"),
            "friction_force": (casadi.sqrt(casadi.sumsqr(total)), "N"),
            "slip": (sum(speeds[1:], speeds[0]) / floor, "m/s"),
        }

    def forces(self, pose: Any, twist: Any) -> list[PointForces]:
        """Return what acts in each place."""
        slopes = self._depth_slopes(pose)
        twist = casadi.densify(casadi.SX(twist))
        return [
            self._point_forces(place, slope, twist)
            for place, slope in zip(self.places(pose), slopes, strict=True)
        ]

    def _point_forces(self, place: TouchPoint, slope: Any, twist: Any) -> PointForces:
        rate = casadi.dot(slope, twist)
        elastic = self.stiffness * casadi.fmax(place.depth, 0) ** self.exponent
        normal = elastic * casadi.fmax(1 + self.damping * rate, 0)
        velocity = twist[:3] + casadi.cross(twist[3:], place.point)
        slip = velocity - casadi.dot(place.normal, velocity) * place.normal
        friction = self.friction * normal / casadi.sqrt(casadi.sumsqr(slip) + self.slip_speed**2)
        across = -friction * slip
        wrench = -normal * slope + casadi.vertcat(across, casadi.cross(place.point, across))
        return PointForces(elastic, normal, rate, slip, friction, wrench)

    def _depth_slopes(self, pose: Any) -> list[Any]:
        """Return the wrenches (6) with d' = slope . twist, one for each place."""
        G, xi = casadi.SX.sym("G", 4, 4), casadi.SX.sym("xi", 6)
        depths = casadi.vertcat(*(place.depth for place in self.places(G)))
        rates = casadi.jtimes(depths, casadi.vec(G), casadi.vec(G @ se3.wed(xi)))
        slopes = casadi.substitute(casadi.jacobian(rates, xi), G, casadi.densify(casadi.SX(pose)))
        return [slopes[i, :].T for i in range(slopes.shape[0])]
