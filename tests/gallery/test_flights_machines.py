"""Multicopters and small machines against their published input matrices and figures."""

import numpy as np
import pytest

from framefree.gallery.machines.multicopters import (
    THRUST_COEFFICIENT,
    TORQUE_RATIO,
    bicopter,
    quadcopter,
    tricopter,
)
from framefree.gallery.machines.planar import (
    planar_body,
    pvtol,
    slider,
    tumbler,
    two_masses,
    wheel,
)
from framefree.gallery.machines.scara import scara
from framefree.motion import equations
from published import published


def numbers(machine, name, *arguments):
    return np.array(equations(machine, "tree").functions[name](*arguments)).T.squeeze().T


def input_matrix(machine):
    B = equations(machine, "tree").functions["input_matrix"](machine.neutral())
    return np.array(B).reshape(machine.nv, machine.nu, order="F")


def test_mixer_of_the_quadcopter():
    r, c = 0.24, 0.01701
    mixer = [[1, 1, 1, 1], [0, r, 0, -r], [-r, 0, r, 0], [-c, c, -c, c]]
    B = input_matrix(quadcopter())
    assert np.allclose(B[2:], mixer, atol=5e-6)
    assert np.allclose(B[:2], 0)


def test_input_matrix_of_the_tricopter_has_the_signs_of_its_geometry():
    r, h, c, s = 0.24, -0.006, TORQUE_RATIO, np.sqrt(3) / 2
    published = np.array(
        [
            [0, 0, 0, s, 0, -s],
            [0, 0, 0, -0.5, 1, -0.5],
            [1, 1, 1, 0, 0, 0],
            [s * r, 0, -s * r, h / 2 + s * c, -h, h / 2 + s * c],
            [-r / 2, r, -r / 2, s * h - c / 2, -c, c / 2 - s * h],
            [c, -c, -c, -r, -r, -r],
        ]
    )
    # Published columns are V1 V2 V3 H1 H2 H3; ours are (H, V) of each propeller.
    assert np.allclose(input_matrix(tricopter()), published[:, [3, 0, 4, 1, 5, 2]], atol=1e-12)


def test_input_matrix_and_hexagon_of_the_bicopter():
    sb, cb, lz, ly = 0.342020, 0.939693, 0.05, 0.24
    b = 0.208425
    published = [
        [1, 0, 1, 0],
        [0, sb, 0, -sb],
        [0, cb, 0, cb],
        [0, b, 0, -b],
        [lz, 0, lz, 0],
        [-ly, 0, ly, 0],
    ]
    machine = bicopter()
    assert np.allclose(input_matrix(machine), published, atol=1e-6)
    A, limit = machine.actuators[0].polytope
    corners = np.array(
        [
            (-1.154701, 2),
            (1.154701, 2),
            (7, 12.124356),
            (2.431074, 13.787309),
            (-2.431074, 13.787309),
            (-7, 12.124356),
        ]
    )
    slack = limit - corners @ A.T
    assert slack.min() > -1e-5
    assert ((np.abs(slack) < 1e-5).sum(axis=1) >= 2).all()


@pytest.mark.parametrize(("make", "key"), [(quadcopter, "quad"), (tricopter, "tri")])
def test_parameters_are_the_published_ones(make, key):
    given, machine = published("multicopters")[key], make()
    inertia = machine.bodies[0].moments
    assert inertia.total == given["m"]
    assert np.allclose(inertia.center, given["com"], atol=1e-12)
    assert np.allclose(inertia.moment, given["J"], atol=1e-12)
    D = machine.dampers[0].matrix
    assert np.allclose(np.diag(D)[:3], given["d_v"])
    assert D[0, 4] == pytest.approx(given["d_v"][0] * given["l_z"])
    assert D[5, 5] == pytest.approx(given["sigma"][2])
    assert machine.actuators[0].torque_ratio == given["kappa_T"] / given["kappa_F"]


def test_drag_is_that_of_the_moving_centre():
    D = quadcopter().dampers[0].matrix
    v, w, height = np.array([1.0, -2, 0.5]), np.array([0.3, 0.4, -0.7]), np.array([0, 0, 0.012])
    force = np.array([0.3, 0.3, 0.36]) * (v + np.cross(w, height))
    wrench = D @ np.concatenate([v, w])
    assert np.allclose(wrench[:3], force)
    turning = np.array([-1.5e-3, -1.5e-3, 10e-3]) * w
    assert np.allclose(wrench[3:], np.cross(height, force) + turning)


def test_hover_speed_of_the_published_vehicles():
    for machine, count, speed in ((quadcopter(), 4, 412.9), (tricopter(), 3, 533.0)):
        thrust = machine.bodies[0].moments.total * 9.81 / count
        assert np.sqrt(thrust / THRUST_COEFFICIENT) == pytest.approx(speed, abs=0.1)


def test_the_tricopter_reaches_every_wrench_and_the_others_do_not():
    ranks = [
        np.linalg.matrix_rank(input_matrix(m)) for m in (tricopter(), quadcopter(), bicopter())
    ]
    assert ranks == [6, 4, 4]
    plain = input_matrix(tricopter())
    assert abs(np.linalg.det(plain)) == pytest.approx(27 / 4 * 0.24**3, rel=0.05)


def test_pvtol_thrusts_are_inclined_outwards_and_its_plane_is_upright():
    machine = pvtol()
    B = input_matrix(machine)
    sb, cb = np.sin(np.deg2rad(20)), np.cos(np.deg2rad(20))
    assert np.allclose(B, [[sb, -sb], [cb, cb], [0.24 * cb, -0.24 * cb]])
    gravity = numbers(machine, "gravity", machine.neutral())
    assert np.allclose(gravity, [0, 9.81, 0], atol=1e-12)


def test_two_masses_are_at_rest_and_pull_each_other():
    machine = two_masses()
    x = np.array([0.0, 0.0])
    assert np.allclose(numbers(machine, "bias", x, [0, 0]), 0)
    assert np.allclose(numbers(machine, "bias", [0.1, 0.0], [0, 0]), [2.0, -2.0])


def test_scara_mass_matrix_is_positive_where_the_printed_one_is_not():
    machine = scara()
    for angle in np.linspace(-np.pi, np.pi, 9):
        M = np.array(equations(machine, "tree").functions["mass"]([0.3, angle]))
        assert np.linalg.eigvalsh(M.reshape(2, 2)).min() > 1e-3


@pytest.mark.parametrize("make", [wheel, slider, tumbler, planar_body])
def test_small_machines_are_fully_actuated(make):
    machine = make()
    assert np.linalg.matrix_rank(input_matrix(machine)) == machine.nv
