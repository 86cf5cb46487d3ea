"""Friction near rest is far stiffer than a step resolves: on MuJoCo it must stop, not shake."""

import casadi as ca
import numpy as np
import pytest

from framefree import simulate
from framefree.gallery.machines.touching import block
from framefree.geometry import Moments
from framefree.machine import Body, Contact, ContactShape, Free, Joint, Loop

MATERIAL = {"friction": 0.4, "stiffness": 2e4, "damping": 20.0}
OPTIONS = {"dt": 1e-3, "plant": "mujoco", "progress": False}


@pytest.mark.parametrize("integrator", ["rk4", pytest.param("euler", marks=pytest.mark.slow)])
def test_a_block_slides_to_rest_and_stays_there(integrator):
    """h mu g / v_s is 4: held over a step, friction would turn the block round for ever."""
    machine, speed = block(**MATERIAL), 0.5
    run = simulate(
        machine, x0=[0, 0, 0.04753, 1, 0, 0, 0], v0=[speed, 0, 0, 0, 0, 0.3], duration=0.5,
        integrator=integrator, **OPTIONS,
    )  # fmt: skip
    converged = simulate(
        machine, x0=[0, 0, 0.04753, 1, 0, 0, 0], v0=[speed, 0, 0, 0, 0, 0.3], duration=0.5,
        dt=1e-4, progress=False,
    )  # fmt: skip
    assert np.abs(run.v[-1]).max() < 1e-6
    assert np.abs(run["ground.normal_force"][-1] - 9.81) < 1e-6
    assert np.abs(run.x[-1] - converged.x[-1]).max() < 0.02 * converged.x[-1, 0]


def test_loops_share_in_what_resists():
    """The mass that friction stops is that of both bodies where a loop holds them together."""
    heavy = Body("load", Moments.of_body(5.0, (0, 0, 0), 0.05 * np.eye(3)))
    machine = block(**MATERIAL | {"stiffness": 2e5}).attach(
        heavy,
        Joint("load_base", Free(), "world", "load"),
        Loop("bolt", "weld", "block", "load"),
    )
    start = np.tile([0, 0, 0.04824, 1, 0, 0, 0.0], 2)
    run = simulate(machine, x0=start, v0=[0.3, *5 * [0], 0.3, *5 * [0]], duration=0.4, **OPTIONS)
    assert np.abs(run.v[-1]).max() < 1e-5
    assert abs(run["ground.normal_force"][-1] - 6 * 9.81) < 1e-3
    assert abs(run.x[-1, 0] - 0.3**2 / (2 * 0.4 * 9.81)) < 0.02 * run.x[-1, 0]


def test_drag_is_the_secant_of_friction_and_never_negative():
    shapes = ContactShape("half_space"), ContactShape("box", (0.2, 0.3, 0.1))
    contact = Contact("ground", "world", "block", *shapes, **MATERIAL)
    pose, twist = np.eye(4), np.array([0.02, -0.01, 0, 0, 0, 0.2])
    pose[2, 3] = 0.049
    wrench = np.array(ca.DM(ca.evalf(contact.wrench_at(pose, twist, 0.0)))).ravel()
    C = np.array(ca.DM(ca.evalf(contact.drag(pose, twist, 0.0))))
    assert np.linalg.eigvalsh(C).min() > -1e-9 * np.abs(C).max()
    across = [0, 1, 5]  # what slips over the ground: nothing else resists these
    assert np.abs((wrench + C @ twist)[across]).max() < 1e-12 * np.abs(wrench).max()
