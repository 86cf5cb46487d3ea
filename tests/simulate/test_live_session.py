"""A loop in real time is the same loop: what is set acts, what is recorded is an ordinary run."""

import sys
import threading
import time

import casadi as ca
import numpy as np
import pytest
from simulate_machines import pendulum

from framefree.control import ComputedTorque
from framefree.control.references import Hold
from framefree.errors import FramefreeError
from framefree.machine import motors
from framefree.machine.parameters import Parameters
from framefree.simulate import Push, Run, simulate
from framefree.simulate.grab import Grab, grab_numbers
from framefree.simulate.session import LiveSession
from framefree.simulate.timekeeping import Pace


def live(*names, first=0.0):
    return Parameters(names, ca.vertcat(*map(ca.SX.sym, names)), np.full(len(names), first))


def test_without_hands_it_is_the_simulation():
    machine = pendulum(2)
    session = LiveSession(machine, x0=[1.0, 0.5])
    session.advance(0.3)
    session.advance(0.2)
    run = simulate(machine, x0=[1.0, 0.5], duration=0.5, dt=1e-3)
    _, row, _ = session.observed()
    np.testing.assert_array_equal(row["state", "x"][0], run.x[-1])
    kept = session.run()
    np.testing.assert_array_equal(kept.x, run.x[:-1:10])
    np.testing.assert_array_equal(kept.t, run.t[:-1:10])


def test_a_push_that_is_set_is_that_push():
    """A live force from 0.2 s on against the same as a pulse of an ordinary run."""
    from framefree.simulate import Pulse

    machine, force = pendulum(1), live("push.x")
    wrench = ca.vertcat(force.symbols, ca.SX(5, 1))
    body = machine.bodies[0].name
    session = LiveSession(machine, live=force, disturbances=Push(body, lambda t: wrench))
    session.advance(0.2)
    session.set({"push.x": 3.0})
    session.advance(0.3)
    size = [3.0, 0, 0, 0, 0, 0]
    run = simulate(machine, duration=0.5, dt=1e-3, disturbances=Pulse(body, size, start=0.2))
    _, row, _ = session.observed()
    np.testing.assert_allclose(row["state", "x"][0], run.x[-1], atol=1e-12)
    kept = session.run()
    assert kept["push.x"].tolist() == [0.0] * 20 + [3.0] * 30


def test_a_hand_holds_a_body_where_it_is_pulled():
    """At rest the spring bears what gravity asks for: k (g - p) has the moment of the weight."""
    machine, numbers = pendulum(1), grab_numbers()
    session = LiveSession(machine, live=numbers, disturbances=Grab("hand", numbers))
    point = np.array([0.0, 0.0, -0.4])
    place = np.array([0.3, 0.0, -0.1])
    values = dict(zip(("x", "y", "z"), point, strict=True))
    session.set({f"grab.point.{k}": v for k, v in values.items()})
    values = dict(zip(("x", "y", "z"), place, strict=True))
    session.set({f"grab.place.{k}": v for k, v in values.items()})
    session.set({"grab.body": 0, "grab.stiffness": 200.0, "grab.damping": 60.0})
    session.advance(20.0)
    _, row, _ = session.observed()
    assert np.abs(row["state", "v"]).max() < 1e-6
    x = row["state", "x"][0]
    G = machine.forward_kinematics(x, machine.bodies[0].name)
    force = 200.0 * (place - (G[:3, :3] @ point + G[:3, 3]))
    weight = machine.bodies[0].moments.total * machine.gravity
    origin = (G @ machine.joints[0].child_pose)[:3, 3]
    center = G[:3, :3] @ machine.bodies[0].moments.center + G[:3, 3]
    arm = G[:3, :3] @ point + G[:3, 3]
    moment = np.cross(center - origin, weight) + np.cross(arm - origin, force)
    axis = G[:3, :3] @ machine.joints[0].kind.axis
    assert abs(axis @ moment) < 1e-5 * np.abs(moment).max(initial=1.0)


def test_gains_are_numbers_of_the_loop():
    """With live gains the loop is that of a law with these gains, before and after a change."""
    machine = pendulum(2)
    machine = machine.attach(*motors(machine.joints)) if not machine.nu else machine
    gains = live("kp", "kd", first=20.0)
    goal = Hold(machine, [0.4, -0.2])
    law = ComputedTorque(machine, gains.symbols[0], gains.symbols[1])
    session = LiveSession(machine, law, goal, [1.0, 0.5], live=gains, limits=False)
    session.advance(0.1)
    plain = ComputedTorque(machine, 20.0, 20.0)
    run = simulate(machine, plain, goal, x0=[1.0, 0.5], duration=0.1, dt=1e-3, limits=False)
    _, row, _ = session.observed()
    np.testing.assert_allclose(row["state", "x"][0], run.x[-1], atol=1e-12)
    before = session.segment.runner.kernel
    session.set({"kp": 400.0, "kd": 40.0})
    session.advance(0.1)
    assert session.segment.runner.kernel is before  # nothing was compiled again
    stiff = ComputedTorque(machine, 400.0, 40.0)
    more = simulate(
        machine, stiff, goal, x0=run.x[-1], v0=run.v[-1], duration=0.1, dt=1e-3, limits=False
    )
    _, row, _ = session.observed()
    np.testing.assert_allclose(row["state", "x"][0], more.x[-1], atol=1e-11)


def test_a_tunable_mass_is_set_by_its_name():
    machine = pendulum(1)
    body = machine.bodies[0].name
    session = LiveSession(machine.tunable(f"{body}.mass"), x0=[0.7])
    session.set({f"{body}.mass": 9.0})
    session.advance(0.4)
    run = simulate(
        machine.tunable(f"{body}.mass").with_parameters([9.0]), x0=[0.7], duration=0.4, dt=1e-3
    )
    _, row, _ = session.observed()
    np.testing.assert_allclose(row["state", "x"][0], run.x[-1], atol=1e-12)
    assert session.run().meta["parameters"] == [9.0]


def test_pause_step_reset_record_and_save(tmp_path):
    session = LiveSession(pendulum(1), x0=[0.7])
    session.advance(0.05)
    session.step()
    assert session.paused
    assert session.time == pytest.approx(0.051)
    session.reset()
    assert session.time == 0.0
    session.advance(0.1)
    session.record(False)
    session.advance(0.1)
    assert len(session.run()) == 10
    session.record(True)
    session.advance(0.1)
    run = session.run()
    assert run.t[0] == pytest.approx(0.2)
    run.save(tmp_path / "session")
    again = Run.load(tmp_path / "session")
    np.testing.assert_array_equal(again.x, run.x)
    assert again.status == "finished"


def test_a_loop_that_breaks_says_so_and_can_be_reset():
    machine, force = pendulum(1), live("push.x")
    wrench = ca.repmat(force.symbols, 6, 1)
    push = Push(machine.bodies[0].name, lambda t: wrench)
    session = LiveSession(machine, live=force, disturbances=push)
    session.set({"push.x": 1e300})
    session.advance(0.5)
    assert "not finite" in session.failure
    session.set({"push.x": 0.0})
    session.reset()
    session.advance(0.1)
    assert session.failure == ""
    assert session.time == pytest.approx(0.1)


def test_wrong_numbers_are_refused_by_name():
    session = LiveSession(pendulum(1), live=live("push.x"))
    with pytest.raises(FramefreeError, match="`push.y`; there are: `push.x`".replace(".", r"\.")):
        session.set({"push.y": 1.0})
    with pytest.raises(FramefreeError, match="positive"):
        session.set_speed(0.0)


def test_time_goes_with_the_clock_at_a_speed():
    """Only that pieces follow the clock, and that time stands when it is held."""
    session = LiveSession(pendulum(1), x0=[0.7])
    session.set_speed(2.0)
    session.start()
    begin, first = time.perf_counter(), session.time
    time.sleep(0.6)
    wall, simulated = time.perf_counter() - begin, session.time - first
    slipped = session.pace.slipped
    session.pause()
    time.sleep(0.05)
    held = session.time
    time.sleep(0.1)
    assert session.time == held
    session.stop()
    assert simulated <= 2.0 * wall + 0.05
    assert simulated >= 2.0 * (wall - slipped) - 1.0


def test_a_number_that_is_set_acts_before_the_next_turn(monkeypatch):
    """With turns that never come, what was set acts all the same; rows keep to their times."""
    machine, force = pendulum(1), live("push.x")
    wrench = ca.vertcat(force.symbols, ca.SX(5, 1))
    push = Push(machine.bodies[0].name, lambda t: wrench)
    session = LiveSession(machine, live=force, disturbances=push)
    monkeypatch.setattr("framefree.simulate.session.TURN", 1000.0)
    monkeypatch.setattr("framefree.simulate.timekeeping.BEHIND", 1000.0)
    answered = threading.Event()
    session.answered = answered.set
    session.start()
    for k in range(1, 4):
        answered.clear()
        session.set({"push.x": float(k)})
        assert answered.wait(60.0)
        assert session.state()[2] == k
        assert session.values.tolist() == [float(k)]
    session.stop()
    run = session.run()
    np.testing.assert_allclose(run.t, 0.01 * np.arange(len(run)), atol=1e-12)
    assert run["push.x"][-1] <= 3.0


def test_turns_end_at_recorded_rows():
    """After single steps the turns of the loop come back to whole rows."""
    session = LiveSession(pendulum(1), x0=[0.7])
    session.advance(0.003)
    session.pace.restart(session.time)
    ends = set()
    while session.time < 0.05:
        session._catch_up()
        ends.add(round(session.time % 0.01, 6) % 0.01)
    assert ends <= {0.003, 0.0}
    assert 0.0 in ends


def test_what_cannot_be_made_up_for_is_given_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("framefree.simulate.timekeeping.perf_counter", lambda: now[0])
    pace = Pace()
    now[0] = 0.1
    assert pace.due(0.0, 0.01) == 10
    now[0] = 2.0
    assert pace.due(0.1, 0.01) == 0
    assert pace.slipped == pytest.approx(1.9)
    now[0] = 2.05
    assert pace.due(0.1, 0.01) == pytest.approx(5, abs=1)


def test_threads_switch_fast_while_a_loop_runs_and_as_before_afterwards():
    before = sys.getswitchinterval()
    session = LiveSession(pendulum(1), x0=[0.7]).start()
    assert sys.getswitchinterval() < 1e-3
    session.stop()
    session.stop()
    assert sys.getswitchinterval() == before
