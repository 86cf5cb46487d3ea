"""The craft with an arm: it hovers as closed forms say, and the scenario's promises hold."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.passive import Underactuated, unactuated
from framefree.gallery.machines.aerial_arm import (
    OBJECT,
    SIDE,
    aerial_arm,
    aerial_rest,
    holding,
)
from framefree.gallery.scenarios.vehicles.aerial_arm import AerialArm
from framefree.gallery.scenarios.vehicles.aerial_arm_parts import (
    AerialSetting,
    craft_and_object,
    hover_roots,
)
from framefree.machine import Gusts
from framefree.motion.tree import Tree


def test_two_directions_of_the_craft_have_no_input():
    machine = aerial_arm()
    assert np.allclose(unactuated(machine), np.eye(machine.nv)[:, :2])
    assert Underactuated().following(machine) == ("base.vx", "base.vy")


def test_the_last_link_holds_the_object_as_a_body_of_its_own_would():
    """Kinetic energy with the object in the gripper, from the masses of both bodies apart."""
    machine, rng = aerial_arm(), np.random.default_rng(0)
    both = machine.replace("link3", inertia=holding(machine))
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    alone, together = (v @ Tree(m).functions["mass"](x).full() @ v / 2 for m in (machine, both))
    at = ca.SX.sym("x", machine.nx)
    jacobian = ca.Function("J", [at], [Tree(machine).at(at).jacobian("gripper").value])
    J = jacobian(x).full()
    u, w = np.split(J @ v, 2)
    cube = OBJECT / 2 * (u @ u + SIDE**2 / 6 * w @ w)
    assert float(together - alone) == pytest.approx(cube, rel=1e-9)


def test_the_object_stands_on_its_stand():
    place = np.array([0.1, 0.05, 0.4])
    machine = craft_and_object(place)
    x = aerial_rest(machine, place)
    shelf, cube = (
        Tree(machine.tree).functions[f"frame_pose:{name}"](x).full() for name in ("shelf", "object")
    )
    assert np.allclose(shelf, cube)


def test_small_motions_at_hover_decay_and_those_of_the_lean_are_among_them():
    """The slowest roots are those of the outer loop alone; the law's own decay faster."""
    setting = AerialSetting(Gusts())
    law = setting.law()
    machine = aerial_arm()
    roots = hover_roots(law, aerial_rest(machine), setting.path.sample(0.0))
    assert len(roots) == 2 * machine.nv + 6
    assert roots.real.max() < -0.5
    outer = law.lean.roots
    slow = outer[np.argmax(outer.real)]
    assert np.abs(roots - slow).min() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_the_craft_takes_the_object_in_gusts(plant):
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    outcome = AerialArm(plant=plant).run(progress=False)
    assert [promise.text for promise in outcome.promises if not promise.holds] == []
    assert outcome.metrics["gripper_rms_m"] < 0.01
    assert outcome.metrics["fixed_gripper_rms_m"] > 0.03
