"""Matching is about rest: at configurations that the law does not hold it is refused."""

import numpy as np
import pytest

from framefree.control import PrototypeControl
from framefree.control.law import ControlError
from framefree.control.prototype.tuning import characteristic, free_body, matching, thrust_borne
from framefree.gallery.machines.multicopters import quadcopter, tricopter

POLES = characteristic((3.0, 0.8), (12.0, 0.8))


def law_of(machine, gains):
    return PrototypeControl(machine, **gains.on("body"), approach="body")


def tilted(angle):
    return np.array([0, 0, 1.0, np.cos(angle / 2), np.sin(angle / 2), 0, 0])


@pytest.mark.parametrize("angle", [1e-3, 0.3, 1.5])
def test_a_craft_that_hangs_on_its_thrust_is_not_at_rest_tilted(angle):
    law = law_of(quadcopter(drag=False, offset=False), thrust_borne(1.001, POLES, (2.5, 0.7), 0.03))
    assert matching(law, tilted(0.0)).stable_at_rest
    with pytest.raises(ControlError, match=r"matching is about rest, but under the law `.*` accel"):
        matching(law, tilted(angle))


def test_a_craft_that_can_push_to_all_sides_rests_tilted():
    gains = free_body(1.001, (0.0095, 0.0095, 0.0307), (2.8, 0.78), (9.0, 0.7))
    law = law_of(tricopter(drag=False), gains)
    assert matching(law, tilted(0.3)).stable_at_rest


def test_what_would_need_inputs_beyond_their_limits_is_refused():
    """Upside down, a quadcopter would have to push the other way."""
    machine = quadcopter(drag=False, offset=False)
    machine = machine.replace(machine.actuators[0].name, lower=0.0)
    law = law_of(machine, thrust_borne(1.001, POLES, (2.5, 0.7), 0.03))
    assert matching(law, tilted(0.0)).stable_at_rest
    with pytest.raises(ControlError, match="beyond its limits"):
        matching(law, tilted(np.pi))
