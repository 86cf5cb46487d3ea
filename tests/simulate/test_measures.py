import numpy as np
import pytest

from framefree.simulate import SimulationError
from framefree.simulate.measures import rate, rate_error, rms, settling_time


def test_rate_is_of_fourth_order():
    errors = []
    for n in (101, 201):
        t = np.linspace(0, 2, n)
        errors.append(np.abs(rate(t, np.sin(3 * t)) - 3 * np.cos(3 * t[2:-2])).max())
    assert 15 < errors[0] / errors[1] < 17


def test_rate_of_columns_and_uneven_times():
    t = np.linspace(0, 1, 11)
    y = np.stack([t**3, t**2], axis=1)
    np.testing.assert_allclose(rate(t, y), np.stack([3 * t**2, 2 * t], axis=1)[2:-2], atol=1e-12)
    with pytest.raises(SimulationError):
        rate(t**2, t)
    with pytest.raises(SimulationError):
        rate(t[:4], t[:4])


def test_rate_error_tells_a_wrong_rate():
    t = np.linspace(0, 1, 1001)
    value = np.exp(-2 * t)
    assert rate_error(t, value, -2 * value) < 1e-9
    assert rate_error(t, value, -2.02 * value) == pytest.approx(0.01, rel=0.1)
    assert rate_error(t, 0 * t, 0 * t) == 0


def test_rms_and_settling():
    assert rms([[3, 4], [3, 4]]) == 5
    t = np.linspace(0, 10, 1001)
    assert settling_time(t, np.exp(-t), np.exp(-2)) == pytest.approx(2, abs=0.011)
    assert settling_time(t, 1 + t, 0.5) == np.inf
    assert settling_time(t, 0 * t, 0.5) == 0
