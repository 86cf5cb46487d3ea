"""The two engines of `framefree bench rollout` compute the same."""

import numpy as np
import pytest

from framefree.benchmarks import BENCHMARKS, rollout


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_same_computation(integrator):
    pytest.importorskip("mujoco")
    rng = np.random.default_rng(3)
    x = rollout.TARGET + 0.5 * rng.normal(size=(5, 7))
    figures = rollout.compare(integrator, x, rng.normal(size=(5, 7)), rounds=1, steps=100)
    assert figures["largest_difference"] < 1e-11
    assert figures["final_difference"] <= figures["largest_difference"]
    assert "rollout" in BENCHMARKS
