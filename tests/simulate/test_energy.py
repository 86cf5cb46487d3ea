"""What conserved quantities do over many steps."""

import numpy as np
import pytest
from simulate_machines import free_body, pendulum

from framefree.machine import Spherical
from framefree.simulate import simulate


def drift_of(machine, x, v, dt, steps, integrator, every):
    run = simulate(
        machine, x0=x, v0=v, duration=steps * dt, dt=dt, integrator=integrator, every=every,
        record=("energy",),
    )  # fmt: skip
    deviation = np.abs(run.energy - run.energy[0])
    half = len(deviation) // 2
    return deviation[:half].max(), deviation[half:].max()


HEAVY = free_body(Spherical(), center=(0, 0, 0.3), gravity=(0, 0, -9.81))


def test_the_energy_error_of_the_midpoint_rule_does_not_grow():
    """The double pendulum is chaotic; the tumbling heavy body is not symmetric in any way."""
    double = pendulum(2, driven=False)
    for machine, x, v in (
        (double, np.array([1.0, 0.5]), np.zeros(2)),
        (HEAVY, HEAVY.neutral(), np.array([2.0, 1.0, 0.5])),
    ):
        first, second = drift_of(machine, x, v, 5e-3, 20_000, "midpoint", 10)
        assert second < 1.5 * first + 1e-12
        assert second < 0.02


def test_the_energy_error_falls_with_the_square_of_the_step():
    coarse = drift_of(HEAVY, HEAVY.neutral(), np.array([2.0, 1.0, 0.5]), 8e-3, 2000, "midpoint", 1)
    fine = drift_of(HEAVY, HEAVY.neutral(), np.array([2.0, 1.0, 0.5]), 4e-3, 4000, "midpoint", 2)
    assert 3.5 < max(coarse) / max(fine) < 4.5


@pytest.mark.slow
def test_a_million_steps():
    first, second = drift_of(
        HEAVY, HEAVY.neutral(), np.array([2.0, 1.0, 0.5]), 5e-3, 1_000_000, "midpoint", 100
    )
    assert second < 1.2 * first


@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "euler", "adaptive"])
def test_attitudes_stay_on_the_group(integrator):
    machine = free_body()
    v = np.array([0.3, 0.2, 0.1, 4.0, 0.1, 0.2])
    run = simulate(
        machine, v0=v, duration=5.0, dt=0.01, integrator=integrator, record=("momentum",)
    )
    assert np.abs(np.linalg.norm(run.x[:, 3:7], axis=1) - 1).max() < 1e-14
    linear = run.signals["linear_momentum"]
    tolerance = {"euler": 0.2, "midpoint": 1e-2, "rk4": 1e-5, "adaptive": 1e-7}[integrator]
    assert np.abs(linear - linear[0]).max() < tolerance
    angular = run.signals["centroidal_momentum"]
    assert np.abs(angular - angular[0]).max() < tolerance


def test_the_tumbling_symmetric_body_has_a_closed_form():
    """w1 + i w2 turns at rate (1 - I3/I1) w3 about the axis; I1 = I2."""
    machine = free_body(Spherical()).replace("body", inertia_at_center=np.diag([0.2, 0.2, 0.3]))
    w = np.array([0.5, 0.0, 3.0])
    run = simulate(machine, v0=w, duration=4.0, dt=0.05, integrator="adaptive")
    rate = (0.3 - 0.2) / 0.2 * w[2]
    exact = np.stack([0.5 * np.cos(rate * run.t), 0.5 * np.sin(rate * run.t), 3.0 + 0 * run.t], 1)
    assert np.abs(run.v - exact).max() < 1e-7
