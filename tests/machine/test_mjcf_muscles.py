"""Muscles and activations as MuJoCo has them: curves, dynamics, runs, and written back."""

import json

import casadi as ca
import numpy as np
import pytest
from mujoco_peer import DATA, Peer, gap, mujoco

import framefree as ff
from framefree.machine import (
    LaggedActivation,
    Machine,
    MachineError,
    MuscleActivation,
    TendonMuscle,
)
from framefree.machine.read import read
from framefree.motion import Constrained, Embedded, Maximal, Redundant, Tree

FILE = "muscled_arm.xml"


@pytest.fixture(scope="module")
def peer():
    return Peer(FILE)


def number(eom, name, *arguments):
    return eom.functions[name](*arguments).full().squeeze()


def test_curves_and_dynamics_are_mujocos():
    rng = np.random.default_rng(1)
    for k in range(200):
        most = (1.4, 1.0, 0.7)[k % 3]
        muscle = TendonMuscle("m", "t", 200.0, (0.1, 0.3), (0.7, 1.2), 0.4, 1.7, 2.0, 1.1, most)
        prm = np.array([0.7, 1.2, 200.0, 0.0, 0.4, 1.7, 2.0, 1.1, most])
        length, speed = rng.uniform(-0.2, 0.6), rng.normal() * 0.5
        gain = mujoco.mju_muscleGain(length, speed, np.array([0.1, 0.3]), 1.0, prm)
        bias = mujoco.mju_muscleBias(length, np.array([0.1, 0.3]), 1.0, prm)
        assert float(ca.DM(muscle.columns_at(length, speed))) == pytest.approx(gain, abs=1e-10)
        assert float(ca.DM(muscle.bias(length, speed))) == pytest.approx(bias, abs=1e-10)
    for width in (0.0, 0.4):
        activation = MuscleActivation(0.01, 0.04, width)
        for _ in range(100):
            command, u = rng.uniform(-0.3, 1.3), rng.uniform(-0.1, 1.1)
            theirs = mujoco.mju_muscleDynamics(command, u, np.array([0.01, 0.04, width]))
            ours = float(ca.DM(activation.rate(ca.DM(u), ca.DM(command))))
            assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)


def test_mass_bias_acceleration_and_inputs_are_mujocos(peer):
    eom, rng = Tree(peer.machine), np.random.default_rng(2)
    for _ in range(20):
        x, v = peer.machine.random(rng), rng.normal(size=peer.machine.nv)
        u = rng.uniform(0, 1, peer.machine.nu)
        peer.set(x, v, None, u)
        assert gap(number(eom, "mass", x), peer.mass(x)) <= 1e-10
        assert gap(number(eom, "bias", x, v), peer.bias(x, v)) <= 1e-10
        assert gap(number(eom, "forward:u", x, v, u), peer.forward(x, v)) <= 1e-10
        force = number(eom, "input_matrix", x, v) @ u + number(eom, "input_bias", x, v)
        assert gap(force, peer.force(x)) <= 1e-10
    assert peer.model.na == peer.machine.nu


def test_formulations_agree(peer):
    machine, rng = peer.machine, np.random.default_rng(3)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    u = rng.uniform(0, 1, machine.nu)
    tree = Tree(machine)
    a = number(tree, "forward:u", x, v, u)
    expected = number(tree, "body_acceleration", x, v, a)
    for other in (Constrained(machine), Redundant(machine), Embedded(machine), Maximal(machine)):
        x_own, v_own = other.start(x, v)
        own = other.numbers("forward:u", x=x_own, v=v_own, u=u)[0]
        accelerations = other.numbers("body_acceleration", x=x_own, v=v_own, a=own)[0]
        assert gap(accelerations, expected) <= 1e-9


def test_runs_end_where_mujocos_do():
    """Commands lead activations, activations lead forces; first activations are given.

    MuJoCo steps `filterexact` by a formula of its own, which is of first order in its RK4.
    """
    peer = Peer((DATA / FILE).read_text().replace("filterexact", "filter"))
    machine = peer.machine
    x, v, u = machine.keyframe("ready")
    command = np.array([0.1, 0.15, 0.9, 0.5, 0.2, 0.3, 0.05])
    law = ff.control.OpenLoop(machine, lambda t: ca.DM(command))
    options = {"duration": 0.2, "dt": 2e-4, "integrator": "rk4", "u0": u}
    run = ff.simulate(machine, law, x0=x, v0=v, **options)
    x_end, v_end = peer.run(x, v, 0.2, 2e-4, command, u)
    assert np.abs(machine.difference(run.x[-1], x_end)).max() <= 1e-6
    assert gap(run.v[-1], v_end) <= 1e-6
    assert gap(run.u[-1], peer.data.act) <= 1e-6
    assert run.u[-1][2] < 0.81  # its command is limited to 0.8
    there = ff.simulate(machine, law, x0=x, v0=v, plant="mujoco", **options)
    assert np.abs(machine.difference(there.x[-1], x_end)).max() <= 1e-5


def test_keyframes_hold_activations(peer):
    u = peer.machine.keyframe("ready")[2]
    assert np.allclose(u, [0.11, 0.22, 0.33, 0.44, 0.55, 0.77, 0.06])
    lower, upper = peer.machine.input_limits
    assert (lower[6], upper[6]) == (0.0, 0.08)
    assert peer.machine.command_limits[1][2] == 0.8


def test_an_integrated_activation_stays_within_its_range(peer):
    machine = peer.machine
    x, v, u = machine.keyframe("ready")
    law = ff.control.OpenLoop(machine, lambda t: ca.DM([0, 0, 0, 0, 0, 0, 1.0]))
    run = ff.simulate(machine, law, x0=x, v0=v, duration=0.1, dt=1e-3, u0=u)
    assert run.u[:, 6].max() == pytest.approx(0.08, abs=1e-12)
    assert run.u[10, 6] < 0.08


def test_written_and_read_back_it_is_the_same(peer):
    machine = peer.machine
    assert Machine.from_dict(json.loads(json.dumps(machine.to_dict()))) == machine
    back = read(machine.to_mjcf())
    assert [type(a).__name__ for a in back.actuators] == [
        type(a).__name__ for a in machine.actuators
    ]
    rng = np.random.default_rng(4)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    u, command = rng.uniform(0, 0.08, (2, machine.nu))
    one, two = (number(Tree(m), "forward:u", x, v, u) for m in (machine, back))
    assert gap(one, two) <= 1e-10
    for a, b in zip(machine.actuators, back.actuators, strict=True):
        rates = [float(ca.DM(m.activation.rate(ca.DM(u[0]), ca.DM(command[0])))) for m in (a, b)]
        assert rates[0] == pytest.approx(rates[1], rel=1e-12)
    assert np.allclose(back.keyframe("ready")[2], machine.keyframe("ready")[2])


def test_what_is_not_supported_says_so():
    text = (DATA / FILE).read_text()
    with pytest.raises(MachineError, match="a muscle with `forcerange` is not supported"):
        read(text.replace('force="300"', 'force="300" forcerange="-1 0"'))
    with pytest.raises(MachineError, match="`actearly` is not supported"):
        read(text.replace('gainprm="2"', 'gainprm="2" actearly="true"'))
    with pytest.raises(MachineError, match="must increase"):
        TendonMuscle("m", "t", 1.0, (0.3, 0.1))
    with pytest.raises(MachineError, match="must not be negative"):
        LaggedActivation(-1.0)
    machine = read(DATA / FILE)
    with pytest.raises(ff.FramefreeError, match="`biceps` has an activation of its own"):
        ff.simulate(machine, duration=0.01, dt=1e-3, lag=0.1)


@pytest.mark.slow
def test_check_passes():
    report = ff.certify.check(DATA / FILE)
    assert report.ok, report.failures
