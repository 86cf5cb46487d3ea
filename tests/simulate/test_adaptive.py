"""Steps that follow their error: tolerance, exact output times, jumps."""

import numpy as np
import pytest
from simulate_machines import PD, Sine, free_body, pendulum, slider

from framefree.simulate import Adaptive, Noise, Pulse, SimulationError, simulate
from framefree.simulate.runners import AdaptiveRunner


def test_the_error_follows_the_tolerance():
    machine = pendulum(2, driven=False)
    options = {"x0": [2.0, 1.0], "duration": 2.0, "dt": 0.1}
    exact = simulate(machine, integrator=Adaptive(1e-13), **options)
    errors = []
    for tolerance in (1e-5, 1e-7, 1e-9):
        run = simulate(machine, integrator=Adaptive(tolerance), **options)
        assert np.array_equal(run.t, np.arange(21) * 0.1)
        errors.append(np.abs(run.x - exact.x).max())
    assert errors[0] < 1e-3
    assert errors[1] < errors[0] / 20
    assert errors[2] < errors[1] / 20


def test_it_agrees_with_many_short_steps():
    machine = free_body()
    v = np.array([0.3, 0.2, 0.1, 4.0, 0.1, 0.2])
    adaptive = simulate(machine, v0=v, duration=2.0, dt=0.5, integrator=Adaptive(1e-12))
    short = simulate(machine, v0=v, duration=2.0, dt=5e-4, every=1000)
    assert np.abs(machine.difference(adaptive.x, short.x)).max() < 1e-10


def test_steps_end_at_jumps():
    """A pulse that begins and ends within a step is met exactly: v = F t / m."""
    machine = slider(driven=False)
    push = Pulse("cart", (3.0, 0, 0, 0, 0, 0), 0.13, 0.25)
    run = simulate(machine, duration=1.0, dt=0.2, integrator="adaptive", disturbances=[push])
    time = np.clip(run.t - 0.13, 0, 0.25)
    assert np.allclose(run.v[:, 0], 1.5 * time, atol=1e-14)
    x = 0.75 * time**2 + 1.5 * 0.25 * np.clip(run.t - 0.38, 0, None)
    assert np.allclose(run.x[:, 0], x, atol=1e-12)


def test_long_steps_where_nothing_happens(monkeypatch):
    runners = []
    monkeypatch.setattr(
        AdaptiveRunner, "__init__", _noting(AdaptiveRunner.__init__, runners), raising=True
    )
    simulate(slider(driven=False), v0=[1.0], duration=10.0, dt=1.0, integrator="adaptive")
    assert runners[0].steps == 10


def _noting(init, found):
    def noted(self, *arguments):
        init(self, *arguments)
        found.append(self)

    return noted


@pytest.mark.parametrize("every", [1, 4])
def test_sampled_control(every):
    """The command is held while steps vary; noise and delay are those of the fixed-step loop."""
    machine = pendulum()
    options = {
        "x0": [0.4, -0.2], "duration": 0.4, "control_dt": 0.02, "every": every, "delay": 1,
        "noise": Noise(0.01, 0.02), "lag": 0.05, "seed": 5,
    }  # fmt: skip
    law, reference = PD(machine), Sine(2)
    adaptive = simulate(machine, law, reference, dt=5e-3, integrator=Adaptive(1e-11), **options)
    fixed = simulate(machine, law, reference, dt=5e-3, integrator="rk4", **options)
    assert np.array_equal(adaptive.t, fixed.t)
    assert np.abs(adaptive.x - fixed.x).max() < 1e-7
    assert np.abs(adaptive.signals["command"] - fixed.signals["command"]).max() < 1e-4


def test_no_step_is_short_enough():
    """A spring that gets infinitely stiff: x'' = 1/(1 - t)^2, in a law."""
    from framefree.control.law import OpenLoop

    machine = slider()
    law = OpenLoop(machine, lambda t: 2 / (0.5 - t) ** 2)
    with pytest.raises(SimulationError, match="no step is short enough") as caught:
        simulate(machine, law, duration=1.0, dt=0.01, integrator="adaptive", limits=False)
    error = caught.value
    assert 0.49 < error.time < 0.5001
    assert error.run.status == "failed"
    assert len(error.run) >= 45
    assert np.isfinite(error.run.x).all()


def test_refused():
    with pytest.raises(SimulationError, match="must be positive"):
        Adaptive(tolerance=0.0)
    machine = slider()
    with pytest.raises(SimulationError, match=r"many trajectories .* integrator of fixed step"):
        simulate(machine, x0=np.zeros((3, 1)), duration=1.0, dt=0.1, integrator="adaptive")
