"""Consistent states: what `assemble` and `project` give meets the constraints, or says why not."""

import numpy as np
import pytest
from constrained_machines import crane, n_four_bar
from random_machines import random_machine

from framefree.machine import Coupling, StateError
from framefree.motion import ClosureError
from framefree.solve import assemble, project
from framefree.solve.kinematics import constrained


def errors(machine, x, v):
    found = constrained(machine).functions["constraint"](x, v)
    return np.abs(found[2].full()).max(initial=0.0), np.abs(found[3].full()).max(initial=0.0)


def test_crane_is_closed_at_the_angle_that_is_held():
    machine = crane(True)
    x0 = machine.neutral()
    elbow = machine.x_slice["zeta"]
    x0[elbow] = -1.0
    x = assemble(machine, x0, hold=("zeta",))
    assert x[elbow] == -1.0
    assert errors(machine, x, np.zeros(machine.nv))[0] < 1e-10
    # Sides 0.35 m on either side of the elbow, the cylinder's length opposite to it.
    stroke = 2 * 0.35 * np.cos(0.5) - 0.425
    assert abs(x[machine.x_slice["delta"]][0] - stroke) < 1e-9


def test_projection_is_onto_the_constraints_and_nothing_more():
    machine = crane(True)
    rng = np.random.default_rng(0)
    x = assemble(machine, [0.1, 0.2, -1.0, 0.0, 0.0])
    found = project(machine, machine.integrate(x, 1e-2 * rng.normal(size=5)), rng.normal(size=5))
    assert max(errors(machine, found.x, found.v)) < 1e-10
    assert max(found.position_error, found.velocity_error) < 1e-10
    again = project(machine, found.x, found.v)
    assert np.abs(again.x - found.x).max() < 1e-10
    assert np.abs(again.v - found.v).max() < 1e-10


def test_machines_without_constraints_are_consistent_as_they_are():
    rng = np.random.default_rng(1)
    machine = random_machine(rng, bodies=4)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    found = project(machine, x, v)
    assert np.abs(found.x - x).max() < 1e-15
    assert (found.v == v).all()
    assert np.abs(assemble(machine, x) - x).max() < 1e-15
    assert (assemble(machine) == machine.neutral()).all()


def test_parameters_are_taken_as_given():
    machine = crane(True).tunable("boom.length")
    values = {"boom.length": 2.1}
    x0 = [0.0, 0.2, -1.0, 0.0, 0.0]
    x = assemble(machine, x0, hold=("zeta",), parameters=values)
    other = machine.with_parameters(values)
    assert errors(other, x, np.zeros(5))[0] < 1e-10
    assert errors(machine.numeric, x, np.zeros(5))[0] > 1e-3


def test_what_cannot_be_closed_says_by_how_much():
    machine = n_four_bar(1).attach(Coupling.mimic("stiff", "p1", "p0", -3.0, 2.5))
    with pytest.raises(ClosureError, match="cannot be met from here: `l0") as caught:
        assemble(machine, [1.0, 1.0, 1.0], hold=("p0", "e0"))
    assert caught.value.errors["stiff"] > 0.1 or "l0[1]" in caught.value.errors


def test_states_that_are_none_are_refused():
    machine = crane(True)
    with pytest.raises(StateError, match="`x` must have shape"):
        assemble(machine, [0.0, 1.0])
    with pytest.raises(StateError, match="`v` must be finite"):
        project(machine, machine.neutral(), [np.nan] * 5)
