"""Joints: what they do by themselves (spring, friction), sampling, and what they refuse."""

import casadi
import numpy as np
import pytest
from scipy.linalg import expm

from framefree.geometry import se3
from framefree.machine import (
    Continuous,
    Cylindrical,
    Free,
    Joint,
    MachineError,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)


def numeric(value):
    return np.array(casadi.DM(value)).ravel()


SPRUNG = [
    Joint("j", Revolute(), "world", "b", stiffness=3.0, rest=0.4),
    Joint("j", Continuous(), "world", "b", stiffness=3.0, rest=(0.0, 1.0)),
    Joint("j", Prismatic(), "world", "b", stiffness=3.0),
    Joint("j", Cylindrical(), "world", "b", stiffness=(3.0, 1.0), rest=(0.1, 0.2)),
    Joint("j", Universal(), "world", "b", stiffness=(3.0, 1.0)),
    Joint("j", Spherical(), "world", "b", stiffness=2.0),
    Joint("j", Spherical(), "world", "b", stiffness=(1.0, 2.0, 3.0), rest=(0.6, 0.8, 0.0, 0.0)),
]


@pytest.mark.parametrize("joint", SPRUNG, ids=lambda j: type(j.kind).__name__)
def test_spring_force_is_the_gradient_of_its_potential(joint):
    x, v = casadi.SX.sym("x", joint.nx), casadi.SX.sym("v", joint.nv)
    rate = casadi.jtimes(joint.spring_potential(x), x, joint.kind.rate(x) @ v)
    gap = casadi.Function("gap", [x, v], [rate - casadi.dot(v, joint.spring_force(x))])
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert abs(float(gap(joint.random(rng), rng.normal(size=joint.nv)))) < 1e-11
    assert np.allclose(numeric(joint.spring_force(casadi.DM(joint.rest))), 0.0, atol=1e-15)


def test_isotropic_ball_spring_pulls_along_the_rotation_vector():
    joint = SPRUNG[5]
    x = joint.kind.integrate(casadi.DM([1, 0, 0, 0]), casadi.DM([0.3, -0.4, 1.2]))
    assert np.allclose(numeric(joint.spring_force(x)), 2.0 * np.array([0.3, -0.4, 1.2]))


def test_friction_opposes_motion_and_saturates():
    joint = Joint("j", Revolute(), "world", "b", friction=2.0, damping=0.5)
    assert numeric(joint.friction_force(casadi.DM(1.0))).item() == pytest.approx(2.0)
    assert numeric(joint.friction_force(casadi.DM(-1.0))).item() == pytest.approx(-2.0)
    at_width = numeric(joint.friction_force(casadi.DM(joint.friction_width))).item()
    assert at_width == pytest.approx(2.0 * np.tanh(1.0))
    assert numeric(joint.damping_force(casadi.DM(-4.0))).item() == pytest.approx(-2.0)


def test_random_keeps_to_limits():
    joint = Joint("j", Cylindrical(), "world", "b", lower=(-0.1, 2.0), upper=(0.3, 7.0))
    one_sided = Joint("j", Revolute(), "world", "b", lower=1.0)
    rng = np.random.default_rng(0)
    samples = np.array([joint.random(rng) for _ in range(500)])
    assert (samples >= joint.lower).all()
    assert (samples <= joint.upper).all()
    assert np.ptp(samples, axis=0) == pytest.approx(joint.upper - joint.lower, rel=0.05)
    assert min(one_sided.random(rng)[0] for _ in range(100)) >= 1.0


def test_arrays_cannot_be_written():
    joint = SPRUNG[0]
    for array in (joint.parent_pose, joint.lower, joint.stiffness, joint.kind.axis):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0
    with pytest.raises(AttributeError):
        joint.name = "k"


def test_pose_forms():
    flat = Joint("j", Revolute(), "world", "b", parent_pose=(1, 2, 3, 0, 0, 0, 1.0))
    expected = np.diag([-1.0, -1.0, 1.0, 1.0])
    expected[:3, 3] = (1, 2, 3)
    assert np.array_equal(flat.parent_pose, expected)
    assert np.array_equal(Joint("j", Revolute(), "world", "b").child_pose, np.eye(4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "revolute"}, "must be a joint kind"),
        ({"lower": 1.0, "upper": 0.0}, "inverted"),
        ({"lower": np.nan}, "must be numbers"),
        ({"armature": -1.0}, "`armature` of joint `j` must not be negative"),
        ({"damping": np.inf}, "finite"),
        ({"friction_width": 0.0}, "positive"),
        ({"parent_pose": (0, 0, 0, 1.0, 1.0, 0, 0)}, "unit quaternion"),
        ({"parent_pose": 2 * np.eye(4)}, "last row"),
        ({"parent_pose": np.diag([2.0, 1, 1, 1])}, "rotation"),
        ({"parent_pose": np.diag([-1.0, 1, 1, 1])}, "reflection"),
        ({"parent_pose": (1, 2)}, "4x4 pose, a position of 3"),
        ({"parent_pose": (np.nan, 0, 0)}, "finite"),
        ({"kind": Free(), "stiffness": 1.0}, "place a Spring"),
        ({"kind": Spherical(), "lower": 0.0}, "cannot have limits"),
        ({"kind": Spherical(), "rest": (1, 1, 0, 0)}, "unit length"),
        ({"kind": Cylindrical(), "lower": (1, 2, 3)}, "2 numbers"),
        ({"parent": ""}, "must be text"),
        ({"name": " j"}, "must be text"),
    ],
)
def test_refusals(changes, message):
    arguments = {"name": "j", "kind": Revolute(), "parent": "world", "child": "b", **changes}
    with pytest.raises(MachineError, match=message):
        Joint(**arguments)


def test_all_problems_of_a_joint_come_together():
    with pytest.raises(MachineError) as caught:
        Joint("j", Revolute(), "world", "b", lower=2, upper=1, armature=-1, friction=-1)
    assert len(caught.value.problems) == 3


def test_friction_may_differ_by_direction():
    joint = Joint("j", Revolute("z"), "a", "b", friction=2.0, friction_asymmetry=0.5)
    forces = [float(joint.friction_force(casadi.DM(v))) for v in (1.0, -1.0)]
    assert np.allclose(forces, [2.5, -1.5])
    with pytest.raises(MachineError, match="would drive the joint"):
        Joint("j", Revolute("z"), "a", "b", friction=0.1, friction_asymmetry=-0.2)


@pytest.mark.parametrize("size", [1e-9, 0.3, 1.9, 2.1, 5.0])
def test_a_free_joint_moves_by_the_exponential_of_the_twist(size):
    """Pose after dv is the pose before times exp(wed(dv)), by SciPy's matrix exponential."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        x, dv = Free().sample(rng, 1)[0], rng.normal(size=6)
        dv[3:] *= size / np.linalg.norm(dv[3:])
        moved = np.array(Free().pose(Free().integrate(casadi.DM(x), casadi.DM(dv))))
        step = expm(np.array(se3.wed(casadi.DM(dv))))
        np.testing.assert_allclose(moved, np.array(Free().pose(casadi.DM(x))) @ step, atol=1e-13)
