"""-a b - c is one instruction with one rounding, signs of zeros included."""

from fractions import Fraction

import casadi as ca
import numpy as np

from framefree.kernel import compile
from framefree.kernel.optimise import optimise
from framefree.kernel.target import host


def minus_both():
    a, b, c, d = (ca.SX.sym(name) for name in "abcd")
    value = ca.horzcat(-a, -c) @ ca.vertcat(b, d)  # CasADi writes -(a * b) - c * d otherwise
    return compile(ca.Function("minus", [a, b, c, d], [value]), cache=False)


def test_it_is_fused():
    kinds = [node[0] for node in optimise(minus_both().graph, fma=True).nodes]
    assert "fnms" in kinds
    assert "neg" not in kinds


def test_it_is_rounded_once():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-8, 8, (200, 4))
    results = minus_both()(*(column[:, None] for column in rows.T)).ravel()
    for (a, b, c, d), result in zip(rows.tolist(), results, strict=True):
        product = a * b  # rounded for itself
        exact = -Fraction(c) * Fraction(d) - Fraction(product)
        twice = float(-Fraction(a) * Fraction(b) - Fraction(c * d))
        fused = float(exact)
        assert result in ((fused, twice) if host().fma else (-product - c * d,))


def test_zeros_keep_their_signs():
    kernel = minus_both()
    for a, c in ((0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)):
        expected = -(a * 1.0) - c * 1.0
        result = kernel([a], [1.0], [c], [1.0])[0]
        assert result == 0.0
        assert np.signbit(result) == np.signbit(expected)
