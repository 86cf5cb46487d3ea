"""Machines of any size move alike: nothing is decided by a length in metres or a mass in kg.

A machine whose lengths, masses and times are multiplied by powers of two has the same equations
with other units, so that no digit may change: from a nanometre and a femtogram up to ten kilometres
and a million tonnes.
"""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import evaluate, random_machine, random_state, relative_error
from scaled_machines import LENGTHS, Units, scaled

from framefree.geometry import Moments
from framefree.machine import Body, Frame, Joint, Machine, Revolute
from framefree.motion import equations

UNITS = {
    "dust": Units(2.0**-30, 2.0**-70, 2.0**-2),
    "ships": Units(2.0**13, 2.0**30, 2.0**7),
}
QUANTITIES = ("forward", "inverse", "energy", "power", "dissipation", "joint_wrench")
BAR = 1e-12


def without_mixed_friction(machine):
    """A joint with speeds in m/s and rad/s has one width of friction for both: it has none here."""
    return replace(
        machine,
        joints=[
            replace(j, friction=0.0) if LENGTHS.get(type(j.kind), 0) not in (0, j.nv) else j
            for j in machine.joints
        ],
    )


def slender():
    """A long arm with offsets a thousand and a million times smaller than its length."""
    bodies = [Body(f"b{i}", Moments.of_points(np.eye(3) + 0.1 * i, np.ones(3))) for i in range(2)]
    joints = [
        Joint("j0", Revolute("y"), "world", "b0", (0.5, 1e-3, 0.0), (1e-6, 0.0, 0.2), damping=0.1),
        Joint("j1", Revolute("z"), "b0", "b1", (1.0, 1e-6, -1e-3), (0.0, 1e-3, 0.0)),
    ]
    return Machine(bodies, joints, (Frame("tip", "b1", (1.0, 1e-3, 1e-6)),))


def machine_of(seed):
    rng = np.random.default_rng(800 + seed)
    machine = slender() if seed == 0 else without_mixed_friction(random_machine(rng, bodies=3))
    return rng, machine


def factors(units, machine):
    """Return the factors of outputs by the name of their quantity."""
    return {
        "forward": units.a(machine)[:, None],
        "inverse": units.force(machine)[:, None],
        "energy": units.energy,
        "power": units.power,
        "dissipation": units.power,
        "joint_wrench": units.wrench,
    }


def scaled_state(units, machine, state, last):
    x, v, other = state
    return units.x(machine, x), units.v(machine) * v, last(machine) * other


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("formulation", ["tree", "constrained", "redundant"])
def test_quantities(seed, formulation):
    rng, machine = machine_of(seed)
    one = equations(machine, formulation).functions
    state = random_state(rng, machine)
    for units in UNITS.values():
        two = equations(scaled(machine, units), formulation).functions
        for name in QUANTITIES:
            count = len(one[name].name_in())
            last = units.a if name == "inverse" else units.force
            found = evaluate(two[name], *scaled_state(units, machine, state, last)[:count])
            expected = evaluate(one[name], *state[:count])
            # In the units of the first machine all numbers are of like size.
            found = np.array(found) / factors(units, machine)[name]
            assert relative_error(found, np.array(expected)) < BAR, name


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["forward", "inverse"])
def test_derivatives(seed, name):
    rng, machine = machine_of(seed)
    function = f"{name}_derivatives"
    state = random_state(rng, machine)
    expected = evaluate(equations(machine, "tree").functions[function], *state)
    for units in UNITS.values():
        output, last = (units.a, units.force) if name == "forward" else (units.force, units.a)
        two = equations(scaled(machine, units), "tree").functions[function]
        found = evaluate(two, *scaled_state(units, machine, state, last))
        inputs = (units.v(machine) * units.time, units.v(machine), last(machine))
        for mine, other, column in zip(found, expected, inputs, strict=True):
            assert relative_error(mine * column / output(machine)[:, None], other) < BAR
