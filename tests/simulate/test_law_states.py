"""States of a law: integrated with the loop, from a first value that may depend on the state."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest
from simulate_machines import slider

from framefree import simulate
from framefree.control.law import Command, Law, Timing
from framefree.machine import Machine
from framefree.simulate import Adaptive, Change, SimulationError


@dataclass(frozen=True)
class Leak(Law):
    """A state z with dz/dt = 3 (x - z), z(0) = x(0) + 2 v(0); it does not act."""

    machine: Machine

    @property
    def memory(self):
        return np.zeros(1)

    def first_memory(self, x, v):
        return x + 2 * v

    def control(self, t, x, v, reference, memory):
        return Command(ca.SX(1, 1), {"z": memory}, rate=3 * (x - memory))


@dataclass(frozen=True)
class Integral(Law):
    """u = -4 x - 3 v - 2 z, dz/dt = x: an oscillator with an integral, which is linear."""

    machine: Machine

    @property
    def memory(self):
        return np.array([0.3])

    def control(self, t, x, v, reference, memory):
        return Command(-4 * x - 3 * v - 2 * memory, {"z": memory}, rate=x)


@dataclass(frozen=True)
class Both(Law):
    """A count of the evaluations and, in the same memory, the time."""

    machine: Machine

    @property
    def memory(self):
        return np.zeros(2)

    def control(self, t, x, v, reference, memory):
        counted = ca.vertcat(memory[0] + 1, memory[1])
        return Command(ca.SX(1, 1), {"memory": memory}, counted, ca.vertcat(0, 1))


def exact_leak(t, x, v):
    """z where x moves at a constant v."""
    start = x + 2 * v - (x - v / 3)
    return x + v * t - v / 3 + start * np.exp(-3 * t)


@pytest.mark.parametrize("integrator", ["rk4", Adaptive(1e-12)])
def test_a_law_evaluated_all_the_time_is_integrated_with_the_plant(integrator):
    machine = slider()
    run = simulate(
        machine, Leak(machine), x0=[0.5], v0=[0.2], duration=1.0, dt=1e-2, integrator=integrator
    )
    assert np.allclose(run.signals["z"].ravel(), exact_leak(run.t, 0.5, 0.2), atol=1e-8)


def test_the_closed_loop_with_the_state_of_a_law_is_exact():
    machine = slider()
    run = simulate(machine, Integral(machine), x0=[0.5], v0=[0.2], duration=2.0, dt=1e-3)
    mass = float(machine.bodies[0].inertia.total)
    A = np.array([[0, 1, 0], [-4 / mass, -3 / mass, -2 / mass], [1, 0, 0]])
    values, vectors = np.linalg.eig(A)
    start = np.linalg.solve(vectors, [0.5, 0.2, 0.3])
    z = (vectors[2] * start * np.exp(np.outer(run.t, values))).sum(axis=1).real
    assert np.allclose(run.signals["z"].ravel(), z, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"every": 1}, {"plant": "mujoco"}])
def test_a_sampled_law_moves_by_a_period_at_a_time(options):
    if options.get("plant") == "mujoco":
        pytest.importorskip("mujoco")
    machine = slider()
    common = {"x0": [0.5], "v0": [0.2], "duration": 0.2, "dt": 1e-3, "control_dt": 1e-2}
    run = simulate(machine, Leak(machine), **common, **options)
    rows = slice(None, None, 10 if len(run.t) > 100 else 1)
    z, x = run.signals["z"].ravel()[rows], run.x[rows, 0]
    assert len(z) == 21
    assert np.allclose(z[1:], z[:-1] + 1e-2 * 3 * (x[:-1] - z[:-1]), atol=1e-12)


def test_many_trajectories_start_with_memories_of_their_own():
    machine = slider()
    x0, v0 = np.array([[0.5], [-0.1], [0.0]]), np.array([[0.2], [0.0], [1.0]])
    run = simulate(machine, Leak(machine), x0=x0, v0=v0, duration=0.5, dt=1e-2)
    for k in range(3):
        expected = exact_leak(run.t, x0[k, 0], v0[k, 0])
        assert np.allclose(run.signals["z"][k].ravel(), expected, atol=1e-8)


def test_a_state_goes_on_through_events_and_a_new_law_starts_anew():
    machine = slider()
    law = Leak(machine)
    same = Change(0.5, machine=replace(machine))
    run = simulate(machine, law, x0=[0.5], v0=[0.2], duration=1.0, dt=1e-2, events=[same])
    assert np.allclose(run.signals["z"].ravel(), exact_leak(run.t, 0.5, 0.2), atol=1e-8)
    other = Change(0.5, law=Leak(machine))
    run = simulate(machine, law, x0=[0.5], v0=[0.2], duration=1.0, dt=1e-2, events=[other])
    assert run.signals["z"].ravel()[50] == pytest.approx(0.5 + 0.1 + 2 * 0.2)


@pytest.mark.parametrize("control_dt", [None, 1e-2])
def test_a_memory_that_jumps_and_moves(control_dt):
    machine = slider()
    run = simulate(machine, Both(machine), duration=0.1, dt=1e-3, control_dt=control_dt)
    assert np.allclose(run.signals["memory"][:, 0], np.arange(len(run.t)))
    assert np.allclose(run.signals["memory"][:, 1], run.t)


def test_a_law_learns_the_period_and_what_a_prediction_leaves_of_the_delay():
    seen = []

    class Asked(Leak):
        def timed(self, timing):
            seen.append(timing)
            return self

    machine = slider()
    for options in ({}, {"control_dt": 5e-3}, {"control_dt": 5e-3, "delay": 3}):
        simulate(machine, Asked(machine), duration=0.02, dt=1e-3, **options)
    simulate(
        machine, Asked(machine), duration=0.02, dt=1e-3, control_dt=5e-3, delay=3, predict=1e-2
    )
    periods_and_delays = [(0, 0), (5e-3, 0), (5e-3, 3), (5e-3, 1)]
    assert seen == [Timing(*timing, native=True) for timing in periods_and_delays]


def test_a_first_memory_of_another_size_is_refused():
    class Wrong(Leak):
        def first_memory(self, x, v):
            return ca.vertcat(x, v)

    with pytest.raises(SimulationError, match="memory has 1 entries"):
        simulate(slider(), Wrong(slider()), duration=0.1, dt=1e-2)
