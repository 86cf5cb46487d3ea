"""Motions of rigid bodies that are known in closed form, for comparison with simulated ones.

They use none of our equations of motion: heights and rates are elliptic functions of Jacobi, angles
are elliptic integrals or quadratures.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ellipj, ellipk, ellipkinc

from framefree.gallery.shared.rotations import about
from framefree.geometry import batch

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


class Turning(NamedTuple):
    """Attitudes R_world_body (n, 3, 3) and body rates (n, 3), rad/s."""

    rotation: np.ndarray
    rate: np.ndarray


def integral(rate: Callable[[np.ndarray], np.ndarray], t: np.ndarray) -> np.ndarray:
    """Return the integral of a function from t[0] to every t (n,), by ten points an interval."""
    half = np.diff(t)[:, None] / 2
    points = t[:-1, None] + half * (1 + _NODES)
    pieces = (half * _WEIGHTS * rate(points.ravel()).reshape(points.shape)).sum(1)
    return np.concatenate([[0.0], np.cumsum(pieces)])


def swinging_over(t: Any, first_rate: float, stiffness: float) -> tuple[np.ndarray, np.ndarray]:
    """Return angle and rate of a pendulum that starts upright with enough speed to go round.

        phi'' = stiffness sin(phi),    phi(0) = 0,    phi'(0) = first_rate > 0

    With k^2 = 4 stiffness / p^2 and p^2 = first_rate^2 + 4 stiffness, the angle from the lowest
    point is 2 am(p t / 2 - K) [Whittaker1937, sec. 44].

    Parameters
    ----------
    t : (n,)
        s.
    first_rate : float
        rad/s.
    stiffness : float
        1/s^2.
    """
    fastest = np.sqrt(first_rate**2 + 4 * stiffness)
    m = 4 * stiffness / fastest**2
    _, _, dn, amplitude = ellipj(fastest * np.asarray(t) / 2 - ellipk(m), m)
    return np.pi + 2 * amplitude, fastest * dn


def lagrange_top(
    t: Any, spin: float, precession: float, spin_inertia: float, inertia: float, weight: float
) -> np.ndarray:
    """Return the attitudes R_world_body (n, 3, 3) of a heavy symmetric top on a fixed point.

    Its axis is body y. It starts aligned with the world, its axis horizontal, without nutation, and
    must not pass the upper vertical. The height u of the axis follows (du/dt)^2 = f(u), a cubic, so
    that 1 + u = low + (high - low) sn^2 [Whittaker1937, sec. 71]. From the two conserved momenta,
    sum and difference of the angles of precession and spin turn at

        (spin - l) + (p + l)/(1 + u),    (l - spin) + (p - l)/(1 - u),    l = Js spin / J

    Their halves are the phases of the quaternion, which has no trouble where the axis passes the
    lower vertical and precession turns by half a revolution at once.

    Parameters
    ----------
    t : (n,)
        s, from 0, and close: quadratures take ten points an interval.
    spin, precession : float
        First rates about the axis and about the vertical, p, rad/s.
    spin_inertia, inertia : float
        Js about the axis and J across it at the fixed point, kg m^2.
    weight : float
        Mass times gravity times distance of the center from the fixed point, Nm.
    """
    t, ratio = np.asarray(t, float), spin_inertia * spin / inertia
    above, below = precession + ratio, precession - ratio
    low, high, beyond, slope = _turning_points(above, ratio, precession**2, 2 * weight / inertia)
    m = (high - low) / (beyond - low)
    speed = np.sqrt(weight / inertia * (beyond - low) / 2)
    start = ellipk(m) if high == 1.0 else 0.0

    def up(t: np.ndarray) -> np.ndarray:
        return low + (high - low) * ellipj(start + speed * t, m)[0] ** 2

    def smooth(t: np.ndarray) -> np.ndarray:
        sn, _, dn, _ = ellipj(start + speed * t, m)
        return above * m * sn**2 / ((1 + dn) * (low + (high - low) * sn**2))

    # above/(1 + u) has a peak wherever the axis passes the lower vertical, without bound as `above`
    # vanishes: with k^2 = high/low it is (above/(k low)) d/dx arctan(k sc x), but for `smooth`.
    amplitude = ellipj(start + speed * t, m)[3]
    peaks = _stretched(amplitude, low, high) - _stretched(np.pi / 2 * (start > 0), low, high)
    total = (spin - ratio) * t + integral(smooth, t)
    total = total + np.copysign(np.sqrt(slope / high), above) * peaks / speed
    gap = (ratio - spin) * t + integral(lambda t: below / (2 - up(t)), t) + 2 * np.pi
    height = up(t) / 2
    c, s = np.sqrt(height), np.sqrt(1 - height)  # of half the angle from the vertical
    wxyz = [c * np.cos(total / 2), s * np.cos(gap / 2), s * np.sin(gap / 2), c * np.sin(total / 2)]
    # These turn the axis z of a body that lies along the world's y.
    return batch.rotation(np.stack(wxyz, axis=1)) @ about("x", np.pi / 2)


def _turning_points(
    above: float, ratio: float, energy: float, pull: float
) -> tuple[float, float, float, float]:
    """Return the roots q = 1 + u of f for a top that starts at q = 1, and above^2 / low.

    f = q (2 - q) (energy + pull - pull q) - (above - ratio q)^2
    """
    second, first = -energy - 3 * pull - ratio**2, 2 * (energy + pull + above * ratio)
    rest = np.real(np.roots([pull, pull + second, pull + second + first]))  # without q = 1
    low, high, beyond = sorted([1.0, *rest])
    for _ in range(5 if low < 1e-2 else 0):  # a root close to zero keeps its digits
        low = above**2 / (first + low * (second + low * pull))
    return low, high, beyond, first + low * (second + low * pull)


def _stretched(amplitude: Any, low: float, high: float) -> np.ndarray:
    """Return arctan(sqrt(high/low) tan(amplitude)) on the branch of the amplitude."""
    turns = np.pi * np.round(np.asarray(amplitude) / np.pi)
    s, c = np.sin(amplitude - turns), np.cos(amplitude - turns)
    return turns + np.arctan2(np.sqrt(high) * s, np.sqrt(low) * c)


def axisymmetric_body(t: Any, rate: Any, inertia: float, axial: float) -> Turning:
    """Return the torque-free motion of a body with inertia J about z and I across it.

    It starts aligned with the world. The rates turn about z by s = (I - J)/I w_z; attitude as
    in [Kane1983, sec. 3.1], [Drake, free_body].

    Parameters
    ----------
    t : (n,)
        s.
    rate : (3,)
        First body rates, rad/s.
    inertia, axial : float
        I and J, kg m^2.
    """
    t, (x, y, z) = np.asarray(t, float), np.asarray(rate, float)
    s = (inertia - axial) / inertia * z
    p = np.sqrt(x**2 + y**2 + (z * axial / inertia) ** 2)
    c = z * axial / (inertia * p)
    sin_p, cos_p, sin_s, cos_s = (
        np.sin(p * t / 2),
        np.cos(p * t / 2),
        np.sin(s * t / 2),
        np.cos(s * t / 2),
    )
    wxyz = [
        -c * sin_p * sin_s + cos_p * cos_s,
        sin_p / p * (x * cos_s + y * sin_s),
        sin_p / p * (-x * sin_s + y * cos_s),
        c * sin_p * cos_s + cos_p * sin_s,
    ]
    rates = [
        x * np.cos(s * t) + y * np.sin(s * t),
        -x * np.sin(s * t) + y * np.cos(s * t),
        z + 0 * t,
    ]
    return Turning(batch.rotation(np.stack(wxyz, axis=1)), np.stack(rates, axis=1))


def asymmetric_body(t: Any, rate: Any, inertia: Any) -> Turning:
    """Return the torque-free motion of a body with three different principal moments.

    It starts aligned with the world. Rates are cn, sn and dn of Jacobi about the outer, the middle
    and the encircled axis; the line of nodes turns about the momentum L at the rate
    L (Ja wa^2 + Jb wb^2) / (Ja^2 wa^2 + Jb^2 wb^2) [Landau1976, sec. 37].

    Parameters
    ----------
    t : (n,)
        s, from 0.
    rate : (3,)
        First body rates, rad/s; not on the separatrix.
    inertia : (3,)
        Principal moments about body x, y, z, kg m^2.
    """
    t, w, J = np.asarray(t, float), np.asarray(rate, float), np.asarray(inertia, float)
    twice, L2 = float(J @ w**2), float((J * w) @ (J * w))
    a, b, c = np.argsort(J)
    if twice * J[b] > L2:  # the momentum circles about the axis of least inertia
        a, c = c, a
    even = 1.0 if (b - a) % 3 == 1 else -1.0
    wide, narrow = twice * J[c] - L2, L2 - twice * J[a]
    A = np.sqrt(wide / (J[a] * (J[c] - J[a])))
    C = np.copysign(np.sqrt(narrow / (J[c] * (J[c] - J[a]))), w[c])
    B = np.copysign(np.sqrt(wide / (J[b] * (J[c] - J[b]))), even * (J[c] - J[a]) * C)
    speed = np.sqrt((J[c] - J[b]) * narrow / (J[a] * J[b] * J[c]))
    m = (J[b] - J[a]) * wide / ((J[c] - J[b]) * narrow)
    start = ellipkinc(np.arctan2(w[b] / B, w[a] / A), m)

    def rates(t: np.ndarray) -> np.ndarray:
        sn, cn, dn, _ = ellipj(start + speed * t, m)
        omega = np.empty((len(t), 3))
        omega[:, a], omega[:, b], omega[:, c] = A * cn, B * sn, C * dn
        return omega

    def node_rate(t: np.ndarray) -> np.ndarray:
        w = rates(t)
        wa, wb = w[:, a] ** 2, w[:, b] ** 2
        return np.sqrt(L2) * (J[a] * wa + J[b] * wb) / (J[a] ** 2 * wa + J[b] ** 2 * wb)

    omega = rates(t)
    basis = _about_momentum(omega * J, int(c))
    first = _about_momentum((w * J)[None], int(c))
    turned = first @ about("z", integral(node_rate, t))
    return Turning(turned @ np.swapaxes(basis, 1, 2), omega)


def _about_momentum(momentum: np.ndarray, axis: int) -> np.ndarray:
    """Return body bases (n, 3, 3): line of nodes of a body axis, across it, momentum."""
    third = momentum / np.linalg.norm(momentum, axis=1, keepdims=True)
    node = np.cross(third, np.eye(3)[axis])
    node /= np.linalg.norm(node, axis=1, keepdims=True)
    return np.stack([node, np.cross(third, node), third], axis=2)
