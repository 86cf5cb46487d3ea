"""Runs with contact that cannot be right say so: overlapping starts, absurd stiffness."""

import numpy as np
import pytest

from framefree.errors import FramefreeWarning
from framefree.gallery.machines.touching import ball, stack
from framefree.simulate import SimulationError, simulate
from framefree.simulate.touching import blamed_contact


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


def test_the_implicit_integrator_takes_it():
    run = simulate(ball(stiffness=1e9, damping=5.0), x0=height(0.11), duration=1.0, dt=1e-3)
    assert "rk4" in run.meta["integrator_choice"]
    assert abs(run["ground.normal_force"][-1] / 9.81 - 1) < 1e-2
