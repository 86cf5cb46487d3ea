"""Native loops give what straight-line code and Pinocchio give, and written out the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import random_machine, relative_error

from framefree.gallery.machines.arms import ball_chain, revolute_chain
from framefree.machine import Free, Joint, Prismatic, Revolute, Spherical
from framefree.motion import equations
from framefree.motion.loops.long_trees import looped_program
from framefree.motion.loops.tree_dynamics import DYNAMICS, dynamics_program
from framefree.motion.loops.tree_slopes import forward_derivatives, slopes_in_loops
from framefree.motion.loops.trees import matrix_program, supports_tree_loops
from framefree.motion.pairs import is_long, pairs_of

KINDS = (Revolute("z"), Prismatic("x"), Spherical(), Revolute((1.0, 2.0, 3.0)))
MATRICES = ("mass", "coriolis")


def branched(seed, bodies=6):
    """Return a random tree on a free base, with rotors, springs and friction at its joints."""
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, bodies, fluid=False, massless=False)
    joints = []
    for k, joint in enumerate(machine.joints):
        kind = Free() if k == 0 else KINDS[int(rng.integers(len(KINDS)))]
        nv = kind.nv
        numbers = {"damping": rng.uniform(0.1, 1, nv), "armature": rng.uniform(0, 0.3, nv)}
        if kind.nx == nv:
            numbers |= {"stiffness": rng.uniform(1, 5, nv), "rest": rng.normal(size=nv)}
        numbers |= {"friction": rng.uniform(0, 1, nv), "friction_width": 0.3}
        ends = joint.parent, joint.child, joint.parent_pose, joint.child_pose
        joints.append(Joint(joint.name, kind, *ends, **numbers))
    return replace(machine, joints=tuple(joints), springs=(), dampers=(), actuators=())


def state_of(machine, count=None, seed=1):
    """Return random values for every input that a program may have."""
    rng = np.random.default_rng(seed)
    shape = () if count is None else (count,)
    x = machine.random(rng) if count is None else machine.random(rng, count)
    v, force = rng.normal(size=(2, *shape, machine.nv))
    return {"x": x, "v": v, "force": force, "a": force, "joint_force": force}


def program_of(eom, name):
    if name == "forward_derivatives":
        return forward_derivatives(eom)
    return matrix_program(eom, name) if name in MATRICES else dynamics_program(eom, name)


def compare(machine, names, tolerance=1e-10):
    """Compare loops, straight-line code of the same steps, and straight-line code of the tree."""
    eom, inputs = equations(machine, "tree"), state_of(machine, 5)
    for name in names:
        program = program_of(eom, name)
        kernel = program.compile()
        given = [inputs[port.name] for port in kernel.inputs]
        results = _several(kernel(*given))
        one = {key: value[3] for key, value in inputs.items()}
        for ours, other in zip(results, eom.numbers(name, **one), strict=True):
            assert relative_error(ours[3], other) < tolerance, name
        single = _several(kernel(*(value[3] for value in given)))
        assert all(np.array_equal(a[3], b) for a, b in zip(results, single, strict=True))
        if name != "forward_derivatives":
            straight = program.compile_straight()
            assert np.array_equal(straight(*given), results[0]), name


def _several(results):
    return results if isinstance(results, tuple) else (results,)


def test_loops_agree_with_straight_line_code():
    machine = branched(0, 3)
    assert slopes_in_loops(machine)
    compare(machine, (*MATRICES, *DYNAMICS, "forward_derivatives"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 8))
def test_loops_agree_on_many_machines(seed):
    compare(branched(seed), (*MATRICES, *DYNAMICS, "forward_derivatives"))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_loops_have_all_that_acts(seed):
    """Springs, dampers, friction, fluid, rotors, fixed joints, joints that move their axes."""
    seeds = (k for k in range(100 * seed, 100 * seed + 100))
    machines = (random_machine(np.random.default_rng(k), 5) for k in seeds)
    machine = next(m for m in machines if supports_tree_loops(m) and m.springs and m.nv)
    compare(machine, (*MATRICES, *DYNAMICS))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_loops_have_all_that_acts_on_many_machines(seed):
    machine = random_machine(np.random.default_rng(seed))
    if not supports_tree_loops(machine) or not machine.nv:
        pytest.skip("loops leave a machine with added mass, or that cannot move, to others")
    compare(machine, (*MATRICES, *DYNAMICS))


def test_a_planted_error_is_found(monkeypatch):
    """The comparison sees a wrong sign in one step of the loops."""
    from framefree.motion.loops import tree_dynamics

    right = tree_dynamics.resist
    monkeypatch.setattr(tree_dynamics, "resist", lambda *values: -right(*values))
    with pytest.raises(AssertionError):
        compare(branched(0, 3), ("inverse",))


@pytest.mark.parametrize("name", [*MATRICES, "forward", "inverse", "forward_derivatives"])
def test_quaternions_of_any_length(name):
    """Loops took a quaternion as it was given: of length 1.001, matrices were 0.4 percent off."""
    machine = ball_chain(3)
    kernel, inputs = program_of(equations(machine, "tree"), name).compile(), state_of(machine)
    right = _several(kernel(*(inputs[port.name] for port in kernel.inputs)))
    longer = inputs["x"].copy()
    for joint in machine.joints:
        for block in joint.kind.unit_blocks:
            longer[machine.x_slice[joint.name]][block] *= 1.001
    given = _several(kernel(*({**inputs, "x": longer}[port.name] for port in kernel.inputs)))
    for a, b in zip(right, given, strict=True):
        assert relative_error(a, b) < 1e-11


def test_long_chains_run_in_loops_and_short_ones_do_not():
    for count, long in ((20, False), (60, True)):
        machine = revolute_chain(count)
        assert pairs_of(machine) == count * (count - 1) // 2
        assert is_long(machine, "coriolis") == long
        program = equations(machine, "tree").loop_program
        assert program is not None
        assert (program(equations(machine, "tree"), "coriolis") is not None) == long
    assert [is_long(revolute_chain(n), "forward") for n in (99, 100)] == [False, True]


def test_code_of_long_chains_does_not_grow():
    """A chain of twice as many bodies has a longer table of calls, and the same functions."""
    for name in ("forward", "inverse", "mass", "coriolis", "forward_derivatives"):
        counts = []
        for balls in (40, 80):
            program = looped_program(equations(ball_chain(balls), "tree"), name)
            assert program is not None
            counts.append(len(program.functions))
        assert counts[0] == counts[1], name


def test_long_chain_agrees_with_the_maximal_formulation():
    """120 joints: above the size from which on forward dynamics is a loop."""
    machine = revolute_chain(120)
    tree, maximal = equations(machine, "tree"), equations(machine, "maximal")
    inputs = state_of(machine)
    x, v, force = inputs["x"], 0.1 * inputs["v"], inputs["force"]
    a = tree.forward(x, v, force)
    at = maximal.kernel("from_joints")(x, v)
    bodies = maximal.kernel("forward:joint_force")(*at, force)
    expected = tree.body_acceleration(x, v, a).ravel()
    assert relative_error(bodies, expected) < 1e-8
    assert relative_error(tree.inverse(x, v, a), force) < 1e-8
    assert relative_error(tree.bias(x, v), tree.inverse(x, v, np.zeros(120))) < 1e-12


@pytest.mark.slow
def test_long_chain_against_pinocchio():
    pin = pytest.importorskip("pinocchio")
    from framefree.certify.pinocchio_model import pinocchio_model

    machine = revolute_chain(45)
    model = pinocchio_model(pin, machine)
    data, rng = model.createData(), np.random.default_rng(2)
    x, (v, force) = machine.random(rng), rng.normal(size=(2, machine.nv))
    eom = equations(machine, "tree")
    batch = [np.tile(part, (6, 1)) for part in (x, v, force)]
    slopes = eom.forward_derivatives(*batch)
    pin.computeABADerivatives(model, data, x, v, force)
    inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    for ours, theirs in zip(slopes, (data.ddq_dq, data.ddq_dv, inverse), strict=True):
        assert relative_error(ours[3], theirs) < 1e-8
        assert np.array_equal(ours, np.broadcast_to(ours[:1], ours.shape))
    single = eom.forward_derivatives(x, v, force)
    assert all(np.array_equal(a, b[0]) for a, b in zip(single, slopes, strict=True))
