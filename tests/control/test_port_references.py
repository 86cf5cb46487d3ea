"""References of bodies, and whether they fit the joints."""

import casadi as ca
import numpy as np
import pytest
from random_machines import random_machine, random_pose

from framefree.control.law import ControlError
from framefree.control.port import misfits, require_feasible
from framefree.control.references import Circle, FramePath, JointPath, MinimumJerk, Together
from framefree.control.references.bodies import BodyPoses, BodyVelocities
from framefree.control.references.staged import InFrame
from framefree.gallery.machines.chains import chain
from framefree.geometry import se3
from framefree.machine import Frame


def moving(machine, rng):
    points = [machine.random(rng) for _ in range(2)]
    near = machine.integrate(points[0], 0.5 * rng.normal(size=machine.nv))
    return MinimumJerk(machine, [points[0], near], [0.0, 1.0])


def rates(reference, t, name, what):
    """Signal and its derivative by differences."""
    h = 1e-5
    now, ahead, behind = (
        np.asarray(ca.DM(reference.at(ca.DM(s))[f"{name}.{what}"]).full())
        for s in (t, t + h, t - h)
    )
    return now, (ahead - behind) / (2 * h)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_of_references_of_bodies(seed):
    rng = np.random.default_rng(seed)
    machine = random_machine(rng, 4, passive=False, fluid=False)
    poses = BodyPoses(moving(machine, rng))
    velocities = BodyVelocities(poses)
    for body in machine.bodies:
        G, dG = rates(poses, 0.4, body.name, "pose")
        xi, dxi = rates(poses, 0.4, body.name, "twist")
        assert np.allclose(dG, G @ se3.wed(xi).full(), atol=1e-7)
        assert np.allclose(
            dxi.ravel(), rates(poses, 0.4, body.name, "acceleration")[0].ravel(), atol=1e-6
        )
        v, dv = rates(velocities, 0.4, body.name, "velocity")
        assert np.allclose(v[:3], dG[:3, 3:], atol=1e-7)
        assert np.allclose(dv, rates(velocities, 0.4, body.name, "velocity_rate")[0], atol=1e-6)


def test_velocities_as_functions():
    given = BodyVelocities({"a": lambda t: [t**2, 0, 0, 0, 0, ca.sin(t)]})
    signals = given.at(ca.DM(2.0))
    assert np.allclose(ca.DM(signals["a.velocity"]).full().ravel(), [4, 0, 0, 0, 0, np.sin(2)])
    assert np.allclose(ca.DM(signals["a.velocity_rate"]).full().ravel(), [4, 0, 0, 0, 0, np.cos(2)])
    with pytest.raises(ControlError, match="six numbers"):
        BodyVelocities({"a": lambda t: [t]})
    with pytest.raises(ControlError, match="must be BodyPoses"):
        BodyVelocities(3)
    with pytest.raises(ControlError, match="reference of joints"):
        BodyPoses(Circle("end", (0, 0, 0), 1.0, 1.0))


def test_references_that_fit_are_accepted():
    rng = np.random.default_rng(3)
    for _ in range(3):
        machine = random_machine(rng, 5, passive=False, fluid=False)
        require_feasible(machine, BodyPoses(moving(machine, rng)), [0.0, 0.3, 0.7], tolerance=1e-8)


def test_the_joint_that_a_reference_violates_is_named():
    machine = chain(3)
    poses = BodyPoses(JointPath(machine, lambda t: machine.neutral() + 0 * t))

    def moved(t):
        return ca.blockcat([[ca.SX.eye(3), ca.vertcat(0.8, 0.02, 0.1 * t)], [ca.SX(1, 3), 1]])

    signals = poses.at(ca.SX.sym("t"))
    others = [
        FramePath(name, lambda t, n=name: poses.at(t)[f"{n}.pose"]) for name in ("body1", "body2")
    ]
    assert "body3.pose" in signals
    reference = Together(*others, FramePath("body3", moved))
    worst = misfits(machine, reference, [0.0])[0]
    assert worst.joint == "joint3"
    assert worst.apart == pytest.approx(0.02)
    assert worst.slipping == pytest.approx(0.1)
    with pytest.raises(ControlError, match=r"joint `joint3` at t = 0 s: apart by 0.02 m, parting"):
        require_feasible(machine, reference, [0.0])


def test_velocities_are_judged_where_the_machine_is():
    machine = chain(3)

    def turning(t):
        step = ca.vertcat(ca.SX(8, 1), 0.3 * t, ca.SX(3, 1))
        return machine.integrate(ca.DM(machine.neutral()), step)

    velocities = BodyVelocities(BodyPoses(JointPath(machine, turning)))
    require_feasible(machine, velocities, [0.0], machine.neutral())
    bent = machine.integrate(machine.neutral(), np.array([0] * 10 + [0.5, 0.2], float))
    with pytest.raises(ControlError, match=r"parting at [0-9.e-]+ m/s"):
        require_feasible(machine, velocities, [0.0], bent)


def test_references_in_another_frame():
    rng = np.random.default_rng(5)
    G = random_pose(rng)
    machine = chain(2, frames=[Frame("stage", "world", G), Frame("on", "body1")])
    inner = Circle("end", (0.1, 0.2, 0.3), 0.5, 1.0, turning=True)
    reference = InFrame(inner, machine, "stage")
    pose, rate = rates(reference, 0.7, "end", "pose")
    assert np.allclose(pose, G @ inner.at(ca.DM(0.7))["end.pose"].full())
    twist = rates(reference, 0.7, "end", "twist")[0]
    assert np.allclose(rate, pose @ se3.wed(twist).full(), atol=1e-8)
    with pytest.raises(ControlError, match="fixed to the world"):
        InFrame(inner, machine, "on")
