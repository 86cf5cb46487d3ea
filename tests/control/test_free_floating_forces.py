"""A machine that floats freely may have springs of its own: momentum is what must not change."""

import casadi as ca
import numpy as np
import pytest
from test_passivity_law import frame_reference, joint_reference, rate_gap, vehicle, worst

from framefree.control.law import ControlError
from framefree.control.passive import EndEffectorPassivity, FreeFloating, PassivityControl
from framefree.control.references import Hold
from framefree.machine import (
    Damper,
    Fluid,
    Interaction,
    JointForce,
    PointSpring,
    SpatialTendon,
    Spring,
    Wrench,
)
from framefree.simulate import simulate


def floating(seed=6, joints=6):
    rng = np.random.default_rng(seed)
    return vehicle(rng, fluid=False, thrusters=False, gravity=(0, 0, 0), joints=joints)


INNER = (
    Spring.torsional("elbow", "link0", "link1", np.diag([2.0, 3.0, 4.0])),
    PointSpring("strut", "hull", "link2", 5.0, length=0.2),
    Damper("oil", "hull", "link1", np.eye(6) * 0.4),
    SpatialTendon("string", ("hull", "tool"), stiffness=3.0, damping=0.2),
    Interaction("magnet", "hull", "link2", lambda pose: 0.3 * ca.vertcat(pose[:3, 3], pose[:3, 0])),
)


def test_inner_springs_leave_the_stated_rate_as_it_is():
    machine, rng = floating().attach(*INNER), np.random.default_rng(0)
    tracking = PassivityControl(machine, K=2.0, freedom=FreeFloating())
    gap = rate_gap(tracking, machine)
    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng, 10) < 1e-9
    reaching = EndEffectorPassivity(machine, K=2.0, freedom=FreeFloating(), frame="tool")
    gap = rate_gap(reaching, machine)
    assert worst(gap, machine, lambda: frame_reference(rng), rng, 10) < 1e-6


def test_inner_springs_keep_momentum():
    machine, rng = floating(joints=3).attach(*INNER), np.random.default_rng(1)
    law = PassivityControl(machine, K=2.0, freedom=FreeFloating(), stiffness=8.0)
    x = machine.integrate(machine.neutral(), 0.4 * rng.normal(size=machine.nv))
    v = 0.3 * rng.normal(size=machine.nv)
    reference = Hold(machine, machine.neutral())
    run = simulate(machine, law, reference, x, v, duration=2.0, dt=2e-3, record=("momentum",))
    for name in ("linear_momentum", "angular_momentum"):
        p = run[name]
        assert np.abs(p - p[0]).max() < 1e-9 * np.linalg.norm(p[0])
    assert run["V"][-1] < 0.2 * run["V"][0]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((Spring.torsional("tether", "world", "hull", np.eye(3)),), "spring `tether` on the world"),
        ((Damper("air", "world", "link1", np.eye(6)),), "damper `air` on the world"),
        ((SpatialTendon("rope", ("world", "tool")),), "tendon `rope`"),
        ((Interaction("sun", "world", "hull", lambda pose: ca.DM.ones(6)),), "interaction `sun`"),
        ((Wrench("jet", "hull", np.eye(6)[:, :1]),), "actuator `jet` that pushes the base"),
        ((JointForce("hand", "base", gear=np.ones(6)),), "actuator `hand` that pushes the base"),
    ],
)
def test_what_acts_from_outside_is_refused_by_name(parts, words):
    with pytest.raises(ControlError, match=f"momentum of `vehicle` is not constant.*{words}"):
        PassivityControl(floating().attach(*parts), freedom=FreeFloating())


@pytest.mark.parametrize("word", ["damping", "friction", "armature"])
def test_forces_of_the_base_joint_are_refused(word):
    machine = floating().replace("base", **{word: np.ones(6)})
    with pytest.raises(ControlError, match=rf"{word} of the joint `base`"):
        PassivityControl(machine, freedom=FreeFloating())


def test_a_fluid_is_refused():
    machine = floating().replace(fluid=Fluid(()))
    with pytest.raises(ControlError, match="a fluid"):
        PassivityControl(machine, freedom=FreeFloating())
