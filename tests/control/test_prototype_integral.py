"""Integral action of the prototype law: the error goes, and V falls as stated."""

import numpy as np
import pytest

from framefree import simulate
from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeIntegral
from framefree.control.references.compose import Shifted
from framefree.gallery.scenarios.prototypes import flights
from framefree.gallery.scenarios.prototypes.flight_scenario import ERROR
from framefree.simulate import Pulse
from framefree.simulate.measures import rate_error

GAIN = np.array([16.0, 16.0, 16.0, 3.0, 3.0, 1.5])
TIME = np.array([0.25, 0.25, 0.25, 0.06, 0.06, 0.1])


def flown(approach, integral, bias=1.0, duration=3.0, dt=1e-3):
    """A tricopter with ideal actuators, from an error in the middle of a move, under a wrench."""
    craft = flights.tricopter_craft()
    x, v, _ = craft.start(craft.busy)
    law = craft.law(approach, integral=integral)
    return simulate(
        craft.machine, law, Shifted(craft.reference, -craft.busy),
        craft.machine.integrate(x, np.asarray(ERROR)), v, duration=duration, dt=dt, limits=False,
        disturbances=[Pulse("body", bias * np.array(craft.bias), axes="frame")], record=(),
        progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("approach", ["energy", "body"])
def test_v_falls_as_stated_whatever_the_force(approach):
    """The stated rate knows nothing of the force; V does, and its differences agree."""
    force = np.array(flights.tricopter_craft().bias)
    run = flown(approach, PrototypeIntegral(GAIN, TIME, force), dt=5e-4)
    assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6
    assert (run["V_rate"] <= 1e-12).all()
    assert (np.diff(run["V"]) <= 1e-12).all()
    wrong = flown(approach, PrototypeIntegral(GAIN, TIME, 0 * force), dt=5e-4)
    assert rate_error(wrong.t, wrong["V"], wrong["V_rate"]) > 1e-3  # V must know the force


def test_the_error_goes_and_the_force_is_found():
    craft = flights.tricopter_craft()
    hold = {"duration": 15.0, "dt": 5e-3}
    runs = [flown("energy", k, **hold) for k in (None, PrototypeIntegral(GAIN, TIME))]
    off = [flights.errors(r.x, r.reference["x"])["position"][-1] for r in runs]
    assert off[0] > 0.02
    assert off[1] < off[0] / 50
    found = runs[1]["integral_force"][-1]
    assert np.abs(found - craft.bias).max() < 5e-3


def test_sampled_with_delay_and_drives_it_still_does():
    craft = flights.tricopter_craft()
    x, v, u = craft.start()
    law = craft.law("energy", integral=PrototypeIntegral(GAIN, TIME))
    run = simulate(
        craft.machine, law, craft.reference, x, v, duration=12.0, dt=1e-3, control_dt=5e-3,
        lag=craft.drive, delay=1, predict=craft.lead, u0=u, record=(), progress=False,
        disturbances=[Pulse("body", np.array(craft.bias), axes="frame")],
    )  # fmt: skip
    off = flights.errors(run.x, run.reference["x"])["position"]
    assert off[run.t > 10].max() < 0.01


def test_refused():
    craft = flights.tricopter_craft()
    with pytest.raises(ControlError, match="the times of integral action must be below"):
        craft.law("energy", integral=PrototypeIntegral(GAIN, 1.0))
    with pytest.raises(ControlError, match="`gain` of PrototypeIntegral must be one positive"):
        craft.law("energy", integral=PrototypeIntegral([1.0, 2.0], TIME))
    with pytest.raises(ControlError, match="`time` of PrototypeIntegral must be positive"):
        PrototypeIntegral(GAIN, 0.0)
    with pytest.raises(ControlError, match="`force` must be 6 finite numbers"):
        craft.law("energy", integral=PrototypeIntegral(GAIN, TIME, [1.0]))
    quad = flights.quadcopter_craft(flights.loops, 3.4)
    with pytest.raises(ControlError, match="integral action needs an actuator for every velocity"):
        quad.law("particle", integral=PrototypeIntegral(GAIN, TIME))
