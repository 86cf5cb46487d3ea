"""The flights and small scenarios: their figures, in full as slow tests, in short otherwise."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.prototype import PrototypeControl
from framefree.gallery.machines.multicopter_load import tricopter_and_load, tricopter_with_load
from framefree.gallery.machines.multicopters import quadcopter, tricopter
from framefree.gallery.scenarios.prototypes import flights
from framefree.gallery.scenarios.prototypes.attitude import Attitude
from framefree.gallery.scenarios.prototypes.bicopter_circle import BicopterCircle
from framefree.gallery.scenarios.prototypes.cart_pole import CartPole
from framefree.gallery.scenarios.prototypes.drives import quadcopter_drive, tricopter_drive
from framefree.gallery.scenarios.prototypes.flight_scenario import ERROR, rate_error
from framefree.gallery.scenarios.prototypes.pvtol import Pvtol
from framefree.gallery.scenarios.prototypes.quad_flip import QuadFlip
from framefree.gallery.scenarios.prototypes.quad_loop import QuadLoop
from framefree.gallery.scenarios.prototypes.quad_transitions import QuadTransitions
from framefree.gallery.scenarios.prototypes.scara import Scara
from framefree.gallery.scenarios.prototypes.tricopter import Tricopter
from framefree.gallery.scenarios.prototypes.tricopter_load import (
    LoadCarrierLaw,
    TricopterLoad,
    gains,
)
from framefree.motion import equations
from framefree.simulate.measures import rms

ALL = (
    QuadLoop,
    QuadFlip,
    QuadTransitions,
    Tricopter,
    TricopterLoad,
    BicopterCircle,
    Attitude,
    Scara,
    Pvtol,
)


def kept(outcome):
    """All promises hold, and a reader gets figures, an animation and the keys of the metrics."""
    broken = [promise for promise in outcome.promises if not promise.holds]
    assert not broken
    assert outcome.promises
    assert outcome.figures
    assert outcome.animations
    assert {"energy_rate_error", "settling_s"} <= set(outcome.metrics)
    assert all(np.isfinite(v) for v in outcome.metrics.values() if not isinstance(v, str))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ALL, ids=lambda s: s.name)
def test_all_that_is_promised_holds(scenario):
    kept(scenario().run(progress=False))


def test_a_pole_is_caught_and_its_region_confirmed():
    outcome = CartPole(starts=100).run(progress=False)
    assert not [promise for promise in outcome.promises if not promise.holds]
    assert outcome.metrics["starts_home"] == outcome.metrics["starts"] == 100


@pytest.mark.slow
def test_a_pole_that_falls_breaks_promises():
    outcome = CartPole(starts=20, angle_deg=85.0).run(progress=False)
    assert {promise.text for promise in outcome.promises if not promise.holds} >= {
        "the start lies in the region: V by its level",
        "cart and pole are at rest in the end",
    }


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [QuadLoop, QuadFlip, QuadTransitions], ids=lambda s: s.name)
def test_flights_on_mujoco(scenario):
    pytest.importorskip("mujoco")
    kept(scenario(plant="mujoco").run(progress=False))


@pytest.mark.parametrize(
    ("craft", "duration", "bars"),
    [
        (lambda: flights.quadcopter_craft(flights.flips, 4.7), 6.3, (0.026, 2.1, 0.8)),
        (flights.tricopter_craft, 5.0, (0.013, 1.1, 0.95)),
    ],
)
@pytest.mark.first_cases(1)
def test_prediction_over_the_lag_beats_the_plain_law(craft, duration, bars):
    craft = craft()
    approach = "particle" if craft.machine.name == "quadcopter" else "energy"
    found = []
    for lead in (0.0, craft.lead):
        run = craft.fly(approach, lead=lead, duration=duration, progress=False)
        off = flights.errors(run.x, run.reference["x"])
        found.append([rms(off[key]) for key in ("position", "attitude", "heading")])
    assert (np.array(found[1]) < np.array(found[0])).all()
    assert (np.array(found[1]) < 2 * np.array(bars)).all()


@pytest.mark.slow
def test_all_ways_to_fly_are_reported_beside_each_other():
    """With observer, without, by sensors, under the approach that was flown, and as recorded."""
    outcome = QuadLoop(duration=0.5).run(progress=False)
    for key in ("rms_position_m", "rms_attitude_deg", "rms_heading_deg"):
        for prefix in ("", "plain_", "sensed_", "body_", "flight_"):
            assert outcome.metrics[prefix + key] > 0
    # The reference still rests, where all approaches agree.
    agreed = pytest.approx(outcome.metrics["rms_attitude_deg"], rel=1e-6)
    assert outcome.metrics["body_rms_attitude_deg"] == agreed
    assert QuadLoop().bias == 1.0
    assert any("chosen by comparison" in note for note in outcome.notes)
    bounds = [promise.bound for promise in outcome.promises]
    assert bounds[:3] == [0.027, 2.5, 1.2]
    assert bounds[3:6] == pytest.approx([1.5 * bar for bar in bounds[:3]])
    (asked,) = outcome.promises[6:]  # what the reference asks for beyond the limits
    assert "limits" in asked.text


@pytest.mark.parametrize(
    ("craft", "approach"),
    [
        (lambda: flights.quadcopter_craft(flights.flips, 4.7), "particle"),
        (flights.tricopter_craft, "energy"),
    ],
)
@pytest.mark.first_cases(1)
def test_the_unknown_wrench_is_found_and_met(craft, approach):
    """Nobody tells the law of it: with the observer the craft comes back, without it stays off."""
    craft = craft()
    options = {"lead": craft.lead, "bias": 1.0, "duration": 4.0, "progress": False}
    off = {}
    for observed in (True, False):
        run = craft.fly(approach, observed=observed, **options)
        late = run.t > 3.0
        e = flights.errors(run.x[late], run.reference["x"][late])
        off[observed] = np.array([rms(e[key]) for key in ("position", "attitude")])
        if observed:
            found = run["unknown_force"][late].mean(axis=0)
            assert np.abs(found - craft.bias)[:3].max() < 0.02
            assert np.abs(found - craft.bias)[3:].max() < 1e-3
    assert (off[False] > 3 * off[True]).all()


def test_scara_keeps_its_promises():
    kept(Scara().run(progress=False))


def test_attitude_keeps_its_promises():
    kept(Attitude(duration=5.0, dt=1e-3).run(progress=False))


def test_bicopter_circle_begins_as_published():
    outcome = BicopterCircle(duration=1.0, dt=2e-3).run(progress=False)
    assert outcome.metrics["published_difference"] < 1e-3
    assert all(promise.holds for promise in outcome.promises)


# ---------------------------------------------------------------------- errors and drives


def test_errors_are_those_of_the_flights():
    """Attitude and heading errors against their definitions by matrices."""
    rng = np.random.default_rng(0)
    x, x_R = (np.hstack([rng.normal(size=(20, 3)), unit(rng, 20)]) for _ in range(2))
    found = flights.errors(x, x_R)
    for i in range(20):
        E = rotation(x_R[i, 3:]).T @ rotation(x[i, 3:])
        angle = np.arccos((np.trace(E) - 1) / 2)
        heading = abs(np.arctan2(E[1, 0] - E[0, 1], E[0, 0] + E[1, 1]))
        assert found["attitude"][i] == pytest.approx(np.rad2deg(angle), abs=1e-6)
        assert found["heading"][i] == pytest.approx(np.rad2deg(heading), abs=1e-6)


def unit(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def rotation(q):
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def slopes(drive, u):
    """A and B of a drive about inputs held for long, and the slopes of what comes out."""
    z, c = ca.SX.sym("z", len(drive.start(u))), ca.SX.sym("c", len(u))
    rate, out = drive.rate(z, c), drive.u(z, c)
    outputs = [rate, out, *(ca.jacobian(f, y) for f in (rate, out) for y in (z, c))]
    function = ca.Function("drive", [z, c], [ca.densify(o) for o in outputs])
    return [np.array(value) for value in function(drive.start(u), u)]


def test_propellers_follow_as_the_force_filter_was_designed():
    hover = np.full(4, 1.001 * 9.81 / 4)
    drive = quadcopter_drive(quadcopter())
    rate, out, A, *_ = slopes(drive, hover)
    assert np.abs(rate).max() < 1e-6
    assert np.allclose(out.ravel(), hover)
    poles = np.linalg.eigvals(A)
    for w in (100.0, 125.0):
        assert np.abs(poles - w * (-0.7071 + 0.70711j)).min() < 1e-2
    assert np.abs(poles + 66.0).min() < 0.1


def test_yaw_torque_answers_with_66_rad_per_s():
    """The zero of the rotors' reaction cancels the slow pole."""
    hover = np.full(4, 1.001 * 9.81 / 4)
    _, _, A, B, C, D = slopes(quadcopter_drive(quadcopter()), hover)
    yaw = np.array([-1.0, 1.0, -1.0, 1.0])
    for w in (5.0, 66.0, 300.0):
        gain = (C @ np.linalg.solve(1j * w * np.eye(8) - A, B) + D) @ yaw
        assert np.abs(gain / yaw - 66 / (66 + 1j * w)).max() < 2e-3


def test_tilting_arms_follow_their_servos():
    u = np.array([1.0, 3.0, -0.5, 4.0, 0.2, 4.0])
    rate, out, A, *_ = slopes(tricopter_drive(tricopter()), u)
    assert np.abs(rate).max() < 1e-9
    assert np.allclose(out.ravel(), u)
    poles = np.linalg.eigvals(A)
    assert np.abs(poles + 75.0).min() < 1e-9
    servo = 40.11 * (-0.9154 + 1j * np.sqrt(1 - 0.9154**2))
    assert np.abs(poles - servo).min() < 1e-6


# ---------------------------------------------------------------------- the tricopter with a load


def test_the_law_of_the_load_is_a_function_of_its_reference():
    """Without a reference folded in, its signals are inputs, in the size of the model."""
    model, machine = tricopter_and_load(), tricopter_with_load()
    law = LoadCarrierLaw(machine, PrototypeControl(model, *gains(), approach="particle"))
    function = law.function(signals=False)
    sizes = {name: function.numel_in(name) for name in function.name_in() if "model" in name}
    wanted = {"x": model.nx, "v": model.nv, "a": model.nv}
    assert sizes == {f"reference_model_{name}": size for name, size in wanted.items()}


def test_the_load_is_carried():
    outcome = TricopterLoad(duration=2.0).run(progress=False)
    assert {promise.text for promise in outcome.promises if not promise.holds} == set()
    assert outcome.metrics["load_rms_position_m"] < 0.03


def test_the_eight_bodies_are_the_two_of_the_model_together():
    whole, model = tricopter_with_load(), tricopter_and_load()
    assert len(whole.bodies) == 8
    total = sum(body.moments.total for body in whole.bodies)
    assert total == pytest.approx(sum(body.moments.total for body in model.bodies))
    fixed = whole
    for k in (1, 2, 3):
        fixed = fixed.lock(f"tilt{k}").lock(f"spin{k}")
    rng = np.random.default_rng(1)
    x, v, a = model.random(rng), rng.normal(size=9), rng.normal(size=9)
    names = [joint.name for joint in fixed.joints if joint.nv]
    assert names == ["base", "ball"]
    one, two = (
        np.array(equations(m, "tree").functions["inverse"](x, v, a)).ravel() for m in (fixed, model)
    )
    assert np.allclose(one, two, atol=1e-9)


@pytest.mark.parametrize(("reference", "busy"), [(flights.flips, 4.7), (flights.loops, 3.4)])
def test_ideal_propellers_change_the_energy_as_the_law_says(reference, busy):
    """The law must not count limits that the ideal propellers do not have."""
    run = flights.quadcopter_craft(reference, busy).ideal(
        "energy", ERROR, duration=1.0, progress=False
    )
    assert rate_error(run.t, run["W"], run["W_rate"]) < 0.01
