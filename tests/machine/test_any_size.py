"""What a machine may be, and which numbers count as zero, does not depend on its size."""

import casadi as ca
import numpy as np
import pytest

from framefree.geometry import Moments
from framefree.machine import Body, Damper, Frame, Immersed, Joint, Machine, MachineError, Revolute
from framefree.machine.values import constant_pose

SIZES = (1e-9, 1e-6, 1e-3, 1.0, 1e4)


def constant(pose):
    return np.array(ca.DM(constant_pose(pose)))


@pytest.mark.parametrize("size", SIZES)
def test_small_offsets_are_kept_and_rounding_is_not(size):
    pose = np.eye(4)
    pose[:3, :3] = [[6e-17, -1.0, 1e-16], [1.0, 6e-17, 0.0], [0.0, 0.0, 1.0 - 2e-16]]
    pose[:3, 3] = size * np.array([1.0, 1e-9, 1e-17])
    snapped = constant(pose)
    np.testing.assert_array_equal(snapped[:3, 3], [size, size * 1e-9, 0.0])
    np.testing.assert_array_equal(snapped[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def test_a_position_of_one_metre_is_not_rounded():
    pose = np.eye(4)
    pose[:3, 3] = (1.0 + 4e-13, -1.0 + 4e-13, 0.5)
    np.testing.assert_array_equal(constant(pose)[:3, 3], pose[:3, 3])


@pytest.mark.parametrize("size", SIZES)
def test_matrices_must_be_symmetric_in_every_block(size):
    """Rows of forces and moments have other units; each block counts by its own size."""
    units = np.repeat([1.0, size], 3)
    good = np.outer(units, units) * (np.eye(6) + 0.1)
    for i, j in ((0, 1), (0, 4), (3, 5)):
        bad = good.copy()
        bad[i, j] *= 1.001
        with pytest.raises(MachineError, match="symmetric"):
            Immersed("f", added_mass=1e-9 * bad)
        with pytest.raises(MachineError, match="symmetric"):
            Damper("d", "a", "b", bad)
    rounded = good * (1 + 1e-13 * np.triu(np.ones((6, 6)), 1))
    assert np.array_equal(Immersed("f", added_mass=rounded).added_mass, rounded)


def doubts(machine):
    return " ".join(machine.problems)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
def test_dampers_that_drive_are_noticed(size, strength):
    units = np.repeat([1.0, size], 3)
    body = Body("a", Moments.of_body(1.0, np.zeros(3), np.eye(3)))
    for diagonal, drives in (
        ([1, 1, 1, 1, 1, 1], False),
        ([1, 1, 1, 0, 0, 0], False),
        ([1, 1, 1, 1, 1, -0.01], True),
        ([1, -0.01, 1, 1, 1, 1], True),
    ):
        matrix = strength * np.diag(diagonal * units**2)
        machine = Machine(
            (body,),
            (Joint("j", Revolute("z"), "world", "a"),),
            dampers=(Damper("d", "world", "a", matrix),),
        )
        assert ("feeds power" in doubts(machine)) == drives


@pytest.mark.parametrize("size", SIZES)
def test_bodies_of_any_length_can_be_stretched(size):
    body = Body("a", Moments.of_body(1.0, np.zeros(3), size**2 * np.eye(3)))
    joint = Joint("j", Revolute("z"), "world", "a", child_pose=(size, 0, 0))
    machine = Machine((body,), (joint,), (Frame("tip", "a", (size, 3 * size, 0)),))
    longer = machine.tunable("a.length").with_parameters({"a.length": 6 * size})
    np.testing.assert_allclose(longer.frame("tip").pose[:3, 3], [size, 6 * size, 0], rtol=1e-14)
    short = Machine((body,), (joint,), (Frame("tip", "a", (size, 0, 0)),))
    with pytest.raises(MachineError, match="no outgoing joint or frame away"):
        short.tunable("a.length")
