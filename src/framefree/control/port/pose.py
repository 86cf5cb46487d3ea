"""Law II: all bodies follow poses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.port.base import PortLaw, rotor_drives
from framefree.control.port.bodies import PlacedLink
from framefree.control.port.body_gains import BodyGains, body_gains
from framefree.control.port.sweeps import BodyChain, LoadWithRate, VelocityRequest
from framefree.control.port.velocity import momentum
from framefree.control.shared.frame_error import frame_signals
from framefree.control.shared.gains import matrix_gain, positive
from framefree.geometry import Moments, se3
from framefree.geometry.operators import vee2
from framefree.machine.part import plain, set_field
from framefree.machine.values import constant
from framefree.motion.loops import BodyMath, summed
from framefree.motion.spatial import Matrix


@dataclass(frozen=True, eq=False)
class PoseControl(PortLaw):
    """Every body follows a pose: nu_r = P nu_d - rate Phi_c grad Ph, or P (nu_d - Lambda e).

        Ph = sum_b 1/2 tr((G_b - G_bd) K_b (G_b - G_bd)^T)

    is the mean square distance of the bodies' points from where they should be, weighted by K_b:
    k/2 |r - r_d|^2 + tr(Wed(Pi) (I - R_d^T R)) for weights about the frame's origin. nu_d is the
    desired velocity in world axes. Reference signals BODY.pose, BODY.twist and BODY.acceleration of
    every body.

    With a `gain` the second form holds [Eslami2025, eq. 32, with errata E0-9], e = (r - r_d, sine
    of the angle of R_d^T R times its axis) of all bodies in their own axes. On s = 0 small errors
    fall for sure where M Lambda is symmetric, with e^T M Lambda e / 2: P is symmetric in M.

    Parameters
    ----------
    rate : float
        1/s.
    weights : mapping of str to Moments, optional
        Of bodies by name, in body axes; the others have none. By default every body has its own
        masses as weights: then errors fall with `rate` where the joints allow it.
    gain : float, (6,), (6, 6), (N, 6, 6), (6N,), (6N, 6N), or mapping of str, optional
        Lambda, 1/s, in place of rate and weights; shapes are those of `damping`.
    """

    rate: float = 3.0
    weights: Mapping[str, Moments] | None = None
    gain: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.rate):
            raise ControlError(
                f"`rate` of {self.name} must be one number, got shape {np.shape(self.rate)}; for "
                "Lambda as a matrix use `gain`"
            )
        positive(self.rate, "rate", self.name)
        gains = None
        if self.gain is not None:
            if self.weights is not None:
                raise ControlError(f"give {self.name} either `gain` or `weights`, not both")
            gains = body_gains(self.machine, self.gain, "gain", _block)
        set_field(self, "gains", gains)
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
        """Return the weights, or the gain."""
        gains = self._gains
        own = self._weight(body) if gains is None else gains.own[self.machine.body_index[body]]
        return plain(np.asarray(own, float))

    @property
    def _gains(self) -> BodyGains | None:
        return self.gains  # type: ignore[attr-defined]

    @property
    def coupled(self) -> bool:
        """Whether gains have blocks between bodies."""
        return super().coupled or (self._gains is not None and bool(self._gains.between))

    def _weight(self, body: str) -> Any:
        if self.weights is None:
            return self.machine.body(body).moments.matrix4
        return self.weights[body].matrix4 if body in self.weights else np.zeros((4, 4))

    def ask(self, chain: BodyChain, reference: Mapping[str, Any]) -> VelocityRequest:
        """Return h = M nu_d - rate grad Ph, or M (nu_d - Lambda e)."""
        if self._gains is not None:
            return self._by_gain(chain, reference, self._gains)
        tape, desired, loads = chain.tape, [], []
        for i, body in enumerate(self.machine.bodies):
            signals = [reference[name] for name in frame_signals(body.name)]
            twist, rate, pull, pull_rate = tape.call(self.pull, i, chain.placed[i], *signals)
            desired.append((twist, rate))
            own = tape.call(momentum, i, twist, rate)
            loads.append(LoadWithRate(summed(tape, own[0], pull), summed(tape, own[1], pull_rate)))
        return VelocityRequest(loads.__getitem__, rotor_drives(chain, self.machine, desired))

    def _by_gain(
        self, chain: BodyChain, reference: Mapping[str, Any], gains: BodyGains
    ) -> VelocityRequest:
        tape, followed = chain.tape, []
        for i, body in enumerate(self.machine.bodies):
            signals = [reference[name] for name in frame_signals(body.name)]
            followed.append(tape.call(self.followed, i, chain.placed[i], *signals))
        desired, loads = [], []
        cross = [gains.cross_terms([one[k] for one in followed]) for k in (2, 3)]
        for i, (twist, rate, *_) in enumerate(followed):
            pair = [twist, rate]
            for k in range(2):
                if cross[k][i] is not None:
                    pair[k] = pair[k] - tape.call(BodyMath.twist_to_link, i, cross[k][i])
            desired.append(tuple(pair))
            loads.append(LoadWithRate(*tape.call(momentum, i, *pair)))
        return VelocityRequest(loads.__getitem__, rotor_drives(chain, self.machine, desired))

    def followed(
        self, body: BodyMath, placed: PlacedLink, pose: Matrix, twist: Matrix, rate: Matrix
    ) -> tuple[Matrix, ...]:
        """Return nu_d - Lambda e and its rate, in link axes, and e and its rate in body axes."""
        assert self._gains is not None
        G, xi = body.body_pose(placed.pose), body.body_twist(placed.twist)
        desired, desired_rate, e, e_rate = _ERROR(G, xi, pose, twist, rate)
        own = ca.SX(ca.DM(self._gains.own[self.machine.body_index[body.joint.child]]))
        return (
            body.twist_to_link(desired - own @ e),
            body.twist_to_link(desired_rate - own @ e_rate),
            e,
            e_rate,
        )

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


def _block(body: Any, value: Any) -> Any:
    return matrix_gain(value, 6, "gain", f"`{body.name}`")


def _rates(name: str, values: Callable[..., Matrix], *more: Matrix) -> ca.Function:
    """Return the function from poses and twists of a body and its reference to values and rates."""
    G, Gd = ca.SX.sym("G", 4, 4), ca.SX.sym("Gd", 4, 4)
    xi, twist, rate = (ca.SX.sym(name, 6) for name in ("xi", "twist", "rate"))
    turn = G[:3, :3].T @ Gd[:3, :3]
    desired = ca.vertcat(turn @ twist[:3], turn @ twist[3:])
    value = values(G, Gd)
    moving = ca.vertcat(ca.vec(G), ca.vec(Gd), twist)
    speed = ca.vertcat(ca.vec(G @ se3.wed(xi)), ca.vec(Gd @ se3.wed(twist)), rate)
    rates = ca.jtimes(ca.vertcat(desired, value), moving, speed)
    outputs = [desired, rates[:6], value, rates[6:]]
    return ca.Function(name, [G, xi, Gd, twist, rate, *more], outputs)


_WEIGHT = ca.SX.sym("K", 4, 4)
_PULL = _rates("pull", lambda G, Gd: -vee2((ca.DM.eye(4) - se3.inverse(G) @ Gd) @ _WEIGHT), _WEIGHT)
"""From poses and twists to the desired twist and -grad Ph, with rates."""


def _error(G: Matrix, Gd: Matrix) -> Matrix:
    """Return e (6) in body axes."""
    R, Rd = G[:3, :3], Gd[:3, :3]
    return ca.vertcat(R.T @ (G[:3, 3] - Gd[:3, 3]), vee2(Rd.T @ R) / 2)


_ERROR = _rates("error", _error)
"""From poses and twists to the desired twist and e, with rates."""
