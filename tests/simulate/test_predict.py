"""Predicting over a known delay: with the plant's own model the delay does not show."""

import casadi as ca
import numpy as np
import pytest
from simulate_machines import PD, Sine, pendulum, slider

from framefree.simulate import SimulationError, simulate
from framefree.simulate.predict import Predictor


@pytest.mark.parametrize("every", [5, 1])
def test_a_predicted_state_is_the_one_that_comes(every):
    """The command made now equals that of a loop without delay, two periods later."""
    machine = pendulum()
    options = {"duration": 0.4, "dt": 2e-3, "control_dt": 0.01, "every": every}
    law, reference = PD(machine), Sine(2)
    late = simulate(machine, law, reference, [0.4, -0.2], delay=2, predict=True, **options)
    # Before the first command arrives, inputs are zero; then it is as if there were no delay.
    begin = round(0.02 / (2e-3 * every))
    x, v = late.x[begin], late.v[begin]

    class Later(Sine):
        def at(self, t):
            return super().at(t + 0.02)

    options["duration"] = 0.38
    prompt = simulate(machine, law, Later(2), x, v, **options)
    # The predictor takes one long step where the plant takes five: errors of fourth order.
    assert np.abs(late.x[begin:] - prompt.x).max() < 1e-5
    assert np.abs(late.u[begin:] - prompt.u).max() < 1e-3
    plain = simulate(machine, law, reference, [0.4, -0.2], delay=2, **{**options, "duration": 0.4})
    assert np.abs(plain.x[begin:] - prompt.x).max() > 1e-2


def test_lag_is_predicted_too():
    """A loop that overshoots because of its lag hardly does when the law is ahead by it."""
    machine = slider()
    law = PD(machine, stiffness=2000.0, damping=100.0)
    options = {"duration": 3.0, "dt": 1e-3, "control_dt": 5e-3, "lag": 0.02, "delay": 1}
    plain = simulate(machine, law, **options, x0=[0.1])
    ahead = simulate(machine, law, **options, x0=[0.1], predict=0.025)
    assert plain.x.min() < -0.02
    assert ahead.x.min() > plain.x.min() / 3


@pytest.mark.parametrize("pipe", [[], [4.0], [4.0, -1.0]])
def test_the_rest_of_a_prediction_is_under_the_newest_command(pipe):
    """Commands on their way act for a period each, then the last of them; none are the held one."""
    machine = slider(mass=2.0)
    period, lead, held = 0.1, 0.35, 10.0
    predictor = Predictor(machine, machine, None, True, period, lead)
    x, v = predictor(ca.DM([0.3]), ca.DM([-0.2]), ca.DM(0, 1), ca.DM(pipe), ca.DM([held]))
    position, velocity, left = 0.3, -0.2, lead
    commands = list(pipe) or [held]
    while left > 1e-9:
        force = commands.pop(0) if len(commands) > 1 else commands[0]
        h = min(period, left)
        position += h * velocity + h**2 / 2 * force / 2.0
        velocity, left = velocity + h * force / 2.0, left - h
    assert np.isclose(float(ca.evalf(x)), position, rtol=1e-12)
    assert np.isclose(float(ca.evalf(v)), velocity, rtol=1e-12)


def test_a_lead_beyond_the_delay_is_under_the_newest_command():
    """The law is told the state after delay and lead, with its own last command going on."""
    machine = slider(mass=2.0)
    options = {"dt": 0.01, "control_dt": 0.1, "delay": 1, "predict": 0.2, "limits": False}
    run = simulate(machine, PD(machine), x0=[0.5], duration=0.5, **options)
    u, x, v = run.signals["command"][:, 0], run.x[:, 0], run.v[:, 0]
    for k in range(1, 5):
        # The one command on its way, made a period ago, acts over the whole lead.
        there = x[k] + 0.2 * v[k] + 0.02 * u[k - 1] / 2.0
        rate = v[k] + 0.2 * u[k - 1] / 2.0
        assert np.isclose(u[k], -20.0 * there - 3.0 * rate, rtol=1e-9)


def test_refused():
    machine = slider()
    with pytest.raises(SimulationError, match="`predict` needs a control period"):
        simulate(machine, PD(machine), duration=0.1, dt=1e-2, predict=0.1)
    with pytest.raises(SimulationError, match="must be a time in s"):
        simulate(machine, PD(machine), duration=0.1, dt=1e-2, control_dt=1e-2, predict=-0.1)
