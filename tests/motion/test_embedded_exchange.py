"""One body of a closed chain: its shares, and another in its place without compiling."""

import sys

import numpy as np
import pytest

from framefree.gallery.machines.crane import (
    LENGTH,
    LONGER,
    arm_moments,
    closed_form,
    crane,
    crane_model,
    crane_state,
)
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.geometry import Moments
from framefree.machine import MachineError
from framefree.motion.embedded import Embedded, body_values, follow, shares, tunable_body
from framefree.motion.embedded.choice import SingularError
from framefree.motion.embedded.maps import Embedding

QUANTITIES = {
    "mass": "q", "bias": "qv", "gravity": "q", "forward": "qvf", "coriolis": "qv",
    "jacobian:tip": "q", "body_mass": "q",
}  # fmt: skip


@pytest.fixture(scope="module")
def tuned():
    return Embedded(tunable_body(crane_model(), "arm", ("tip",)))


def longer():
    return body_values("arm", arm_moments(LONGER), tip=(LENGTH * LONGER, 0, 0))


def states(count=10, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.uniform((-3, -0.5, 0.0), (3, 1.4, 0.2), (count, 3))
    return {"q": q, "v": rng.normal(size=(count, 3)), "f": 1e3 * rng.normal(size=(count, 3))}


@pytest.mark.parametrize("name", QUANTITIES)
def test_updated_model_is_one_built_from_scratch(tuned, name):
    fresh, given = Embedded(crane_model(LONGER)), states()
    inputs = [given[letter] for letter in QUANTITIES[name]]
    values = tuned.machine.parameters.values(longer())
    new = np.asarray(tuned.kernel(name)(*inputs, values))
    expected = np.asarray(fresh.kernel(name)(*inputs))
    assert np.abs(new - expected).max() <= 1e-12 * np.abs(expected).max()
    old = np.asarray(tuned.kernel(name)(*inputs, tuned.machine.parameters.values()))
    assert np.abs(old - expected).max() > 1e-3 * np.abs(expected).max()


def test_nothing_is_compiled_for_another_body(tuned, monkeypatch):
    given = states(1)
    tuned.mass(given["q"], tuned.machine.parameters.values())

    def refuse(*_, **__):
        raise AssertionError("compiled")

    monkeypatch.setattr(sys.modules["framefree.motion.equations"], "compile_known", refuse)
    monkeypatch.setattr("llvmlite.binding.parse_assembly", refuse)
    tuned.mass(given["q"], tuned.machine.parameters.values(longer()))
    with pytest.raises(AssertionError, match="compiled"):
        tuned.kernel("momentum")


def test_only_the_share_of_the_body_changes(tuned):
    q, machine = states(3)["q"], tuned.machine
    old, new = (
        np.asarray(tuned.kernel("body_mass")(q, machine.parameters.values(values)))
        for values in (None, longer())
    )
    arm = machine.body_index["arm"]
    others = [k for k in range(len(machine.bodies)) if k != arm]
    assert np.array_equal(old[:, others], new[:, others])
    # So the mass matrix can be updated by the difference of one term.
    arm_only = tuned.kernel("body_mass:arm")
    given = [machine.parameters.values(v) for v in (None, longer())]
    change = np.asarray(arm_only(q, given[1])) - np.asarray(arm_only(q, given[0]))
    assert np.allclose(tuned.mass(q, given[0]) + change, tuned.mass(q, given[1]), rtol=1e-12)


def test_values_describe_the_body_again():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(6, 3)), rng.uniform(0.5, 2, 6)
    moments = Moments.of_points(points, weights)
    machine = tunable_body(crane_model(), "arm")
    found = machine.with_parameters(body_values("arm", moments)).body("arm").moments
    assert np.allclose(np.asarray(found.matrix6), np.asarray(moments.matrix6), atol=1e-12)
    with pytest.raises(MachineError, match="frame `tip` is not on body `boom`"):
        tunable_body(crane_model(), "boom", ("tip",))


# ------------------------------------------------ shares


@pytest.mark.parametrize("build", [lambda: closed_form(crane()), lambda: Embedded(crane_model())])
def test_shares_add_up(build):
    eom, given = build(), states(20)
    found = shares(eom, given["q"], given["v"])
    assert found.coordinates == ("phi", "theta", "delta")
    assert np.allclose(found.Gamma.sum(axis=1), eom.mass(given["q"]), rtol=1e-10, atol=1e-9)
    assert np.allclose(np.nansum(found.inertia, axis=1), 1.0, atol=1e-6)
    assert np.allclose(found.kinetic.sum(axis=1), 1.0)
    assert np.allclose(found.C.sum(axis=1), eom.coriolis(given["q"], given["v"]), atol=1e-8)
    assert np.allclose(found.h.sum(axis=1), eom.bias(given["q"], given["v"]), atol=1e-8)
    assert (found.kinetic >= -1e-12).all()
    diagonal = np.diagonal(found.inertia, axis1=2, axis2=3)
    assert ((diagonal >= -1e-12) & (diagonal <= 1 + 1e-12)).all()
    base = found.bodies.index("base")
    # The base turns only: it has no share in theta and delta, and the arm all but all of delta.
    assert not found.Gamma[:, base, 1:].any()
    assert (found.inertia[:, found.bodies.index("arm"), 2, 2] > 0.98).all()


def test_shares_of_one_state_and_at_rest(tuned):
    q = np.array([0.1, 0.8, 0.1])
    found = shares(tuned, q, np.zeros(3), longer())
    assert found.inertia.shape == (4, 3, 3)
    assert np.isnan(found.kinetic).all()
    light = shares(tuned, q, np.zeros(3))
    arm = found.bodies.index("arm")
    assert (np.diag(found.inertia[arm])[:2] > np.diag(light.inertia[arm])[:2]).all()


# ------------------------------------------------ coordinates and paths


def test_minimal_states_are_found_among_those_of_the_joints():
    machine = crane()
    eom = closed_form(machine)
    q, qd = np.array([[0.2, 0.9, 0.07], [0.1, 0.4, 0.15]]), np.array([[0.1, 0.2, 0.3]] * 2)
    found = eom.reduce(*crane_state(machine, q, qd))
    assert np.array_equal(found[0], q)
    assert np.array_equal(found[1], qd)
    # Names of joints alone are not enough: here the map is another.
    twice = Embedding(("phi",), lambda q: 2 * q)
    one_joint = crane().detach("theta")
    assert Embedded(one_joint, twice).map.independent is None


def test_paths_are_followed_on_their_branch():
    machine = five_bar()
    eom = Embedded(machine)
    angles = np.linspace(0, 2 * np.pi, 40)
    tips = np.array([0.0, 0.42]) + 0.08 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    exact = np.array([five_bar_at(machine, tip) for tip in tips])
    given = exact.copy()
    given[1:, [machine.x_names.index(f"{side}_elbow") for side in ("left", "right")]] = 7.0
    assert np.allclose(follow(eom, given), exact, atol=1e-9)


def test_paths_through_singular_positions_are_refused():
    """The lower links of a five-bar upon each other: the motors no longer hold the tip."""
    machine = five_bar()
    eom = Embedded(machine)
    start = five_bar_at(machine, (0.0, 0.42))
    left, right = (machine.x_names.index(name) for name in ("left", "right"))
    path = np.tile(start, (60, 1))
    closing = np.linspace(0, 1.5, 60)
    path[:, left] -= closing
    path[:, right] += closing
    with pytest.raises(SingularError, match="loop `hub` is near a singular position") as caught:
        follow(eom, path)
    assert caught.value.loops == ("hub",)
