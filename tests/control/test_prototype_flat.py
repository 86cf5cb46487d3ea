"""Flat references: derivatives, feasibility, and the figures of the published manoeuvres."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype.feasible import feasibility
from framefree.control.references.flat import FlatReference
from framefree.control.references.flat_curves import (
    FLIP,
    LOOP,
    CircleCurve,
    ConstantCurve,
    Manoeuvres,
    Moves,
    Spline,
)
from framefree.gallery.machines.multicopters import quadcopter, tricopter
from framefree.gallery.machines.scara import scara
from framefree.gallery.scenarios.prototypes import flights
from framefree.gallery.scenarios.prototypes.quad_flip import EXCESS


def sampled(reference, t):
    symbol = ca.SX.sym("t")
    at = reference.at(symbol)
    function = ca.Function("at", [symbol], [at[name] for name in "xva"])
    return [np.array(value).T for value in function.map(len(t))(t.reshape(1, -1))]


REFERENCES = {
    "loops": (quadcopter, flights.loops),
    "flips": (quadcopter, flights.flips),
    "transitions": (quadcopter, flights.transitions),
    "free": (tricopter, flights.free_transitions),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_velocities_and_accelerations_are_derivatives_of_the_configuration(name):
    make, reference = REFERENCES[name]
    machine, h = make(), 1e-4
    middle = np.linspace(2.0, 32.0, 61) + 0.0123
    x0, x1 = (sampled(reference(machine), middle + side * h)[0] for side in (-1, 1))
    v0, v1 = (sampled(reference(machine), middle + side * h)[1] for side in (-1, 1))
    _, v, a = sampled(reference(machine), middle)
    assert np.allclose(machine.difference(x0, x1) / (2 * h), v, atol=2e-5)
    assert np.allclose((v1 - v0) / (2 * h), a, atol=2e-3)


@pytest.mark.parametrize("name", ["loops", "flips", "transitions"])
def test_a_quadcopter_with_drag_can_follow_but_for_the_drag_of_turning(name):
    make, reference = REFERENCES[name]
    machine = make()
    found = feasibility(machine, reference(machine), np.linspace(0, 35, 701))
    # Drag acts 12 mm over the middle: at w rad/s that is 0.3 * 0.012 w N sideways.
    assert found.largest_force < 0.3 * 0.014 * 13.5
    centered = machine.detach("drag")
    ideal = FlatReference(centered, reference(machine).position, normal=reference(machine).normal)
    assert feasibility(centered, ideal, np.linspace(0, 35, 351)).largest_force < 1e-12


def test_the_tricopter_needs_no_flatness():
    machine = tricopter()
    found = feasibility(machine, flights.free_transitions(machine), np.linspace(0, 35, 351))
    assert found.largest_force < 1e-12
    assert found.within_limits


def test_without_the_drag_term_the_reference_is_not_feasible():
    machine = quadcopter()
    path = Moves((0, 0, 0), ((0.0, 2.0, (2, 0, 0)),))
    times = np.linspace(0.2, 1.8, 33)
    bare = feasibility(machine, FlatReference(machine, path), times).largest_force
    right = feasibility(machine, FlatReference(machine, path, drag=flights.DRAG), times)
    assert bare > 0.3
    assert right.largest_force < 0.02


def test_published_figures_of_loop_and_flip():
    """Speed, acceleration and rate of turning of the flown references [Konz2024, tab. 5]."""
    for make, speed, acceleration, rate in (
        (flights.loops, 4.1, 17.3, 540),
        (flights.flips, 2.4, 17.3, 736),
    ):
        t = np.linspace(0, 35, 7001)
        x, v, a = sampled(make(quadcopter()), t)
        assert np.linalg.norm(v[:, :3], axis=1).max() == pytest.approx(speed, rel=0.02)
        turned = np.cross(v[:, 3:], v[:, :3]) + a[:, :3]
        assert np.linalg.norm(turned, axis=1).max() == pytest.approx(acceleration, rel=0.03)
        assert np.rad2deg(np.linalg.norm(v[:, 3:], axis=1)).max() == pytest.approx(rate, rel=0.06)
        assert np.abs(v[:, 5]).max() < 1e-9
        upright = 1 - 2 * (x[:, 4] ** 2 + x[:, 5] ** 2)
        assert upright.min() == pytest.approx(-1, abs=1e-3)


def test_extent_of_loop_and_flip():
    s = np.linspace(-1, 1, 2001)
    for manoeuvre, forward, up in ((LOOP, 1.0415, (-0.008, 2.006)), (FLIP, 0.1631, (0, 0.9406))):
        across, height = manoeuvre.at(s)
        assert np.abs(across).max() == pytest.approx(forward, abs=2e-3)
        assert (height.min(), height.max()) == pytest.approx(up, abs=2e-3)


def test_heading_is_what_is_left_of_the_turn_about_z():
    machine = quadcopter()
    heading = Moves(0.0, ((1.0, 2.0, 2.0),), degree=5)
    path = Moves((0, 0, 0), ((1.0, 2.0, (1.0, 1.0, 0.5)),))
    t = np.linspace(0, 4, 41)
    x, _, _ = sampled(FlatReference(machine, path, heading), t)
    level = np.tile([0, 0, 0, 1.0, 0, 0, 0], (len(t), 1))
    expected = np.array([float(ca.DM(heading.at(ca.SX(s)))) for s in t])
    assert np.allclose(flights.errors(x, level)["heading"], np.rad2deg(expected), atol=1e-9)


def test_moves_rest_before_between_and_after():
    path = Moves((1.0,), ((1.0, 2.0, (3.0,)), (4.0, 1.0, (-1.0,))))
    t = ca.SX.sym("t")
    values = [path.at(t)]
    for _ in range(4):
        values.append(ca.jacobian(values[-1], t))
    function = ca.Function("moves", [t], values)
    for time, place in ((0.0, 1.0), (1.0, 1.0), (3.0, 3.0), (3.5, 3.0), (5.0, -1.0), (9.0, -1.0)):
        found = [float(value) for value in function(time)]
        assert found == pytest.approx([place, 0, 0, 0, 0], abs=1e-9)
    assert path.times == (1.0, 3.0, 4.0, 5.0)


def test_spline_passes_its_points_smoothly_and_rests_at_both_ends():
    knots, points = [0.0, 1.0, 2.5, 4.0], [[0, 0], [1, 2], [0, 3], [2, 1]]
    path = Spline(knots, points)
    t = ca.SX.sym("t")
    values = [path.at(t)]
    for _ in range(4):
        values.append(ca.jacobian(values[-1], t))
    function = ca.Function("spline", [t], values)
    for k, point in zip(knots, points, strict=True):
        found = [np.array(value).ravel() for value in function(k)]
        assert np.allclose(found[0], point, atol=1e-9)
        before = [np.array(value).ravel() for value in function(k - 1e-9)]
        for one, two in zip(found, before, strict=True):
            assert np.allclose(one, two, atol=1e-5)
    for outside in (-1.0, 0.0, 4.0, 7.0):
        assert np.allclose(np.array(function(outside)[1:]), 0, atol=1e-8)


def test_circle():
    path = CircleCurve((0, 0, 1), (0, 1.5, 0), (0, 0, 1.5), np.pi)
    assert np.allclose(np.array(ca.DM(path.at(ca.SX(0.5)))).ravel(), [0, 0, 2.5])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Moves(0.0, ((0, 1, 1), (0.5, 1, 2))),
        lambda: Moves(0.0, (), degree=4),
        lambda: Spline([0, 0], [[1], [2]]),
        lambda: Manoeuvres(LOOP, (0, 0, 0), (0, 1), (0, 0)),
        lambda: FlatReference(scara(), ConstantCurve((0, 0, 0))),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(ControlError):
        make()


def test_a_slowed_manoeuvre_has_the_same_accelerations():
    """Twice the time on four times the way, by differences of the path."""
    step = 1e-4
    for factor in (1.15, 2.0):
        slow = FLIP.slowed(factor)
        for s in (-0.7, 0.1, 0.6):

            def place(manoeuvre, shift, s=s):
                return np.array([float(v) for v in manoeuvre.at(ca.DM(s + shift))])

            def bend(manoeuvre):
                points = [place(manoeuvre, k * step) for k in (-1, 0, 1)]
                return (points[0] - 2 * points[1] + points[2]) * (
                    2 / manoeuvre.duration / step
                ) ** 2

            assert np.allclose(bend(slow), bend(FLIP), rtol=1e-4, atol=1e-3)


def test_flips_are_within_the_thrust_limits_from_the_stated_factor_on():
    machine = quadcopter()
    for slower, within in ((1.0, False), (1.15, True)):
        found = feasibility(machine, flights.flips(machine, slower), np.linspace(4.2, 6.5, 461))
        assert found.within_limits == within
        assert found.margin.min() > -EXCESS
        assert found.largest_force < 0.05
