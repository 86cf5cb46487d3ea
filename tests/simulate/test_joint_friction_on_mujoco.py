"""Dry friction and damping of joints as robot files have them, on MuJoCo: they stop, not shake."""

import numpy as np
import pytest

from framefree.geometry import Moments
from framefree.machine import Body, Joint, Machine, Revolute
from framefree.simulate import SimulationError, simulate
from framefree.simulate.runners.mujoco_drag import end_friction

OPTIONS = {"dt": 1e-3, "progress": False}


def wrist(**resistance):
    """Two links of 3e-4 kg m^2, as those of a small arm's wrist."""
    link = Moments.of_body(0.3, (0.01, 0, 0), 3e-4 * np.eye(3))
    pose = np.eye(4)
    pose[0, 3] = 0.05
    joints = (
        Joint("turn", Revolute("z"), "world", "hand", **resistance),
        Joint("bend", Revolute("y"), "hand", "finger", pose, **resistance),
    )
    return Machine((Body("hand", link), Body("finger", link)), joints)


def test_a_joint_comes_to_rest_as_it_does_in_small_steps():
    """h friction / (width inertia) is 300, h damping / inertia 3: explicit steps shake or grow."""
    machine, start = wrist(friction=1.0, damping=1.0), {"x0": [0.3, 0.2], "v0": [3.0, -2.0]}
    run = simulate(machine, **start, duration=0.05, plant="mujoco", **OPTIONS)
    assert run.meta["integrator"] == "implicit"
    exact = simulate(machine, **start, duration=0.05, dt=1e-6, every=1000, integrator="rk4")
    assert np.abs(run.x - exact.x).max() < 3e-3
    assert np.abs(run.v[-1] - exact.v[-1]).max() < 1e-3
    steps = np.diff(run.x, axis=0)[1:20]
    assert (steps[:, 0] > -1e-6).all()
    assert (steps[:, 1] < 1e-6).all()


def test_friction_at_the_end_of_a_step_solves_its_equation():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 30.0):
        for _ in range(20):
            root = rng.normal(size=(7, 7))
            response, free = scale * root @ root.T, 5 * rng.normal(size=7)
            strength = rng.uniform(0.0, 2.0, 7)

            def friction(v, strength=strength):
                sign = np.tanh(v / 0.01)
                return strength * sign, strength * (1 - sign**2) / 0.01

            f = end_friction(friction, free, response)
            error = response @ (f - friction(free - response @ f)[0])
            assert np.linalg.norm(error) < 1e-8 * np.linalg.norm(free)


def test_slow_friction_is_left_as_it_was():
    machine = wrist(friction=1e-4)
    run = simulate(machine, x0=[0.3, 0.2], duration=0.02, plant="mujoco", **OPTIONS)
    assert run.meta["integrator"] == "rk4"


def test_many_at_once_are_refused_with_a_remedy():
    start = np.zeros((3, 2))
    with pytest.raises(SimulationError, match=r"strong friction of joints.*one state at a time"):
        simulate(wrist(friction=1.0), x0=start, duration=0.01, plant="mujoco", **OPTIONS)
