"""Every derivative of every formulation is the slope of its own `forward` and `inverse`.

Machines are random: all joint kinds, loops of all kinds, couplings, and rows that a user adds
(holonomic, nonholonomic, moving with time). Slopes along x are compared with differences of fourth
order along `integrate`.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from constrained_machines import closed_state, random_closed, random_couplings
from random_machines import random_machine, random_moments, random_state

from framefree.machine import Body, motors
from framefree.motion import (
    BodySystem,
    Constrained,
    Coordinates,
    Embedded,
    Holonomic,
    LagrangianSystem,
    Maximal,
    Nonholonomic,
    Redundant,
    RelativePose,
    Tree,
    equations,
)

WEIGHTS = ((1, 2 / 3), (2, -1 / 12))
"""Weights of central differences of fourth order."""

STEPS = {"x": 2e-4, "v": 1e-5}
"""Of differences; short ones along velocities, because drag has a kink where a body turns back."""

COUNT = 20
FORMULATIONS = (
    "tree",
    "maximal",
    "maximal_closed",
    "embedded",
    "constrained",
    "user_rows",
    "redundant",
    "body_system",
    "lagrangian",
)


def small(rng, **options):
    """A random tree of two or three bodies with a motor on every joint."""
    machine = random_machine(rng, bodies=int(rng.integers(2, 4)), **options)
    return machine.attach(*motors([joint for joint in machine.joints if joint.nv]))


def closed(rng, options=None):
    machine, x = random_closed(rng, passive=False, **(options or {}))
    return machine.attach(*motors([joint for joint in machine.joints if joint.nv])), x


def tree(rng):
    machine = small(rng)
    return Tree(machine), *random_state(rng, machine)[:2]


def maximal(rng):
    machine = small(rng)
    eom = Maximal(machine)
    return eom, *eom.start(*random_state(rng, machine)[:2])


def maximal_closed(rng):
    while True:
        machine, x = closed(rng, {"kinds": ("ball", "hinge", "distance")})
        eom = Maximal(machine)
        own = eom.start(*closed_state(rng, Constrained(machine), x))
        # Rows that depend on each other only where loops are closed leave no slopes beside.
        if eom.redundancy(own[0]).unique:
            return eom, *own


def embedded(rng):
    """Couplings in closed form, or loops that are solved."""
    if rng.integers(2):
        machine = random_couplings(rng)
        machine = machine.attach(*motors([joint for joint in machine.joints if joint.nv]))
        x = machine.random(rng)
    else:
        machine, x = closed(rng)
    eom = Embedded(machine, start=x)
    x, v = closed_state(rng, eom.constrained, x, spread=0.05)
    return eom, *eom.reduce(x, v)


def constrained(rng):
    while True:
        machine, x = closed(rng)
        eom = Constrained(machine)
        x, v = closed_state(rng, eom, x)
        if not eom.report(x, v).redundant:
            return eom, x, v


def user_rows(rng):
    """A holonomic row, a nonholonomic one that is not linear in v, and one that moves with time."""
    machine = small(rng, fluid=False)
    while machine.nv < 4:
        machine = small(rng, fluid=False)
    nx, nv = machine.nx, machine.nv
    p, q, r = rng.normal(size=nx), rng.normal(size=nv), rng.normal(size=nv)
    rows = [
        Holonomic("curve", lambda x, t: ca.sin(ca.dot(ca.DM(p), x)) - 0.1),
        Nonholonomic("roll", lambda x, v, t: ca.dot(ca.DM(q), v) + 0.2 * ca.sumsqr(v) * x[0]),
        Nonholonomic("drive", lambda x, v, t: ca.dot(ca.DM(r), v) - ca.sin(3 * t)),
    ]
    eom = Constrained(machine, rows[: 1 + int(rng.integers(3))])
    return eom, *random_state(rng, machine)[:2]


def redundant(rng):
    machine = small(rng)
    return Redundant(machine), *random_state(rng, machine)[:2]


def body_system(rng):
    """A rod on a moving pivot, its direction by cosine and sine; the pivot may move by itself."""
    body = Body("rod", random_moments(rng))
    moves = bool(rng.integers(2))

    def pose(x, t=0):
        G = ca.SX.eye(4)
        G[0, 0], G[0, 1], G[1, 0], G[1, 1] = x[0], -x[1], x[1], x[0]
        G[0, 3], G[1, 3] = x[2], 0.3 * ca.sin(2 * t) * x[2] if moves else 0
        return G

    coordinates = Coordinates(
        3,
        2,
        lambda x: ca.blockcat([[-x[1], 0], [x[0], 0], [0, 1]]),
        lambda x: x[0] ** 2 + x[1] ** 2 - 1,
        sample=(1.0, 0.0, 0.2),
    )
    law = (lambda x, t: pose(x, t)) if moves else (lambda x: pose(x))
    system = BodySystem("rod", coordinates, [RelativePose("world", body.name, law)], [body])
    return equations(system), system.random(rng), rng.normal(size=2)


def lagrangian(rng):
    """A Lagrangian on the circle and a line, quadratic or not, with or without time."""
    k, m = rng.uniform(0.5, 2, size=2)
    timed, fast = rng.integers(2, size=2)
    coordinates = Coordinates(
        3,
        2,
        lambda x: ca.blockcat([[-x[1], 0], [x[0], 0], [0, 1]]),
        lambda x: x[0] ** 2 + x[1] ** 2 - 1,
    )

    def L(x, v, t):
        kinetic = m * v[0] ** 2 + v[1] ** 2 + x[0] * v[0] * v[1] + int(fast) * ca.sumsqr(v) ** 2
        return kinetic / 2 - k * x[2] ** 2 * (1 + int(timed) * ca.sin(t)) + x[1] * v[1]

    system = LagrangianSystem("line", coordinates, L, lambda x, v, t: 0.1 * ca.sumsqr(v))
    return equations(system), system.random(rng), rng.normal(size=2)


@cache
def case(formulation, seed):
    rng = np.random.default_rng(1000 * FORMULATIONS.index(formulation) + seed)
    eom, x, v = globals()[formulation](rng)
    inputs = {"x": x, "v": v, "t": 0.4}
    for name in ("a", "force", "joint_force", "u"):
        inputs[name] = rng.normal(size=eom.sizes[name])
    return eom, inputs


def outputs(eom, name, inputs):
    return eom.numbers(name, **inputs)


def differences(eom, name, inputs, by):
    """Differences of the first output of a quantity, a column for every direction of an input."""
    n, step = eom.sizes["v" if by == "x" else by], STEPS.get(by, STEPS["x"])
    columns = []
    for e in np.eye(n):
        total = 0.0
        for k, weight in WEIGHTS:
            pair = []
            for sign in (1, -1):
                h = sign * k * step
                moved = eom.integrate(inputs["x"], h * e) if by == "x" else inputs[by] + h * e
                pair.append(outputs(eom, name, {**inputs, by: moved})[0])
            total = total + weight * (pair[0] - pair[1])
        columns.append(total / step)
    return np.array(columns).reshape(n, eom.sizes["v"]).T


def assert_slopes(found, expected, scale):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) <= 1e-6 * scale


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, COUNT))]
)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_derivatives_are_slopes(formulation, seed):
    eom, inputs = case(formulation, seed)
    for quantity, by_name in (
        ("forward", {"x": "da_dx", "v": "da_dv", "force": "da_dforce"}),
        ("inverse", {"x": "dforce_dx", "v": "dforce_dv", "a": "dforce_da"}),
    ):
        function, _ = eom.functions.traced(f"{quantity}_derivatives")
        slopes = dict(
            zip(function.name_out(), outputs(eom, f"{quantity}_derivatives", inputs), strict=True)
        )
        assert set(slopes) == set(by_name.values())
        for by, name in by_name.items():
            expected = differences(eom, quantity, inputs, by)
            value = outputs(eom, quantity, inputs)[0]
            scale = max(np.abs(expected).max(initial=0.0), np.abs(value).max(initial=0.0), 1.0)
            assert_slopes(slopes[name], expected, scale)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 3))]
)
@pytest.mark.parametrize("formulation", FORMULATIONS[:6])
def test_derivatives_by_joint_forces_and_inputs(formulation, seed):
    eom, inputs = case(formulation, seed)
    for version in ("joint_force", "u"):
        name = f"forward:{version}"
        slopes = outputs(eom, f"forward_derivatives:{version}", inputs)
        for by, slope in zip(("x", "v", version), slopes, strict=True):
            expected = differences(eom, name, inputs, by)
            scale = max(np.abs(expected).max(initial=0.0), 1.0)
            scale = max(scale, np.abs(outputs(eom, name, inputs)[0]).max(initial=0.0))
            assert_slopes(slope, expected, scale)


@pytest.mark.parametrize("formulation", ["tree", "constrained", "embedded", "maximal"])
def test_sensitivities_to_tunable_numbers_are_slopes(formulation):
    rng = np.random.default_rng(4)
    machine, x = random_closed(rng, passive=False)
    if formulation in ("tree", "maximal"):
        machine = machine.tree
    body = machine.bodies[-1].name
    tunable = machine.tunable(f"{body}.mass", f"body:{body}.center.x")
    eom = equations(tunable, formulation)
    plain = equations(machine, formulation)
    source = Constrained(machine)
    own = plain.start(*closed_state(rng, source, x)) if machine.closed else None
    x, v = own if own is not None else plain.start(*random_state(rng, machine)[:2])
    force, p = rng.normal(size=eom.sizes["force"]), np.array(tunable.parameters.defaults)
    inputs = {"x": x, "v": v, "force": force}
    slope = eom.numbers("forward_sensitivity", p, **inputs)[0]
    for k, e in enumerate(np.eye(len(p))):
        h = 1e-5
        pair = [eom.numbers("forward", p + s * h * e, **inputs)[0] for s in (1, -1)]
        expected = (pair[0] - pair[1]) / (2 * h)
        np.testing.assert_allclose(slope[:, k], expected, atol=1e-6 * (1 + np.abs(expected).max()))
