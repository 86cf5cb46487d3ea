"""Regions of attraction: van der Pol's cycle is their edge; limits of inputs; what is refused."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest

from framefree.control import ControlError, Law
from framefree.control.attraction import attraction
from framefree.control.law import Command
from framefree.gallery.machines.planar import slider
from framefree.machine import Machine
from framefree.simulate.attraction import confirmed

AMPLITUDE = 2.00862
"""Largest deflection of van der Pol's cycle with mu = 1, as published."""


@dataclass(frozen=True)
class VanDerPol(Law):
    """x'' = -x + (x^2 - 1) x': at rest inside of van der Pol's cycle, away from it outside."""

    machine: Machine
    sign: float = 1.0

    needs = ("x", "v", "a")

    def control(self, t, x, v, reference, memory):
        force = -x + self.sign * (x * x - 1) * v
        return Command(ca.densify(self.machine.bodies[0].moments.total * force), {})


def law(limit=np.inf, sign=1.0):
    machine = slider()
    motor = replace(machine.actuators[0], lower=-limit, upper=limit)
    return VanDerPol(machine.replace(actuators=(motor,)), sign)


@pytest.fixture(scope="module")
def region():
    return attraction(law(), rays=2048)


def test_the_region_lies_inside_of_van_der_pols_cycle(region):
    x, v = region.starts(4000, seed=3)
    assert np.abs(x).max() < AMPLITUDE
    assert region.reach["slide"] > 1.0
    assert region.stop == "a rise of V"
    assert region.value(x, v).max() <= 1 + 1e-12


def test_every_start_inside_comes_to_rest_and_none_beyond_the_cycle(region):
    inside = confirmed(region, 500, duration=25.0, dt=0.01, progress=False)
    assert inside.home.all()
    assert inside.risen <= 1e-9
    outside = np.array([[AMPLITUDE + 0.01], [-AMPLITUDE - 0.05]])
    beyond = confirmed(region, (outside, 0 * outside), duration=6.0, dt=0.01, progress=False)
    assert not beyond.home.any()
    just_inside = np.array([[AMPLITUDE - 0.01]])
    back = confirmed(region, (just_inside, 0 * just_inside), duration=40.0, dt=0.01, progress=False)
    assert back.home.all()


def test_limits_of_inputs_make_it_smaller(region):
    limit = 0.4
    limited = attraction(law(limit), rays=1024)
    assert limited.stop == "limits of inputs"
    assert limited.level < region.level or limited.reach["slide"] < region.reach["slide"]
    x, v = limited.starts(2000, seed=1)
    u = 0.5 * (-x + (x * x - 1) * v)
    assert np.abs(u).max() <= limit


def test_what_does_not_decay_is_refused():
    with pytest.raises(ControlError, match=r"small errors about rest do not decay.*0\.5"):
        attraction(law(sign=-1.0))
