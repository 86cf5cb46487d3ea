"""Desired closed loops: M a + b = 0 by particles, by bodies, or by energy.

For every pair of frames with parameters, at pose G with Jacobian J and at the reference G_R, J_R,

    G_E = G_R^-1 G,    xi_E = J v - Ad_{G_E}^-1 J_R v_R

the potential is V = sum 1/2 ||(G - G_R)^T||^2_K' for all three, and the matrix M = sum J^T M_ab J
too; they differ in what of velocities and accelerations they call an error [Konz2024, ch. 4].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.prototype.kinematics import RelativeKinematics
from framefree.control.prototype.parameters import PairParameters
from framefree.geometry import se3
from framefree.geometry.operators import vee2
from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.spatial import symmetric

Matrix = Any

_skew = BODY_FACTORS["skew"]
"""C_ab(xi), skew, with C_ab(xi) xi = -ad_xi^T M_ab xi."""


class TrackedMotion(NamedTuple):
    """Velocities now, and velocities and accelerations of the reference."""

    v: Matrix
    v_R: Matrix
    a_R: Matrix


@dataclass(frozen=True)
class TrackedPair:
    """One pair of frames: its parameters, its kinematics now and at the reference."""

    parameters: PairParameters
    now: RelativeKinematics
    reference: RelativeKinematics

    def moving(self, motion: TrackedMotion) -> "PairErrors":
        """Return the errors of the pair."""
        return PairErrors(self, motion)


class PairErrors:
    """PairErrors of one pair of frames; G_ER = G_E^-1 = G^-1 G_R."""

    def __init__(self, pair: TrackedPair, motion: TrackedMotion) -> None:
        now, reference = pair.now, pair.reference
        self.J = now.J
        self.G_ER = se3.compose(se3.inverse(now.G), reference.G)
        self.xi = ca.densify(now.twist(motion.v))
        self.xi_R = ca.densify(reference.twist(motion.v_R))
        self.drift = ca.densify(now.J_rate @ motion.v)
        self.acceleration_R = ca.densify(reference.acceleration(motion.v_R, motion.a_R))
        M, D, K = (pair.parameters.matrix4(k) for k in ("inertia", "damping", "stiffness"))
        self.M4, self.D4, self.K4 = M, D, K
        self.M6, self.D6 = (pair.parameters.matrix6(k) for k in ("inertia", "damping"))

    @property
    def gap(self) -> Matrix:
        """``I - G_E^-1`` (4x4)."""
        return ca.SX.eye(4) - self.G_ER

    @property
    def potential(self) -> Matrix:
        """V, J."""
        return ca.trace(self.gap @ self.K4 @ self.gap.T) / 2

    @property
    def pull(self) -> Matrix:
        """``vee2((I - G_E^-1) K')`` (6): dV/dt = xi_E . pull."""
        return vee2(self.gap @ self.K4)

    @property
    def transported(self) -> Matrix:
        """``Ad_{G_E}^-1 xi_R`` (6)."""
        return se3.adjoint(self.G_ER) @ self.xi_R

    @property
    def xi_E(self) -> Matrix:
        """Twist of G_E (6)."""
        return self.xi - self.transported

    @property
    def xi_E_drift(self) -> Matrix:
        """Rate of xi_E (6) at zero acceleration of the machine."""
        moved = se3.adjoint(self.G_ER) @ self.acceleration_R
        return self.drift - moved + se3.little_adjoint(self.xi_E) @ self.transported

    @property
    def point_rates(self) -> Matrix:
        """``G^-1 d/dt (G - G_R)`` (4x4): velocities of the points' errors."""
        return se3.wed(self.xi) - self.G_ER @ se3.wed(self.xi_R)

    @property
    def point_drifts(self) -> Matrix:
        """``G^-1 d2/dt2 (G - G_R)`` (4x4) at zero acceleration of the machine."""
        X, X_R = se3.wed(self.xi), se3.wed(self.xi_R)
        at_reference = se3.wed(self.acceleration_R) + X_R @ X_R
        return se3.wed(self.drift) + X @ X - self.G_ER @ at_reference


@dataclass(frozen=True)
class Template:
    """A desired closed loop M a + b = 0, with its error energy.

    Attributes
    ----------
    M, b : (nv, nv), (nv, 1)
    W : scalar
        Error energy, J: kinetic of the errors, and V.
    loss : scalar
        What the template's dampers take, W: where W is a Lyapunov function, dW/dt = -loss.
    rate : callable
        From the actual accelerations (nv) to the actual dW/dt, W.
    momentum : (nv, 1)
        Of the error: M v_E, the slope of the rate by accelerations.
    gradient : (nv, 1)
        Of the potential.
    """

    M: Matrix
    b: Matrix
    W: Matrix
    loss: Matrix
    rate: Callable[[Matrix], Matrix]
    momentum: Matrix
    gradient: Matrix


def desired_inertia(pairs: Sequence[TrackedPair]) -> Matrix:
    """Return ``M = sum J^T M_ab J`` (nv x nv)."""
    return projected(pairs, "inertia")


def projected(pairs: Sequence[TrackedPair], kind: str) -> Matrix:
    """Return ``sum J^T X_ab J`` (nv x nv) of one kind of parameters."""
    nv = pairs[0].now.J.shape[1]
    total = ca.SX(nv, nv)
    for pair in pairs:
        J = pair.now.J
        total += symmetric(J.T @ pair.parameters.matrix6(kind) @ J)
    return total


def particle(pairs: Sequence[TrackedPair], motion: TrackedMotion) -> Template:
    """Every point p of the template would follow m e'' + d e' + k e = 0, e = r_p - r_p(x_R)."""
    errors = [pair.moving(motion) for pair in pairs]
    b = _sum(
        e.J.T @ vee2(e.point_drifts @ e.M4 + e.point_rates @ e.D4 + e.gap @ e.K4) for e in errors
    )
    kinetic = _sum(_weighted(e.point_rates, e.M4, e.point_rates) for e in errors) / 2
    loss = _sum(_weighted(e.point_rates, e.D4, e.point_rates) for e in errors)

    def rate(a: Matrix) -> Matrix:
        return _sum(
            _weighted(e.point_drifts + se3.wed(ca.densify(e.J @ a)), e.M4, e.point_rates)
            + _weighted(e.gap, e.K4, e.point_rates)
            for e in errors
        )

    W = kinetic + _sum(e.potential for e in errors)
    momentum = _sum(e.J.T @ vee2(e.point_rates @ e.M4) for e in errors)
    return Template(desired_inertia(pairs), b, W, loss, rate, momentum, _gradient(errors))


def body(pairs: Sequence[TrackedPair], motion: TrackedMotion) -> Template:
    """Every pair's G_E would move like a free body with spring and damper."""
    errors = [pair.moving(motion) for pair in pairs]
    b = _sum(
        e.J.T @ (e.M6 @ e.xi_E_drift - _turned(e.xi_E, e.M6 @ e.xi_E) + e.D6 @ e.xi_E + e.pull)
        for e in errors
    )
    W = _sum(ca.dot(e.xi_E, e.M6 @ e.xi_E) / 2 + e.potential for e in errors)
    loss = _sum(ca.dot(e.xi_E, e.D6 @ e.xi_E) for e in errors)

    def rate(a: Matrix) -> Matrix:
        return _sum(
            ca.dot(e.xi_E, e.M6 @ (e.xi_E_drift + e.J @ a)) + ca.dot(e.xi_E, e.pull) for e in errors
        )

    momentum = _sum(e.J.T @ (e.M6 @ e.xi_E) for e in errors)
    return Template(desired_inertia(pairs), b, W, loss, rate, momentum, _gradient(errors))


def energy(
    pairs: Sequence[TrackedPair], motion: TrackedMotion, transport: Matrix, transport_rate: Matrix
) -> Template:
    """W = 1/2 |v - Psi v_R|^2_M + V would fall by the dampers alone, whatever the reference.

    The velocity terms are those of the Levi-Civita connection of M, C v_E with
    C = sum J^T (M_ab dJ + C_ab(J v) J), so that dM/dt = C + C^T.
    """
    errors = [pair.moving(motion) for pair in pairs]
    M, D = desired_inertia(pairs), projected(pairs, "damping")
    v_E = motion.v - transport @ motion.v_R
    turning = _sum(
        e.J.T @ (e.M6 @ (p.now.J_rate @ v_E) + _skew(e.M6, e.xi) @ (e.J @ v_E))
        for e, p in zip(errors, pairs, strict=True)
    )
    gradient = _gradient(errors)
    feed = M @ (transport @ motion.a_R + transport_rate @ motion.v_R)
    b = turning + D @ v_E + gradient - feed
    potential_rate = _sum(ca.dot(e.pull, e.xi_E) for e in errors)
    W = ca.dot(v_E, M @ v_E) / 2 + _sum(e.potential for e in errors)
    loss = ca.dot(v_E, D @ v_E)

    def rate(a: Matrix) -> Matrix:
        return ca.dot(v_E, M @ a + b) - loss - ca.dot(v_E, gradient) + potential_rate

    return Template(M, b, W, loss, rate, ca.densify(M @ v_E), gradient)


def _gradient(errors: Sequence[PairErrors]) -> Matrix:
    """Return the gradient (nv) of the potential along the velocities."""
    return _sum(e.J.T @ e.pull for e in errors)


def _turned(xi: Matrix, momentum: Matrix) -> Matrix:
    return se3.little_adjoint(xi).T @ momentum


def _weighted(A: Matrix, weight: Matrix, B: Matrix) -> Matrix:
    """Return tr(A weight B^T)."""
    return ca.trace(A @ weight @ B.T)


def _sum(terms: Any) -> Matrix:
    return ca.densify(sum(terms, ca.SX(0)))
