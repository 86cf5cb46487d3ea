"""A repeated simulation has the bits of `simulate`, and so have pulses of many trajectories."""

import numpy as np
import pytest
from simulate_machines import PD, pendulum

from framefree.simulate import Noise, Pulse, RepeatedSimulation, SimulationError, simulate

OPTIONS = {"duration": 0.1, "dt": 1e-3, "control_dt": 2e-3, "noise": Noise(1e-2), "delay": 1}


def test_runs_do_not_depend_on_those_before(monkeypatch):
    from framefree.simulate import making

    made = []
    plain = making.ControlLoop
    monkeypatch.setattr(making, "ControlLoop", lambda *args: made.append(0) or plain(*args))
    machine = pendulum(2)
    law = PD(machine)
    repeated = RepeatedSimulation(machine, law, **OPTIONS)
    x0 = np.random.default_rng(0).normal(size=(3, machine.nx))
    many = repeated.run(x0, seed=[4, 5, 6], progress=False)
    again = repeated.run(x0[::-1].copy(), seed=[6, 5, 4], progress=False)
    assert len(made) == 1
    np.testing.assert_array_equal(many.x, again.x[::-1])
    for k in range(3):
        alone = simulate(machine, law, x0=x0[k], seed=4 + k, progress=False, **OPTIONS)
        np.testing.assert_array_equal(many.x[k], alone.x)
        np.testing.assert_array_equal(many.u[k], alone.u)


def test_pulses_of_many_trajectories():
    machine = pendulum(2)
    law, joint = PD(machine), machine.joints[0].name
    sizes, starts = np.array([[0.5], [-2.0], [3.0]]), np.array([0.0, 0.0205, 0.05])
    lengths = np.array([np.inf, 0.0403, 0.01])
    x0 = np.tile(machine.neutral(), (3, 1))
    pulse = Pulse(joint, sizes, starts, lengths)
    many = simulate(
        machine, law, x0=x0, disturbances=pulse, seed=[1, 1, 1], progress=False, **OPTIONS
    )
    for k in range(3):
        one = Pulse(joint, sizes[k], starts[k], lengths[k])
        alone = simulate(machine, law, disturbances=one, seed=1, progress=False, **OPTIONS)
        np.testing.assert_array_equal(many.x[k], alone.x)
    assert np.abs(many.x[0] - many.x[1]).max() > 1e-6


def test_pulses_that_do_not_fit_are_refused():
    with pytest.raises(SimulationError, match="one for each trajectory"):
        Pulse("a", np.ones((3, 6)), np.zeros(2))
    machine = pendulum(1)
    pulse = Pulse(machine.joints[0].name, np.ones((3, 1)))
    with pytest.raises(SimulationError, match="equally many"):
        simulate(
            machine, x0=np.zeros((2, 1)), duration=0.1, dt=0.01, disturbances=pulse, progress=False
        )
