"""Laws of the joint kinds: the numbered contract of machine/joints/base.py, for every kind."""

import casadi
import numpy as np
import pytest

from framefree.geometry import se3
from framefree.machine import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    MachineError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

SKEW = (1.0, -2.0, 0.5)
KINDS = [
    Fixed(),
    Revolute("z"),
    Revolute(SKEW),
    Continuous("-y"),
    Continuous(SKEW),
    Prismatic("x"),
    Prismatic(SKEW),
    Helical(SKEW, 0.3),
    Cylindrical(SKEW),
    Universal("x", "y"),
    Universal((1.0, 0.2, 0.0), (0.1, 1.0, -0.4)),
    Planar("z"),
    Planar("-z"),
    Planar(SKEW),
    Spherical(),
    Free(),
]
RANDOM_STATES = 20
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda k: type(k).__name__)


def numeric(kind, name, *args):
    return np.array(casadi.DM(getattr(kind, name)(*(casadi.DM(a) for a in args))))


def states(kind, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(RANDOM_STATES):
        yield kind.random(rng), rng.normal(size=kind.nv), rng


@kinds
def test_names_match_sizes(kind):
    assert len(kind.x_names) == kind.nx
    assert len(kind.v_names) == kind.nv
    assert kind.neutral.shape == (kind.nx,)
    assert kind.vector == (kind.x_names == kind.v_names)


@kinds
def test_neutral_pose_is_identity(kind):
    assert np.array_equal(numeric(kind, "pose", kind.neutral), np.eye(4))


@kinds
def test_random_is_on_the_manifold(kind):
    for x, _, _ in states(kind):
        G = numeric(kind, "pose", x)
        assert np.allclose(G[:3, :3].T @ G[:3, :3], np.eye(3), atol=1e-14)
        assert np.allclose(numeric(kind, "normalise", x).ravel(), x, atol=1e-15)


@kinds
def test_jacobian_is_derivative_of_pose_along_rate(kind):
    """d/dt pose(x) = pose(x) wed(S v) along dx/dt = A v, by casadi's derivative of the pose."""
    x, v = casadi.SX.sym("x", kind.nx), casadi.SX.sym("v", kind.nv)
    G = casadi.SX(kind.pose(x))
    rate = kind.rate(x) @ v
    G_dot = casadi.reshape(casadi.jtimes(casadi.vec(G), x, rate), 4, 4)
    twist = casadi.SX(kind.jacobian(x)) @ v
    gap = casadi.Function("gap", [x, v], [G_dot - G @ se3.wed(twist)])
    for x0, v0, _ in states(kind):
        assert np.abs(np.array(gap(x0, v0))).max() < 1e-14


@kinds
def test_constant_jacobian_says_the_truth(kind):
    found = [numeric(kind, "jacobian", x) for x, _, _ in states(kind)]
    constant = all(np.allclose(S, found[0], atol=1e-15) for S in found)
    assert constant == kind.constant_jacobian


@kinds
def test_integrate_starts_along_rate(kind):
    x, v, h = casadi.SX.sym("x", kind.nx), casadi.SX.sym("v", kind.nv), casadi.SX.sym("h")
    slope = casadi.jacobian(casadi.SX(kind.integrate(x, h * v)), h)
    gap = casadi.Function("gap", [x, v, h], [slope - kind.rate(x) @ v])
    for x0, v0, _ in states(kind):
        assert np.abs(np.array(gap(x0, v0, 0.0))).max(initial=0.0) < 1e-14


@kinds
def test_integrate_is_the_flow_of_a_constant_velocity(kind):
    """One step of dv is two of dv/2: a one-parameter subgroup, not only a retraction."""
    for x, v, _ in states(kind):
        once = numeric(kind, "integrate", x, v).ravel()
        twice = numeric(kind, "integrate", numeric(kind, "integrate", x, v / 2), v / 2).ravel()
        assert np.allclose(once, twice, atol=1e-13)


@kinds
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-7, 1e-3, 0.5, 3.0])
def test_difference_inverts_integrate(kind, size):
    for x, v, _ in states(kind):
        dv = size * v / max(1.0, np.linalg.norm(v))
        x1 = numeric(kind, "integrate", x, dv)
        assert np.allclose(numeric(kind, "difference", x, x1).ravel(), dv, rtol=0, atol=1e-13)


@kinds
def test_integrate_inverts_difference(kind):
    for x, _, rng in states(kind):
        x1 = kind.random(rng)
        back = numeric(kind, "integrate", x, numeric(kind, "difference", x, x1))
        assert np.allclose(numeric(kind, "pose", back), numeric(kind, "pose", x1), atol=1e-13)


@kinds
def test_difference_rate_is_the_derivative_of_difference(kind):
    if not kind.springy:
        pytest.skip("no joint spring on this kind")
    x0, x, v = (casadi.SX.sym(n, s) for n, s in (("x0", kind.nx), ("x", kind.nx), ("v", kind.nv)))
    d = casadi.SX(kind.difference(x0, x))
    slope = casadi.jtimes(d, x, kind.rate(x) @ v)
    gap = casadi.Function("gap", [x0, x, v], [slope - kind.difference_rate(x0, x) @ v])
    for x_a, v0, rng in states(kind):
        assert np.abs(np.array(gap(x_a, kind.random(rng), v0))).max(initial=0.0) < 1e-11


@kinds
def test_normalise_repairs_lengths(kind):
    for x, _, _ in states(kind):
        scaled = x.copy()
        for block in kind.unit_blocks:
            scaled[block] *= 1.3
        assert np.allclose(numeric(kind, "normalise", scaled).ravel(), x, atol=1e-15)


@kinds
def test_symbolic_and_numeric_agree(kind):
    x = casadi.SX.sym("x", kind.nx)
    outputs = [casadi.SX(kind.pose(x)), casadi.SX(kind.jacobian(x)), casadi.SX(kind.rate(x))]
    traced = casadi.Function("traced", [x], outputs)
    for x0, _, _ in states(kind):
        names = ("pose", "jacobian", "rate")
        for name, value in zip(names, traced.call([casadi.DM(x0)]), strict=True):
            # `rotation_about` may fuse constants differently; equality is exact up to rounding.
            assert np.allclose(np.array(value), numeric(kind, name, x0), rtol=0, atol=1e-15)


@kinds
def test_equal_by_value_and_hashable(kind):
    again = type(kind)(**{f: getattr(kind, f) for f in kind.__dataclass_fields__})
    assert again == kind
    assert hash(again) == hash(kind)


def test_different_kinds_differ():
    assert Revolute("z") != Prismatic("z")
    assert Revolute("z") != Revolute("-z")
    assert Revolute((0, 0, 2.0)) == Revolute("z")
    assert Helical("z", 0.1) != Helical("z", 0.2)


def test_axis_aligned_revolute_traces_small():
    """Axis z, and any axis within 1e-12 of it, costs one sine, one cosine and a negation."""
    for axis in ("z", (6e-17, -1e-16, 1.0)):
        x = casadi.SX.sym("x")
        function = casadi.Function("pose", [x], [Revolute(axis).pose(x)])
        assert function.n_nodes() <= 10


def test_planar_basis_is_right_handed_and_follows_its_normal():
    rng = np.random.default_rng(1)
    for _ in range(50):
        kind = Planar(rng.normal(size=3))
        assert np.allclose(kind.basis.T @ kind.basis, np.eye(3), atol=1e-14)
        assert np.isclose(np.linalg.det(kind.basis), 1.0)
        assert np.allclose(kind.basis[:, 2], kind.normal)


@pytest.mark.parametrize("kind", [Revolute, Continuous, Prismatic, Helical, Cylindrical, Planar])
def test_zero_axis_is_refused(kind):
    with pytest.raises(MachineError, match="must not be zero"):
        kind((0.0, 0.0, 0.0))


def test_wrong_axes_are_refused():
    with pytest.raises(MachineError, match="one of x, y, z"):
        Revolute("w")
    with pytest.raises(MachineError, match="finite"):
        Revolute((np.nan, 0, 0))
    with pytest.raises(MachineError, match="3 numbers"):
        Revolute((1.0, 0.0))
    with pytest.raises(MachineError, match="parallel"):
        Universal("x", "-x")
