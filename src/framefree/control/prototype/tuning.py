"""From bandwidths and dampings to the parameters of a prototype.

A fully actuated machine takes any prototype. One that hangs on its thrust does not: of a prototype
with centers of inertia s, damping l and stiffness h on its z axis only those can be matched, to
first order about hovering, that have [Konz2024, ch. 5]

    l = h,    Theta = m (h - s)(s - eps),    Upsilon = 0,    Pi = m g (h - s)

about x and y, moments taken about the parameters' own centers. eps is how far the thrust's line of
action makes the craft behave as if its center were higher: 0 for a quadcopter,
J_x sin(beta)/(m l') for propellers inclined by beta. Mass, damping, stiffness and the two heights
are free: as many as place the four poles of moving sideways.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.prototype.law import PrototypeControl
from framefree.control.prototype.parameters import KINDS
from framefree.control.prototype.rest import rest_dynamics
from framefree.control.shared.gains import positive
from framefree.geometry import Moments

Mode = tuple[float, float]
"""Natural frequency (rad/s) and damping ratio."""


@dataclass(frozen=True)
class Gains:
    """Parameters of one frame of a prototype."""

    inertia: Moments
    damping: Moments
    stiffness: Moments

    def moved(self, center: Any) -> "Gains":
        """Return the same gains about another place (3), m, in the same axes."""
        pose = np.eye(4)
        pose[:3, 3] = np.asarray(center, float)
        return Gains(*(getattr(self, kind).moved(pose) for kind in KINDS))

    def on(self, key: Any) -> dict[str, Any]:
        """Return the arguments of `PrototypeControl` for a frame or pair."""
        return {kind: {key: getattr(self, kind)} for kind in KINDS}


def free_body(mass: float, inertia: Any, translation: Mode, rotation: Any) -> Gains:
    """Return uncoupled gains of a body: one mode for all directions, one or three for turning.

    Parameters
    ----------
    mass, inertia : float, (3,)
        Of the prototype, kg and kg m^2: how much an error of position counts beside one of
        attitude where inputs are short.
    translation : (frequency, damping ratio)
        rad/s, 1.
    rotation : (frequency, damping ratio) or three of them
    """
    modes = np.broadcast_to(np.asarray(rotation, float), (3, 2))
    theta = np.broadcast_to(np.asarray(inertia, float), 3)
    w, zeta = modes.T
    rate, ratio = translation
    _check(mass=mass, inertia=theta, frequency=[*w, rate], damping=[*zeta, ratio])
    origin = (0.0, 0.0, 0.0)
    return Gains(
        Moments.of_body(mass, origin, np.diag(theta)),
        Moments.of_body(2 * ratio * rate * mass, origin, np.diag(2 * zeta * w * theta)),
        Moments.of_body(rate**2 * mass, origin, np.diag(w**2 * theta)),
    )


def characteristic(*modes: Mode) -> np.ndarray:
    """Return the coefficients (lowest first, the highest is 1) of prod (s^2 + 2 zeta w s + w^2)."""
    coefficients = np.ones(1)
    for w, zeta in modes:
        coefficients = np.convolve(coefficients, [w * w, 2 * zeta * w, 1.0])
    return coefficients


@dataclass(frozen=True)
class Sideways:
    """Matched parameters of moving sideways, all about own centers: see `thrust_borne`."""

    mass: float
    damping: float
    stiffness: float
    s: float
    h: float
    gravity: float

    @property
    def moment(self) -> float:
        """Pi, Nm/rad."""
        return self.mass * self.gravity * (self.h - self.s)

    def inertia(self, eps: float) -> float:
        """Return Theta, kg m^2, about the axis with this eps (m)."""
        return self.mass * (self.h - self.s) * (self.s - eps)


def sideways(mass: float, poles: Any, gravity: float, eps: float) -> Sideways:
    """Place the four poles of moving sideways.

        k = m p0 p1/D,  d = m p1^2/D,  h = eps + g p3/p1,  s = eps + g p1/D,  D = p1 p2 - p0 p3

    Parameters
    ----------
    mass : float
        Of the prototype, kg.
    poles : (4,) or (5,)
        Coefficients p0, p1, p2, p3 of the characteristic polynomial, see `characteristic`.
    gravity, eps : float
        m/s^2 and m.

    Raises
    ------
    ControlError
        Unless all roots are in the left half plane: just then are all parameters positive and
        h > s > eps.
    """
    p0, p1, p2, p3 = (float(p) for p in poles[:4])
    D = p1 * p2 - p0 * p3
    if not (min(p0, p1, p2, p3) > 0 and p3 * D > p1 * p1):
        raise ControlError(
            "the poles of moving sideways cannot be had: the polynomial with coefficients "
            f"{[p0, p1, p2, p3, 1.0]} (lowest first) is not stable, and a prototype for it would "
            "need h > s > eps with negative moments"
        )
    return Sideways(
        mass,
        mass * p1 * p1 / D,
        mass * p0 * p1 / D,
        eps + gravity * p1 / D,
        eps + gravity * p3 / p1,
        gravity,
    )


def thrust_borne(
    mass: float,
    poles: Any,
    yaw: Mode,
    yaw_inertia: float,
    *,
    gravity: float = 9.81,
    eps: tuple[float, float] = (0.0, 0.0),
    center: Any = (0.0, 0.0, 0.0),
) -> Gains:
    """Return matched gains of a craft that hangs on its thrust: quadcopter, bicopter, PVTOL.

    Parameters
    ----------
    mass : float
        kg.
    poles : (4,)
        Of moving sideways, see `characteristic`. Where eps differs between x and y, it holds for
        the larger, about which the heights are chosen.
    yaw : (frequency, damping ratio)
    yaw_inertia : float
        kg m^2; a small one gives heading a low priority where inputs are short.
    gravity : float
    eps : (2,)
        For moving along x and along y, m.
    center : (3,)
        Center of mass of the craft in the frame that gets the gains, m: over it the prototype's
        centers stand. `machine.bodies[0].moments.center` of a single body.
    """
    _check(mass=mass, yaw_inertia=yaw_inertia, frequency=yaw[0], damping=yaw[1])
    w, zeta = yaw
    about_z = yaw_inertia, 2 * zeta * w * yaw_inertia, w * w * yaw_inertia
    return _matched(sideways(mass, poles, gravity, max(eps)), about_z, eps).moved(center)


def chosen(
    mass: float,
    s: float,
    h: float,
    damping: float,
    stiffness: float,
    yaw: tuple[float, float, float],
    *,
    gravity: float = 9.81,
    eps: tuple[float, float] = (0.0, 0.0),
    center: Any = (0.0, 0.0, 0.0),
) -> Gains:
    """Return the matched gains with these free parameters; yaw is (inertia, damping, stiffness).

    `center` is that of mass, as for `thrust_borne`.

    Raises
    ------
    ControlError
        Unless h > s > eps.
    """
    if not h > s > max(eps):
        raise ControlError(
            f"a matched prototype needs h > s > eps, got h = {h}, s = {s}, eps = {max(eps)}: its "
            "inertia or its stiffness against tilting would not be positive"
        )
    _check(mass=mass, damping=damping, stiffness=stiffness, yaw=yaw)
    return _matched(Sideways(mass, damping, stiffness, s, h, gravity), yaw, eps).moved(center)


def _matched(one: Sideways, yaw: tuple[float, float, float], eps: tuple[float, float]) -> Gains:
    """Return the gains of moving sideways and of turning about z."""
    theta = np.diag([one.inertia(eps[1]), one.inertia(eps[0]), yaw[0]])
    return Gains(
        Moments.of_body(one.mass, (0, 0, one.s), theta),
        Moments.of_body(one.damping, (0, 0, one.h), np.diag([0.0, 0.0, yaw[1]])),
        Moments.of_body(one.stiffness, (0, 0, one.h), np.diag([one.moment, one.moment, yaw[2]])),
    )


@dataclass(frozen=True)
class Matching:
    """How far a prototype is from what a machine can do, for small errors about rest.

    All of it is about the machine at rest at one configuration that the law holds. It says nothing
    of errors along a motion: there matching and stability differ from instant to instant.

    Attributes
    ----------
    damping, stiffness : (nv - nu, nv)
        B_perp^T (M Mbar^-1 Dbar - D) and B_perp^T (M Mbar^-1 Kbar - K): zero where the machine
        moves as the prototype does.
    template_poles, poles : (2 nv,) complex
        Of the prototype, and of the machine under the law.
    """

    damping: np.ndarray
    stiffness: np.ndarray
    template_poles: np.ndarray
    poles: np.ndarray

    @property
    def error(self) -> float:
        """Largest entry of the two conditions."""
        return float(
            max(np.abs(self.damping).max(initial=0), np.abs(self.stiffness).max(initial=0))
        )

    @property
    def moved(self) -> float:
        """Largest distance, 1/s, of a pole of the machine from the nearest of the prototype."""
        return float(np.abs(self.poles[:, None] - self.template_poles).min(axis=1).max())

    @property
    def stable_at_rest(self) -> bool:
        """Whether all small errors about rest decay; a motion may be unstable all the same."""
        return bool((np.real(self.poles) < -1e-9 * np.abs(self.poles).max()).all())


def matching(law: PrototypeControl, x_R: Any = None) -> Matching:
    """Return the linearised matching conditions of a law about rest at x_R, by default neutral.

    Raises
    ------
    ControlError
        If the machine has loops or couplings, or if the law does not hold it at rest at x_R: a
        thrust-borne craft that is tilted, for instance.
    """
    machine, nv = law.machine, law.machine.nv
    x_R = machine.numeric.neutral() if x_R is None else np.asarray(x_R, float)
    eps, v = ca.SX.sym("eps", nv), ca.SX.sym("v", nv)
    rest = ca.SX(nv, 1)
    x = machine.integrate(ca.SX(ca.DM(x_R)), eps)
    reference = {"x": ca.SX(ca.DM(x_R)), "v": rest, "a": rest}
    wanted = law.template(x, v, reference)
    command = law.control(ca.SX(0), x, v, reference, ca.SX(0, 1)).u
    outputs = [command, wanted.M]
    outputs += [ca.jacobian(f, y) for f in (wanted.b, command) for y in (v, eps)]
    function = ca.Function("linear", [eps, v], [ca.densify(o) for o in outputs])
    still = np.zeros(nv)
    hover, Mbar, Dbar, Kbar, u_v, u_x = (np.array(value) for value in function(still, still))
    at_rest = rest_dynamics(machine, x_R, hover.ravel())
    across, M, B = at_rest.across, at_rest.M, at_rest.B
    carried = across @ M @ np.linalg.inv(Mbar)
    return Matching(
        carried @ Dbar - across @ at_rest.D,
        carried @ Kbar - across @ at_rest.K,
        _poles(*(-np.linalg.solve(Mbar, X) for X in (Kbar, Dbar))),
        _poles(*(np.linalg.solve(M, B @ u - X) for u, X in ((u_x, at_rest.K), (u_v, at_rest.D)))),
    )


def _poles(by_x: np.ndarray, by_v: np.ndarray) -> np.ndarray:
    nv = len(by_x)
    A = np.block([[np.zeros((nv, nv)), np.eye(nv)], [by_x, by_v]])
    return np.sort_complex(np.linalg.eigvals(A))


def _check(**values: Any) -> None:
    for name, value in values.items():
        positive(value, name, "a prototype")
