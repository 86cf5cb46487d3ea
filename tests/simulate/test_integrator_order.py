"""The observed order of every integrator, by regression on machines over all groups."""

import casadi as ca
import numpy as np
import pytest
from random_machines import random_machine

from framefree.motion.tree import Tree
from framefree.simulate.groups import JointGroup
from framefree.simulate.integrators import INTEGRATORS


def stepper(machine, integrator):
    x, v, dt = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv), ca.SX.sym("dt")
    forward = Tree(machine).functions["forward"]
    zero = np.zeros(machine.nv)
    x1, v1 = integrator.step(
        lambda t, x, v: forward(x, v, zero), JointGroup(machine), ca.SX(0), x, v, dt
    )
    return ca.Function("step", [x, v, dt], [x1, v1])


def final_state(step, x, v, duration, steps):
    for _ in range(steps):
        x, v = step(x, v, duration / steps)
    return x.full().ravel(), v.full().ravel()


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_observed_order(name, seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, bodies=3, fluid=False)
    x0, v0 = ca.DM(machine.random(rng)), ca.DM(rng.normal(size=machine.nv))
    exact = final_state(stepper(machine, INTEGRATORS["rk4"]), x0, v0, 0.2, 1024)
    step = stepper(machine, INTEGRATORS[name])
    counts = np.array([16, 32, 64])
    errors = []
    for count in counts:
        x, v = final_state(step, x0, v0, 0.2, int(count))
        gap = machine.difference(exact[0], x)
        errors.append(np.linalg.norm(np.concatenate([gap, v - exact[1]])))
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope - INTEGRATORS[name].order) < 0.25
