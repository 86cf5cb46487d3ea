"""Symmetries are groups, and what is made for them commutes with them: f(g z) = g f(z)."""

import casadi as ca
import numpy as np
import pytest

from framefree.learn import C4, O2, O3, C2v, LearnError, PolynomialLibrary, RodLibrary, Trivial
from framefree.learn.network import SymmetricNetwork
from framefree.learn.polynomials import SymmetricPolynomials
from framefree.learn.symmetry import GROUPS, symmetry_of
from framefree.learn.training import initial_layers

PROPELLERS = {"mirrored": (1, 0, 3, 2), "half_turned": (2, 3, 0, 1)}
CASES = [
    Trivial(),
    O2((1, 0, 0)),
    O2((1, -2, 3)),
    O3(),
    C2v(),
    C2v(**PROPELLERS),
    C4(turned=(1, 2, 3, 0)),
    C4((0, 0.6, 0.8), (3, 0, 1, 2), spin=False),
]


def name(group):
    return f"{type(group).__name__}-{group.inputs}"


def features(group):
    return ("velocity", "rate", "down", *(("inputs",) if group.inputs else ()))


def split(z):
    return z[:3], z[3:6], z[6:9], z[9:]


def commutes(group, function, seed=0, trials=20):
    """Return the largest |f(g z) - g f(z)| of a function z -> (6 x k)."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(trials):
        g, z = group.sample(rng), rng.normal(size=9 + group.inputs)
        value = np.array(function(z))
        moved = np.array(function(g.on_motion @ z))
        worst = max(worst, np.abs(moved - g.on_wrench @ value).max() / max(1, abs(value).max()))
    return worst


def as_function(group, expression):
    z = ca.SX.sym("z", 9 + group.inputs)
    return ca.Function("f", [z], [expression(*split(z))])


@pytest.mark.parametrize("group", CASES, ids=name)
def test_elements_are_a_group_of_orthogonal_maps(group):
    elements = group.elements
    table = np.array([np.r_[g.on_motion.ravel(), g.on_wrench.ravel()] for g in elements])
    for a in elements:
        assert np.abs(a.on_motion @ a.on_motion.T - np.eye(9 + group.inputs)).max() < 1e-14
        for b in elements:
            both = np.r_[(a.on_motion @ b.on_motion).ravel(), (a.on_wrench @ b.on_wrench).ravel()]
            assert np.abs(table - both).max(axis=1).min() < 1e-13


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("group", CASES, ids=name)
def test_polynomials_commute(group, degree):
    p = SymmetricPolynomials(group, features(group), degree)
    function = as_function(group, lambda *z: p.wrenches(ca.vertcat(*z)))
    assert commutes(group, function) < 1e-12
    rng = np.random.default_rng(3)
    invariants = as_function(group, lambda *z: p.invariants(ca.vertcat(*z)))
    for _ in range(10):
        g, z = group.sample(rng), rng.normal(size=9 + group.inputs)
        assert np.abs(np.array(invariants(z) - invariants(g.on_motion @ z))).max() < 1e-12


@pytest.mark.parametrize("group", CASES, ids=name)
def test_networks_of_any_weights_commute(group):
    bare = SymmetricNetwork(group, features(group), 0.3, 0.7, 5.0, degree=2)
    rng = np.random.default_rng(1)
    count = bare.shape
    layers = initial_layers((count[0], 8, count[1]), rng)
    layers = (layers[0], (rng.normal(size=layers[1][0].shape), rng.normal(size=count[1])))
    network = SymmetricNetwork(
        group, features(group), 0.3, 0.7, 5.0, layers, np.zeros(count[0]), np.ones(count[0]), 2
    )
    assert commutes(group, as_function(group, network.wrench)) < 1e-12


@pytest.mark.parametrize("axis", [(1, 0, 0), (0.3, -1, 2)])
def test_strips_of_a_rod_commute_with_turns_and_mirrors(axis):
    library = RodLibrary(0.4, axis)
    assert commutes(library.symmetry, as_function(library.symmetry, library.columns)) < 1e-12


def test_a_rod_does_not_commute_with_what_turns_its_axis():
    """The check can fail."""
    library = RodLibrary(0.4)
    assert commutes(O3(), as_function(library.symmetry, library.columns)) > 0.1


@pytest.mark.parametrize("group", CASES, ids=name)
def test_polynomial_libraries_commute(group):
    library = PolynomialLibrary(group, 0.3, 2, features(group))
    assert commutes(group, as_function(group, library.columns)) < 1e-12
    values = as_function(group, library.columns)(np.ones(9 + group.inputs))
    assert values.shape == (6, len(library)) == (6, len(library.formulas))


@pytest.mark.parametrize(("group", "wrenches"), [(O2(), 10), (O3(), 3), (Trivial(), 60)], ids=str)
def test_polynomials_are_complete(group, wrenches):
    """Counted by hand for degree 1.

    `O3`: force along v and d, moment along w. `O2`: along e forces e, v_e e and d_e e; across
    v_n, d_n, e x w; moments e x v, e x d, w_n and w_e e.
    """
    p = SymmetricPolynomials(group, features(group), 1)
    assert len(p.wrenches) == wrenches


def test_axial_vectors_follow_the_determinant():
    mirror = C2v().elements[1]
    assert np.linalg.det(mirror.matrix) == -1
    v, w = np.array([1.0, 2, 3]), np.array([-1.0, 0.5, 2])
    assert np.allclose(
        mirror.axial @ np.cross(v, w), np.cross(mirror.matrix @ v, mirror.matrix @ w)
    )


@pytest.mark.parametrize("group", CASES, ids=name)
def test_groups_are_made_again_from_their_parts(group):
    again = symmetry_of(group.parts())
    assert type(again) is GROUPS[type(group).__name__]
    for a, b in zip(group.elements, again.elements, strict=True):
        assert np.abs(a.on_motion - b.on_motion).max() < 1e-15


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: O2((0, 0, 0)), "not all zero"),
        (lambda: O2((1, 0)), "three numbers"),
        (lambda: C2v(plane=(0, 0, 1)), "perpendicular"),
        (lambda: C2v(mirrored=(1, 0)), "same inputs"),
        (lambda: C2v(mirrored=(1, 2, 0), half_turned=(0, 1, 2)), "done twice"),
        (lambda: C4(turned=(0, 0)), "every input once"),
        (lambda: C4(turned=(1, 2, 0)), "four quarter turns"),
        (lambda: symmetry_of({"kind": "D6"}), "`D6`"),
        (lambda: SymmetricPolynomials(O3(), ("speed",)), "features"),
        (lambda: SymmetricPolynomials(O3(), degree=3), "degree"),
    ],
)
def test_what_is_no_symmetry_is_refused(make, words):
    with pytest.raises(LearnError, match=words):
        make()
