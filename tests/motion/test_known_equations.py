"""Compiled equations are found again without tracing, and only where nothing has changed."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.gallery import MACHINES
from framefree.machine import Interaction
from framefree.motion.equations import Functions

FORMULATIONS = ("tree", "maximal", "constrained", "redundant")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FRAMEFREE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FRAMEFREE_CACHE", "on")


@pytest.fixture
def traced(monkeypatch):
    """Names of the quantities that were traced."""
    names, trace = [], Functions._trace

    def noted(self, name):
        names.append(name)
        return trace(self, name)

    monkeypatch.setattr(Functions, "_trace", noted)
    return names


def pendulum(**changes):
    return replace(MACHINES["double-pendulum"](), **changes)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_second_start_does_not_trace(traced, formulation):
    x, v = np.array([0.3, -0.2]), np.array([0.5, 0.1])
    first = ff.equations(pendulum(), formulation)
    state = first.start(x, v)
    before = first.energy(*state)
    assert "energy" in traced
    traced.clear()
    second = ff.equations(pendulum(name="the same by another name"), formulation)
    after = second.energy(*state)
    assert traced == []
    assert np.array_equal(before, after)
    assert second.energy.function.name_in() == first.energy.function.name_in()
    assert traced == ["energy"]  # the graph is there for whoever asks


def test_what_changes_the_equations_is_traced_anew(traced):
    x, v = np.array([0.3, -0.2]), np.array([0.5, 0.1])
    kinetic, potential = ff.equations(pendulum(), "tree").energy(x, v)
    lighter = pendulum(gravity=(0, 0, -1.62))
    assert ff.equations(lighter, "tree").energy(x, v)[1] == pytest.approx(potential * 1.62 / 9.81)
    heavy = pendulum(bodies=[replace(body, inertia=2 * body.inertia) for body in pendulum().bodies])
    assert ff.equations(heavy, "tree").energy(x, v)[0] == pytest.approx(2 * kinetic)
    assert traced == ["energy"] * 3


def test_numbers_that_become_tunable_are_another_function(traced):
    machine = pendulum()
    ff.equations(machine, "tree").gravity(np.zeros(2))
    tunable = machine.tunable("gravity.z")
    eom = ff.equations(tunable, "tree")
    moon = tunable.parameters.values({"gravity.z": -1.62})
    x = np.array([0.3, -0.2])
    earth = ff.equations(machine, "tree").gravity(x)
    assert eom.gravity(x, moon) == pytest.approx(earth * 1.62 / 9.81)


def test_functions_of_the_user_are_never_taken_for_known(traced):
    body = pendulum().bodies[1].name

    def pulled(strength):
        wrench = ca.vertcat(strength * ca.DM.ones(3), ca.DM.zeros(3))
        pull = Interaction("pull", body, "world", lambda pose: wrench)
        return ff.equations(pendulum().attach(pull), "tree")

    state = np.array([0.3, -0.2]), np.zeros(2), np.zeros(2)
    assert not np.allclose(pulled(1.0).forward(*state), pulled(2.0).forward(*state))
    assert traced == ["forward", "forward"]
