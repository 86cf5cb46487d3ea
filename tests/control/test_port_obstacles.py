"""Obstacles under law III: a potential without bound, and reference velocities that keep clear."""

import casadi as ca
import numpy as np
import pytest
from port_formulas import Closed, line_gaps, moved_gaps
from random_machines import evaluate, random_pose
from scipy.integrate import quad

import framefree as ff
from framefree.control.port import (
    Avoidance,
    Capsule,
    EndEffectorControl,
    Moving,
    Sphere,
)
from framefree.gallery.machines.chains import chain


def test_the_potential_grows_without_bound_and_is_the_integral_of_the_push():
    avoidance, mass = Avoidance(reach=0.2, speed=0.3, weight=2.0), 3.0

    def push(d):
        rho, target, _ = avoidance.rule(ca.DM(d), mass)
        return float(rho * target)

    for d in (0.19, 0.1, 0.01, 0.001):
        expected = quad(push, d, 0.2, epsrel=1e-12, limit=200)[0]
        assert float(avoidance.potential(ca.DM(d), mass)) == pytest.approx(expected, rel=1e-9)
    values = [float(avoidance.potential(ca.DM(10.0**-k), mass)) for k in range(2, 12)]
    ratios = np.divide(values[1:], values[:-1])
    assert np.allclose(ratios[3:], 10.0, rtol=1e-2)  # like 1/d, however near
    assert float(avoidance.potential(ca.DM(0.2))) == pytest.approx(0, abs=1e-15)
    for d in (5e-4, 1e-4, 0.0, -0.05):  # where it once stopped pushing
        assert push(d) > push(1e-3) > 0


def one_body(d, speed=0.0, reach=0.15):
    """Return the rate at which a free rod's reference leaves a ball at a distance, and its g.

    The rod's task is the attitude alone; its center is asked to run into the ball.
    """
    machine = chain(1)
    ball = Sphere((0.0, 0.0, 0.3), 0.2)
    law = EndEffectorControl(
        machine, frame="body1", avoidance=Avoidance([ball], reach=reach, yields=reach)
    )
    x, v = machine.neutral(), np.zeros(6)
    x[2] = 0.3 + 0.2 + d
    closed = Closed(law)
    pose = np.eye(4)
    pose[:3, 3] = x[:3]
    given = {
        "body1.pose": pose,
        "body1.twist": [0, 0, speed, 0, 0, 0],
        "body1.acceleration": [0.0] * 6,
    }
    s = closed.at(x, v, {k: np.asarray(value, float) for k, value in given.items()})[3]
    return -s.ravel()[2], law.avoidance.speed * (1 - d / reach)


@pytest.mark.parametrize("d", [0.1, 0.01, 1e-3, 1e-4, 0.0, -0.02, -0.1])
def test_a_body_near_an_obstacle_leaves_it_whatever_it_is_asked(d):
    left, g = one_body(d, speed=0.0)
    assert 0 < left <= g * (1 + 1e-9)
    if d <= 1e-3:
        for speed in (-1.0, -10.0):
            assert one_body(d, speed)[0] == pytest.approx(g, rel=0.01)
        assert one_body(d, -1.0, reach=0.2)[0] > 0


def test_the_bound_of_the_proof():
    """dd/dt >= g - sqrt(2 E / rho) at random states of a chain that is asked to run anywhere."""
    rng, machine, reach = np.random.default_rng(3), chain(3), 0.4
    avoidance = Avoidance([Moving(Sphere((0, 0, 0), 0.12), "ball")], reach=reach, yields=0.0)
    closed = Closed(EndEffectorControl(machine, avoidance=avoidance))
    unguarded, eom = Closed(EndEffectorControl(machine)), ff.equations(machine, "maximal")
    lines, mass = avoidance.lines_of(machine), sum(b.moments.total for b in machine.bodies)
    tried, held = 0, 0
    while tried < 8:
        x, v, given = machine.random(rng), rng.normal(size=machine.nv), {}
        for name in closed.names:
            given[name] = random_pose(rng) if name.endswith(".pose") else 2 * rng.normal(size=6)
        place, nu = eom.functions["from_joints"](x, v)
        poses = evaluate(eom.functions["body_pose"], place).reshape(-1, 4, 4)
        center = poses[tried % 2, :3, 3] + 0.1 * rng.normal(size=3)
        ball = Sphere(center, 0.12)
        d = np.array(
            [
                line_gaps(ball, G, lines[b.name][0])[0]
                for b, G in zip(machine.bodies, poses, strict=True)
            ]
        )
        if d.min() < 0.01:
            continue
        given |= {"ball.pose": np.block([[np.eye(3), center[:, None]], [0, 0, 0, 1]])}
        given |= {"ball.twist": np.zeros(6), "ball.acceleration": np.zeros(6)}
        nu = np.asarray(nu).ravel()
        nu_r = nu - closed.at(x, v, given)[3].ravel()
        nu_0 = nu - unguarded.at(x, v, {k: given[k] for k in unguarded.names})[3].ravel()
        P, M = (evaluate(eom.functions[name], place) for name in ("projector", "mass"))
        d = d[:2]  # the last rod's motion is the task's, with or without
        used = np.flatnonzero(d < reach)
        rows = np.zeros((2, 18))
        for i, G in enumerate(poses[:2]):
            line = lines[machine.bodies[i].name][0]
            rows[i, 6 * i : 6 * i + 6] = [moved_gaps(ball, G, line, k)[0] for k in range(6)]
        g, rho = avoidance.speed * (1 - d / reach), mass * (np.maximum(reach - d, 0) / d) ** 2
        # Some velocity that joints and task allow, with w . nu = g.
        B = np.linalg.svd(P)[0][:, : machine.nv]
        B = B @ np.linalg.svd(B[-6:])[2][6:].T  # the task does not move
        change = np.linalg.lstsq(rows[used] @ B, g[used] - rows[used] @ nu_0, rcond=None)[0]
        nu_f = nu_0 + B @ change
        if not np.allclose(rows[used] @ nu_f, g[used], atol=1e-6):
            continue  # a point that sits on the last rod: no such velocity exists
        tried += 1
        E = (nu_f - nu_0) @ M @ (nu_f - nu_0) / 2
        assert (rows[used] @ nu_r >= g[used] - np.sqrt(2 * E / rho[used]) - 1e-6).all()
        held += bool((rows[used] @ nu_0 < 0).any())
    assert held > 2  # without the barrier they would have run against the ball


@pytest.mark.parametrize("seed", range(2))
def test_V_falls_as_stated_near_things_that_move(seed):
    """With a moving obstacle, pairs of bodies, and tasks that give way."""
    rng, machine = np.random.default_rng(seed), chain(4)
    shapes = [Sphere((0.6, 0.4, 0.1), 0.1), Moving(Capsule((0, 0, 0), (0.3, 0, 0), 0.05), "thing")]
    avoidance = Avoidance(shapes, reach=0.6, yields=0.5, pairs="all")
    law = EndEffectorControl(machine, damping=4.0, avoidance=avoidance)
    assert law.needs[3:] == ("thing.pose", "thing.twist", "thing.acceleration")
    closed = Closed(law)
    yielding = 0
    for _ in range(4):
        V, stated, true, *_ = closed(rng)
        assert true == pytest.approx(stated, rel=1e-8, abs=1e-9 * V)
        found = closed.at(closed.x, closed.v, closed.given)
        yielding += found[-2].item() < 0.5
    assert yielding
    # And the check sees it if the law is told a wrong acceleration of the obstacle.
    closed = Closed(law, error=0.1)
    _, stated, true, *_ = closed(rng)
    assert abs(true - stated) > 1e-5 * abs(stated)
