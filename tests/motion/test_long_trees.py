"""Native loops give the matrices and slopes that straight-line code and Pinocchio give."""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import random_machine, relative_error

from framefree.gallery.machines.arms import revolute_chain
from framefree.machine import Free, Joint, Prismatic, Revolute, Spherical
from framefree.motion import equations
from framefree.motion.loops.tree_slopes import forward_derivatives, slopes_in_loops
from framefree.motion.loops.trees import matrix_program
from framefree.motion.pairs import is_long, pairs_of

KINDS = (Revolute("z"), Prismatic("x"), Spherical(), Revolute((1.0, 2.0, 3.0)))


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


def compare(machine, tolerance=1e-11):
    eom, rng = equations(machine, "tree"), np.random.default_rng(1)
    x, v, force = machine.random(rng), *rng.normal(size=(2, machine.nv))
    inputs = {"x": x, "v": v, "force": force}
    programs = {name: matrix_program(eom, name) for name in ("mass", "coriolis")}
    assert slopes_in_loops(machine)
    programs["forward_derivatives"] = forward_derivatives(eom)
    for name, program in programs.items():
        kernel = program.compile()
        results = kernel(*(inputs[port.name] for port in kernel.inputs))
        results = results if isinstance(results, tuple) else (results,)
        for one, other in zip(results, eom.numbers(name, **inputs), strict=True):
            assert relative_error(one, other) < tolerance, name


def test_loops_agree_with_straight_line_code():
    compare(branched(0, 3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 8))
def test_loops_agree_on_many_machines(seed):
    compare(branched(seed))


def test_long_chains_run_in_loops_and_short_ones_do_not():
    for count, long in ((20, False), (60, True)):
        machine = revolute_chain(count)
        assert pairs_of(machine) == count * (count - 1) // 2
        assert is_long(machine, "coriolis") == long
        program = equations(machine, "tree").loop_program
        assert program is not None
        assert (program(equations(machine, "tree"), "coriolis") is not None) == long


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
