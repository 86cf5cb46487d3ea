"""Random configurations lie within the limits of joints, and cover what the limits leave."""

import numpy as np
import pytest

from framefree.machine import Cylindrical, Free, Joint, Prismatic, Revolute, Spherical

COUNT = 400


def samples(kind, lower, upper):
    joint = Joint("j", kind, "world", "a", lower=lower, upper=upper)
    return joint.sample(np.random.default_rng(0), COUNT)


@pytest.mark.parametrize("kind", [Revolute("z"), Prismatic("x")], ids=["revolute", "prismatic"])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-0.2, np.inf), (-np.inf, 0.1), (0.3, 0.4), (-9.0, -8.0), (5.0, np.inf), (-np.inf, -6.0)],
)
def test_within_limits_of_either_side(kind, lower, upper):
    x = samples(kind, lower, upper)
    assert x.min() >= lower
    assert x.max() <= upper
    if np.isfinite([lower, upper]).all():
        assert np.ptp(x) > 0.9 * (upper - lower)
        assert abs(x.mean() - (lower + upper) / 2) < 0.1 * (upper - lower)


def test_each_coordinate_has_its_own_limits():
    x = samples(Cylindrical("z"), (-0.1, -np.inf), (0.4, 0.0))
    assert (x[:, 0].min() >= -0.1) & (x[:, 0].max() <= 0.4)
    assert (x[:, 1].min() < -3.0) & (x[:, 1].max() <= 0.0)


@pytest.mark.parametrize(("kind", "place"), [(Spherical(), 0), (Free(), 3)], ids=["ball", "free"])
def test_rotations_are_spread_evenly_on_the_shortest_branch(kind, place):
    """Of unit quaternions with w >= 0 the mean square of each component is a quarter."""
    wxyz = kind.sample(np.random.default_rng(1), 20_000)[:, place : place + 4]
    np.testing.assert_allclose(np.linalg.norm(wxyz, axis=1), 1.0, atol=1e-14)
    assert (wxyz[:, 0] >= 0).all()
    np.testing.assert_allclose(wxyz.T @ wxyz / len(wxyz), np.eye(4) / 4, atol=0.02)
    np.testing.assert_allclose(wxyz[:, 1:].mean(axis=0), 0, atol=0.02)
