"""Grasp, release, exchange of a body, a law or parameters: each happens, and is recorded."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from simulate_machines import PD, Counter, Sine, pendulum, slider

from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine, MachineError, Prismatic
from framefree.simulate import (
    Change,
    Grasp,
    Release,
    Run,
    SetParameters,
    SimulationError,
    simulate,
)


def two_carts():
    """Carts of 1 kg and 3 kg on one rail."""
    bodies = [
        Body("a", Moments.of_body(1.0, (0, 0, 0), np.eye(3))),
        Body("b", Moments.of_body(3.0, (0, 0, 0), np.eye(3))),
    ]
    joints = [
        Joint("ra", Prismatic("x"), "world", "a"),
        Joint("rb", Prismatic("x"), "world", "b"),
    ]
    return Machine(bodies, joints, gravity=(0, 0, 0))


def test_grasp_and_release():
    """A plastic impact keeps momentum; while grasped the distance is kept."""
    machine = two_carts()
    run = simulate(
        machine, x0=[0.0, 1.0], v0=[2.0, 0.0], duration=1.0, dt=0.01,
        events=[Grasp(0.3, "a", "b"), Release(0.6)], record=("momentum", "energy"),
    )  # fmt: skip
    before, during = run.t < 0.3 - 1e-9, (run.t > 0.3 - 1e-9) & (run.t < 0.6 - 1e-9)
    assert np.allclose(run.v[before], [2.0, 0.0])
    assert np.allclose(run.v[~before], 0.5, atol=1e-12)
    assert np.allclose(run.x[during, 1] - run.x[during, 0], 0.4, atol=1e-9)
    assert np.allclose(run.signals["linear_momentum"][:, 0], 2.0)
    assert [event["type"] for event in run.meta["events"]] == ["Grasp", "Release"]
    assert [event["at"] for event in run.meta["events"]] == [0.3, 0.6]
    assert (np.diff(run.t) > 0).all()


def test_a_carried_body_flies_on_when_released():
    """A free body welded to a pendulum moves on with the velocity of its last moment."""
    arm = pendulum(1, driven=False)
    machine = arm.attach(
        Body("ball", Moments.of_body(0.5, (0, 0, 0), 0.01 * np.eye(3))),
        Joint("flight", Free(), "world", "ball"),
    )
    x = machine.neutral()
    x[0] = np.pi / 2
    x[1:4] = 0, 0.5, 0
    run = simulate(
        machine, x0=x, duration=0.6, dt=1e-3,
        events=[Grasp(0.0, "tip", "ball"), Release(0.3)], every=5,
    )  # fmt: skip
    held = run.t < 0.3 - 1e-9
    lengths = np.linalg.norm(run.x[held, 1:4], axis=1)
    assert np.allclose(lengths, 0.5, atol=1e-9)
    first = np.flatnonzero(~held)[0]
    t = run.t[first:] - run.t[first]
    turn = run.x[first, 4:8]
    speed = _rotated(turn, run.v[first, 1:4])
    path = run.x[first, 1:4] + speed * t[:, None] + np.array([0, 0, -9.81 / 2]) * t[:, None] ** 2
    assert np.allclose(run.x[first:, 1:4], path, atol=1e-9)
    # Energy is kept all along: the grasp at rest and the release cost nothing.
    assert np.ptp(run.energy) < 1e-8


def _rotated(wxyz, vector):
    w, q = wxyz[0], wxyz[1:]
    return vector + 2 * np.cross(q, np.cross(q, vector) + w * vector)


def test_parameters_change_without_compiling(monkeypatch):
    from framefree.simulate import observe
    from framefree.simulate.runners import rollout

    calls = []
    for module in (observe, rollout):
        compile = module.compile
        monkeypatch.setattr(
            module, "compile", lambda *a, _c=compile, **k: calls.append(1) or _c(*a, **k)
        )
    machine = slider().tunable("cart.mass")
    law = PD(slider(), stiffness=8.0, damping=0.0)
    event = SetParameters(0.5, plant={"cart.mass": 8.0})
    run = simulate(machine, law, x0=[1.0], duration=1.0, dt=1e-3, events=[event])
    assert len(calls) == 2
    x, v = np.cos(2 * 0.5), -2 * np.sin(2 * 0.5)
    t = run.t[500:] - 0.5
    assert np.allclose(run.x[500:, 0], x * np.cos(t) + v * np.sin(t), atol=1e-9)
    assert run.meta["events"][0]["plant"] == {"cart.mass": 8.0}


def test_parameters_of_many_change():
    machine = slider().tunable("cart.mass")
    law = PD(slider(), stiffness=8.0, damping=0.0)
    event = SetParameters(0.5, plant={"cart.mass": 8.0})
    options = {"x0": [1.0], "duration": 1.0, "dt": 1e-3, "events": [event]}
    many = simulate(machine, law, parameters=[[1.0], [2.0]], **options)
    one = simulate(machine, law, **options)
    assert np.array_equal(many.x[1], one.x)
    assert not np.allclose(many.x[0], one.x)


def test_another_law_and_reference():
    machine = slider()
    first, second = Counter(machine), PD(machine)
    run = simulate(
        machine, first, x0=[0.0], duration=0.2, dt=1e-3, control_dt=5e-3,
        events=[Change(0.1, law=second, reference=Sine(1))],
    )  # fmt: skip
    after = run.t > 0.1 - 1e-9
    assert np.isfinite(run.signals["count"][~after]).all()
    assert np.isnan(run.signals["count"][after]).all()
    assert np.isnan(run.signals["V"][~after]).all()
    wanted = 0.3 * np.sin(2 * run.t[after])
    assert np.allclose(run.reference["x"][after, 0], wanted)
    assert np.allclose(run.u[after, 0], -20 * (run.x[after, 0] - wanted) - 3 * run.v[after, 0])


def test_another_body():
    """From half-way on as if a heavier machine had started there."""
    machine = pendulum()
    heavy = machine.replace("rod1", mass=2.0)
    x = [0.5, -0.3]
    run = simulate(
        machine, PD(machine), x0=x, duration=0.2, dt=1e-3, events=[Change(0.1, machine=heavy)]
    )
    alone = simulate(heavy, PD(machine), x0=run.x[100], v0=run.v[100], duration=0.1, dt=1e-3)
    assert np.allclose(run.x[100:], alone.x, atol=1e-13)
    plain = simulate(machine, PD(machine), x0=x, duration=0.2, dt=1e-3)
    assert np.abs(plain.x[-1] - run.x[-1]).max() > 1e-3


def test_events_wait_for_the_control_period():
    machine = slider()
    event = Change(0.0115, law=PD(machine))
    run = simulate(
        machine, Counter(machine), duration=0.05, dt=1e-3, control_dt=5e-3, every=1, events=[event]
    )
    assert run.meta["events"][0]["at"] == 0.015


def test_held_commands_and_lags_go_on():
    """A change that changes nothing does not show."""
    machine = slider()
    options = {
        "x0": [1.0], "duration": 0.1, "dt": 1e-3, "control_dt": 5e-3, "lag": 0.01, "delay": 2,
    }  # fmt: skip
    law = Counter(machine)
    plain = simulate(machine, law, **options)
    changed = simulate(
        machine, law, events=[Change(0.05, machine=replace(machine, name="twin"))], **options
    )
    assert np.allclose(plain.x, changed.x, rtol=0, atol=1e-15)
    assert np.array_equal(plain.signals["count"], changed.signals["count"])


def test_refused():
    machine = slider()
    options = {"duration": 0.1, "dt": 1e-2}
    with pytest.raises(MachineError, match="must have the joints and inputs of the one before"):
        simulate(machine, events=[Change(0.05, machine=pendulum())], **options)
    with pytest.raises(SimulationError, match="no loop `grasp` to release"):
        simulate(machine, events=[Release(0.05)], **options)
    with pytest.raises(SimulationError, match="no law whose parameters"):
        simulate(machine, events=[SetParameters(0.05, law={"cart.mass": 1.0})], **options)
    with pytest.raises(SimulationError, match="needs a time from 0 s on"):
        Release(-1.0)


def test_signals_may_have_other_entries_after_an_event(tmp_path):
    """A grasp beside a loop adds rows to the errors that are recorded; before it they are NaN."""
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.3, 1.0)
    run = simulate(
        machine, x0=x, v0=v, duration=0.1, dt=0.01, out=tmp_path / "run",
        events=[Grasp(0.05, "v0", "v1", "held"), Release(0.08, "held")],
    )  # fmt: skip
    (channel,) = (c for c in run.channels if c.name == "position_error")
    assert [name for name in channel.entries if name.startswith("l0")] == list(channel.entries[:5])
    assert [name for name in channel.entries if name.startswith("held")] == list(
        channel.entries[5:]
    )
    errors, held = run.signals["position_error"], (run.t > 0.049) & (run.t < 0.079)
    assert np.abs(errors[:, :5]).max() < 1e-9
    assert np.abs(errors[held, 5:]).max() < 1e-9
    assert np.isnan(errors[~held, 5:]).all()
    again = Run.load(tmp_path / "run")
    assert np.array_equal(again.signals["position_error"], errors, equal_nan=True)
