"""Machines in which no two bodies or joints are alike: every plant moves them the same way."""

import numpy as np
import pytest
from random_machines import random_machine
from scipy.integrate import simpson
from simulate_machines import graded, swinging

from framefree.machine import Revolute
from framefree.motion.tree import Tree
from framefree.simulate import Adaptive, simulate


def gap(machine, a, b):
    return max(np.abs(machine.difference(a.x, b.x)).max(), np.abs(a.v - b.v).max())


@pytest.mark.parametrize("formulation", ["maximal", "redundant", "constrained"])
def test_formulations_agree_on_a_graded_chain(formulation):
    machine = graded()
    x, v = swinging(machine)
    options = {"x0": x, "v0": v, "duration": 0.1, "dt": 1e-3}
    tree, other = (
        simulate(machine, **options),
        simulate(machine, formulation=formulation, **options),
    )
    assert gap(machine, tree, other) < 1e-8
    for name in ("kinetic", "potential"):
        assert np.allclose(tree.signals[name], other.signals[name], atol=1e-7)


def test_mujoco_agrees_on_a_graded_chain():
    """Hinges and a slide, as MuJoCo has no rotor a velocity on balls, and no smooth friction."""
    pytest.importorskip("mujoco")
    machine = graded(3, kinds=[Revolute("x"), Revolute((1, 1, 0)), Revolute("y")])
    machine = machine.replace("j1", friction=0.0).replace("j2", friction=0.0)
    x, v = swinging(machine)
    options = {"x0": x, "v0": v, "duration": 0.2, "dt": 1e-4, "every": 20}
    native, other = simulate(machine, **options), simulate(machine, plant="mujoco", **options)
    coarse = simulate(machine, plant="mujoco", **{**options, "dt": 4e-4, "every": 5})
    near, far = gap(machine, native, other), gap(machine, native, coarse)
    assert near < 1e-2
    assert near < 0.3 * far  # its error of first order is all that is between them


@pytest.mark.parametrize("formulation", ["tree", "maximal"])
def test_the_energy_of_rotors_and_springs_stays(formulation):
    machine = graded(4, lossy=False)
    x, v = swinging(machine)
    run = simulate(machine, x0=x, v0=v, duration=0.5, dt=1e-3, formulation=formulation)
    assert np.ptp(run.energy) < 1e-7 * np.abs(run.signals["kinetic"]).max()
    assert np.ptp(run.signals["kinetic"]) > 1.0


@pytest.mark.parametrize("seed", range(4))
def test_energy_falls_by_what_is_lost(seed):
    """E(0) - E(T) is the integral of the losses, of a random machine without fluid and inputs."""
    rng = np.random.default_rng(40 + seed)
    machine = random_machine(rng, bodies=3, fluid=False)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    run = simulate(machine, x0=x, v0=v, duration=0.2, dt=5e-4, integrator=Adaptive(1e-11))
    losses = Tree(machine).functions["dissipation"]
    lost = simpson([float(losses(*state)) for state in zip(run.x, run.v, strict=True)], x=run.t)
    scale = np.abs(run.signals["kinetic"]).max() + np.abs(run.signals["potential"]).max()
    assert abs(run.energy[0] - run.energy[-1] - lost) < 1e-7 * scale
    assert lost > 0
