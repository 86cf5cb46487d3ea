"""Chains that move among obstacles: from inside, round what moves, clear of themselves."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.control.port import (
    Avoidance,
    EndEffectorControl,
    HalfSpace,
    Moving,
    Sphere,
)
from framefree.control.port.obstacles import (
    MIDDLE,
)
from framefree.control.references import FramePath, Together
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.ports.chain_measures import body_poses, rods_to_ball
from framefree.geometry import se3, so3
from framefree.machine import Frame


def test_a_ball_beside_and_inside_a_chain():
    """The places at which the push once was without bound, or zero; one batch for all."""
    frames = [Frame("ball", "world")]
    machine = chain(3, frames=frames).tunable(*(f"ball.pose.{axis}" for axis in "xyz"))
    start = machine.numeric.neutral()
    balls = [[0.4, d, 0.02] for d in (0.15, 0.131, 0.1305, 0.13, 0.11, 0.05, 0.01)]
    balls += [[0.4, 0.0, 0.0], [0.4, 1e-9, 0.0], [0.59, 0.0, 0.0]]  # a rod through the middle
    balls = np.array(balls)
    law = EndEffectorControl(
        machine,
        avoidance=Avoidance([Sphere((0, 0, 0), 0.1, frame="ball")], radius=0.03),
    )
    end = np.eye(4)
    end[0, 3] = 1.0
    run = ff.simulate(
        machine, law, FramePath("end", lambda t: ca.DM(end)), np.tile(start, (len(balls), 1)),
        duration=1.0, dt=2e-3, every=5, parameters=balls, record=(),
    )  # fmt: skip
    shape = (*run.x.shape[:2], 3, 4, 4)
    rods = body_poses(machine.numeric, run.x.reshape(-1, machine.nx)).reshape(shape)
    gaps = rods_to_ball(rods, balls[:, None, None], 0.1, 0.2, 0.03)[:, :, 1]
    assert np.isfinite(run.u).all()
    assert np.abs(run.u[:7]).max() < 100.0
    assert np.abs(run.u).max() < 200.0
    assert (gaps[:2].min(axis=1) > 0).all()  # never touched from outside
    assert (np.diff(gaps[2:], axis=1)[:, :20] > -1e-9).all()  # those inside leave, never back
    assert (gaps[:9, -1] > 0.03).all()
    assert (gaps[:, -1] > 0).all()
    assert run["clearance"][:7, 0] == pytest.approx(gaps[:7, 0], abs=1e-6)
    assert run["clearance"][7:, 0] == pytest.approx(gaps[7:, 0] + MIDDLE * 0.1 / 2, abs=1e-6)


def still(frame, G):
    return FramePath(frame, lambda t: ca.DM(G))


def test_a_chain_gives_way_to_what_moves():
    machine = chain(3)
    end = np.eye(4)
    end[0, 3] = 1.0

    def path(t):
        return se3.pose(so3.exp(ca.vertcat(0, 0, t)), ca.vertcat(0.3, 0.5 - 0.4 * t, 0.03))

    reference = Together(still("end", end), FramePath("ball", path))
    clearances = {}
    for moves in (True, False):
        shape = Sphere((0, 0, 0), 0.1)
        law = EndEffectorControl(
            machine,
            avoidance=Avoidance(
                [Moving(shape, "ball")] if moves else [Sphere((0.3, 0.5, 0.03), 0.1)], radius=0.03
            ),
        )
        run = ff.simulate(machine, law, reference, duration=1.5, dt=2e-3, every=5, record=())
        ball = np.column_stack([0.3 + 0 * run.t, 0.5 - 0.4 * run.t, 0.03 + 0 * run.t])
        rods = body_poses(machine, run.x)
        clearances[moves] = rods_to_ball(rods, ball[:, None], 0.1, 0.2, 0.03).min()
        if moves:
            ends = rods[:, -1] @ np.asarray(machine.frame("end").pose)
            assert np.abs(ends - end).max() < 1e-6
    assert clearances[True] > 0.01
    assert clearances[False] < -0.05  # a law that does not know where it is


def test_bodies_keep_clear_of_each_other():
    """The end is carried through the chain's own first rod."""
    machine = chain(4)
    bend = np.zeros(machine.nv)
    bend[6:] = np.tile([0, 0, 1.3], 3)
    start = machine.integrate(machine.neutral(), bend)
    rods = body_poses(machine, start[None])[0]
    first = rods[-1] @ np.asarray(machine.frame("end").pose)

    def path(t):
        s = ca.fmin(t / 1.5, 1)
        return se3.pose(ca.DM(first[:3, :3]), ca.DM(first[:3, 3]) + ca.vertcat(0, -0.5 * s, 0.02))

    clearances = {}
    for pairs in ((), "all"):
        law = EndEffectorControl(
            machine, rate=5.0, turn_rate=5.0, avoidance=Avoidance(radius=0.03, pairs=pairs)
        )
        run = ff.simulate(
            machine, law, FramePath("end", path, times=(1.5,)), start,
            duration=2.0, dt=2e-3, every=5, record=(),
        )  # fmt: skip
        poses = body_poses(machine, run.x)
        shares = np.linspace(-0.2, 0.2, 61)[:, None]
        points = poses[..., None, :3, 3] + shares * poses[..., None, :3, 0]
        gaps = [
            np.linalg.norm(points[:, i, :, None] - points[:, j, None], axis=-1).min()
            for i, j in ((0, 2), (0, 3), (1, 3))
        ]
        clearances[bool(pairs)] = min(gaps) - 0.06
    assert clearances[True] > 1e-3
    assert clearances[False] < -0.03
    assert run["clearance"].min() <= clearances[True] + 1e-6


def test_the_end_body_stops_before_an_obstacle_where_its_task_gives_way():
    machine = chain(2)
    wall = HalfSpace((-1, 0, 0), -0.75)  # all beyond x = 0.75 m; the end is at 0.6 m

    def path(t):
        return se3.pose(ca.DM.eye(3), ca.vertcat(0.6 + 0.3 * ca.fmin(t, 1), 0, 0))

    reached = {}
    for yields in (0.02, 0.0):
        law = EndEffectorControl(
            machine, rate=5.0, avoidance=Avoidance([wall], reach=0.05, yields=yields)
        )
        run = ff.simulate(
            machine, law, FramePath("end", path, times=(1.0,)),
            duration=2.0, dt=2e-3, every=10, record=(),
        )  # fmt: skip
        rods = body_poses(machine, run.x)
        reached[yields] = (rods[:, -1] @ np.asarray(machine.frame("end").pose))[:, 0, 3].max()
        if yields:
            assert run["task_compliance"].max() > 0
            assert run["clearance"].min() > 0
    assert 0.72 < reached[0.02] < 0.75
    assert reached[0.0] > 0.89  # through the wall
