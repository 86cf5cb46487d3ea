"""Contacts of balls are computed in axes of the world: the same wrenches as pair by pair."""

import casadi as ca
import numpy as np
import pytest
from random_machines import random_pose

import framefree as ff
from framefree.benchmarks.balls import balls_in_box
from framefree.geometry import Moments, se3
from framefree.machine import Body, Contact, ContactShape, Frame, Free, Joint, Machine
from framefree.motion import forces
from framefree.motion.tree import Tree

MATERIAL = {"stiffness": 3e3, "damping": 0.7, "friction": 0.6, "slip_speed": 0.05}


def two_bodies(shape_a, shape_b, rng):
    """Two free bodies with frames turned and moved against them, and shapes within these."""
    moments = Moments.of_body(1.0, (0.01, 0.02, -0.01), 0.01 * np.eye(3))
    frames = [Frame(f"frame_{n}", n, random_pose(rng)) for n in ("one", "two")]
    shapes = [ContactShape(kind, size, random_pose(rng)) for kind, size in (shape_a, shape_b)]
    touch = Contact("touch", "frame_one", "frame_two", *shapes, **MATERIAL)
    joints = [Joint(f"base_{n}", Free(), "world", n) for n in ("one", "two")]
    bodies = [Body(n, moments) for n in ("one", "two")]
    return Machine(bodies, joints, frames, interactions=[touch])


@pytest.mark.parametrize(
    "shape", [("sphere", 0.8), ("box", (0.7, 0.9, 1.1)), ("capsule", (0.4, 0.8))]
)
def test_wrenches_are_those_of_the_pair(shape):
    rng = np.random.default_rng(1)
    machine = two_bodies(shape, ("sphere", 0.6), rng)
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    bodies = Tree(machine).at(x, v).bodies
    at = forces.pair_motion(bodies, machine.interactions[0])
    one, two = forces.body_wrenches(bodies)
    function = ca.Function(
        "both", [x, v], [one, two, at.wrench, bodies.pose(at.a), bodies.pose(at.b), *bodies.poses]
    )
    touched = 0
    while touched < 10:
        state = np.array(machine.random(rng))
        center = function(state, np.zeros(12))[3].full()[:3, 3]
        state[7:10] = center + rng.normal(size=3) * 0.7
        found = [np.array(part) for part in function(state, rng.normal(size=machine.nv))]
        on_one, on_two, wrench, _, pose_b, body_one, body_two = found
        if not np.abs(wrench).max() > 1e-6:
            continue
        touched += 1
        # wrench on b, in its own axes at its origin, seen from either body: co-adjoint maps
        for got, body, sign in ((on_two, body_two, 1.0), (on_one, body_one, -1.0)):
            relative = np.linalg.inv(body) @ pose_b
            expected = sign * np.linalg.inv(np.array(se3.adjoint(relative))).T @ wrench
            np.testing.assert_allclose(got, expected, atol=1e-9 * np.abs(expected).max())


def test_a_batch_of_balls_gives_the_bits_of_single_runs():
    machine = balls_in_box(3)
    rng = np.random.default_rng(2)
    x0 = np.array(np.broadcast_to(machine.neutral(), (5, machine.nx)))
    for i in range(3):
        x0[:, 7 * i : 7 * i + 3] = [0.0, 0.0, 0.06 + 0.13 * i] + 0.01 * rng.normal(size=(5, 3))
    options = {"duration": 0.3, "dt": 1e-3, "integrator": "rk4", "record": ("interaction",)}
    both = ff.simulate(machine, x0=x0, **options)
    for k in (0, 4):
        one = ff.simulate(machine, x0=x0[k], **options)
        assert np.array_equal(one.x, both.x[k])
        assert np.array_equal(one["interaction_wrench"], both["interaction_wrench"][k])
    assert both["ball1_floor.normal_force"].max() > 5.0
