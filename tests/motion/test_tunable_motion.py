"""Tunable numbers of random machines: the symbolic machine at values is the machine with them."""

import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_state, relative_error, tunable_paths

from framefree.motion.tree import Tree

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
SIZE = 8
QUANTITIES = ("forward", "inverse", "energy", "power", "dissipation", "momentum", "mass")
QUANTITIES += ("forward_derivatives", "inverse_derivatives", "joint_wrench")


@pytest.fixture(scope="module", params=range(6), ids=lambda seed: f"seed{seed}")
def case(request):
    """Return a machine of three bodies with eight tunable numbers, and other values for these."""
    rng = np.random.default_rng(700 + request.param)
    machine = random_machine(rng, bodies=3)
    paths = rng.choice(tunable_paths(machine), SIZE, replace=False)
    tunable = machine.tunable(*paths.tolist())
    defaults = tunable.parameters.defaults
    p = np.where(defaults == 0, 0.02, defaults) * (1 + 0.02 * rng.random(SIZE))
    return rng, tunable, p, Tree(tunable)


def test_symbols_and_numbers_move_alike(case):
    rng, tunable, p, symbolic = case
    numeric = Tree(tunable.with_parameters(dict(zip(tunable.parameters.names, p, strict=True))))
    x, v, u = random_state(rng, tunable)
    for name in QUANTITIES:
        arguments = (x, v, u)[: len(symbolic.functions[name].name_in()) - 1]
        found = evaluate(symbolic.functions[name], *arguments, p)
        expected = evaluate(numeric.functions[name], *arguments)
        for one, other in zip(_tuple(found), _tuple(expected), strict=True):
            assert relative_error(one, other) < 1e-9, name


@pytest.mark.parametrize("name", ["forward", "inverse"])
def test_sensitivities_are_the_limits_of_differences(case, name):
    rng, tunable, p, tree = case
    x, v, u = random_state(rng, tunable)
    found = evaluate(tree.functions[f"{name}_sensitivity"], x, v, u, p)
    function = tree.functions[name]
    for k, e in enumerate(np.eye(SIZE)):
        # A step of a hundredth of the number itself keeps every mass and width positive.
        h = 2e-3 * max(abs(p[k]), 0.1)
        slope = sum(
            w
            * (
                evaluate(function, x, v, u, p + j * h * e)
                - evaluate(function, x, v, u, p - j * h * e)
            )
            for j, w in enumerate(WEIGHTS, 1)
        )
        scale = max(np.abs(found[:, k]).max(), np.abs(evaluate(function, x, v, u, p)).max() * 1e-3)
        np.testing.assert_allclose(found[:, k], slope.ravel() / h, atol=1e-7 * scale)


def test_a_machine_without_parameters_has_no_sensitivities(case):
    _, tunable, _, _ = case
    assert "forward_sensitivity" not in Tree(tunable.numeric).quantities


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)
