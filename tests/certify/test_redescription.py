"""The same machine in other frames: poses, states and forces transform as frames do."""

import numpy as np
import pytest
from certify_machines import floating, four_bar
from random_machines import random_machine

from framefree.certify.frames import redescribe
from framefree.certify.subject import evaluate
from framefree.machine.closure import LoopClosure
from framefree.motion.tree import Tree


@pytest.fixture(params=range(5), ids=lambda seed: f"seed{seed}")
def case(request):
    rng = np.random.default_rng(100 + request.param)
    machine = random_machine(rng, bodies=4) if request.param else floating()
    return rng, machine, redescribe(machine, rng)


def poses(machine, x):
    (rows,) = evaluate(Tree(machine).functions["body_pose"], x)
    return rows.reshape(len(x), len(machine.bodies), 4, 4)


def test_bodies_are_where_they_were(case):
    rng, machine, other = case
    x = machine.random(rng, 3)
    before, after = poses(machine, x), poses(other.machine, other.x(x))
    back = after @ np.linalg.inv(np.array(other.bodies))
    # What is left is the move of the world, one for all bodies and states.
    world = back @ np.linalg.inv(before)
    np.testing.assert_allclose(world, np.broadcast_to(world[0, 0], world.shape), atol=1e-12)
    assert np.abs(world[0, 0] - np.eye(4)).max() > 0.1


def test_twists_turn_with_their_frames(case):
    rng, machine, other = case
    x, v = machine.random(rng, 3), rng.normal(size=(3, machine.nv))
    (before,) = evaluate(Tree(machine).functions["body_velocity"], x, v)
    (after,) = evaluate(Tree(other.machine).functions["body_velocity"], other.x(x), other.v(v))
    np.testing.assert_allclose(after, other.body_twist(before), atol=1e-12)


def test_forces_keep_their_power(case):
    rng, machine, other = case
    v, force = rng.normal(size=(2, 3, machine.nv))
    before = np.einsum("ni,ni->n", v, force)
    np.testing.assert_allclose(np.einsum("ni,ni->n", other.v(v), other.force(force)), before)


def test_gravity_turns_with_the_world(case):
    _, machine, other = case
    lengths = [np.linalg.norm(m.gravity) for m in (machine, other.machine)]
    assert lengths[0] == pytest.approx(lengths[1])
    assert np.abs(machine.gravity - other.machine.gravity).max() > 0.1


def test_loops_close_at_the_same_configurations():
    rng = np.random.default_rng(5)
    machine = four_bar()
    x = LoopClosure(machine).closed(machine.random(rng, 40), 5)
    assert len(x) == 5
    other = redescribe(machine, rng)
    residual = LoopClosure(other.machine)._function
    assert max(np.abs(residual(row)[0].full()).max() for row in x) < 1e-11


def test_allowed_velocities_keep_loops_closed():
    rng, h = np.random.default_rng(6), 1e-5
    machine = four_bar("distance", length=0.3)
    closure = LoopClosure(machine)
    x = closure.closed(machine.random(rng, 40), 4)
    v = closure.allowed(x, rng.normal(size=(4, 3)))
    assert np.abs(v).max() > 0.1
    for row, speed in zip(x, v, strict=True):
        ahead, behind = (closure._function(row + s * speed)[0].full() for s in (h, -h))
        assert np.abs(ahead - behind).max() / (2 * h) < 1e-8
    for J, Z in zip(closure.jacobians(x), closure.allowed_directions(x), strict=True):
        np.testing.assert_allclose(J @ Z, 0, atol=1e-13)
        np.testing.assert_allclose(Z.T @ Z, np.eye(2), atol=1e-13)
