"""Every integrator runs machines with no, one and two velocities, in every formulation."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from simulate_machines import PD, pendulum, slider

from framefree.machine import Coupling, Fixed, Joint
from framefree.simulate import Noise, simulate
from framefree.simulate.integrators import INTEGRATORS

METHODS = (*INTEGRATORS, "adaptive")
FORMULATIONS = ("tree", "constrained", "maximal", "embedded", "redundant")


def fixed():
    machine = pendulum(1, driven=False)
    (joint,) = machine.joints
    return replace(machine, joints=[Joint(joint.name, Fixed(), joint.parent, joint.child)])


def coupled():
    machine = pendulum(2, driven=False)
    return replace(machine, couplings=[Coupling("gear", "j1", ("j0",), lambda q: 0.5 * q)])


OPEN = {"none": fixed(), "one": pendulum(1), "rail": slider(), "two": pendulum(2)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", OPEN)
def test_open_machines(name, formulation, method):
    machine = OPEN[name]
    x, v = np.full(machine.nx, 0.3), np.full(machine.nv, 0.2)
    options = {"duration": 0.02, "dt": 0.01}
    run = simulate(machine, None, None, x, v, formulation=formulation, integrator=method, **options)
    exact = simulate(machine, None, None, x, v, duration=0.02, dt=1e-3)
    assert run.x.shape == (3, machine.nx)
    assert np.allclose(run.x[-1], exact.x[-1], atol=0.01 if method == "euler" else 1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("formulation", ["constrained", "maximal", "embedded"])
@pytest.mark.parametrize("name", ["coupling", "loop"])
@pytest.mark.parametrize("control_dt", [None, 0.02])
def test_closed_machines_of_one_freedom(name, formulation, method, control_dt):
    if name == "loop":
        machine = n_four_bar(1)
        x, v = four_bar_state(machine, 0.3, 0.5)
    else:
        machine, x, v = coupled(), np.array([0.4, 0.2]), np.array([0.6, 0.3])
    options = {"duration": 0.04, "dt": 0.01, "control_dt": control_dt}
    run = simulate(machine, None, None, x, v, formulation=formulation, integrator=method, **options)
    exact = simulate(machine, None, None, x, v, duration=0.04, dt=1e-3)
    assert np.allclose(run.x[-1], exact.x[-1], atol=0.02 if method == "euler" else 1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("more", [{}, {"lag": 0.05}, {"delay": 1, "predict": True}])
@pytest.mark.parametrize("formulation", ["tree", "constrained"])
def test_one_input_and_one_velocity_under_a_sampled_law(formulation, more, method):
    machine = pendulum(1)
    options = {"duration": 0.06, "dt": 0.01, "control_dt": 0.02, "noise": Noise(1e-6, 1e-6)}
    run = simulate(
        machine,
        PD(machine),
        x0=[0.3],
        formulation=formulation,
        integrator=method,
        **options,
        **more,
    )
    assert np.isfinite(run.u).all()
    assert run.u.shape[1] == 1
