"""Passivity laws in closed loops: through pitch 90 degrees, on station, and with pushes."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.passive import EulerPassivity, PassivityControl, StationKeeping
from framefree.control.references import JointPath
from framefree.gallery.scenarios.vehicles.vehicle_checks import largest_jump
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Fluid,
    Free,
    Immersed,
    Joint,
    JointForce,
    Machine,
    Revolute,
    Wrench,
)
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error

GAINS = {"K": 8.0, "stiffness": 10.0, "Lambda": 0.2}


@pytest.fixture(scope="module")
def submarine():
    hull = Moments.of_body(4.0, (0, 0, -0.02), np.diag([0.8, 1.0, 1.1]))
    arm = Moments.of_body(1.0, (0.3, 0, 0), np.diag([0.2, 0.3, 0.3]))
    added = np.diag([1.0, 2.0, 3.0, 0.3, 0.5, 0.4])
    water = Fluid(
        (Immersed("hull", 5e-3, (0, 0, 0.02), added, 1.0, 3.0),), current=(0.3, -0.2, 0.1)
    )
    return Machine(
        (Body("hull", hull), Body("arm", arm)),
        (
            Joint("base", Free(), "world", "hull"),
            Joint("arm", Revolute("y"), "hull", "arm", parent_pose=(0.4, 0, 0)),
        ),
        actuators=(Wrench("jets", "hull", np.eye(6)), JointForce("motor", "arm")),
        fluid=water,
        name="submarine",
    )


def tumble(machine):
    """Pitch rises steadily from 80 degrees on, yaw and roll stay as they are."""

    def path(t):
        half = (np.deg2rad(80.0) + 0.5 * t) / 2
        return ca.vertcat(0.2 * t, 0, 0, ca.cos(half), 0, ca.sin(half), 0, 0.3 * ca.sin(t))

    return JointPath(machine, path)


OPTIONS = {"duration": 1.0, "dt": 1e-3, "record": (), "progress": False}


def off(machine):
    x = tumble(machine).function(0.0)[0].full().ravel()
    return machine.integrate(x, np.array([0.1, -0.1, 0.1, 0.02, -0.1, 0.02, 0.2]))


def test_through_pitch_90_degrees_V_falls_as_stated_and_commands_are_continuous(submarine):
    law = PassivityControl(submarine, **GAINS, drag="met")
    run = simulate(submarine, law, tumble(submarine), off(submarine), **OPTIONS)
    assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6
    assert run["V"][-1] < 0.3 * run["V"][0]
    assert largest_jump(run.u) < 1.5
    assert np.abs(run.u).max() < 40


def test_in_euler_angles_commands_jump_and_grow_at_pitch_90_degrees(submarine):
    law = EulerPassivity(submarine, **GAINS, drag="met")
    path, x0 = tumble(submarine), off(submarine)
    run = simulate(submarine, law, path, x0, **OPTIONS)
    assert np.abs(run.u).max() > 200  # N, Nm: the law on the group asks for a tenth of it
    assert largest_jump(run.u) > 3


def test_with_the_plain_adjoint_form_V_does_not_fall_as_stated(submarine):
    law = PassivityControl(submarine, **GAINS, drag="met", form="adjoint")
    run = simulate(submarine, law, tumble(submarine), off(submarine), **OPTIONS)
    assert rate_error(run.t, run["V"], run["V_rate"]) > 1e-3


def test_station_is_kept_in_a_current(submarine):
    place = submarine.neutral()
    place[3:7] = np.array([1.0, 0.0, 1.0, 0.0]) / np.sqrt(2)
    law = StationKeeping(submarine, **GAINS, place=place)
    x0 = submarine.integrate(place, np.array([0.2, 0.1, -0.1, 0.5, -0.3, 0.4, 0.3]))
    run = simulate(submarine, law, None, x0, **{**OPTIONS, "duration": 8.0, "dt": 5e-3})
    assert np.abs(submarine.difference(run.x[-1], place)).max() < 1e-4
    assert np.abs(run.v[-1]).max() < 1e-4
    assert np.all(np.diff(run["V"]) < 1e-12)
    assert np.abs(run.u[-1]).max() > 0.1  # the current goes on pushing
