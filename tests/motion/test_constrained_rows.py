"""Constraint rows by finite differences: d/dt(error) along a motion is what the rows say."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from constrained_machines import KINDS, random_closed, random_couplings
from random_machines import random_machine

from framefree.geometry import se3
from framefree.machine import Loop, MachineError
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import (
    Acceleration,
    Closed,
    Holonomic,
    Nonholonomic,
    Stabilisation,
)
from framefree.motion.constrained.states import numbers


def moved(machine, x, v, a, t, h):
    """The state after time h (of either sign) of a motion of acceleration a, to second order."""
    return machine.integrate(x, h * v + h * h / 2 * a), v + h * a, t + h


def errors(eom, x, v, t):
    A, b, position, velocity, gradient, _ = numbers(eom, "constraint", x=x, v=v, t=t)
    return A, b, position, velocity, gradient


def check_rates(eom, x, v, rng, tolerance=1e-6):
    """d(eta)/dt = A a - b, and d(phi)/dt = gradient v where the constraint is holonomic."""
    a, t, h = rng.normal(size=eom.sizes["v"]), 0.3, 1e-5
    A, b, _, _, gradient = errors(eom, x, v, t)
    _, _, before, eta_before, _ = errors(eom, *moved(eom.machine, x, v, a, t, -h))
    _, _, after, eta_after, _ = errors(eom, *moved(eom.machine, x, v, a, t, h))
    scale = 1 + np.abs(A).max() * np.abs(a).max() + np.abs(b).max()
    assert np.abs((eta_after - eta_before) / (2 * h) - (A @ a - b)).max() < tolerance * scale
    return (after - before) / (2 * h), gradient


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", ["group", "residual"])
def test_rows_of_loops_anywhere(kind, error):
    """At open loops too: the rows belong to the error wherever it is."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        machine, x = random_closed(rng, (kind,), passive=False, fluid=False)
        eom = Constrained(machine, stabilisation=Stabilisation(error=error))
        x = machine.integrate(x, 0.3 * rng.normal(size=machine.nv))
        v = rng.normal(size=machine.nv)
        rate, gradient = check_rates(eom, x, v, rng)
        assert np.abs(rate - gradient @ v).max() < 1e-6 * (1 + np.abs(rate).max())
        if error == "residual":
            _, _, _, velocity, _ = errors(eom, x, v, 0.0)
            assert np.allclose(velocity, gradient @ v, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_both_errors_give_the_same_rows_where_loops_are_closed(kind):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        machine, x = random_closed(rng, (kind,), passive=False, fluid=False)
        group, residual = (
            Constrained(machine, stabilisation=Stabilisation(error=e))
            for e in ("group", "residual")
        )
        v = group.project(x, rng.normal(size=machine.nv)).v
        for first, second in zip(errors(group, x, v, 0), errors(residual, x, v, 0), strict=True):
            assert np.allclose(first, second, atol=1e-9)


def test_rows_of_couplings():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        machine = random_couplings(rng)
        eom = Constrained(machine)
        v = rng.normal(size=machine.nv)
        rate, gradient = check_rates(eom, machine.random(rng), v, rng)
        assert np.abs(rate - gradient @ v).max() < 1e-6 * (1 + np.abs(rate).max())


def test_rows_of_given_constraints():
    rng = np.random.default_rng(0)
    machine = random_machine(rng, bodies=4, passive=False, fluid=False)

    def phi(x, t):
        return ca.vertcat(ca.sumsqr(x) - ca.sin(t), x[0] * x[1] - t**2)

    def eta(x, v, t):
        return ca.sin(x[0]) * v[1] - v[0] * v[2] + ca.cos(3 * t)

    eom = Constrained(machine, [Holonomic("path", phi), Nonholonomic("roll", eta)])
    assert eom.rheonomic
    assert eom.labels == ("path[0]", "path[1]", "roll")
    for _ in range(5):
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        rate, _ = check_rates(eom, x, v, rng)
        velocity = errors(eom, x, v, 0.3)[3]
        assert np.allclose(rate[:2], velocity[:2], atol=1e-6)


@pytest.mark.parametrize("kind", ["weld", "ball", "hinge", "slider"])
@pytest.mark.parametrize("error", ["group", "residual"])
def test_rows_of_driven_loops(kind, error):
    def path(t):
        return se3.exp(ca.vertcat(ca.sin(t), t**2, -t, ca.cos(2 * t), 0.3 * t, 1))

    axis = {"axis": (1, 2, 3)} if kind in ("hinge", "slider") else {}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        machine = random_machine(rng, bodies=4, passive=False, fluid=False)
        loop = Loop("drive", kind, "f_world", "f3", **axis)
        driven = Closed("drive", loop, path, gains=Stabilisation(error=error))
        eom = Constrained(machine, [driven])
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        rate, _ = check_rates(eom, x, v, rng, 1e-5)
        if error == "residual":
            assert np.allclose(
                rate, errors(eom, x, v, 0.3)[3], atol=1e-5 * (1 + np.abs(rate).max())
            )


def test_stabilisation_adds_both_errors():
    rng = np.random.default_rng(5)
    machine, x = random_closed(rng)
    x = machine.integrate(x, 0.1 * rng.normal(size=machine.nv))
    v = rng.normal(size=machine.nv)
    plain, pulled = Constrained(machine), Constrained(machine, stabilisation=Stabilisation(7, 3))
    _, b, position, velocity, _ = errors(plain, x, v, 0)
    assert np.allclose(errors(pulled, x, v, 0)[1], b - 3 * velocity - 7 * position)
    critical = Stabilisation.critical(5.0)
    assert (critical.position, critical.velocity) == (25.0, 10.0)


def test_given_rows_are_taken_as_they_are():
    rng = np.random.default_rng(6)
    machine = random_machine(rng, bodies=3)
    A, b = rng.normal(size=(2, machine.nv)), rng.normal(size=2)
    eom = Constrained(machine, [Acceleration("task", lambda x, v, t: (ca.DM(A), ca.DM(b)))])
    found = errors(eom, machine.random(rng), rng.normal(size=machine.nv), 0)
    assert np.allclose(found[0], A)
    assert np.allclose(found[1], b)


def test_what_cannot_be_a_constraint_is_refused():
    machine = random_machine(np.random.default_rng(0), bodies=2)
    with pytest.raises(MachineError, match="`task` must give A"):
        Constrained(machine, [Acceleration("task", lambda x, v, t: (ca.DM.zeros(1, 99), 0))])
    with pytest.raises(MachineError, match="`path` must be a column"):
        Constrained(machine, [Holonomic("path", lambda x, t: ca.DM.zeros(1, 2))])
    with pytest.raises(MachineError, match=r"different names.*`path`"):
        Constrained(machine, [Holonomic("path", lambda x, t: x[0])] * 2)
    with pytest.raises(MachineError, match="needs a Loop"):
        Closed("drive", None)
    with pytest.raises(MachineError, match="no rest pose to move"):
        Closed("drive", Loop("l", "distance", "a", "b", length=1.0), lambda t: t)
    with pytest.raises(MachineError, match='"group" or "residual"'):
        Stabilisation(error="euler")
    with pytest.raises(MachineError, match="must not be negative"):
        Stabilisation(position=-1.0)


def test_what_carries_both_frames_does_not_enter():
    """Joints above both ends of a loop leave exact zeros, whatever the base does."""
    rng = np.random.default_rng(2)
    machine = random_machine(rng, bodies=5, passive=False, fluid=False)
    inner = {f"j{i}": f"b{i - 1}" if i else "world" for i in range(5)}
    chain = [replace(joint, parent=inner[joint.name]) for joint in machine.joints]
    machine = replace(machine, joints=chain, loops=[Loop("l", "weld", "f2", "f4")])
    A = Constrained(machine).functions["constraint"](
        machine.random(rng), rng.normal(size=machine.nv)
    )
    above = machine.v_slice["j2"].stop
    assert not np.array(A[0])[:, :above].any()
