"""The observed order of every integrator, by regression on machines over all groups."""

import casadi as ca
import numpy as np
import pytest
from random_machines import random_machine, random_moments, random_pose

from framefree.control.law import OpenLoop
from framefree.machine import Body, Free, Joint, Machine, Planar, Revolute, Spherical
from framefree.machine.actuators import motors
from framefree.motion.groups import JointGroup
from framefree.motion.tree import Tree
from framefree.simulate import simulate
from framefree.simulate.integrators import (
    INTEGRATORS,
    DormandPrince,
    ExplicitIntegrator,
    ImplicitIntegrator,
)

EXPLICIT = {k: v for k, v in INTEGRATORS.items() if isinstance(v, ExplicitIntegrator)}
IMPLICIT = {k: v for k, v in INTEGRATORS.items() if isinstance(v, ImplicitIntegrator)}
METHODS = {**EXPLICIT, "dormand-prince": DormandPrince()}
KINDS = {
    "free": (Free(), Revolute("x")),
    "spherical": (Spherical(), Spherical()),
    "planar": (Planar((1, 2, 3)), Planar("x")),
    "vector": (Revolute("x"), Revolute((1, 1, 0))),
}


def machine_of(kinds, rng):
    """Bodies in a row, with joints of these kinds at random places, falling and swinging."""
    bodies = [Body(f"b{i}", random_moments(rng)) for i in range(len(kinds))]
    joints = [
        Joint(f"j{i}", kind, f"b{i - 1}" if i else "world", f"b{i}", random_pose(rng))
        for i, kind in enumerate(kinds)
    ]
    return Machine(bodies, joints)


def stepper(machine, integrator):
    x, v, dt = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv), ca.SX.sym("dt")
    forward = Tree(machine).functions["forward"]
    t = ca.SX.sym("t")
    x1, v1 = integrator.step(
        lambda t, x, v: forward(x, v, ca.sin(3 * t) * ca.DM.ones(machine.nv)),
        JointGroup(machine),
        t,
        x,
        v,
        dt,
    )
    return ca.Function("step", [t, x, v, dt], [x1, v1])


def final_state(step, x, v, duration, steps):
    dt = duration / steps
    for k in range(steps):
        x, v = step(k * dt, x, v, dt)
    return x.full().ravel(), v.full().ravel()


def observed_order(machine, integrator, rng, counts):
    x0, v0 = ca.DM(machine.random(rng)), ca.DM(rng.normal(size=machine.nv))
    exact = final_state(stepper(machine, METHODS["dormand-prince"]), x0, v0, 0.25, 512)
    step = stepper(machine, integrator)
    errors = []
    for count in counts:
        x, v = final_state(step, x0, v0, 0.25, int(count))
        gap = machine.difference(exact[0], x)
        errors.append(np.linalg.norm(np.concatenate([gap, v - exact[1]])))
    return -np.polyfit(np.log(counts), np.log(errors), 1)[0]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_observed_order(name, kind):
    rng = np.random.default_rng(3)
    machine = machine_of(KINDS[kind], rng)
    slope = observed_order(machine, METHODS[name], rng, np.array([16, 32, 64]))
    # The leading term of the fifth-order error is small: the next one still shows at these steps.
    above = 0.6 if METHODS[name].order == 5 else 0.2
    assert METHODS[name].order - 0.2 < slope < METHODS[name].order + above


def order_of_runs(machine, integrator, rng):
    """Return the order with which the end of runs under a varying push is reached."""
    machine = machine.attach(*motors(machine.joints))
    law = OpenLoop(machine, lambda t: ca.sin(3 * t) * ca.DM.ones(machine.nu))
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    options = {"x0": x, "v0": v, "duration": 0.25, "record": (), "limits": False}
    exact = simulate(machine, law, dt=0.25 / 512, integrator="rk4", every=512, **options)
    errors, counts = [], np.array([16, 32, 64])
    for count in counts.tolist():
        run = simulate(machine, law, dt=0.25 / count, integrator=integrator, every=count, **options)
        gap = machine.difference(exact.x[-1], run.x[-1])
        errors.append(np.linalg.norm(np.concatenate([gap, run.v[-1] - exact.v[-1]])))
    return -np.polyfit(np.log(counts), np.log(errors), 1)[0]


@pytest.mark.parametrize("name", IMPLICIT)
@pytest.mark.parametrize("kind", KINDS)
def test_observed_order_of_implicit_integrators(name, kind):
    rng = np.random.default_rng(3)
    slope = order_of_runs(machine_of(KINDS[kind], rng), name, rng)
    assert abs(slope - IMPLICIT[name].order) < 0.2


@pytest.mark.parametrize("name", EXPLICIT)
def test_observed_order_of_random_machines(name):
    rng = np.random.default_rng(5)
    machine = random_machine(rng, bodies=3, fluid=False)
    slope = observed_order(machine, METHODS[name], rng, np.array([16, 32, 64]))
    assert abs(slope - METHODS[name].order) < 0.3


def test_the_error_estimate_falls_with_the_fifth_power():
    rng = np.random.default_rng(0)
    machine = machine_of((Free(), Spherical(), Planar("y")), rng)
    forward = Tree(machine).functions["forward"]
    x, v, dt = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv), ca.SX.sym("dt")
    outputs = DormandPrince().step_with_error(
        lambda t, x, v: forward(x, v, ca.DM.zeros(machine.nv)), JointGroup(machine), 0, x, v, dt
    )
    step = ca.Function("step", [x, v, dt], list(outputs))
    x0, v0, lengths = (
        machine.random(rng),
        rng.normal(size=machine.nv),
        np.array([0.02, 0.01, 0.005]),
    )
    for which in (2, 3):
        errors = [np.linalg.norm(step(x0, v0, h)[which].full()) for h in lengths]
        slope = np.polyfit(np.log(lengths), np.log(errors), 1)[0]
        assert abs(slope - 5) < 0.3
