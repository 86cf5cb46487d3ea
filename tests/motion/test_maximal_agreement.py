"""The maximal formulation gives what the tree formulation gives, over all joint kinds."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from random_machines import (
    evaluate,
    random_machine,
    random_moments,
    random_pose,
    random_state,
    relative_error,
)

from framefree.geometry import se3
from framefree.machine import (
    Body,
    Custom,
    Cylindrical,
    Free,
    Helical,
    Joint,
    Machine,
    Planar,
    Spherical,
    Universal,
)
from framefree.motion.maximal import Maximal
from framefree.motion.quantities import UNDER_LOAD
from framefree.motion.tree import Tree

BOTH = (
    *("energy", "momentum", "dissipation", "body_pose", "body_acceleration", "mass", "bias"),
    *("forward", "joint_wrench", "power"),
)


def traced_together(eom, names):
    """One casadi function of all inputs for several quantities: a shared state is traced once."""
    symbols = {key: ca.SX.sym(key, size) for key, size in eom.sizes.items()}
    outputs = {}
    for name in names:
        both = eom.name == "maximal" and name in UNDER_LOAD
        quantity = eom.quantity(f"{name}:both" if both else name)
        traced = quantity.trace(**{key: symbols[key] for key in quantity.inputs})
        outputs[name] = list(traced.values())
    flat = [ca.densify(ca.SX(output.value)) for values in outputs.values() for output in values]
    function = ca.Function("together", list(symbols.values()), flat)

    def call(**values):
        arguments = [values.get(key, np.zeros(size)) for key, size in eom.sizes.items()]
        results = iter(function.call([ca.DM(value) for value in arguments]))
        found = {
            name: tuple(np.reshape(next(results).full(), output.shape) for output in traced)
            for name, traced in outputs.items()
        }
        return {name: value[0] if len(value) == 1 else value for name, value in found.items()}

    return call


def screwed(x):
    """A pose map of two coordinates whose Jacobian moves and whose columns are not orthogonal."""
    turn = se3.exp(ca.vertcat(0.1 * x[0], 0, 0.3 * x[1], x[0], 0.5 * x[1], 0))
    return se3.compose(turn, se3.exp(ca.vertcat(0, 0.2 * x[1], 0, 0, 0, x[1])))


def geared_machine(rng):
    """Joints with several velocities, each with rotors on some of them, and custom joints."""
    kinds = [
        Free(),
        Universal("x", (0.3, 1, 0)),
        Spherical(),
        Custom(screwed, nx=2),
        Planar((1, 2, 3)),
        Cylindrical((1, -1, 0.5)),
        Helical("y", pitch=0.2),
        Universal("z", "x"),
    ]
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(len(kinds))]
    joints = []
    for i, kind in enumerate(kinds):
        armature = rng.uniform(0.1, 1, kind.nv) * (rng.random(kind.nv) < 0.6)
        damping = rng.uniform(0, 1, kind.nv)
        parent = "world" if i == 0 else f"b{rng.integers(i)}"
        poses = {"parent_pose": random_pose(rng), "child_pose": random_pose(rng)}
        extra = {"armature": armature if i else 0.0, "damping": damping}
        if i == 2:
            extra["stiffness"] = (1.0, 2.0, 3.0)
        joints.append(Joint(f"j{i}", kind, parent, f"b{i}", **poses, **extra))
    return Machine(bodies, joints, gravity=(1.0, 2.0, -9.0))


def cases():
    for seed in (0, 2, 3, 7, 8, 10):
        yield pytest.param((random_machine, seed), id=f"random{seed}")
    for seed in (0,):
        yield pytest.param((geared_machine, seed), id=f"geared{seed}")
    for seed in range(100, 160):
        yield pytest.param((random_machine, seed), id=f"random{seed}", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=list(cases()))
def case(request):
    """A machine with a state, and what both formulations say about it."""
    make, seed = request.param
    rng = np.random.default_rng(seed)
    machine = make(rng)
    tree, maximal = Tree(machine), Maximal(machine)
    x, v, force = random_state(rng, machine)
    pose, twist = (a.ravel() for a in evaluate(maximal.functions["from_joints"], x, v))
    port = rng.normal(size=twist.size)
    of_tree = traced_together(tree, BOTH)
    more = ("joint_state", "violation", "stacked_jacobian", "motors", "joint_inverse", "inverse")
    of_maximal = traced_together(maximal, [*BOTH, *more])
    return SimpleNamespace(
        tree=lambda force=force, a=0 * v: of_tree(x=x, v=v, force=force, a=a),
        maximal=lambda **given: of_maximal(x=pose, v=twist, **given),
        machine=machine,
        x=x,
        v=v,
        twist=twist,
        motors=force,
        port=port,
        expected=of_tree(x=x, v=v, force=force),
        found=of_maximal(x=pose, v=twist, joint_force=force),
    )


def test_state_converts_to_poses_and_back(case):
    assert relative_error(case.found["body_pose"], case.expected["body_pose"]) < 1e-12
    x, v = (a.ravel() for a in case.found["joint_state"])
    assert np.abs(case.machine.difference(case.x, x)).max(initial=0) < 1e-12
    assert relative_error(v, case.v) < 1e-11
    joints, loops = case.found["violation"]
    assert np.abs(joints).max() < 1e-12
    assert loops.size == 0


def test_accelerations_and_joint_wrenches_agree(case):
    a = case.expected["forward"].ravel()
    expected = case.tree(a=a)["body_acceleration"]
    assert relative_error(case.found["forward"].reshape(-1, 6), expected) < 1e-11
    assert relative_error(case.found["joint_wrench"], case.expected["joint_wrench"]) < 1e-10


def test_energy_power_and_momentum_agree(case):
    for name in ("energy", "momentum"):
        scale = max(np.abs(one).max() for one in case.expected[name])
        for one, other in zip(case.found[name], case.expected[name], strict=True):
            assert np.abs(one - other).max() <= 1e-12 * scale
    for name in ("power", "dissipation"):
        assert relative_error(case.found[name], case.expected[name]) < 1e-10


def test_mass_projected_on_feasible_velocities_is_the_tree_mass(case):
    T, M = case.found["stacked_jacobian"], case.found["mass"]
    assert relative_error(T @ case.v, case.twist) < 1e-12
    assert relative_error(T.T @ M @ T, case.expected["mass"]) < 1e-12
    drift = case.expected["body_acceleration"].ravel()  # dT/dt v: at zero joint acceleration
    bias = T.T @ (case.found["bias"].ravel() + M @ drift)
    assert relative_error(bias, case.expected["bias"].ravel()) < 1e-10


def test_inverse_undoes_forward(case):
    a = case.maximal(force=case.port, joint_force=case.motors)["forward"].ravel()
    found = case.maximal(force=case.port, a=a)
    assert relative_error(found["joint_inverse"].ravel(), case.motors) < 1e-9
    whole = found["inverse"].ravel()
    assert relative_error(case.maximal(force=whole)["forward"].ravel(), a) < 1e-10
    # Whatever part of it the joints carry does no work along feasible motion.
    T, B = case.found["stacked_jacobian"], case.found["motors"]
    assert relative_error(T.T @ whole, T.T @ (case.port + B @ case.motors)) < 1e-9
    assert relative_error(T.T @ B, np.eye(len(case.motors))) < 1e-12


def test_port_wrenches_act_as_on_the_tree(case):
    T = case.found["stacked_jacobian"]
    a = case.tree(force=case.motors + T.T @ case.port)["forward"].ravel()
    expected = case.tree(a=a)["body_acceleration"]
    found = case.maximal(force=case.port, joint_force=case.motors)["forward"]
    assert relative_error(found.reshape(-1, 6), expected) < 1e-10
