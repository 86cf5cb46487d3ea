"""Law I: all bodies follow velocities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from framefree.control.port.base import PortLaw, rotor_drives
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.sweeps import BodyChain, LoadWithRate, VelocityRequest
from framefree.geometry import se3
from framefree.motion.loops import BodyMath
from framefree.motion.spatial import Matrix, Twist


@dataclass(frozen=True, eq=False)
class VelocityControl(PortLaw):
    """Every body follows a velocity: nu_r = P nu_d.

    P is the mass-orthogonal projector on what the joints allow: velocities that fit the desired
    poses need not fit the actual ones (errata E0-8). Reference signals BODY.velocity (6), velocity
    of the body frame's origin and angular velocity, both in world axes, and its rate
    BODY.velocity_rate, of every body.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        names = [body.name for body in self.machine.bodies]
        return tuple(f"{name}.{what}" for name in names for what in ("velocity", "velocity_rate"))

    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return h = M nu_d."""
        desired, loads = [], []
        for i, body in enumerate(self.machine.bodies):
            signals = (reference[f"{body.name}.velocity"], reference[f"{body.name}.velocity_rate"])
            pair = chain.tape.call(_in_link, i, chain.placed[i], *signals)
            desired.append(pair)
            loads.append(LoadWithRate(*chain.tape.call(momentum, i, *pair)))
        return VelocityRequest(loads.__getitem__, rotor_drives(chain, self.machine, desired))


def _in_link(
    body: BodyMath, placed: PlacedLink, velocity: Matrix, rate: Matrix
) -> tuple[Matrix, Matrix]:
    """Return a world-axes velocity (6) as a twist of the link, and its rate."""
    R = se3.rotation(body.body_pose(placed.pose))
    w = body.body_twist(placed.twist)[3:]
    parts = [R.T @ velocity[:3], R.T @ velocity[3:]]
    rates = [
        R.T @ half - ca.cross(w, part)
        for half, part in zip((rate[:3], rate[3:]), parts, strict=True)
    ]
    return body.twist_to_link(ca.vertcat(*parts)), body.twist_to_link(ca.vertcat(*rates))


def momentum(body: BodyMath, twist: Matrix, rate: Matrix) -> tuple[Matrix, Matrix]:
    """Return M nu_d (6) and its rate, in link axes."""
    return body.inertia.times(Twist.of(twist)).vector, body.inertia.times(Twist.of(rate)).vector
