"""A reference leans against a force that no input can match, and only then."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.prototype.lean import Lean
from framefree.gallery.scenarios.prototypes import flights
from framefree.geometry import quaternion
from framefree.kernel import compile
from framefree.motion import equations

FORCE = np.array([0.3, -0.2, -0.09, 0.049, -0.015, -0.012])


def numbers(*values):
    return [np.array(ca.evalf(ca.densify(ca.DM(value)))).ravel() for value in values]


def reference_at(craft, t):
    return dict(zip("xva", (ca.DM(value) for value in craft.reference.function(t)), strict=True))


@pytest.mark.parametrize("t", [0.5, 3.4, 4.0])
def test_where_it_leans_nothing_lacks(t):
    """At the leaning reference, moving as it does, the inputs give all that is needed."""
    craft = flights.quadcopter_craft(flights.loops, 3.4)
    law = craft.law("particle", lean=False)
    plain, x = reference_at(craft, t), None
    missing = []
    for reference in (plain, Lean(equations(craft.machine))(plain, ca.DM(FORCE))):
        x, v = reference["x"], reference["v"]
        told = {**reference, "unknown_force": ca.DM(FORCE)}
        command = law.control(0, x, v, told, ca.DM(0, 1))
        missing.append(np.abs(numbers(command.signals["matching_force"])[0]).max())
    # Without, the reference itself lacks some mN for the center of mass that is off the thrust.
    assert missing[0] > 0.1
    assert missing[1] < 1e-2 * missing[0]
    assert np.allclose(*numbers(plain["x"][:3], x[:3]))


def test_speed_and_turning_are_those_of_the_reference():
    """Position, speed and angular velocity in the world stay; the attitude turns."""
    craft = flights.quadcopter_craft(flights.loops, 3.4)
    plain = reference_at(craft, 3.4)
    turned = Lean(equations(craft.machine))(plain, ca.DM(FORCE))
    R, R_new = (rotation(r["x"]) for r in (plain, turned))
    for part in (slice(0, 3), slice(3, 6)):
        for name in "va":
            before, after = numbers(plain[name][part], turned[name][part])
            assert np.allclose(R @ before, R_new @ after)
    angle = np.arccos((np.trace(R.T @ R_new) - 1) / 2)
    assert 0.005 < angle < 0.06


def test_the_turn_about_the_thrust_is_no_noise_in_single_precision():
    """It has no effect: rounding must not be divided by next to nothing, as in a flip."""
    craft = flights.quadcopter_craft(flights.flips, 4.7)
    symbols = [ca.SX.sym("x", 7), ca.SX.sym("v", 6), ca.SX.sym("a", 6), ca.SX.sym("f", 6)]
    turned = Lean(equations(craft.machine))(dict(zip("xva", symbols, strict=False)), symbols[3])
    function = ca.Function("turned", symbols, [ca.densify(turned["x"])])
    times = np.linspace(4.9, 5.5, 200)
    rows = [np.stack(one) for one in zip(*(numbers(*craft.reference.function(t)) for t in times),
                                         strict=True)]  # fmt: skip
    given = [*rows, np.tile(FORCE, (len(times), 1))]
    double, single = (compile(function, precision=kind)(*given) for kind in ("double", "single"))
    assert 0 < np.abs(double - single).max() < 1e-5


def rotation(x):
    return np.array(ca.evalf(quaternion.to_rotation(ca.DM(x)[3:7])))


def test_a_craft_with_all_inputs_does_not_lean():
    craft = flights.tricopter_craft()
    assert craft.law("energy")._leaning is None
    quad = flights.quadcopter_craft(flights.loops, 3.4)
    assert quad.law("particle")._leaning is not None
    assert quad.law("particle", lean=False)._leaning is None


def test_no_force_no_lean():
    craft = flights.quadcopter_craft(flights.transitions, 13.5)
    plain = reference_at(craft, 1.0)
    still = Lean(equations(craft.machine))(plain, ca.DM.zeros(6))
    # What is left is the lean of the hovering craft itself, whose reference is exact.
    assert np.abs(numbers(still["x"])[0] - numbers(plain["x"])[0]).max() < 1e-6
