"""Calling a kernel: one state or many, the same numbers as CasADi's own evaluation."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile


def pendulum() -> ca.Function:
    x, v, p = ca.SX.sym("x", 3), ca.SX.sym("v", 3), ca.SX.sym("p", 2, 3)
    a = ca.sin(x) * v + ca.mtimes(p.T, ca.vertcat(ca.cos(x[0]), v[1] / (2 + ca.cos(x[2]))))
    return ca.Function("pendulum", [x, v, p], [a, ca.mtimes(a, v.T)], ["x", "v", "p"], ["a", "b"])


@pytest.mark.parametrize("lanes", [None, 1, 2, 4, 8])
def test_equals_casadi_for_every_batch_size(lanes):
    function = pendulum()
    kernel = compile(function, lanes=lanes)
    rng = np.random.default_rng(0)
    for batch in range(21):
        x, v, p = (rng.normal(size=(batch, *shape)) for shape in [(3,), (3,), (2, 3)])
        a, b = kernel(x, v, p)
        assert a.shape == (batch, 3)
        assert b.shape == (batch, 3, 3)
        for i in range(batch):
            expected_a, expected_b = function(x[i], v[i], p[i])
            np.testing.assert_allclose(a[i], np.array(expected_a)[:, 0], rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(b[i], np.array(expected_b), rtol=1e-13, atol=1e-14)
