"""Forces are linear in what is not known: Y pi + offset = inverse, in every formulation."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import closed_state, random_closed
from random_machines import random_machine, random_state, relative_error

from framefree.machine import MachineError, motors
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree
from framefree.motion.body_factors import BODY_FACTORS
from framefree.motion.regressor import moments_of_vector, moments_vector
from framefree.motion.unknowns import unknown_paths
from framefree.motion.velocity_terms import body_term

WORDS = (
    *("bodies", "armature", "damping", "friction", "friction_asymmetry", "stiffness"),
    *("springs", "dampers", "drag"),
)
BAR = 1e-12


def unknown_in(machine, *more):
    return machine.tunable(*unknown_paths(machine, (*WORDS, *more)))


def perturbed(rng, machine):
    """Other values of all unknowns: linear in all of them at once, not only near the defaults."""
    p = machine.parameters.defaults
    return p * rng.uniform(0.5, 1.5, p.shape) + 0.01 * rng.normal(size=p.shape)


def assert_linear(eom, rng, x, v, bar=BAR):
    a, p = rng.normal(size=eom.sizes["a"]), perturbed(rng, eom.machine)
    force = eom.numbers("inverse", p, x=x, v=v, a=a)[0]
    Y, offset = eom.numbers("regressor", p, x=x, v=v, a=a)
    assert Y.shape == (len(force), len(p))
    assert relative_error(Y @ p + offset, force) < bar
    return Y


@pytest.mark.parametrize("seed", range(8))
def test_inverse_is_linear_in_the_unknowns_of_a_tree(seed):
    rng = np.random.default_rng(seed)
    machine = unknown_in(random_machine(rng, bodies=1 + seed % 5))
    x, v, _ = random_state(rng, machine)
    for eom in (Tree(machine), Redundant(machine), Constrained(machine)):
        assert_linear(eom, rng, x, v)


@pytest.mark.parametrize("seed", range(4))
def test_inverse_is_linear_in_the_unknowns_of_a_closed_chain(seed):
    rng = np.random.default_rng(seed)
    machine, x = random_closed(rng)
    machine = unknown_in(machine)
    constrained = Constrained(machine)
    x, v = closed_state(rng, constrained, x, spread=0.05)
    for eom in (constrained, Embedded(machine, start=x), Maximal(machine)):
        assert_linear(eom, rng, *eom.start(x, v), bar=1e-10)


def test_some_numbers_of_a_body_may_be_unknown():
    rng = np.random.default_rng(5)
    machine = random_machine(rng, bodies=3, massless=False)
    some = machine.tunable("b1.mass", "b1.first.x", "b2.mass", "b0.second.xz")
    x, v, _ = random_state(rng, some)
    assert_linear(Tree(some), rng, x, v)
    # Alone, a mass keeps its center; with `first` or `second` it leaves these as they are.
    moved = some.with_parameters({"b1.mass": 9.0, "b2.mass": 9.0})
    b1, b2 = moved.bodies[1].moments, moved.bodies[2].moments
    assert np.array_equal(b1.first, machine.bodies[1].moments.first)
    assert np.allclose(b2.center, machine.bodies[2].moments.center, atol=1e-14)


def test_gains_are_unknown_with_the_inputs():
    rng = np.random.default_rng(2)
    machine = random_machine(rng, bodies=3, massless=False)
    machine = machine.attach(*motors([joint for joint in machine.joints if joint.nv], "_motor"))
    machine = unknown_in(machine, "gains")
    eom, p = Tree(machine), perturbed(rng, machine)
    x, v, a = random_state(rng, machine)
    u = rng.normal(size=machine.nu)
    B, bias = (eom.numbers(n, p, x=x, v=v)[0] for n in ("input_matrix", "input_bias"))
    outside = eom.numbers("inverse", p, x=x, v=v, a=a)[0] - B @ u - bias
    Y, offset = eom.numbers("regressor:u", p, x=x, v=v, a=a, u=u)
    assert relative_error(Y @ p + offset, outside) < BAR


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("drag", ["wanted", "met"])
def test_the_tracking_regressor_has_the_skew_factor(seed, drag):
    """At v_r = v it is the inverse; what it loses with s = v - v_r is C s (and D s), C skew."""
    rng = np.random.default_rng(seed)
    machine = unknown_in(random_machine(rng, bodies=4, fluid=False))
    x, v, a = random_state(rng, machine)
    v_r, p = rng.normal(size=machine.nv), perturbed(rng, machine)
    name = "tracking_regressor" + (":met" if drag == "met" else "")
    for eom in (Tree(machine), Redundant(machine)):
        Y, offset = eom.numbers(name, p, x=x, v=v, v_r=v_r, a_r=a)
        C = eom.numbers("coriolis", p, x=x, v=v)[0]
        lost = C @ (v - v_r)
        if drag == "wanted":
            lost = lost + linear_damping(eom, x, v, p) @ (v - v_r)
        force = eom.numbers("inverse", p, x=x, v=v, a=a)[0]
        assert relative_error(Y @ p + offset, force - lost) < 1e-11
        Y, offset = eom.numbers(name, p, x=x, v=v, v_r=v, a_r=a)
        assert relative_error(Y @ p + offset, force) < BAR


def linear_damping(eom, x, v, p):
    """D (nv x nv) without friction, by slopes of `inverse` at rest, where Coriolis terms vanish."""
    names = eom.machine.parameters.names
    smooth = [replace(j, friction=0.0) if j.nv else j for j in eom.machine.numeric.joints]
    plain = Tree(replace(eom.machine.numeric, joints=smooth).tunable(*names))
    p = np.where([".friction" in name for name in names], 0.0, p)
    rest, zero = {"x": x, "v": 0 * v}, np.zeros(len(v))
    return plain.numbers("inverse_derivatives", p, **rest, a=zero)[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_tracking_regressor_is_the_same_in_other_coordinates(seed):
    rng = np.random.default_rng(seed)
    machine = unknown_in(random_machine(rng, bodies=3, massless=False))
    tree, maximal = Tree(machine), Maximal(machine)
    x, v, a_r = random_state(rng, machine)
    v_r, p = rng.normal(size=machine.nv), perturbed(rng, machine)
    Y, offset = tree.numbers("tracking_regressor", p, x=x, v=v, v_r=v_r, a_r=a_r)
    poses, twists = maximal.start(x, v, p)
    J = [tree.numbers(f"jacobian:{b.name}", p, x=x)[0] for b in machine.bodies]
    rates = [tree.numbers(f"jacobian_rate:{b.name}", p, x=x, v=v)[0] for b in machine.bodies]
    T, T_rate = np.vstack(J), np.vstack(rates)
    theirs = maximal.numbers(
        "tracking_regressor", p, x=poses, v=twists, v_r=T @ v_r, a_r=T @ a_r + T_rate @ v_r
    )
    assert relative_error(T.T @ theirs[0], Y) < 1e-10
    assert relative_error(T.T @ theirs[1], offset) < 1e-10


@pytest.mark.parametrize("form", BODY_FACTORS)
def test_the_term_of_a_body_is_its_factor_times_the_twist(form):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    M, xi, eta = ca.SX(ca.DM(root @ root.T)), *(ca.SX(ca.DM(rng.normal(size=6))) for _ in "12")
    expected = ca.DM(BODY_FACTORS[form](M, xi) @ eta).full()
    assert relative_error(ca.DM(body_term(form, M, xi, eta)).full(), expected) < 1e-13


def test_numbers_that_enter_otherwise_are_refused_by_name():
    rng = np.random.default_rng(1)
    machine = random_machine(rng, bodies=2, massless=False)
    for paths, named in (
        (("b1.mass", "b1.center.x"), "`b1.center.x`"),
        (("b1.mass", "b1.first.x", "gravity.z"), "`gravity.z`"),
        (("j1.parent_pose.x",), "`j1.parent_pose.x`"),
    ):
        with pytest.raises(MachineError, match="not linear in") as caught:
            Tree(machine.tunable(*paths)).functions["regressor"]
        assert named in str(caught.value)


def test_compiled_and_batched_like_all_quantities():
    rng = np.random.default_rng(3)
    machine = unknown_in(random_machine(rng, bodies=3, massless=False))
    eom = Tree(machine)
    x, (v, a) = machine.random(rng, 5), rng.normal(size=(2, 5, machine.nv))
    p = machine.parameters.defaults
    Y, offset = eom.kernel("regressor")(x, v, a, p)
    assert Y.shape == (5, machine.nv, len(p))
    expected = Tree(machine.numeric).inverse(x, v, a)
    assert relative_error(Y @ p + offset, expected) < BAR


def test_ten_numbers_and_moments_are_the_same():
    moments = random_machine(np.random.default_rng(0), 1, massless=False).bodies[0].moments
    assert moments_of_vector(moments_vector(moments)) == moments
