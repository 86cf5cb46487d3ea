"""Constraints of the user, and events of machines with loops, where MuJoCo is the plant."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from simulate_machines import pendulum

from framefree.geometry import Moments
from framefree.machine import Body, Frame
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Holonomic, Nonholonomic
from framefree.motion.maximal import Maximal
from framefree.simulate import (
    Change,
    Grasp,
    Pulse,
    Release,
    SetParameters,
    SimulationError,
    simulate,
)


def four_bar():
    """A four-bar of rods that MuJoCo takes: not without thickness."""
    machine = n_four_bar(1, "ball")
    thick = Moments.of_body(1.0, (0.5, 0, 0), np.diag([1e-3, 1 / 12, 1 / 12]))
    return replace(machine, bodies=[Body(body.name, thick) for body in machine.bodies])


def geared(machine, ratio=0.5):
    return Constrained(machine, [Holonomic("gear", lambda x, t: x[1] - ratio * x[0])])


# ------------------------------------------------ rows of the user


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_rows_of_the_user_hold_in_mujoco(integrator):
    machine = pendulum(2, driven=False)
    options = {"x0": [0.8, 0.4], "v0": [1.0, 0.5], "duration": 1.0, "integrator": integrator}
    gaps, drifts = [], []
    for dt in (2e-3, 1e-3):
        runs = [
            simulate(machine, formulation=geared(machine), plant=plant, dt=dt, **options)
            for plant in ("native", "mujoco")
        ]
        gaps.append(np.abs(runs[0].x[-1] - runs[1].x[-1]).max())
        drifts.append(np.abs(runs[1].x[:, 1] - 0.5 * runs[1].x[:, 0]).max())
        assert "constraint `gear`" in runs[1].meta["applied_by_us"]
        assert np.abs(runs[1].signals["position_error"]).max() == pytest.approx(drifts[-1])
    assert gaps[0] < 2e-2
    assert gaps[1] < max(0.7 * gaps[0], 1e-12)
    assert drifts[0] < 1e-3
    assert drifts[1] < max(0.6 * drifts[0], 1e-12)
    free = simulate(machine, plant="mujoco", dt=1e-3, **options)
    assert np.abs(free.x[-1] - runs[0].x[-1]).max() > 0.1


def test_the_drift_stays_bounded():
    machine = pendulum(2, driven=False)
    run = simulate(
        machine,
        x0=[0.8, 0.4],
        formulation=geared(machine),
        plant="mujoco",
        duration=20.0,
        dt=2e-3,
        every=10,
    )
    gap = np.abs(run.x[:, 1] - 0.5 * run.x[:, 0])
    assert gap.max() < 1e-3
    assert gap[len(gap) // 2 :].max() < 2 * gap[: len(gap) // 2].max()


def test_nonholonomic_and_moving_rows():
    machine = pendulum(3, driven=False)
    rows = [
        Nonholonomic("even", lambda x, v, t: v[2] - v[1]),
        Holonomic("driven", lambda x, t: x[0] - 0.3 * t**2),
    ]
    eom = Constrained(machine, rows)
    options = {"duration": 0.5, "dt": 5e-4, "formulation": eom, "every": 10}
    ours, theirs = (simulate(machine, plant=plant, **options) for plant in ("native", "mujoco"))
    assert np.abs(ours.x - theirs.x).max() < 1e-3
    assert np.abs(theirs.v[:, 2] - theirs.v[:, 1]).max() < 1e-3
    assert np.abs(theirs.x[:, 0] - 0.3 * theirs.t**2).max() < 1e-4


def test_rows_beside_loops_and_pushes():
    machine = four_bar()
    x, v = four_bar_state(machine, 0.3, 0.0)
    machine = replace(machine, frames=[*machine.frames, Frame("middle", "v0", (0.5, 0, 0))])
    # A rheonomic row that turns the crank: the only freedom is taken.
    eom = Constrained(machine, [Holonomic("crank", lambda q, t: q[0] - x[0] - 0.5 * t**2)])
    push = Pulse("middle", (3.0, 1.0, 0, 0, 0, 0), start=0.05, duration=0.1)
    options = {"x0": x, "v0": v, "duration": 0.3, "dt": 5e-4, "formulation": eom}
    ours, theirs = (
        simulate(machine, plant=plant, disturbances=[push], **options)
        for plant in ("native", "mujoco")
    )
    assert np.abs(ours.x - theirs.x).max() < 1e-3


def test_rows_upon_other_coordinates_are_refused_by_name():
    machine = pendulum(1, driven=False)
    eom = Constrained(machine, [Holonomic("rod", lambda x, t: x[0])], base=Maximal(machine))
    with pytest.raises(SimulationError, match="`rod` are laid upon the maximal formulation"):
        simulate(machine, formulation=eom, plant="mujoco", duration=0.1, dt=1e-3)


# ------------------------------------------------ events of machines with loops


@pytest.mark.parametrize("event", ["parameters", "change", "release", "grasp"])
def test_events_of_a_machine_with_loops(event):
    machine = four_bar().tunable("v0.mass")
    x, v = four_bar_state(machine, 0.3, 2.0)
    happening = {
        "parameters": SetParameters(0.1, plant={"v0.mass": 2.0}),
        "change": Change(0.1, machine=machine.replace()),
        "release": Release(0.1, "l0"),
        "grasp": Grasp(0.1, "v0", "v1", "held"),
    }[event]
    options = {"x0": x, "v0": v, "duration": 0.2, "dt": 1e-3, "events": [happening]}
    ours, theirs = (simulate(machine, plant=plant, **options) for plant in ("native", "mujoco"))
    assert theirs.status == "finished"
    assert np.abs(ours.x - theirs.x).max() < 1e-2
    (entry,) = theirs.meta["events"]
    assert 0 < max(entry["drift_x"], entry["drift_v"]) < 1e-2
    assert "drift_x" not in ours.meta["events"][0]


def test_a_state_far_off_the_constraints_is_refused():
    """Steps so long that MuJoCo's loops open visibly."""
    machine = four_bar().tunable("v0.mass")
    x, v = four_bar_state(machine, 0.3, 8.0)
    happening = SetParameters(0.15, plant={"v0.mass": 2.0})
    with pytest.raises(SimulationError, match="off the constraints of `four-bars`"):
        simulate(machine, x0=x, v0=v, duration=0.3, dt=5e-2, plant="mujoco", events=[happening])
