"""Runs with contact that cannot be right say so: overlapping starts, absurd stiffness."""

import numpy as np
import pytest

from framefree.errors import FramefreeWarning
from framefree.gallery.machines.touching import ball, stack
from framefree.gallery.scenarios.contact.bounce_forms import speed_after_impact
from framefree.geometry import Moments
from framefree.machine import Body, Contact, ContactShape, Free, Joint, Machine, Prismatic, Stops
from framefree.simulate import SimulationError, simulate
from framefree.simulate.touching import _too_soft, blamed_contact


def height(z):
    return np.array([0.0, 0, z, 1, 0, 0, 0])


def test_a_start_beyond_the_middle_is_refused():
    message = (
        r"contact `ground` between `world` and `ball` 0.15 m deep.*start with the shapes apart"
    )
    with pytest.raises(SimulationError, match=message):
        simulate(ball(), x0=height(-0.05), duration=0.1, dt=1e-4)
    apart = np.concatenate([height(0.05), height(0.08)])
    with pytest.raises(SimulationError, match=r"contact `top` between `block` and `ball`"):
        simulate(stack(), x0=apart, duration=0.1, dt=1e-4)


def test_a_deep_start_is_warned_of_and_integrated():
    with pytest.warns(FramefreeWarning, match=r"contact `ground`.* 0.02 m deep; at least 2\.26 J"):
        run = simulate(ball(), x0=height(0.08), duration=0.3, dt=1e-5, every=100)
    assert run.x[:, 2].max() > 0.25


def test_absurd_stiffness_names_the_contact_and_a_remedy():
    machine = ball(stiffness=1e14, damping=50.0)
    message = r"contact `ground` between `world` and `ball` is too stiff.*`integrator=\"implicit\"`"
    with pytest.warns(FramefreeWarning, match=message):
        simulate(machine, x0=height(0.11), duration=0.1, dt=1e-3, integrator="rk4")


def test_what_breaks_down_in_contact_says_who_touched():
    text = blamed_contact(ball(), height(0.09), np.zeros(0), 1e-3)
    assert "contact `ground` between `world` and `ball` was 0.01 m deep" in text
    assert "implicit" in text
    assert blamed_contact(ball(), height(0.2), np.zeros(0), 1e-3) == ""


@pytest.mark.filterwarnings("ignore:contact `ground`")
@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_runs_that_break_off_name_the_contact(integrator):
    """Also where the last good state is before the impact, or far away after it."""
    machine = ball(stiffness=1e300)
    pair = "contact `ground` between `world` and `ball`"
    with pytest.raises(SimulationError, match=f"{pair}.*lower stiffness") as caught:
        simulate(machine, x0=height(0.12), duration=0.1, dt=1e-3, integrator=integrator)
    assert caught.value.time == pytest.approx(0.064, abs=2e-3)


PHASES = np.linspace(0, 1, 9)[:-1]
"""Where in a step the ball meets the ground."""


def rebounds(stiffness, damping, dt=1e-3):
    """Speeds after an impact of 1 m/s that begins in all phases of a step, and largest energies."""
    machine = ball(g=0.0).tunable("ground.stiffness", "ground.damping")
    run = simulate(
        machine,
        x0=np.stack([height(0.1 + dt * (2 + phase)) for phase in PHASES]),
        v0=np.tile([0.0, 0, -1, 0, 0, 0], (len(PHASES), 1)),
        duration=60 * dt,
        dt=dt,
        integrator="implicit",
        parameters=np.tile([stiffness, damping], (len(PHASES), 1)),
    )
    return run.v[:, -1, 2], run.energy.max(axis=1) / 0.5


@pytest.mark.parametrize("stiffness", [1e10, 1e15, 1e30])
def test_impacts_shorter_than_a_step_give_no_energy(stiffness):
    """The second stage, built upon the first, came back with up to 1.41 times the speed."""
    speeds, energies = rebounds(stiffness, 0.0)
    assert (speeds >= 0).all()
    assert speeds.max() < 1
    assert energies.max() < 1 + 1e-9


def test_impacts_of_some_steps_are_as_in_the_closed_form():
    """They last 12.7 and 3.3 steps, and no step of theirs is taken for too short."""
    for stiffness, close in ((1e6, 4e-3), (3e7, 7e-2)):
        speeds, _ = rebounds(stiffness, 1.0)
        np.testing.assert_allclose(speeds, speed_after_impact(1.0, 1.0), rtol=close)


@pytest.mark.parametrize("stiffness", [1e8, 1e12])
def test_stops_that_are_hit_within_a_step_give_no_energy(stiffness):
    body = Body("cart", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    rail = Joint("rail", Prismatic("x"), "world", "cart", lower=-1.0, upper=0.01)
    for phase in PHASES[::2]:
        run = simulate(
            Machine([body], [rail], gravity=(0, 0, 0)),
            x0=[0.007 - 1e-3 * phase],
            v0=[1.0],
            duration=0.03,
            dt=1e-3,
            integrator="implicit",
            stops=Stops(stiffness=stiffness),
        )
        assert -1 < run.v[-1, 0] <= 0
        assert run.energy.max() < 0.5 + 1e-9


def test_impacts_that_implicit_steps_do_not_follow_are_warned_of():
    message = (
        r"contact `ground` between `world` and `ball`: an impact of 1 kg at 1 m/s lasts 2e-05 s"
    )
    with pytest.warns(FramefreeWarning, match=message):
        run = simulate(ball(stiffness=1e13, damping=1.0), x0=height(0.11), duration=0.3, dt=1e-3)
    assert run.meta["integrator"] == "implicit"
    assert run.x[:, 2].max() <= 0.11


def test_boxes_that_sink_in_deeper_than_their_corners_are_round_are_warned_of():
    box = ContactShape("box", (0.2, 0.2, 0.2))
    bodies = [Body(name, Moments.of_body(1.0, (0, 0, 0), 0.01 * np.eye(3))) for name in "ab"]
    joints = [Joint(f"j{body.name}", Free(), "world", body.name) for body in bodies]
    for stiffness, warned in ((1e5, True), (1e6, False)):
        touch = Contact("touch", "a", "b", box, box, stiffness=stiffness)
        machine = Machine(bodies, joints, interactions=[touch])
        assert bool(_too_soft(machine, np.zeros(0))) == warned
    (text,) = _too_soft(machine.replace("touch", stiffness=1e4), np.zeros(0))
    assert "between `a` and `b` is soft for its size: 1 kg" in text
    assert "take a stiffness above" in text


@pytest.mark.filterwarnings("ignore:contact `ground`")
def test_the_implicit_integrator_takes_it():
    run = simulate(ball(stiffness=1e9, damping=5.0), x0=height(0.11), duration=1.0, dt=1e-3)
    assert "rk4" in run.meta["integrator_choice"]
    assert abs(run["ground.normal_force"][-1] / 9.81 - 1) < 1e-2
