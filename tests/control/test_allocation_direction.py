"""Inputs within limits: exact where they can be, along the wanted force where they cannot."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog

from framefree.control.law import ControlError
from framefree.control.shared.direction import along
from framefree.control.shared.input_map import InputMap, blocks

RNG = np.random.default_rng(0)
THRUSTERS = np.zeros((8, 10))
THRUSTERS[:6, :8] = RNG.normal(size=(6, 8))
THRUSTERS[6, 8], THRUSTERS[7, 9] = 2.0, -0.5
LOWER, UPPER = np.full(10, -2.0), np.array([2.0] * 8 + [3.0, np.inf])


def least(G, wanted):
    return InputMap(G, np.ones(G.shape[1]), ca.DM.eye(G.shape[0])).least(wanted)


def allocated(G, wanted, lower, upper):
    return along(G, least(G, wanted), lower, upper)


@pytest.fixture(scope="module")
def share():
    wanted = ca.SX.sym("f", 8)
    u = allocated(ca.sparsify(ca.DM(THRUSTERS)), wanted, LOWER, UPPER)
    return ca.Function("u", [wanted], [u])


def test_inputs_that_act_together_are_found():
    assert blocks(ca.sparsify(ca.DM(THRUSTERS))) == [
        (list(range(6)), list(range(8))),
        ([6], [8]),
        ([7], [9]),
    ]


def test_force_within_the_limits_is_given_exactly_with_the_least_inputs(share):
    rng = np.random.default_rng(1)
    for _ in range(30):
        wanted = THRUSTERS @ rng.uniform(-0.4, 0.4, 10)
        u = share(wanted).full().ravel()
        assert np.allclose(THRUSTERS @ u, wanted, atol=1e-9)
        assert np.allclose(u, np.linalg.pinv(THRUSTERS) @ wanted, atol=1e-9)


def test_force_beyond_the_limits_keeps_its_direction_and_is_as_large_as_can_be(share):
    rng = np.random.default_rng(2)
    met = 0
    for _ in range(30):
        wanted = np.concatenate([rng.normal(size=6) * 20, rng.normal(size=2)])
        u = share(wanted).full().ravel()
        assert (u >= LOWER - 1e-7).all()
        assert (u <= UPPER + 1e-7).all()
        given = (THRUSTERS @ u)[:6]
        portion = given @ wanted[:6] / (wanted[:6] @ wanted[:6])
        assert np.allclose(given, portion * wanted[:6], atol=1e-5)
        rows = np.hstack([THRUSTERS[:6, :8], -wanted[:6, None]])
        most = linprog(
            [0] * 8 + [-1], A_eq=rows, b_eq=np.zeros(6), bounds=[(-2, 2)] * 8 + [(0, 1)]
        ).x[-1]
        met += most < 1
        assert abs(portion - most) < 5e-3

    assert met > 20


def test_arm_does_not_suffer_from_thrusters_at_their_limit(share):
    wanted = np.array([1e3] * 6 + [1.0, 1.0])
    u = share(wanted).full().ravel()
    assert np.allclose((THRUSTERS @ u)[6:], 1.0, atol=1e-12)


def test_least_inputs_of_a_matrix_that_changes():
    G, f = ca.SX.sym("G", 3, 5), ca.SX.sym("f", 3)
    function = ca.Function("u", [G, f], [least(G, f)])
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(3, 5)), rng.normal(size=3)
    assert np.allclose(function(A, b).full().ravel(), np.linalg.pinv(A) @ b, atol=1e-12)


def test_one_sided_limits_of_inputs_that_act_together():
    """Inputs without a limit on one side: three propellers that only push, on two directions."""
    G = np.array([[1.0, -1.0, 0.5], [0.5, 0.5, -1.0]])
    wanted = ca.SX.sym("f", 2)
    u = allocated(ca.DM(G), wanted, np.zeros(3), np.array([1.0, np.inf, np.inf]))
    function, rng = ca.Function("u", [wanted], [u]), np.random.default_rng(5)
    for _ in range(20):
        f = rng.normal(size=2) * 3
        inputs = function(f).full().ravel()
        assert np.isfinite(inputs).all()
        assert (inputs >= -1e-9).all()
        assert inputs[0] <= 1 + 1e-9
        given = G @ inputs
        assert abs(given[0] * f[1] - given[1] * f[0]) < 1e-6 * (f @ f)


def test_refusal_of_inverted_limits():
    with pytest.raises(ControlError, match="lower"):
        allocated(ca.DM.eye(2), ca.DM.ones(2), [0, 0], [1, 0])
