"""The closed loop, against the same loop written out step by step in NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from simulate_machines import PD, Counter, Sine, pendulum, slider

from framefree.control.law import OpenLoop
from framefree.machine import Body, Joint, Revolute
from framefree.machine.actuators import JointForce
from framefree.motion.tree import Tree
from framefree.simulate import Drive, Noise, SimulationError, simulate
from framefree.simulate.noise import NoiseSource


def acceleration(machine):
    forward = Tree(machine).functions["forward"]
    return lambda x, v, force: forward(x, v, force).full().ravel()


def rk4(rate, t, y, h):
    k1 = rate(t, y)
    k2 = rate(t + h / 2, y + h / 2 * k1)
    k3 = rate(t + h / 2, y + h / 2 * k2)
    k4 = rate(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def test_the_law_acts_at_every_stage():
    machine = pendulum()
    a, law, reference = acceleration(machine), PD(machine), Sine(2)
    x, v, h = np.array([0.4, -0.2]), np.array([0.1, 1.0]), 5e-3

    def rate(t, y):
        wanted = reference.at(t)["x"].full().ravel()
        return np.concatenate([y[2:], a(y[:2], y[2:], -20 * (y[:2] - wanted) - 3 * y[2:])])

    run = simulate(machine, law, reference, x, v, duration=0.2, dt=h)
    y = np.concatenate([x, v])
    for k in range(40):
        assert np.allclose(np.concatenate([run.x[k], run.v[k]]), y, rtol=0, atol=1e-12)
        y = rk4(rate, k * h, y, h)
    error = run.x - run.reference["x"]
    assert np.allclose(run.u, -20 * error - 3 * run.v, atol=1e-12)
    assert np.allclose(run.signals["V"], 10 * (error**2).sum(axis=1), atol=1e-12)
    assert np.allclose(run.t, np.arange(41) * h)


def by_hand(machine, x, v, steps, h, *, ratio, delay=0, lag=None, noise=None, limit=np.inf):
    """Sampled loop with semi-implicit Euler; returns x, v, u at every step."""
    a, nu = acceleration(machine), machine.nu
    pipe, z, held = [np.zeros(nu)] * delay, np.zeros(nu), None
    rows = []
    for k in range(steps + 1):
        if k % ratio == 0:
            n = np.zeros(2 * machine.nv) if noise is None else noise[k // ratio]
            command = np.clip(-20 * (x + n[:2]) - 3 * (v + n[2:]), -limit, limit)
            pipe.append(command)
            held = pipe.pop(0)
        u = held if lag is None else z
        rows.append((x, v, u))
        v = v + h * a(x, v, u)
        x = x + h * v
        if lag is not None:
            z = z + h * (held - z) / lag
    return [np.array(part) for part in zip(*rows, strict=True)]


CASES = {
    "plain": {},
    "delay": {"delay": 2},
    "lag": {"lag": 0.02},
    "noise": {"noise": Noise(0.01, 0.1)},
    "limits": {"limit": 1.5},
    "all": {"delay": 1, "lag": 0.01, "noise": Noise(0.01, (0.1, 0.2)), "limit": 2.0},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("every", [5, 1])
def test_sample_and_hold(case, every):
    """Rows in every control period take one kernel step each; rows in between, gated ones."""
    given = dict(CASES[case])
    limit = given.pop("limit", np.inf)
    machine = pendulum()
    machine = replace(
        machine, actuators=[replace(a, lower=-limit, upper=limit) for a in machine.actuators]
    )
    x, v, h = np.array([0.4, -0.2]), np.array([0.1, 1.0]), 2e-3
    run = simulate(
        machine, PD(machine), x0=x, v0=v, duration=0.1, dt=h, control_dt=5 * h, integrator="euler",
        every=every, seed=3, **given,
    )  # fmt: skip
    if "noise" in given:
        given["noise"] = NoiseSource(given["noise"].scale(machine), 3, None).periods(0, 11)
    expected = by_hand(machine, x, v, 50, h, ratio=5, limit=limit, **given)
    for name, values in zip("xvu", expected, strict=True):
        assert np.allclose(getattr(run, name), values[::every], rtol=0, atol=1e-11), name
    assert np.allclose(run.t, np.arange(0, 51, every) * h)


def test_without_limits_commands_pass():
    machine = slider()
    machine = replace(machine, actuators=[replace(machine.actuators[0], lower=-1.0, upper=1.0)])
    free = simulate(machine, PD(machine), x0=[1.0], duration=0.01, dt=1e-3, limits=False)
    held = simulate(machine, PD(machine), x0=[1.0], duration=0.01, dt=1e-3)
    assert free.u[0] == -20.0
    assert held.u[0] == -1.0


def test_motor_forces_and_efforts_are_limited():
    machine = slider()
    weak = JointForce("rail_motor", "rail", gain=2.0, force_lower=-3.0, force_upper=3.0)
    limited = replace(machine, actuators=[weak])
    run = simulate(limited, PD(limited), x0=[1.0], duration=0.01, dt=1e-3)
    assert np.isclose(run.v[1, 0], -3.0 / 2.0 * 1e-3)
    stopped = replace(machine, joints=[replace(machine.joints[0], effort_limit=0.5)])
    run = simulate(stopped, PD(stopped), x0=[1.0], duration=0.01, dt=1e-3)
    assert np.isclose(run.v[1, 0], -0.5 / 2.0 * 1e-3)


def test_drives_of_other_kinds():
    """A motor whose force is the square of its speed, which follows the command with a lag."""

    class Fan(Drive):
        def start(self, u):
            return np.sqrt(u)

        def rate(self, z, command):
            return 10 * (command - z**2)

        def u(self, z, command):
            return z**2

    machine = slider()
    run = simulate(
        machine, OpenLoop(machine, lambda t: 4.0), duration=1.0, dt=1e-3, lag=Fan(), u0=[1.0]
    )
    # dz/dt = 10 (4 - z^2), z(0) = 1
    z = 2 * np.tanh(20 * run.t + np.arctanh(0.5))
    assert np.allclose(run.u[:, 0], z**2, atol=1e-8)
    assert np.all(run.signals["command"] == 4.0)


def test_memory_changes_once_a_control_period():
    machine = slider()
    held = simulate(machine, Counter(machine), duration=0.1, dt=1e-3, control_dt=5e-3)
    assert np.array_equal(held.signals["count"], np.arange(21))
    always = simulate(machine, Counter(machine), duration=0.1, dt=1e-3)
    assert np.array_equal(always.signals["count"], np.arange(101))


def test_a_law_made_for_another_machine():
    """The plant has a further link, other masses, and its actuators in another order."""
    model = pendulum()
    more = model.replace("rod1", mass=3.0).attach(
        Body("rod2", model.bodies[0].inertia),
        Joint("j2", Revolute("y"), "rod1", "rod2", (0, 0, -0.5)),
    )
    plant = replace(more, actuators=tuple(reversed(more.actuators)))
    x = np.array([0.3, -0.1, 0.2])
    run = simulate(plant, PD(model), x0=x, duration=0.05, dt=1e-3)
    assert np.allclose(run.u, (-20 * run.x[:, :2] - 3 * run.v[:, :2])[:, ::-1])
    alone = simulate(plant, PD(model, stiffness=0.0, damping=0.0), x0=x, duration=0.05, dt=1e-3)
    assert np.abs(run.x - alone.x).max() > 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"control_dt": 2.5e-3}, "multiple of `dt`"),
        ({"noise": Noise(0.1)}, "needs a control period"),
        ({"delay": 1}, "needs a control period"),
        ({"duration": -1.0}, "`duration` must be a positive time"),
        ({"integrator": "rk5"}, "there is no integrator `rk5`"),
        ({"plant": "bullet"}, "`plant` must be one of"),
        ({"lag": 1e-4}, "longer than the time constant"),
        ({"lag": [0.1, 0.1, 0.1]}, "one time constant or 2, got 3"),
        ({"every": 0}, "whole number from 1"),
        ({"record": ["heat"]}, "`record` cannot be `heat`"),
        ({"u0": [1.0]}, "`u0` must be 2 finite numbers"),
    ],
)
def test_refused(options, message):
    machine = pendulum()
    given = {"duration": 0.01, "dt": 1e-3, **options}
    with pytest.raises(SimulationError, match=message):
        simulate(machine, PD(machine), **given)


def test_refused_laws():
    machine, other = pendulum(), slider()
    with pytest.raises(SimulationError, match="joint `rail` is not one of the plant"):
        simulate(machine, PD(other), duration=0.01, dt=1e-3)

    class Wants(PD):
        needs = ("tool.pose",)

    with pytest.raises(SimulationError, match=r"needs a reference `tool.pose`; given: `x`, `v`"):
        simulate(machine, Wants(machine), Sine(2), duration=0.01, dt=1e-3)
    Wants.needs = ("x",)
    with pytest.raises(
        SimulationError, match=r"`x` of the law Wants must have 2 entries.*\(3, 1\)"
    ):
        simulate(machine, Wants(machine), Sine(3), duration=0.01, dt=1e-3)
