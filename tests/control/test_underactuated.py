"""Vehicles with fewer inputs than velocities: what is proved is true, and the rest is told."""

import casadi as ca
import numpy as np
import pytest
from test_passivity_law import joint_reference, placed, rate_gap, vehicle, worst

from framefree.control import Adaptation
from framefree.control.law import ControlError
from framefree.control.passive import (
    AdaptivePassivity,
    FreeFloating,
    PassivityControl,
    Underactuated,
    Whole,
    unactuated,
    unactuated_force,
)
from framefree.control.references import JointPath
from framefree.gallery.machines.multicopters import quadcopter
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Damper,
    Frame,
    Joint,
    JointForce,
    Machine,
    Planar,
    Propeller,
    Revolute,
    Wrench,
)
from framefree.motion.tree import Tree


def copter_arm(rng, joints=3):
    """A multicopter with an arm: one thrust and three moments for its body."""
    machine = vehicle(rng, fluid=False, thrusters=False, joints=joints)
    columns = np.eye(6)[:, 2:]
    return machine.attach(Wrench("rotors", "hull", columns))


def submarine(rng, joints=2):
    """An underwater vehicle without a thruster for sway, in a current, with an arm."""
    machine = vehicle(rng, thrusters=False, joints=joints)
    return machine.attach(Wrench("thrusters", "hull", np.delete(np.eye(6), 1, axis=1)))


def vessel(rng, rudder=0.0, joints=1):
    """A vessel on the plane: two thrusters, or one that is turned and so pushes sideways, too."""
    hull = Moments.of_body(20.0, (0.1, 0.0, 0.0), np.diag([1.0, 2.0, 3.0]))
    link = Moments.of_body(2.0, (0.3, 0.05, 0.0), np.diag([0.1, 0.2, 0.3]))
    bodies = [Body("hull", hull), *(Body(f"link{i}", link) for i in range(joints))]
    chain = [Joint("base", Planar(), "world", "hull")]
    for i in range(joints):
        parent = "hull" if i == 0 else f"link{i - 1}"
        chain.append(Joint(f"arm{i}", Revolute("z"), parent, f"link{i}", parent_pose=(0.6, 0, 0)))
    turn = np.zeros((6, 1))
    turn[[1, 5], 0] = rudder, 1.0
    return Machine(
        tuple(bodies), tuple(chain), (Frame("stern", "hull", (-1.0, 0, 0)),),
        dampers=(Damper("water", "world", "hull", np.diag([2.0, 8.0, 1, 1, 1, 3.0])),),
        actuators=(
            Wrench("ahead", "hull", np.eye(6)[:, :1]), Wrench("turn", "hull", turn),
            *(JointForce(f"motor{i}", f"arm{i}") for i in range(joints)),
        ),
        name="vessel",
    )  # fmt: skip


def test_directions_without_input_are_found():
    rng = np.random.default_rng(0)
    assert np.allclose(unactuated(copter_arm(rng)), np.eye(9)[:, :2])
    assert np.allclose(unactuated(submarine(rng)), np.eye(8)[:, 1:2])
    assert np.allclose(unactuated(vessel(rng)).ravel(), [0, 1, 0, 0])
    # A thruster at the stern that pushes sideways by 0.5 N for each Nm: sway - 0.5 yaw.
    assert np.allclose(unactuated(vessel(rng, 0.5)).ravel(), [0, 1, -0.5, 0])
    assert Underactuated().following(quadcopter()) == ("base.vx", "base.vy")
    assert unactuated(vehicle(rng)).shape == (12, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: copter_arm(rng, 1), lambda rng: submarine(rng, 1), vessel,
        lambda rng: vessel(rng, 0.4),
    ],
    ids=["multicopter", "submarine", "vessel", "vessel with rudder"],
)  # fmt: skip
def test_V_has_the_stated_rate_with_the_power_of_what_follows(make):
    rng = np.random.default_rng(1)
    machine = make(rng)
    law = PassivityControl(machine, K=2.0, stiffness=3.0, Lambda=0.4, freedom=Underactuated())
    gap = rate_gap(law, machine)
    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng) < 1e-8
    assert "following_power" in law.traced[1]


def test_the_unactuated_equation_has_no_input():
    """y accelerates as the freedom says, whatever the inputs are."""
    rng = np.random.default_rng(2)
    machine, freedom = submarine(rng, 1), Underactuated()
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    state = Tree(machine).at(x, v)
    N = freedom.basis(state)
    drift, rate = freedom.drift(state, N, {})
    lead = freedom.commanded(machine)
    N_rate = ca.reshape(ca.jtimes(ca.vec(N), x, machine.rate_matrix(x) @ v), *N.shape)
    a = ca.SX.sym("a", machine.nv)
    told = ca.Function("told", [x, v, a], [
        N @ a[lead, :] + N_rate @ v[lead, :] + rate, N @ v[lead, :] + drift])  # fmt: skip
    P = unactuated(machine)
    for _ in range(5):
        at = machine.random(rng), rng.normal(size=machine.nv)
        force = rng.normal(size=machine.nv)
        force -= P @ (P.T @ force)
        truth = Tree(machine).functions["forward"](*at, force).full().ravel()
        a_told, v_told = (value.full().ravel() for value in told(*at, truth))
        assert np.allclose(a_told, truth, rtol=1e-9, atol=1e-9 * np.abs(truth).max())
        assert np.allclose(v_told, at[1], rtol=1e-9, atol=1e-10)


def test_commanded_velocities_go_where_they_should_and_sway_is_told():
    rng = np.random.default_rng(3)
    machine = vessel(rng)
    law = PassivityControl(machine, freedom=Underactuated())
    assert law.velocities == ("base.vx", "base.w", "arm0")
    circle = JointPath(machine, lambda t: ca.vertcat(
        ca.sin(t), 1 - ca.cos(t), ca.cos(t), ca.sin(t), 0.1 * t))  # fmt: skip
    lacking = unactuated_force(machine, circle, [0.0, 0.7])
    # On a unit circle at 1 rad/s each mass needs |w|^2 times its distance inwards.
    arm = np.array([2.0 * 0.6 + 0, 2.0 * 0.3, 2.0 * 0.05])
    turn = 1.1
    for time, value in zip([0.0, 0.7], lacking[:, 0], strict=True):
        c, s = np.cos(0.1 * time), np.sin(0.1 * time)
        inwards = 22.0 + turn**2 * (arm[2] * -c - arm[1] * s)
        assert value == pytest.approx(inwards, rel=1e-9)


def test_wrong_uses_are_explained():
    rng = np.random.default_rng(4)
    with pytest.raises(ControlError, match=r"every velocity of `vehicle` has an input: use Whole"):
        PassivityControl(vehicle(rng), freedom=Underactuated())
    with pytest.raises(ControlError, match=r"1 directions without input \(`base.vy`\).*got base.q"):
        PassivityControl(vessel(rng), freedom=Underactuated(("base.q",)))
    with pytest.raises(ControlError, match="reach 3 of the 4 velocities"):
        PassivityControl(vessel(rng), freedom=Whole())
    carried = copter_arm(rng, 1).attach(Frame("pod", "link0", placed(rng)), Propeller("jet", "pod"))
    with pytest.raises(ControlError, match="change with its configuration"):
        PassivityControl(carried, freedom=Underactuated())


def test_numbers_that_are_not_known_cannot_tell_what_follows():
    machine = vessel(np.random.default_rng(5), joints=0)
    for freedom in (Underactuated(), FreeFloating()):
        with pytest.raises(ControlError, match=f"cannot have the freedom {type(freedom).__name__}"):
            AdaptivePassivity(machine, freedom=freedom, unknown=Adaptation(("hull",)))
