"""Bodies that touch the ground: closed forms, statics, and what the scenario promises."""

import numpy as np
import pytest

from framefree.gallery.machines.touching import ball, coin, stack
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.contact import bounce_forms as forms
from framefree.gallery.scenarios.contact import bounce_parts as parts
from framefree.simulate import simulate


def test_impacts_have_their_closed_form():
    assert parts.impacts(2.0).metrics["restitution_error"] < 1e-5


def test_the_closed_form_is_that_of_an_integration():
    """v dv = -(1 + c v) s^m ds by small steps, in units of the stiffness and the mass."""
    c, v, d, h = 0.7, 1.0, 0.0, 1e-5
    while d >= 0:
        a = -d * max(1 + c * v, 0)
        middle = v + h / 2 * a
        d_middle = d + h / 2 * v
        v -= h * d_middle * max(1 + c * middle, 0)
        d += h * middle
    assert abs(-v - forms.speed_after_impact(1.0, c)) < 1e-5


def test_energy_adds_up():
    assert parts.falling(0.3, 2.0).metrics["energy_balance"] < 1e-6


def test_sliding_and_creeping():
    metrics = parts.sliding(0.5, 0.005).metrics
    assert metrics["sliding_error"] < 1e-3
    assert metrics["sliding_exact_error"] < 1e-6
    assert parts.creeping(0.01) < 1e-5


def test_the_wheel_and_the_coin():
    assert parts.rolling(2.0).metrics["wheel_speed_error"] < 1e-4
    assert parts.spinning(0.8, 1.0).metrics["coin_rate_error"] < 1e-5


@pytest.mark.filterwarnings("error")
def test_things_come_to_rest_as_statics_say():
    metrics = parts.settled(4.0).metrics
    assert metrics["stack_force_error"] < 1e-6
    assert metrics["arm_force_error"] < 1e-6


def test_the_stack_rests_on_hard_contacts_as_well():
    """Weights to 1e-6; the softness of MuJoCo's contacts is half a millimetre here."""
    pytest.importorskip("mujoco")
    metrics = parts.settled_hard(3.0)
    assert metrics["stack_hard_force_error"] < 1e-6
    assert 1e-5 < metrics["stack_hard_sinks_m"] < 1e-3


def test_many_balls_give_the_same_bits():
    machine, heights = ball(), np.array([0.2, 0.3, 0.5])
    x = np.array([parts.at_height(z) for z in heights])
    many = simulate(machine, x0=x, duration=0.5, dt=1e-4, every=10)
    for i in range(3):
        one = simulate(machine, x0=x[i], duration=0.5, dt=1e-4, every=10)
        assert np.array_equal(one.x, many.x[i])


def test_a_flat_coin_lies_still():
    machine = coin(damping=5.0)
    tilted = (np.cos(2e-4), np.sin(2e-4), 0.0, 0.0)
    run = simulate(machine, x0=parts.at_height(0.0, tilted), duration=3.0, dt=1e-4, every=100)
    assert np.isfinite(run.x).all()
    assert np.abs(run.v[-1]).max() < 1e-2
    assert abs(run["ground.normal_force"][-1] / 9.81 - 1) < 1e-2


@pytest.mark.slow
def test_both_plants_have_the_compliant_contact():
    x = np.concatenate([parts.at_height(0.055), parts.at_height(0.156)])
    ours, theirs = (
        simulate(stack(), x0=x, duration=0.5, dt=1e-4, every=50, plant=plant)
        for plant in ("native", "mujoco")
    )
    assert np.abs(ours.x - theirs.x).max() < 1e-4


@pytest.mark.slow
def test_the_scenario_keeps_its_promises():
    outcome = SCENARIOS["bounce"]().run()
    assert outcome.ok, [promise for promise in outcome.promises if not promise.holds]
