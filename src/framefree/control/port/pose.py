"""Law II: all bodies follow poses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.base import PortLaw, rotor_drives
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.sweeps import BodyChain, LoadWithRate, VelocityRequest
from framefree.control.port.velocity import momentum
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import positive
from framefree.geometry import Moments, se3
from framefree.geometry.operators import vee2
from framefree.machine.part import plain
from framefree.machine.values import constant
from framefree.motion.loops import BodyMath, summed
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class PoseControl(PortLaw):
    """Every body follows a pose: nu_r = P nu_d - rate Phi_c grad Ph.

        Ph = sum_b 1/2 tr((G_b - G_bd) K_b (G_b - G_bd)^T)

    is the mean square distance of the bodies' points from where they should be, weighted by K_b:
    k/2 |r - r_d|^2 + tr(Wed(Pi) (I - R_d^T R)) for weights about the frame's origin. nu_d is the
    desired velocity in world axes. Reference signals BODY.pose, BODY.twist and BODY.acceleration of
    every body.

    Parameters
    ----------
    rate : float
        1/s.
    weights : mapping of str to Moments, optional
        Of bodies by name, in body axes; the others have none. By default every body has its own
        masses as weights: then errors fall with `rate` where the joints allow it.
    """

    rate: float = 3.0
    weights: Mapping[str, Moments] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self.rate, "rate", self.name)
        for name, value in (self.weights or {}).items():
            self.machine.body(name)
            if not isinstance(value, Moments):
                raise ControlError(f"the weights of `{name}` must be Moments, got {value!r}")

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the reference signals."""
        names = [body.name for body in self.machine.bodies]
        return tuple(signal for name in names for signal in frame_signals(name))

    def body_key(self, body: str) -> Any:
        """Return the weights."""
        return plain(np.asarray(self._weight(body), float))

    def _weight(self, body: str) -> Any:
        if self.weights is None:
            return self.machine.body(body).moments.matrix4
        return self.weights[body].matrix4 if body in self.weights else np.zeros((4, 4))

    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return h = M nu_d - rate grad Ph."""
        tape, desired, loads = chain.tape, [], []
        for i, body in enumerate(self.machine.bodies):
            signals = [reference[name] for name in frame_signals(body.name)]
            twist, rate, pull, pull_rate = tape.call(self.pull, i, chain.placed[i], *signals)
            desired.append((twist, rate))
            own = tape.call(momentum, i, twist, rate)
            loads.append(LoadWithRate(summed(tape, own[0], pull), summed(tape, own[1], pull_rate)))
        return VelocityRequest(loads.__getitem__, rotor_drives(chain, self.machine, desired))

    def pull(
        self, body: BodyMath, placed: PlacedLink, pose: Matrix, twist: Matrix, rate: Matrix
    ) -> tuple[Matrix, ...]:
        """Return nu_d, its rate, -rate grad Ph and its rate (6 each), in link axes."""
        G, xi = body.body_pose(placed.pose), body.body_twist(placed.twist)
        K = constant(self._weight(body.joint.child))
        desired, desired_rate, pull, pull_rate = _PULL(G, xi, pose, twist, rate, K)
        return (
            body.twist_to_link(desired),
            body.twist_to_link(desired_rate),
            self.rate * body.to_link(pull),
            self.rate * body.to_link(pull_rate),
        )


def _pull() -> ca.Function:
    """Return the function from poses and twists to the desired twist and -grad Ph, with rates."""
    G, Gd, K = ca.SX.sym("G", 4, 4), ca.SX.sym("Gd", 4, 4), ca.SX.sym("K", 4, 4)
    xi, twist, rate = (ca.SX.sym(name, 6) for name in ("xi", "twist", "rate"))
    R, Rd = G[:3, :3], Gd[:3, :3]
    turn = R.T @ Rd
    desired = ca.vertcat(turn @ twist[:3], turn @ twist[3:])
    pull = -vee2((ca.DM.eye(4) - se3.inverse(G) @ Gd) @ K)
    moving = ca.vertcat(ca.vec(G), ca.vec(Gd), twist)
    speed = ca.vertcat(ca.vec(G @ se3.wed(xi)), ca.vec(Gd @ se3.wed(twist)), rate)
    rates = ca.jtimes(ca.vertcat(desired, pull), moving, speed)
    return ca.Function("pull", [G, xi, Gd, twist, rate, K], [desired, rates[:6], pull, rates[6:]])


_PULL = _pull()
