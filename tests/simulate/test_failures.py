"""Runs that break off say when, what, where from and why, and keep what they have."""

import casadi as ca
import numpy as np
import pytest
from simulate_machines import PD, Sine, pendulum, slider

from framefree.control.law import Command, OpenLoop
from framefree.errors import FramefreeWarning
from framefree.simulate import Change, Run, SimulationError, simulate


class Singular(PD):
    """Gives 1/sqrt(x): not a number once x is negative."""

    def control(self, t, x, v, reference, memory):
        return Command(-ca.sqrt(x) - 1)


@pytest.mark.parametrize("every", [1, 50])
def test_a_singular_law(every, tmp_path):
    machine = slider()
    with pytest.raises(SimulationError, match="not finite; most likely the law gave") as caught:
        simulate(
            machine, Singular(machine), x0=[0.1], duration=5.0, dt=1e-3, control_dt=1e-3,
            every=every, out=tmp_path,
        )  # fmt: skip
    error = caught.value
    assert error.quantity == "u.rail_motor [N]"
    x, v = error.state
    assert 0 <= x[0] < 1e-3
    assert v[0] < 0
    # x = 0.1 - about 0.6 t^2 / 2 crosses zero near here
    assert 0.5 < error.time < 0.7
    run = error.run
    assert run.status == "failed"
    assert np.isfinite(run.x).all()
    assert np.isfinite(run.u).all()
    assert error.time - every * 1e-3 - 1e-9 < run.t[-1] < error.time
    assert Run.load(tmp_path).meta["failure"] == str(error)


def test_the_time_does_not_depend_on_what_is_recorded():
    machine, times = slider(), []
    for every in (1, 7, 50):
        with pytest.raises(SimulationError) as caught:
            simulate(machine, Singular(machine), x0=[0.1], duration=5.0, dt=1e-3, every=every)
        times.append(caught.value.time)
    assert times[0] == times[1] == times[2]


def test_an_unstable_loop():
    machine = pendulum()
    law = PD(machine, stiffness=1e6, damping=1e5)
    with pytest.raises(SimulationError, match="too long for velocities") as caught:
        simulate(machine, law, Sine(2), [0.1, 0.1], duration=1.0, dt=1e-2, limits=False)
    assert caught.value.time < 0.5


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_an_unstable_loop_in_mujoco(integrator, tmp_path, monkeypatch):
    """MuJoCo by itself would begin anew, and set inputs beyond 1e10 to zero."""
    mujoco = pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)  # where it would write a log
    machine = pendulum()
    law = PD(machine, stiffness=1e6, damping=1e5)
    options = {"duration": 1.0, "dt": 1e-2, "limits": False, "integrator": integrator}
    words = "MuJoCo: .* The simulation is unstable"
    broken = pytest.raises(SimulationError, match="too long for velocities")
    with pytest.warns(FramefreeWarning, match=words) as warned, broken as caught:
        simulate(machine, law, Sine(2), [0.1, 0.1], plant="mujoco", **options)
    assert 1 <= len(warned) <= 6
    assert list(tmp_path.iterdir()) == []
    assert mujoco.get_mju_user_warning() is None
    assert caught.value.time < 0.5
    assert np.isfinite(caught.value.run.x).all()
    assert np.isfinite(caught.value.state[1]).all()


def test_one_of_many_ends_only_itself(tmp_path):
    """The others are the same, bit by bit, as without it; it is recorded until it ends."""
    machine, options = slider(), {"duration": 2.0, "dt": 1e-3, "every": 10}
    law = Singular(machine)
    with pytest.warns(FramefreeWarning, match="1 of 3 trajectories ended early.*trajectory 1 is"):
        run = simulate(machine, law, x0=[[50.0], [0.1], [60.0]], out=tmp_path / "many", **options)
    alone = simulate(machine, law, x0=[[50.0], [60.0]], **options)
    np.testing.assert_array_equal(run.x[[0, 2]], alone.x)
    np.testing.assert_array_equal(run["kinetic"][[0, 2]], alone["kinetic"])
    with pytest.raises(SimulationError) as caught:
        simulate(machine, law, x0=[0.1], **options)
    (told,) = run.failures
    assert (told["trajectory"], told["time"]) == (1, caught.value.time)
    kept = len(caught.value.run)
    assert 0 < kept < len(run)
    np.testing.assert_array_equal(run.x[1, :kept], caught.value.run.x)
    assert np.isnan(run.x[1, kept:]).all()
    assert Run.load(tmp_path / "many").failures == run.failures


def test_all_of_many():
    machine = slider()
    with pytest.raises(SimulationError, match="of trajectory 1 is not finite") as caught:
        simulate(machine, Singular(machine), x0=[[0.2], [0.1]], duration=2.0, dt=1e-3)
    assert caught.value.run.x.shape[0] == 2
    assert np.isfinite(caught.value.run.x).all()


def test_one_of_many_ends_before_an_event():
    machine = slider()
    law, change = Singular(machine), Change(1.9, law=OpenLoop(machine, lambda t: 0.0))
    options = {"duration": 2.0, "dt": 1e-3, "every": 10, "events": [change]}
    with pytest.warns(FramefreeWarning, match="1 of 2 trajectories"):
        run = simulate(machine, law, x0=[[0.1], [50.0]], **options)
    alone = simulate(machine, law, x0=[[50.0]], **options)
    np.testing.assert_array_equal(run.x[1], alone.x[0])
    assert np.isnan(run.x[0, -1]).all()


def test_a_bad_first_state():
    machine = slider()
    law = OpenLoop(machine, lambda t: 1 / t)
    with pytest.raises(SimulationError, match="at 0 s") as caught:
        simulate(machine, law, duration=1.0, dt=1e-3)
    assert caught.value.state is None
    assert len(caught.value.run) == 0
