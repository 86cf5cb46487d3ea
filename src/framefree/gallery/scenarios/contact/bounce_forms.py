"""Closed forms of bodies that bounce, slide, rock, spin and roll on a plane."""

from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq


def speed_after_impact(speed: float, damping: float) -> float:
    """Return the speed after an impact without gravity, whatever stiffness, exponent and mass.

    c (v_i + v_o) = log((1 + c v_i) / (1 - c v_o)) [Hunt1975]: along the depth, with
    m v dv = -k d^m (1 + c v) dd, both sides integrate in closed form.
    """
    c, highest = damping, min(speed, 1 / damping)
    result: Any = brentq(
        lambda out: c * (speed + out) - np.log((1 + c * speed) / (1 - c * out)),
        0.0,
        highest * (1 - 1e-13),
        xtol=1e-15,
    )
    return float(result)


def sliding_distance(first: float, last: float, deceleration: float, slip_speed: float) -> float:
    """Return the way from one speed to another, with v' = -mu g v / sqrt(v^2 + v_s^2)."""

    def primitive(v: float) -> float:
        return v * np.hypot(v, slip_speed) / 2 + slip_speed**2 / 2 * np.arcsinh(v / slip_speed)

    return (primitive(first) - primitive(last)) / deceleration


def creep_speed(friction: float, slope: float, slip_speed: float) -> float:
    """Return how fast a block creeps down a slope (tangent of its angle) below mu."""
    return slip_speed * slope / np.sqrt(friction**2 - slope**2)


def rocking_time(width: float, height: float, tilt: float, g: float) -> float:
    """Return how long a uniform block takes from a tilt at rest to its first impact.

    About its corner: (4/3) R theta'' = -g sin(alpha - theta), R half the diagonal [Housner1963].
    """
    R, alpha = np.hypot(width, height) / 2, np.arctan2(width, height)
    rate = 1.5 * g / R

    def slowness(u: float) -> float:
        # theta = tilt - u^2 takes the singular start out of the integral
        lowered = 2 * np.sin(alpha - tilt + u * u / 2) * np.sin(u * u / 2)
        return 2 * u / np.sqrt(rate * lowered) if u else 2 / np.sqrt(rate * np.sin(alpha - tilt))

    return float(quad(slowness, 0.0, np.sqrt(tilt), limit=200)[0])


def coin_rate(radius: float, tilt: float, g: float) -> float:
    """Return the precession (rad/s) of a thin coin that rolls with its center at rest.

    Its angular velocity lies along the diameter through the point of contact [Moffatt2000]:
    W^2 = 4 g / (a sin(tilt)).
    """
    return float(np.sqrt(4 * g / (radius * np.sin(tilt))))
