"""Machines that stand: statics by hand, Newton and Euler by Pinocchio, another solver."""

import numpy as np
import pytest
from standing_machines import (
    MACHINE,
    MU,
    STANDING,
    WAYS,
    WEIGHT,
    at_trunk,
    body_law,
    command,
    feet,
    leaning_rod,
    lifted,
    lifting_law,
    lying_on_feet,
    pinocchio_terms,
    posture,
    random_states,
)

from framefree.control.tasks import (
    CenterOfMassControl,
    ContactFrame,
    JointControl,
    LimitedTaskControl,
    MomentumControl,
    ProxQp,
)
from framefree.gallery.machines.quadruped import LEGS, TORQUE
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine


def test_statics_by_hand():
    """At rest: weight, moments about the middle of the feet, torques by levers of one leg."""
    u, s = command(body_law())
    force = {leg: s[f"{leg}.force"] for leg in LEGS}
    assert sum(force.values()) == pytest.approx([0, 0, WEIGHT], abs=1e-6)
    # The legs are bent backwards: lever of the hind feet about the front ones by hand.
    front, hind = (0.19 - 0.0, -0.19 - 0.0)
    center = 4 * 0.8 * (-0.21 / 2 * np.sin(0.75)) + 4 * 0.175 * (
        -0.21 * np.sin(0.75) + 0.21 / 2 * np.sin(0.75)
    )
    center = center / (WEIGHT / 9.81)
    load = WEIGHT / 2 * (center - hind) / (front - hind)
    for leg in ("front_left", "front_right"):
        assert force[leg][2] == pytest.approx(load, abs=1e-6)
    # Knee: the foot is ahead of it by L sin(bent), the shank's mass by half of that.
    lever = 0.21 * np.sin(0.75)
    for leg in LEGS:
        knee = force[leg][2] * lever - 0.175 * 9.81 * lever / 2
        assert u[MACHINE.v_slice[f"{leg}_knee"].start - 6] == pytest.approx(knee, abs=1e-6)
    assert not s["unloaded"].any()
    assert np.abs(s["acceleration"]).max() < 1e-9


def test_newton_and_euler_by_pinocchio():
    """M a + h = S^T tau + J^T f at random states, forces in the true cone, torques in limits."""
    law, used = body_law(), []
    for x, v in random_states(40):
        u, s = command(law, x, v)
        assert s["solved"]
        tau, jacobians = pinocchio_terms(x, v, s["acceleration"])
        forces = [s[f"{leg}.force"] for leg in LEGS]
        residual = tau - np.r_[np.zeros(6), u]
        residual -= sum(J.T @ f for J, f in zip(jacobians, forces, strict=True))
        assert np.abs(residual).max() < 1e-9 * max(1.0, np.abs(tau).max())
        for f in forces:
            # Where nothing is carried, rounding errors of the weight are left.
            assert np.hypot(*f[:2]) <= MU * f[2] + 1e-12 * WEIGHT
        used.append(max(s[f"{leg}.cone"].item() for leg in LEGS))
        assert np.abs(u).max() <= TORQUE * (1 + 1e-9)
    assert 0.92 < max(used) <= 1.0


def test_feet_stand_still():
    """Contact points have d/dt v = -Kd v, by differences of Pinocchio's velocities."""
    law = body_law()
    for x, v in random_states(8, seed=3):
        # Slow enough that friction and torques suffice.
        _, s = command(law, x, 0.05 * v)
        a, h = s["acceleration"], 1e-6

        def velocities(time, x=x, v=0.05 * v, a=a):
            later = MACHINE.integrate(x, time * v + time * abs(time) / 2 * a * np.sign(time))
            _, jacobians = pinocchio_terms(later, v + time * a, np.zeros(18))
            return np.concatenate([J @ (v + time * a) for J in jacobians])

        if max(s["missed"][law.level_names.index(f"contacts {way}")] for way in WAYS) > 1e-9:
            continue
        rate = (velocities(h) - velocities(-h)) / (2 * h)
        assert rate == pytest.approx(-20.0 * velocities(0.0), abs=1e-6)
        break
    else:
        pytest.fail("no state in which the feet could be held")


@pytest.mark.slow
def test_second_opinion_by_proxqp():
    """The same levels solved by another solver give the same torques and forces."""
    pytest.importorskip("proxsuite")
    law = body_law()
    other = LimitedTaskControl(MACHINE, law.levels, ProxQp(), contacts=law.contacts)
    for x, v in random_states(3, seed=5):
        (u, s), (u_other, s_other) = command(law, x, 0.3 * v), command(other, x, 0.3 * v)
        assert u_other == pytest.approx(u, abs=1e-4 * np.abs(u).max())
        for leg in LEGS:
            assert s_other[f"{leg}.force"] == pytest.approx(s[f"{leg}.force"], abs=1e-3 * WEIGHT)


def test_a_lifted_foot_carries_nothing_and_moves_as_its_task_says():
    """With load 0 a foot is free; the others carry the weight, and the trunk stays."""
    law = lifting_law()
    # The middle of the trunk over the three feet that stay.
    x = STANDING.copy()
    shift = np.array([0.05, -0.05, 0.0])
    x[:3] += shift
    x = lying_on_feet(x)
    assert np.abs(x[7:] - STANDING[7:]).max() > 0.1
    u, s = command(law, x, **at_trunk(shift), **lifted(0.01, "hind_left"))
    assert s["hind_left.force"] == pytest.approx(np.zeros(3), abs=0)
    assert sum(s[f"{leg}.force"] for leg in LEGS)[2] > 0.8 * WEIGHT
    assert s["lift.residual"] == pytest.approx(np.zeros(3), abs=1e-9)
    assert not s["unloaded"].any()
    tau, jacobians = pinocchio_terms(x, np.zeros(18), s["acceleration"])
    for leg, J in zip(LEGS, jacobians, strict=True):
        tau -= J.T @ s[f"{leg}.force"]
    assert tau == pytest.approx(np.r_[np.zeros(6), u], abs=1e-9)


@pytest.mark.slow
def test_center_of_mass_and_momentum_in_order():
    """The rate of momentum is what forces and gravity make it, and the task's."""
    com = CenterOfMassControl("center", Kp=50.0)
    spin = MomentumControl(only=("turn x", "turn y", "turn z"), Kd=5.0)
    law = LimitedTaskControl(MACHINE, [[com], [spin], [posture()]], contacts=feet())
    G = np.eye(4)
    G[:3, 3] = STANDING[:3]
    named = {"center.pose": G, "center.twist": np.zeros(6), "center.acceleration": np.zeros(6)}
    _, s = command(law, STANDING, None, **named)
    assert s["center_of_mass.residual"] == pytest.approx(np.zeros(3), abs=1e-9)
    assert s[f"{spin.name}.residual"] == pytest.approx(np.zeros(3), abs=1e-9)
    total = sum(s[f"{leg}.force"] for leg in LEGS)
    wanted = 50.0 * s["center_of_mass.error"] + [0, 0, 9.81]
    assert total == pytest.approx(WEIGHT / 9.81 * wanted, abs=1e-8)


def test_flat_foot_keeps_its_center_of_pressure():
    """One flat foot under a pendulum that leans: forces at corners, moments by hand."""
    machine, contact = leaning_rod()
    law = LimitedTaskControl(machine, [[JointControl(machine, Kd=0.0, joints=["ankle"])]],
                             contacts=[contact])  # fmt: skip
    for angle, holds in ((0.0, True), (0.1, True), (0.5, False)):
        x = np.array([0, 0, 0.05, 1, 0, 0, 0, angle])
        _, s = command(law, x)
        f = s["sole.force"].reshape(4, 3)
        center = (f[:, 2:] * np.array(contact.points)).sum(axis=0) / f[:, 2].sum()
        assert (f[:, 2] >= -1e-9).all()
        if holds:
            assert f.sum(axis=0) == pytest.approx([0, 0, 5 * 9.81], abs=1e-8)
            assert center[0] == pytest.approx(4 * 0.5 * np.sin(angle) / 5, abs=1e-9)
        else:
            assert center[0] <= 0.15 + 1e-9
            assert s["missed"][-2] > 0.1


def test_a_moving_ground_feels_the_reaction():
    """A block on a cart: what the foot gets, the cart gives."""
    bodies = [Body(name, Moments.of_body(m, (0, 0, 0), 0.1 * np.eye(3)))
              for name, m in (("cart", 3.0), ("block", 2.0))]  # fmt: skip
    joints = (Joint("slide", Free(), "world", "cart"), Joint("base", Free(), "world", "block"))
    corners = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    machine = Machine(tuple(bodies), joints, gravity=(0, 0, 0), name="cart")
    contact = ContactFrame("block", 0.5, corners, ground="cart")
    law = LimitedTaskControl(machine, [], contacts=[contact])
    v = np.zeros(12)
    v[6:9] = 0.05, 0, -0.2
    _, s = command(law, machine.neutral(), v)
    f = s["block.force"].reshape(4, 3).sum(axis=0)
    a = s["acceleration"]
    assert f == pytest.approx(2.0 * a[6:9], abs=1e-9)
    assert f == pytest.approx(-3.0 * a[:3], abs=1e-9)
    assert a[6:9] - a[:3] == pytest.approx(-20.0 * v[6:9], abs=1e-8)
