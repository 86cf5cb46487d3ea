"""The ultimate bound and the assessment of runs."""

import warnings

import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.references.joints import Hold
from framefree.control.robust import (
    RobustControl,
    UncertaintyWarning,
    assess,
    ultimate_bound,
)
from framefree.gallery.machines.crane import closed_form, crane, crane_model, crane_state
from framefree.geometry import Moments
from framefree.machine import Body, Joint, JointForce, Machine, Prismatic
from framefree.simulate import Pulse, Push, simulate


def random_gains(rng, n):
    K, kappa, eps = rng.uniform(1, 20, n), rng.uniform(1, 20, n), rng.uniform(0.01, 0.5, n)
    return rng.uniform(0.5, 3, n), K, kappa, eps


def masses(rng, n, count=4):
    A = rng.normal(size=(count, n, n))
    return A @ A.transpose(0, 2, 1) + 0.5 * np.eye(n)


def worst_rate(s, d, K, kappa, eps):
    """dV/dt of the closed loop under the worst uncertainty within dbar."""
    pushed = K * s**2 + kappa * s * np.clip(s / eps, -1, 1)
    return (-pushed + d * np.abs(s)).sum(axis=-1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("factor", [0.3, 0.95, 1.5])
def test_V_falls_outside_its_level(seed, factor):
    """For random s with V above the level, and any d within its bound, V falls."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    Lambda, K, kappa, eps = random_gains(rng, n)
    dbar = factor * kappa * rng.uniform(0.5, 1, n)
    M = masses(rng, n)
    bound = ultimate_bound(Lambda, K, kappa, eps, dbar, M)
    s = rng.normal(size=(4000, n))
    for Gamma in M:
        V = np.einsum("ki,ij,kj->k", s, Gamma, s) / 2
        # Exactly on the level, and somewhat outside.
        outside = s * np.sqrt(bound.V / V)[:, None] * (1 + rng.exponential(0.2, (len(s), 1)))
        assert (worst_rate(outside, dbar, K, kappa, eps) <= 1e-9).all()
        level = s * np.sqrt(bound.V / V)[:, None]
        assert (np.abs(level) <= bound.s * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(6))
def test_V_rises_only_within_the_box(seed):
    """Also where one coordinate has too little kappa and drives the others out."""
    rng = np.random.default_rng(seed)
    n = 3
    Lambda, K, kappa, eps = random_gains(rng, n)
    dbar = kappa * np.array([2.5, 0.9, 0.4])
    bound = ultimate_bound(Lambda, K, kappa, eps, dbar, np.eye(n))
    s = rng.uniform(-1.3, 1.3, (200_000, n)) * bound.box
    rising = np.abs(s[worst_rate(s, dbar, K, kappa, eps) > 0])
    assert (rising <= bound.box).all()
    assert (rising.max(axis=0) > 0.3 * bound.box).all()


def test_box_is_the_smallest_where_V_may_rise():
    """One coordinate: the box is where the worst rate turns, up to the sharp eps/4 of sat."""
    K, kappa, eps, dbar = (np.array([a]) for a in (2.0, 5.0, 0.1, 4.0))
    bound = ultimate_bound(np.ones(1), K, kappa, eps, dbar, np.ones((1, 1, 1)))
    assert np.isclose(K * bound.box**2 + (kappa - dbar) * bound.box, kappa * eps / 4)
    rising = np.linspace(1e-4, 1, 20001)[:, None]
    last = rising[worst_rate(rising, dbar, K, kappa, eps) > 0].max()
    assert 0.7 * bound.box[0] < last <= bound.box[0]
    with pytest.raises(ControlError, match="`masses`"):
        ultimate_bound(np.ones(1), K, kappa, eps, dbar, np.ones((1, 2, 2)))


def test_where_kappa_is_too_small_the_damping_bounds():
    """(dbar - kappa) / K and a little more."""
    gains = np.ones(1), np.array([4.0]), np.array([1.0]), np.array([1e-6])
    bound = ultimate_bound(*gains, np.array([9.0]), np.ones((1, 1, 1)))
    assert np.isclose(bound.s[0], 2.0, rtol=1e-5)


def slider(mass):
    return Machine(
        (Body("slider", Moments.of_body(mass, (0, 0, 0), 1e-3 * mass * np.eye(3))),),
        (Joint("slide", Prismatic("x"), "world", "slider"),),
        actuators=(JointForce("motor", "slide"),),
        name="slider",
    )


def test_runs_under_a_constant_push_end_within_the_bound():
    """And leave what the boundary layer says."""
    machine = slider(2.0)
    law = RobustControl(machine, Lambda=2.0, K=1.0, kappa=3.0, eps=0.05)
    push = Push("slide", lambda t: [2.5])
    path = Hold(machine, np.zeros(1))
    run = simulate(machine, law, path, np.array([0.3]), duration=6, dt=1e-3, disturbances=[push])
    found = assess(law, run)
    assert np.isclose(found.dbar[0], 2.5, rtol=1e-3)
    assert found.exceeded == ()
    assert found.entered is not None
    assert found.V_left <= 1
    assert found.e_left <= 1 + 1e-9
    # In the layer kappa s / eps + K s = d, so this is what a constant push leaves.
    s = 2.5 / (3.0 / 0.05 + 1.0)
    assert np.isclose(run["e"][-1], s / 2.0, rtol=1e-3)
    assert s / 2.0 <= found.bound.e[0] <= 3 * s / 2.0


@pytest.mark.parametrize("s", [0.3, -0.3, 1.7])
def test_what_is_used_of_the_bound_is_s_over_its_own(s):
    """Closed form: under a constant s, e = e(t1) decay + s / Lambda (1 - decay)."""
    gains = np.array([2.0]), np.array([4.0]), np.array([1.0]), np.array([0.1])
    bound = ultimate_bound(*gains, np.array([0.5]), np.ones((1, 1, 1)))
    t = 3.0 + np.linspace(0, 1, 9)
    decay = np.exp(-2.0 * (t - 3.0))[:, None]
    e = 9.0 * decay + s / 2.0 * (1 - decay)
    assert np.isclose(bound.used(t, e, gains[0]), s / bound.s[0], rtol=1e-9)
    assert (np.abs(e) <= bound.envelope(t, e[0], gains[0]) * (1 + 1e-12)).all() == (s <= bound.s[0])


def test_a_bound_stated_too_low_is_broken():
    machine = slider(2.0)
    law = RobustControl(machine, Lambda=2.0, K=1.0, kappa=3.0, eps=0.05)
    push, path = Push("slide", lambda t: [2.5 * (t > 3)]), Hold(machine, np.zeros(1))
    run = simulate(machine, law, path, np.array([0.3]), duration=6, dt=1e-3, disturbances=[push])
    low, right = assess(law, run, uncertainty=0.1), assess(law, run, uncertainty=[2.6])
    assert (low.stated, right.stated) == (0.1, 2.6)
    assert np.isclose(low.dbar[0], 2.5, rtol=1e-2)
    assert low.V_left > 1
    assert low.e_left > 1
    assert right.V_left < 1
    assert right.e_left < 1
    with pytest.raises(ControlError, match="`uncertainty` of assess"):
        assess(law, run, uncertainty=-1.0)


def test_unknown_mass_and_push_are_measured():
    """d by differences of the record, and from the plant's own accelerations."""
    plant, model = crane(), crane_model()
    form = closed_form(plant)
    law = RobustControl(model, Lambda=1.0, K=(400, 1500, 8000), kappa=(40, 160, 380), eps=0.02)
    path = Hold(model, crane_state(model, (0.0, 0.7, 0.1))[0])
    x, v = crane_state(plant, (0.1, 0.65, 0.11))
    pulse = Pulse("tip", (0, -25, 0, 0, 0, 0), 0.5, 0.2, axes="frame")
    run = simulate(
        plant, law, path, x, v, duration=1.0, dt=1e-3, formulation=form, disturbances=[pulse]
    )
    chosen = [0, 1, 4]
    q, qd = (np.ascontiguousarray(a[:, chosen]) for a in (run.x, run.v))
    J = np.asarray(form.kernel("jacobian:tip")(q))
    force = run.u - 25.0 * ((run.t >= 0.5 - 1e-9) & (run.t < 0.7 - 1e-9))[:, None] * J[:, 1]
    exact = assess(law, run, acceleration=form.forward(q, qd, force))
    found = assess(law, run)
    assert np.allclose(found.dbar, exact.dbar, rtol=0.02, atol=0.05)
    # All but at rest only weight and push: that of cylinder and piston, 2.5 kg, and 25 N.
    during = (run.t > 0.45) & (run.t < 0.5)
    late = exact.d[during]
    small = [plant.body_index[name] for name in ("cylinder", "piston")]
    weight = np.asarray(form.kernel("body_gravity")(q[during]))[:, small].sum(axis=1)
    assert np.allclose(late[:, 1:], -weight[:, 1:], rtol=0.03, atol=0.5)
    assert 30 < -late[0, 1] < 2.5 * 9.81 * 2.0
    pushed = exact.d[(run.t > 0.55) & (run.t < 0.65)] - late.mean(axis=0)
    assert np.allclose(pushed[:, 1], -56.25, rtol=0.1)
    # What is measured is what moves V.
    rate = run["V_rate"] + np.einsum("ni,ni->n", run["s"], exact.d)
    change = np.concatenate([[0], np.cumsum((rate[1:] + rate[:-1]) / 2 * 1e-3)])
    assert np.abs(run["V"] - run["V"][0] - change).max() < 1e-3 * run["V"].max()


def test_warning_when_kappa_does_not_exceed_the_uncertainty():
    machine = slider(2.0)
    path, options = Hold(machine, np.zeros(1)), {"duration": 0.5, "dt": 1e-3}
    push = [Pulse("slide", (4.0,))]
    weak = RobustControl(machine, K=1.0, kappa=3.0, eps=0.05)
    run = simulate(machine, weak, path, np.array([0.3]), disturbances=push, **options)
    with pytest.warns(UncertaintyWarning, match="`slide`: 3 against 4"):
        found = assess(weak, run)
    assert found.exceeded == ("slide",)
    strong = RobustControl(machine, K=1.0, kappa=5.0, eps=0.05)
    run = simulate(machine, strong, path, np.array([0.3]), disturbances=push, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assess(strong, run).exceeded == ()
