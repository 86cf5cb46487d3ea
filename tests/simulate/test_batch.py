"""Many trajectories at once are, each of them, bit for bit the single one."""

import numpy as np
import pytest
from simulate_machines import PD, Sine, pendulum, slider

from framefree.simulate import Noise, Run, SimulationError, simulate

OPTIONS = {
    "duration": 0.1, "dt": 1e-3, "control_dt": 5e-3, "delay": 1, "lag": 0.02,
    "noise": Noise(0.01, 0.1), "integrator": "euler",
}  # fmt: skip


def test_many_first_states():
    machine = pendulum()
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    many = simulate(machine, PD(machine), Sine(2), x, v, **OPTIONS)
    assert many.x.shape == (5, 21, 2)
    assert many.signals["joint_wrench"].shape == (5, 21, 2, 6)
    first = simulate(machine, PD(machine), Sine(2), x[0], v[0], **OPTIONS)
    assert np.array_equal(many.x[0], first.x)
    assert np.array_equal(many.u[0], first.u)
    # Without noise the others are single runs, too; with it, they have noise of their own.
    quiet = {**OPTIONS, "noise": None}
    calm = simulate(machine, PD(machine), Sine(2), x, v, **quiet)
    for i in (1, 4):
        single = simulate(machine, PD(machine), Sine(2), x[i], v[i], **quiet)
        for name in ("kinetic", "joint_wrench", "V"):
            assert np.array_equal(calm.signals[name][i], single.signals[name])


def test_every_trajectory_has_noise_of_its_own():
    """The same first state three times: without noise of their own they would not part."""
    machine = pendulum()
    same = np.tile([0.3, -0.2], (3, 1))
    noisy = simulate(machine, PD(machine), x0=same, record=(), **OPTIONS)
    quiet = simulate(machine, PD(machine), x0=same, record=(), **{**OPTIONS, "noise": None})
    assert np.array_equal(quiet.x[0], quiet.x[1])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(noisy.x[i] - noisy.x[j]).max() > 1e-5


def test_many_parameters():
    machine = slider().tunable("cart.mass")
    masses = np.array([[1.0], [2.0], [4.0]])
    law = PD(slider())
    run = simulate(machine, law, x0=[1.0], duration=0.5, dt=1e-3, parameters=masses)
    for mass, x in zip(masses[:, 0], run.x, strict=True):
        single = simulate(slider(mass), law, x0=[1.0], duration=0.5, dt=1e-3)
        assert np.allclose(x, single.x, atol=1e-13)


def test_parameters_of_the_law():
    """A law that was given the plant's own machine knows its parameters; another one does not."""

    class Weight(PD):
        def control(self, t, x, v, reference, memory):
            found = super().control(t, x, v, reference, memory)
            return found._replace(u=self.machine.body("cart").moments.total * ca_one)

    import casadi as ca

    ca_one = ca.SX(1)
    machine = slider().tunable("cart.mass")
    other = slider().tunable("cart.mass")
    options = {"duration": 0.01, "dt": 1e-3, "parameters": {"cart.mass": 5.0}}
    assert simulate(machine, Weight(machine), **options).u[0] == 5.0
    assert simulate(machine, Weight(other), **options).u[0] == 2.0
    run = simulate(machine, Weight(other), law_parameters=[3.0], **options)
    assert run.u[0] == 3.0
    assert np.isclose(run.v[-1, 0], 3.0 / 5.0 * 0.01)


def test_noise_has_the_given_size():
    machine = slider(1000.0)
    law = PD(machine, stiffness=1.0, damping=0.0)
    run = simulate(machine, law, duration=20.0, dt=5e-3, control_dt=5e-3, noise=Noise(0.01), seed=1)
    # The mass hardly moves, so the command is the noise.
    assert abs(np.std(run.u) - 0.01) < 5e-4
    assert abs(np.mean(run.u)) < 1e-3
    again = simulate(
        machine, law, duration=20.0, dt=5e-3, control_dt=5e-3, noise=Noise(0.01), seed=1
    )
    assert np.array_equal(run.u, again.u)


def test_noise_by_unit():
    from framefree.machine import Free

    machine = pendulum(1, kinds=[Free()], driven=False)
    noise = Noise.by_unit(machine, position=3e-3, angle=5e-3, velocity=0.02, rate=0.01)
    assert np.array_equal(noise.x, [3e-3] * 3 + [5e-3] * 3)
    assert np.array_equal(noise.v, [0.02] * 3 + [0.01] * 3)


def test_saved_batches(tmp_path):
    machine = pendulum()
    run = simulate(machine, PD(machine), x0=np.array([[0.1, 0.2], [0.3, 0.4]]), **OPTIONS)
    run.save(tmp_path)
    loaded = Run.load(tmp_path)
    assert np.array_equal(loaded.x, run.x)
    assert np.array_equal(loaded.signals["joint_wrench"], run.signals["joint_wrench"])
    assert np.array_equal(loaded.t, run.t)


def test_refused():
    machine = slider().tunable("cart.mass")
    with pytest.raises(SimulationError, match=r"equally many, got \[2, 3\]"):
        simulate(machine, x0=np.zeros((2, 1)), parameters=np.ones((3, 1)), duration=0.1, dt=0.1)
    with pytest.raises(
        SimulationError, match=r"1 tunable numbers \(cart.mass\), got values of shape"
    ):
        simulate(machine, parameters=[1.0, 2.0], duration=0.1, dt=0.1)
