"""The custom joint: its derivatives, and the same motion as the built-in kinds."""

import casadi
import numpy as np
import pytest

from framefree.geometry import se3
from framefree.machine import Custom, Helical, MachineError, Spherical


def screw_pose(x):
    return Helical("z", 0.3).pose(x)


def cam_pose(x):
    """A follower on a curve: slides along x while it turns and lifts nonlinearly."""
    return se3.exp(casadi.vertcat(x[0], 0.1 * casadi.sin(2 * x[0]), 0, 0, 0, 0)) @ se3.exp(
        casadi.vertcat(0, 0, x[1], 0, x[0] ** 2, x[0] * x[1])
    )


def jacobian_gap(kind, x0, v0):
    x, v = casadi.SX.sym("x", kind.nx), casadi.SX.sym("v", kind.nv)
    G = casadi.SX(kind.pose(x))
    G_dot = casadi.reshape(casadi.jtimes(casadi.vec(G), x, kind.rate(x) @ v), 4, 4)
    gap = casadi.Function("gap", [x, v], [G_dot - G @ se3.wed(kind.jacobian(x) @ v)])
    return np.abs(np.array(gap(x0, v0))).max()


def test_jacobian_of_a_curve():
    kind = Custom(cam_pose, nx=2, coordinates=("along", "lift"))
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert jacobian_gap(kind, kind.random(rng), rng.normal(size=2)) < 1e-12
    assert kind.vector
    assert kind.v_names == ("along", "lift")


def test_same_as_a_built_in_kind():
    kind, builtin = Custom(screw_pose, nx=1), Helical("z", 0.3)
    for x in (casadi.DM(0.0), casadi.DM(1.3), casadi.DM(-40.0)):
        assert np.allclose(np.array(kind.jacobian(x)), np.array(builtin.jacobian(x)), atol=1e-14)


def test_redundant_coordinates():
    ball = Spherical()
    kind = Custom(
        ball.pose,
        4,
        3,
        rate_map=ball.rate,
        integrate_map=ball.integrate,
        difference_map=ball.difference,
        normalise_map=ball.normalise,
        neutral_x=ball.neutral,
        random_map=ball.random,
    )
    rng = np.random.default_rng(1)
    for _ in range(10):
        x, v = kind.random(rng), rng.normal(size=3)
        assert jacobian_gap(kind, x, v) < 1e-13
        assert np.allclose(np.array(kind.jacobian(casadi.DM(x))), np.eye(6)[:, 3:], atol=1e-14)
        moved = kind.integrate(casadi.DM(x), casadi.DM(0.1 * v))
        back = kind.difference(casadi.DM(x), moved)
        assert np.allclose(np.array(back).ravel(), 0.1 * v, atol=1e-14)


def test_scaled_velocities_have_a_retraction():
    kind = Custom(cam_pose, 2, rate_map=lambda x: casadi.diag(casadi.vertcat(1 + x[0] ** 2, 2)))
    rng = np.random.default_rng(2)
    x, dv = casadi.DM(kind.random(rng)), casadi.DM(rng.normal(size=2))
    moved = kind.integrate(x, dv)
    assert np.allclose(np.array(kind.difference(x, moved)), np.array(dv), atol=1e-13)
    assert not kind.vector
    assert kind.v_names == ("v0", "v1")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Custom(cam_pose, 2, 3), "0 < nv <= nx"),
        (lambda: Custom(lambda x: x, 2), "4x4"),
        (lambda: Custom(Spherical().pose, 4, 3), "needs `rate_map`"),
        (lambda: Custom(cam_pose, 2, rate_map=lambda x: x), "must return 2 x 2"),
        (lambda: Custom(lambda x: 2 * screw_pose(x), 1), "does not return a pose"),
        (lambda: Custom(cam_pose, 2, coordinates=("a",)), "2 names"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(MachineError, match=message):
        make()
