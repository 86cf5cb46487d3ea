"""Values and derivatives of the smooth quotients against many digits, across their switches."""

from fractions import Fraction

import casadi as ca
import mpmath as mp
import numpy as np
import pytest
from geometry_cases import numbers

from framefree.geometry import series

FUNCTIONS = {
    "sin(t)/t": (lambda s: series.sine_ratios(s)[0], lambda t: mp.sin(t) / t),
    "(1-cos t)/t^2": (lambda s: series.sine_ratios(s)[1], lambda t: (1 - mp.cos(t)) / t**2),
    "(t-sin t)/t^3": (lambda s: series.sine_ratios(s)[2], lambda t: (t - mp.sin(t)) / t**3),
    "cos(t/2) of a step": (lambda s: series.pose_step_ratios(s)[0], lambda t: mp.cos(t / 2)),
    "sin(t/2)/t of a step": (lambda s: series.pose_step_ratios(s)[1], lambda t: mp.sin(t / 2) / t),
    "(t-sin t)/t^3 of a step": (
        lambda s: series.pose_step_ratios(s)[2],
        lambda t: (t - mp.sin(t)) / t**3,
    ),
    "cos(t/2)": (lambda s: series.half_angle_ratios(s)[0], lambda t: mp.cos(t / 2)),
    "sin(t/2)/t": (lambda s: series.half_angle_ratios(s)[1], lambda t: mp.sin(t / 2) / t),
    "(1-t/2 cot(t/2))/t^2": (
        series.cotangent_ratio,
        lambda t: (1 - t / 2 * mp.cot(t / 2)) / t**2,
    ),
    "arctan(t)/t": (series.arctangent_ratio, lambda t: mp.atan(t) / t),
}


def squared_arguments(name):
    arctangent = name.startswith("arctan")
    switch = series.SWITCH_SQUARED_TANGENT if arctangent else series.SWITCH_SQUARED_ANGLE
    near = [switch * (1 + e) for e in (-1e-3, -1e-6, -2e-16, 0.0, 3e-16, 1e-6, 1e-3)]
    tiny = [1e-300, 1e-30, 1e-16, 1e-8, 1e-4]
    # Up to a half turn; the first and the fourth function vanish there, so stop just before.
    return [*tiny, *near, *np.linspace(1e-3, 1.0 if arctangent else 9.0, 60)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives(name):
    ours, reference = FUNCTIONS[name]
    s = ca.SX.sym("s")
    f = ca.Function("f", [s], [ours(s), ca.jacobian(ours(s), s)])
    for x in squared_arguments(name):
        value, derivative = map(float, f(x))
        with mp.workdps(40 + 3 * int(max(0, -np.log10(x)))):
            exact = lambda y: reference(mp.sqrt(y))  # noqa: E731
            expected = float(exact(mp.mpf(x)))
            step = mp.mpf(x) * mp.mpf(10) ** -20
            slope = float((exact(x + step) - exact(x - step)) / (2 * step))
        np.testing.assert_allclose(value, expected, rtol=2e-15)
        np.testing.assert_allclose(derivative, slope, rtol=2e-14)
        np.testing.assert_allclose(float(ours(ca.DM(x))), value, rtol=3e-16)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_derivatives_are_finite_at_zero(name):
    s = ca.SX.sym("s")
    value = FUNCTIONS[name][0](s)
    first = ca.jacobian(value, s)
    second = ca.jacobian(first, s)
    at_zero = numbers(ca.Function("f", [s], [ca.vertcat(value, first, second)])(0))
    beside = numbers(ca.Function("f", [s], [ca.vertcat(value, first, second)])(1e-9))
    assert np.all(np.isfinite(at_zero))
    np.testing.assert_allclose(at_zero, beside, rtol=1e-8)


@pytest.mark.parametrize("s", [0.0, 1e-300, 1.0, 4.0 - 1e-15])
def test_the_branch_not_taken_is_kept_away_from_zero(s):
    """Other targets differentiate both branches, and zero times an infinite slope is not zero."""
    seen = []

    def quotients(t, squared):
        seen.append((float(t), float(squared)))
        return (t,)

    series._switched(ca.DM(s), 4.0, ([Fraction(1)],), quotients)
    assert seen == [(2.0, 4.0)]
