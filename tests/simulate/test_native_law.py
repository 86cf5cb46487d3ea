"""A law that is a program of calls runs within the compiled step as it does from Python."""

import casadi as ca
import numpy as np
import pytest

from framefree.control import LimitedTaskControl, TaskControl
from framefree.control.references import FramePath
from framefree.control.tasks import FrameControl, JointControl, StrictPriority
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import se3
from framefree.machine.actuators import motors
from framefree.simulate import SimulationError, simulate
from framefree.simulate.events import SetParameters
from framefree.simulate.noise import Noise

CHAIN = revolute_chain(3)
TIP = CHAIN.bodies[-1].name
X0 = np.array([0.4, 0.5, 0.6])


def arm(effort=np.inf, speed=np.inf):
    machine = CHAIN.attach(*motors(CHAIN.joints))
    for joint in CHAIN.joints:
        machine = machine.replace(f"joint:{joint.name}", effort_limit=effort, velocity_limit=speed)
    return machine


WEAK = arm(2.0, 0.8)


def path(t):
    """A pose that turns and moves: its matrix is not symmetric."""
    return se3.exp(ca.vertcat(0.3, 0.1 * ca.sin(3 * t), 0.2, 0.1, 0.5 * t, 0.3))


TARGET = FramePath("target", path)


def levels(machine):
    return [[FrameControl(TIP, "target", 100.0)], [JointControl(machine, X0, Kp=20.0)]]


class InPython(LimitedTaskControl):
    """The same law, evaluated from Python."""

    native = False


OPTIONS = {
    "each step": {"control_dt": 0.002},
    "slower": {"control_dt": 0.01},
    "rows between periods": {"control_dt": 0.01, "every": 1},
    "rows now and then": {"control_dt": 0.01, "every": 10},
    "implicit": {"control_dt": 0.01, "integrator": "implicit"},
    "delay, noise": {
        "control_dt": 0.01,
        "delay": 2,
        "predict": True,
        "noise": Noise(1e-3, 1e-2),
        "lag": 0.02,
    },
    "many": {
        "control_dt": 0.004,
        "x0": X0 + np.random.default_rng(1).normal(0, 0.1, (5, 3)),
        "v0": np.zeros((5, 3)),
    },
}


@pytest.mark.parametrize("case", OPTIONS)
def test_same_bits_as_from_python(case):
    given = {"x0": X0, "duration": 0.1, "dt": 0.002, **OPTIONS[case]}
    one, other = (
        simulate(WEAK, law(WEAK, levels(WEAK)), TARGET, **given)
        for law in (LimitedTaskControl, InPython)
    )
    assert (one["multiplier"] != 0).any(), "limits must act"
    for name in ("t", "x", "v", "u"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in other.signals:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_evaluated_all_the_time_it_is_the_strict_law(integrator):
    """Without active limits: that of `TaskControl`, an expression evaluated at every stage."""
    machine = arm()
    tasks = [[JointControl(machine, np.zeros(3), Kp=100.0)]]
    given = {"x0": X0, "duration": 0.3, "dt": 0.01, "integrator": integrator}
    one = simulate(machine, LimitedTaskControl(machine, tasks), **given)
    other = simulate(machine, TaskControl(machine, tasks, StrictPriority()), **given)
    np.testing.assert_allclose(one.x, other.x, atol=1e-11)
    np.testing.assert_allclose(one.u, other.u, atol=1e-8)
    np.testing.assert_allclose(one["posture.error"], other["posture.error"], atol=1e-11)


def test_all_the_time_is_the_limit_of_short_periods():
    law = LimitedTaskControl(WEAK, levels(WEAK))
    given = {"x0": X0, "duration": 0.2, "dt": 0.005}
    always = simulate(WEAK, law, TARGET, **given)
    off = [
        np.abs(
            simulate(
                WEAK, law, TARGET, X0, duration=0.2, dt=h, control_dt=h, every=round(5e-3 / h)
            ).x
            - always.x
        ).max()
        for h in (5e-3, 5e-4)
    ]
    assert off[0] > 1e-5, "sampling must matter"
    assert off[1] < 0.15 * off[0]


def test_what_needs_a_control_period():
    law = LimitedTaskControl(WEAK, levels(WEAK))
    with pytest.raises(SimulationError, match="implicit step knows no slopes: give `control_dt`"):
        simulate(WEAK, law, TARGET, X0, duration=0.1, dt=0.01, integrator="implicit")
    with pytest.raises(SimulationError, match="give `control_dt`"):
        simulate(WEAK, law, TARGET, X0, duration=0.1, dt=0.01, integrator="adaptive")


MASS = "link2.mass"


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["native", "mujoco"])
@pytest.mark.parametrize("law", [LimitedTaskControl, InPython])
def test_tunable_machines(plant, law):
    """With another value, also in the midst of a run: as with a machine that has it by itself."""
    tunable = WEAK.tunable(MASS)
    heavy = tunable.with_parameters({MASS: 3.0})
    given = {"x0": X0, "duration": 0.1, "dt": 0.002, "control_dt": 0.002, "plant": plant}
    one = simulate(tunable, law(tunable, levels(tunable)), TARGET, parameters={MASS: 3.0}, **given)
    two = simulate(heavy, law(heavy, levels(heavy)), TARGET, **given)
    light = simulate(WEAK, law(WEAK, levels(WEAK)), TARGET, **given)
    np.testing.assert_allclose(one.x, two.x, atol=1e-11)
    np.testing.assert_allclose(one.u, two.u, atol=1e-8)
    assert np.abs(two.u - light.u).max() > 0.01, "the mass must matter"
    event = SetParameters(0.05, law={MASS: 3.0})
    later = simulate(WEAK, law(tunable, levels(tunable)), TARGET, events=[event], **given)
    np.testing.assert_allclose(later.u[:20], light.u[:20], atol=1e-8)
    assert np.abs(later.u[25:] - light.u[25:]).max() > 0.01


def test_tunable_law_in_a_batch():
    tunable = WEAK.tunable(MASS)
    law = LimitedTaskControl(tunable, levels(tunable))
    masses = np.array([[0.5], [1.0], [2.0], [4.0], [8.0]])
    given = {"duration": 0.05, "dt": 0.002, "control_dt": 0.002}
    many = simulate(
        tunable, law, TARGET, np.tile(X0, (5, 1)), np.zeros((5, 3)), parameters=masses, **given
    )
    for k, mass in enumerate(masses):
        one = simulate(tunable, law, TARGET, X0, parameters=mass, **given)
        np.testing.assert_array_equal(many.x[k], one.x)
        np.testing.assert_array_equal(many["slack"][k], one["slack"])
