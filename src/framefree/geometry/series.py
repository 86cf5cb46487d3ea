"""Scalar functions of a squared angle that are smooth at zero, values and derivatives.

Each is a quotient that reads 0/0 at zero. Below a switch it is its Taylor series, above it is the
quotient. The switches lie far from zero (at an angle of 2 rad), because the *derivative* of such a
quotient cancels much earlier than its value does: (t - sin t)/t^3 loses, in its derivative, a
relative eps/t^4. The quotient is never given a small angle: targets such as JAX differentiate both
branches of a choice, and zero times the infinite slope of the branch not taken is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb, factorial

import casadi as ca

from framefree.geometry.arrays import Matrix

SWITCH_SQUARED_ANGLE = 4.0
SWITCH_SQUARED_TANGENT = 0.04

_TERMS = 12
_SINE = [Fraction((-1) ** k, factorial(2 * k + 1)) for k in range(_TERMS)]
_VERSINE = [Fraction((-1) ** k, factorial(2 * k + 2)) for k in range(_TERMS)]
_SINE_REST = [Fraction((-1) ** k, factorial(2 * k + 3)) for k in range(_TERMS)]
_HALF_COSINE = [Fraction((-1) ** k, factorial(2 * k) * 4**k) for k in range(_TERMS)]
_HALF_SINE = [Fraction((-1) ** k, factorial(2 * k + 1) * 2 ** (2 * k + 1)) for k in range(_TERMS)]
_ARCTANGENT = [Fraction((-1) ** k, 2 * k + 1) for k in range(_TERMS)]


def _cotangent_series(terms: int) -> list[Fraction]:
    """Return |B_2k| / (2k)!, k = 1, 2, ...: the series of (1 - (t/2) cot(t/2)) / t^2."""
    bernoulli = [Fraction(1)]
    for n in range(1, 2 * terms + 1):
        total = sum((comb(n + 1, k) * bernoulli[k] for k in range(n)), Fraction(0))
        bernoulli.append(-total / (n + 1))
    return [abs(bernoulli[2 * k]) / factorial(2 * k) for k in range(1, terms + 1)]


# Successive terms shrink by s / (2 pi)^2, about a tenth at the switch.
_COTANGENT = _cotangent_series(19)


def _polynomial(coefficients: Sequence[Fraction], s: Matrix) -> Matrix:
    value: Matrix = float(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * s + float(coefficient)
    return value


def _switched(
    s: Matrix,
    switch: float,
    coefficients: Sequence[Sequence[Fraction]],
    quotients: Callable[[Matrix, Matrix], tuple[Matrix, ...]],
) -> tuple[Matrix, ...]:
    """Return the series of `s` below `switch`, `quotients(sqrt(s), s)` above, one per function."""
    small = s < switch
    s_series = ca.if_else(small, s, 0.0)
    s_quotient = ca.if_else(small, switch, s)
    values = quotients(ca.sqrt(s_quotient), s_quotient)
    return tuple(
        ca.if_else(small, _polynomial(c, s_series), value)
        for c, value in zip(coefficients, values, strict=True)
    )


def sine_ratios(s: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return sin(t)/t, (1 - cos t)/t^2 and (t - sin t)/t^3, with s = t^2."""

    def quotients(t: Matrix, s: Matrix) -> tuple[Matrix, ...]:
        # Half angles keep 1 - cos t accurate near full turns, for the price of the same two calls.
        sine, cosine = ca.sin(t / 2), ca.cos(t / 2)
        ratio = 2 * sine * cosine / t
        return ratio, 2 * sine * sine / s, (1 - ratio) / s

    a, b, c = _switched(s, SWITCH_SQUARED_ANGLE, (_SINE, _VERSINE, _SINE_REST), quotients)
    return a, b, c


def half_angle_ratios(s: Matrix) -> tuple[Matrix, Matrix]:
    """Return cos(t/2) and sin(t/2)/t, with s = t^2."""

    def quotients(t: Matrix, s: Matrix) -> tuple[Matrix, ...]:
        return ca.cos(t / 2), ca.sin(t / 2) / t

    cosine, sine = _switched(s, SWITCH_SQUARED_ANGLE, (_HALF_COSINE, _HALF_SINE), quotients)
    return cosine, sine


def pose_step_ratios(s: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return cos(t/2), sin(t/2)/t and (t - sin t)/t^3, with s = t^2.

    All that a step on SE(3) needs whose attitude is a quaternion: (1 - cos t)/t^2 is twice the
    square of the second.
    """

    def quotients(t: Matrix, s: Matrix) -> tuple[Matrix, ...]:
        cosine, sine = ca.cos(t / 2), ca.sin(t / 2)
        return cosine, sine / t, (1 - 2 * sine * cosine / t) / s

    series = (_HALF_COSINE, _HALF_SINE, _SINE_REST)
    cosine, sine, rest = _switched(s, SWITCH_SQUARED_ANGLE, series, quotients)
    return cosine, sine, rest


def cotangent_ratio(s: Matrix) -> Matrix:
    """Return (1 - (t/2) cot(t/2)) / t^2, with s = t^2; infinite at full turns, t = 2 pi k."""

    def quotients(t: Matrix, s: Matrix) -> tuple[Matrix, ...]:
        return ((1 - t / 2 * ca.cos(t / 2) / ca.sin(t / 2)) / s,)

    return _switched(s, SWITCH_SQUARED_ANGLE, (_COTANGENT,), quotients)[0]


def arctangent_ratio(u: Matrix) -> Matrix:
    """Return arctan(z)/z, with u = z^2."""

    def quotients(z: Matrix, u: Matrix) -> tuple[Matrix, ...]:
        return (ca.atan(z) / z,)

    return _switched(u, SWITCH_SQUARED_TANGENT, (_ARCTANGENT,), quotients)[0]
