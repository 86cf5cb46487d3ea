"""The two sides of `framefree bench exchange` compute the same."""

import numpy as np
import pytest

from framefree.benchmarks import BENCHMARKS, exchange


def test_same_mass_matrix():
    pytest.importorskip("pinocchio")
    new, rebuilt, peer = exchange.UpdatedCrane()(), exchange.rebuilt(), exchange.PinocchioCrane()()
    assert np.allclose(new, rebuilt, rtol=1e-12, atol=1e-9)
    assert np.allclose(new, peer, rtol=1e-12, atol=1e-9)
    assert "exchange" in BENCHMARKS
