"""A matched prototype of two masses on a rail with a spring between them, the first driven."""

import numpy as np

from framefree.control.law import ControlError
from framefree.geometry import Moments


def coupled_masses(
    first: str, second: str, ratio: float, poles: np.ndarray, coupling: float = 1.0
) -> dict[str, dict[tuple[str, str], Moments]]:
    """Return the parameters that place the four poles of the pair.

    With varpi = k12/m2 of the machine, E = varpi p3 - p1 and the coupling m12 of the prototype,
    the inertia and the driven side's damping and stiffness are

        m01 = m12 p1/E,   m02 = m12 (p1 p2 - p0 p3 - varpi p1)/(varpi E),
        d01 = m12 p1 p3/E,   k01 = m12 p0 p3/E,

    and the others follow from the matching conditions e2^T Mbar^-1 Dbar = 0 and
    e2^T Mbar^-1 Kbar = varpi (-1, 1).

    Parameters
    ----------
    first, second : str
        The bodies.
    ratio : float
        varpi, 1/s^2.
    poles : (4,)
        p0 to p3 of the characteristic polynomial.
    coupling : float
        m12, kg.

    Raises
    ------
    ControlError
        If an inertia of the prototype would not be positive.
    """
    p0, p1, p2, p3 = (float(p) for p in poles[:4])
    E = ratio * p3 - p1
    m12, m01 = coupling, coupling * p1 / E
    m02 = coupling * (p1 * p2 - p0 * p3 - ratio * p1) / (ratio * E)
    det = m01 * m02 + (m01 + m02) * m12
    if not (E > 0 and m01 + m12 > 0 and det > 0):
        raise ControlError(
            f"the poles cannot be had with varpi = {ratio:g}: the inertia of the prototype, "
            f"m01 = {m01:.4g}, m02 = {m02:.4g}, m12 = {m12:.4g}, is not positive definite"
        )
    damping = _others(m01, m12, coupling * p1 * p3 / E, 0.0)
    stiffness = _others(m01, m12, coupling * p0 * p3 / E, ratio * det)
    pairs = (("world", first), ("world", second), (first, second))
    return {
        name: {pair: _point(value) for pair, value in zip(pairs, values, strict=True)}
        for name, values in (
            ("inertia", (m01, m02, m12)),
            ("damping", damping),
            ("stiffness", stiffness),
        )
    }


def _others(m01: float, m12: float, x01: float, pull: float) -> tuple[float, float, float]:
    """Return x01, x02, x12 with (m12, m01 + m12) X = pull (-1, 1), X = [x01+x12, -x12; ...]."""
    x12 = (m12 * x01 + pull) / m01
    x02 = (pull + m12 * x12) / (m01 + m12) - x12
    return x01, x02, x12


def _point(weight: float) -> Moments:
    return Moments(weight, np.zeros(3), np.zeros((3, 3)))
