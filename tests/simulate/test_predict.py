"""Predicting over a known delay: with the plant's own model the delay does not show."""

import numpy as np
import pytest
from simulate_machines import PD, Sine, pendulum, slider

from framefree.simulate import SimulationError, simulate


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


def test_refused():
    machine = slider()
    with pytest.raises(SimulationError, match="`predict` needs a control period"):
        simulate(machine, PD(machine), duration=0.1, dt=1e-2, predict=0.1)
    with pytest.raises(SimulationError, match="must be a time in s"):
        simulate(machine, PD(machine), duration=0.1, dt=1e-2, control_dt=1e-2, predict=-0.1)
