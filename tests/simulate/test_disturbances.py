"""Pulses give exactly their impulse, whatever the step and the integrator."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from simulate_machines import free_body, pendulum, slider

from framefree.machine import Frame
from framefree.simulate import Pulse, Push, SimulationError, simulate


@pytest.mark.parametrize("integrator", ["rk4", "euler", "midpoint", "adaptive"])
@pytest.mark.parametrize("start", [0.1, 0.1037])
def test_impulse(integrator, start):
    """Linear momentum changes by force times duration, angular momentum by moment times it."""
    machine = free_body()
    wrench = np.array([1.0, -2.0, 0.5, 0.03, 0.02, -0.05])
    v = np.array([0.1, 0.2, 0.3, 1.0, 2.0, -1.0])
    run = simulate(
        machine, v0=v, duration=0.4, dt=1e-3, integrator=integrator,
        disturbances=[Pulse("body", wrench, start, 0.123)], record=("momentum",),
    )  # fmt: skip
    linear, spin = run.signals["linear_momentum"], run.signals["centroidal_momentum"]
    # The velocity is in body axes: what is exact is the impulse, not how it is turned into these.
    close = {"rk4": 1e-9, "euler": 1e-2, "midpoint": 1e-5, "adaptive": 1e-7}[integrator]
    assert np.allclose(linear[-1] - linear[0], wrench[:3] * 0.123, atol=close)
    assert np.allclose(spin[-1] - spin[0], wrench[3:] * 0.123, atol=close)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "midpoint"])
def test_impulse_on_a_rail_is_exact(integrator):
    machine = slider(driven=False)
    push = Pulse("rail", 3.0, 0.0104, 0.0333)
    run = simulate(machine, duration=0.1, dt=1e-3, integrator=integrator, disturbances=[push])
    assert np.isclose(run.v[-1, 0], 3.0 * 0.0333 / 2.0, rtol=1e-12)


def test_a_wrench_acts_at_the_origin_of_its_frame():
    machine = free_body().attach(Frame("nozzle", "body", (0.5, 0, 0)))
    run = simulate(
        machine, duration=1e-3, dt=1e-3, integrator="euler",
        disturbances=[Pulse("nozzle", (0, 1.0, 0, 0, 0, 0), axes="frame")],
    )  # fmt: skip
    assert np.allclose(run.v[-1], [0, 0.5e-3, 0, 0, 0, 0.5 / 0.25 * 1e-3])


def test_axes_of_a_turned_body():
    machine = free_body()
    half = np.sqrt(0.5)
    x = np.array([0, 0, 0, half, 0, 0, half])  # a quarter turn about z
    force = (1.0, 0, 0, 0, 0, 0)
    world = simulate(machine, x0=x, duration=0.1, dt=0.1, disturbances=[Pulse("body", force)])
    frame = simulate(
        machine, x0=x, duration=0.1, dt=0.1, disturbances=[Pulse("body", force, axes="frame")]
    )
    assert np.allclose(world.x[-1, :2], [0.0025, 0], atol=1e-15)
    assert np.allclose(frame.x[-1, :2], [0, 0.0025], atol=1e-15)


def test_a_push_varies_with_time():
    machine = slider(driven=False)
    push = Push("cart", lambda t: [ca.sin(t), 0, 0, 0, 0, 0])
    run = simulate(machine, duration=2.0, dt=1e-2, disturbances=[push])
    assert np.allclose(run.v[:, 0], (1 - np.cos(run.t)) / 2, atol=1e-10)


def test_joints_carry_wrenches_and_not_joint_forces():
    """A force along the rod of a hanging pendulum loads its joint, but does not turn it."""
    machine = pendulum(1, driven=False)
    run = simulate(
        machine, duration=0.01, dt=1e-3, disturbances=[Pulse("tip", (0, 0, -7.0, 0, 0, 0))]
    )
    assert np.allclose(run.signals["joint_wrench"][0, 0], [0, 0, 9.81 + 7.0, 0, 0, 0], atol=1e-12)
    assert np.abs(run.x).max() < 1e-15


def test_refused():
    machine = slider(driven=False)
    with pytest.raises(SimulationError, match="must be 6 numbers"):
        simulate(machine, duration=0.1, dt=0.1, disturbances=[Pulse("cart", (1.0, 2.0))])
    with pytest.raises(SimulationError, match='must be "world" or "frame"'):
        Pulse("cart", np.zeros(6), axes="body")
    with pytest.raises(SimulationError, match="last at least 0 s"):
        Pulse("cart", np.zeros(6), 0.0, -1.0)


def test_a_wrench_on_a_name_of_a_joint_and_a_body_is_the_bodys():
    """As in files whose links and joints have one name; a joint's force is still the joint's."""
    machine = pendulum(2, driven=False)
    joints = tuple(replace(joint, name=f"rod{k}") for k, joint in enumerate(machine.joints))
    shared = machine.replace(joints=joints)
    wrench = [1.0, -2.0, 0.5, 0.03, 0.02, -0.05]
    runs = [
        simulate(one, duration=0.1, dt=1e-3, disturbances=Pulse("rod1", wrench))
        for one in (machine, shared)
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert np.abs(runs[0].x[-1]).max() > 1e-3
    runs = [
        simulate(one, duration=0.1, dt=1e-3, disturbances=Pulse(name, [0.3]))
        for one, name in ((machine, "j1"), (shared, "rod1"))
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
