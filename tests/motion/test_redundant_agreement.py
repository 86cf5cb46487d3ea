"""The redundant formulation gives what the tree formulation gives, by every route."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_state, relative_error

from framefree.machine import Body, Joint, Loop, Machine, MachineError, Revolute
from framefree.motion.equations import EquationsError
from framefree.motion.redundant import Redundant
from framefree.motion.redundant.routes import ROUTES, gauss_constraint
from framefree.motion.tree import Tree


@pytest.fixture(scope="module", params=range(10), ids=lambda seed: f"seed{seed}")
def case(request):
    rng = np.random.default_rng(100 + request.param)
    machine = random_machine(rng, bodies=3 + request.param % 5)
    return rng, machine, Redundant(machine), Tree(machine)


def arguments(rng, machine):
    x, v, a = random_state(rng, machine)
    return {"x": x, "v": v, "a": a, "force": a}


def values(eom, name, given):
    function = eom.functions[name]
    results = evaluate(function, *(given[function.name_in(i)] for i in range(function.n_in())))
    return results if isinstance(results, tuple) else (results,)


def test_every_quantity_of_the_tree_agrees(case):
    rng, machine, redundant, tree = case
    frame = machine.frames[0].name
    frames = (f"jacobian:{frame}", f"jacobian_rate:{frame}", f"frame_pose:{frame}")
    derived = {"forward_derivatives", "inverse_derivatives", "linearisation"}  # test_linearise
    common = (tree.quantities.keys() & redundant.quantities.keys()) - derived
    for name in (*sorted(common), *frames):
        for _ in range(3):
            given = arguments(rng, machine)
            for found, expected in zip(
                values(redundant, name, given), values(tree, name, given), strict=True
            ):
                scale = max(np.abs(expected).max(initial=0), 1e-3)
                assert np.abs(found - expected).max(initial=0) < 1e-10 * scale, name


@pytest.mark.parametrize("route", ROUTES)
def test_routes_give_the_same_force(case, route):
    rng, machine, redundant, tree = case
    for _ in range(3):
        x, v, a = random_state(rng, machine)
        expected = evaluate(tree.functions["inverse"], x, v, a)
        found = evaluate(redundant.functions[f"inverse:{route}"], x, v, a)
        assert relative_error(found, expected) < 1e-10


def test_connection_coefficients_contract_to_the_coriolis_matrix():
    rng = np.random.default_rng(3)
    for bodies in (1, 2, 3):
        machine = random_machine(rng, bodies=bodies)
        nv = machine.nv
        eom = Redundant(machine)
        x, v, _ = random_state(rng, machine)
        # The function's matrix holds the array row-major: one row for each first index.
        found = evaluate(eom.functions["connection"], x).reshape(nv, nv, nv)
        C = evaluate(eom.functions["coriolis"], x, v)
        np.testing.assert_allclose(found @ v, C, atol=1e-11)
        skew = evaluate(Tree(machine).functions["coriolis:skew"], x, v)
        np.testing.assert_allclose(found @ v, skew, atol=1e-11)


def test_gauss_constraint_is_least_at_the_true_acceleration():
    """Among all accelerations the free motion minimises Gauss's constraint."""
    rng = np.random.default_rng(4)
    machine = random_machine(rng, bodies=4, fluid=False, massless=False)
    machine = replace(
        machine,
        joints=[
            replace(j, damping=0.0, friction=0.0, stiffness=0.0, armature=0.0) if j.nv else j
            for j in machine.joints
        ],
    )
    eom = Redundant(machine)
    x, v, a = (
        ca.SX.sym(n, k) for n, k in (("x", machine.nx), ("v", machine.nv), ("a", machine.nv))
    )
    Z = ca.Function("Z", [x, v, a], [gauss_constraint(eom.at(x, v), a)])
    x, v, _ = random_state(rng, machine)
    best = evaluate(eom.functions["forward"], x, v, 0 * v).ravel()
    least = float(Z(x, v, best))
    M = evaluate(eom.functions["mass"], x)
    for _ in range(20):
        off = rng.normal(size=machine.nv)
        np.testing.assert_allclose(
            float(Z(x, v, best + off)) - least, off @ M @ off / 2, rtol=1e-8, atol=1e-9
        )


def test_damping_and_stiffness_are_what_springs_and_dampers_do():
    rng = np.random.default_rng(11)
    for _ in range(4):
        machine = random_machine(rng, bodies=4, fluid=False)
        machine = replace(
            machine, joints=[replace(j, friction=0.0) if j.nv else j for j in machine.joints]
        )
        eom = Redundant(machine)
        x, v, _ = random_state(rng, machine)
        D = evaluate(eom.functions["damping"], x)
        assert abs(v @ D @ v - evaluate(eom.functions["dissipation"], x, v)[0, 0]) < 1e-10 * (
            1 + v @ D @ v
        )
        at_rest = evaluate(eom.functions["bias"], x, 0 * v)
        parts = [evaluate(eom.functions[name], x) for name in ("gravity", "stiffness_force")]
        assert relative_error(sum(parts), at_rest) < 1e-10


def test_machine_coordinates_are_valid_and_constraints_name_unit_blocks():
    rng = np.random.default_rng(12)
    for _ in range(6):
        machine = random_machine(rng)
        eom = Redundant(machine)
        x = machine.random(rng)
        eom.coordinates.validate(x)
        phi = evaluate(eom.functions["phi"], x)
        assert len(phi) == machine.nx - machine.nv
        assert np.abs(phi).max(initial=0) < 1e-12


def test_loops_and_unknown_routes_are_refused():
    machine = Machine(
        [Body("a", None), Body("b", None)],
        [Joint("ja", Revolute("z"), "world", "a"), Joint("jb", Revolute("z"), "a", "b")],
        loops=[Loop("l", "ball", "world", "b")],
    )
    with pytest.raises(MachineError, match="loops"):
        Redundant(machine)
    with pytest.raises(EquationsError, match="no route"):
        Redundant(replace(machine, loops=())).functions["inverse:hertz"]
