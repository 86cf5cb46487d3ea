"""Tunable parameters: symbols in the fields, numbers back again."""

import pickle

import casadi
import numpy as np
import pytest
from machine_samples import arm, chain, random_pose, some_moments

from framefree.geometry import Moments, se3
from framefree.machine import Body, Cylindrical, Free, Joint, Machine, MachineError, Revolute
from framefree.machine.fluid import Fluid
from framefree.machine.immersed import Immersed
from framefree.machine.paths import leaf

PATHS = [
    "gravity.z",
    "upper.mass",
    "upper.center.x",
    "upper.inertia.xx",
    "upper.inertia.yz",
    "upper.length",
    "elbow.parent_pose.y",
    "elbow.parent_pose.rz",
    "elbow.child_pose.x",
    "elbow.damping",
    "elbow.armature",
    "elbow.friction",
    "elbow.stiffness",
    "elbow.rest",
    "elbow.friction_width",
    "tip.pose.z",
    "coil.stiffness",
    "coil.center.z",
    "coil.moment.xx",
    "coil.rest.x",
    "twist.moment.xx",
    "euler.stiffness.y",
    "grease.moment.zz",
    "rod.length",
    "motor.gain",
    "motor.gear",
    "fan.torque_ratio",
    "vane.torque_ratio",
    "mill.thrust_coefficient",
    "mill.torque_coefficient",
    "fluid.density",
    "fluid.current.y",
    "fluid.lower.volume",
    "fluid.lower.center.z",
]


def numbers_of(part, symbols, values):
    """All numbers of a part with symbols replaced, flattened."""
    found = []
    for value in vars(part).values():
        if hasattr(value, "matrix4"):
            value = value.matrix4
        if isinstance(value, casadi.SX):
            value = np.array(casadi.Function("f", [symbols], [value])(values))
        if isinstance(value, np.ndarray | float):
            found.append(np.ravel(value))
    return np.concatenate(found) if found else np.zeros(0)


def parts_of(machine):
    groups = (machine.bodies, machine.joints, machine.frames, machine.springs, machine.dampers)
    fluid = (machine.fluid, *machine.fluid.immersed)
    return [p for g in (*groups, machine.loops, machine.actuators, fluid) for p in g]


@pytest.mark.parametrize("path", PATHS)
def test_symbols_and_numbers_agree(path):
    """The symbolic machine evaluated at a value is the numeric machine with that value."""
    machine = arm()
    tuned = machine.tunable(path)
    assert tuned.parameters.names == (path,)
    default = tuned.parameters.defaults[0]
    assert tuned.with_parameters() == machine
    value = default * 1.01 + 0.001
    numeric = tuned.with_parameters({path: value})
    assert numeric != machine
    assert leaf(numeric, path).default == pytest.approx(
        0.0 if ".r" in path[-4:] else value, rel=1e-9
    )
    symbols = tuned.parameters.symbols
    if path.startswith("gravity"):
        assert numeric.gravity[2] == value
        return
    for part, expected in zip(parts_of(tuned), parts_of(numeric), strict=True):
        ours = numbers_of(part, symbols, [value])
        assert np.allclose(ours, numbers_of(expected, symbols, [value]), atol=1e-12)


def test_all_paths_together():
    machine = arm()
    tuned = machine.tunable(*PATHS)
    assert len(tuned.parameters) == len(PATHS)
    rng = np.random.default_rng(0)
    values = tuned.parameters.defaults * (1 + 0.02 * rng.uniform(size=len(PATHS)))
    numeric = tuned.with_parameters(values)
    symbols = tuned.parameters.symbols
    for part, expected in zip(parts_of(tuned), parts_of(numeric), strict=True):
        ours = numbers_of(part, symbols, values)
        assert np.allclose(ours, numbers_of(expected, symbols, values), atol=1e-12)
    assert tuned.with_parameters(tuned.parameters.defaults).body("upper").moments.total == 2.0


def test_symbols_stay_where_they_belong():
    tuned = arm().tunable("lower.mass")
    assert tuned.body("lower").moments.symbolic
    assert not tuned.body("upper").moments.symbolic
    assert isinstance(tuned.joint("elbow").parent_pose, np.ndarray)
    pose = arm().tunable("upper.length").joint("elbow").parent_pose
    assert isinstance(pose, casadi.SX)
    assert casadi.symvar(pose[:3, :3]) == []  # the rotation stays constant


def test_length_stretches_from_the_own_joint():
    machine = arm().replace("shoulder", child_pose=(-0.1, 0, 0))
    longer = machine.tunable("upper.length").with_parameters([0.9])
    assert machine.tunable("upper.length").parameters.defaults[0] == pytest.approx(0.6)
    assert np.allclose(longer.joint("elbow").parent_pose[:3, 3], (0.8, 0, 0))
    assert longer.body("upper") == machine.body("upper")


def test_length_without_outgoing_joints_goes_to_the_farthest_frame():
    machine = arm().detach("slide")
    assert machine.tunable("lower.length").parameters.defaults[0] == pytest.approx(0.4)


def test_turning_a_joint_frame_about_its_own_axes():
    rng = np.random.default_rng(5)
    start = random_pose(rng)
    machine = arm().replace("elbow", parent_pose=start)
    tuned = machine.tunable("elbow.parent_pose.rx", "elbow.parent_pose.rz")
    turn = np.array(se3.exp([0, 0, 0, 0.3, 0, -0.8]))
    numeric = tuned.with_parameters([0.3, -0.8])
    assert np.allclose(numeric.joint("elbow").parent_pose, start @ turn, atol=1e-14)


def test_moments_stay_about_the_center():
    machine = arm().tunable("upper.mass", "upper.center.y")
    numeric = machine.with_parameters({"upper.mass": 7.0, "upper.center.y": -0.4})
    before, after = arm().body("upper").moments, numeric.body("upper").moments
    assert after.total == 7.0
    assert np.allclose(after.center, (0.1, -0.4, -0.03))
    assert np.allclose(after.moment_at_center, before.moment_at_center, atol=1e-14)


def test_states_work_on_tunable_machines():
    machine = chain().tunable("b3.mass", "j1.damping")
    rng = np.random.default_rng(0)
    x = machine.random(rng)
    assert np.array_equal(machine.integrate(x, np.zeros(machine.nv)), x)
    machine.validate(x)


def test_equality_pickle_and_numeric():
    machine = arm().tunable("upper.mass", "upper.length")
    again = arm().tunable("upper.mass", "upper.length")
    assert machine == again
    assert hash(machine) == hash(again)
    assert machine != arm()
    assert machine != arm().tunable("upper.length", "upper.mass")
    assert machine.numeric == arm()
    copy = pickle.loads(pickle.dumps(machine))
    assert copy == machine
    assert copy.parameters.names == machine.parameters.names


def test_editing_keeps_what_is_tunable():
    machine = arm().tunable("upper.mass")
    heavier = machine.replace("upper", mass=9.0)
    assert heavier.parameters.defaults.tolist() == [9.0]
    assert heavier.body("upper").moments.symbolic
    more = heavier.tunable("rod.length", "upper.mass")
    assert more.parameters.names == ("upper.mass", "rod.length")
    both = more.merge(arm().tunable("upper.mass", "gravity.z", "fluid.lower.volume"), prefix="b_")
    assert both.parameters.names == (
        "upper.mass",
        "rod.length",
        "b_upper.mass",
        "gravity.z",
        "fluid.b_lower.volume",
    )
    with pytest.raises(MachineError, match="upper"):
        machine.detach("upper")


def test_joints_with_several_velocities():
    machine = Machine(
        [Body("a.b", some_moments())],
        [Joint("joint.1", Cylindrical(), "world", "a.b", damping=(1.0, 2.0))],
    )
    tuned = machine.tunable("joint.1.damping.angle", "joint.1.rest.displacement", "a.b.mass")
    assert tuned.parameters.defaults.tolist() == [2.0, 0.0, 1.0]
    numeric = tuned.with_parameters({"joint.1.damping.angle": 5.0})
    assert numeric.joint("joint.1").damping.tolist() == [1.0, 5.0]


def test_ambiguous_paths():
    machine = Machine(
        [Body("a", some_moments())], [Joint("a", Revolute(), "world", "a", damping=1.0)]
    )
    assert machine.tunable("a.mass", "a.damping").parameters.defaults.tolist() == [1.0, 1.0]
    assert machine.tunable("body:a.mass").parameters.names == ("body:a.mass",)


def test_paths_that_lead_nowhere_come_together():
    with pytest.raises(MachineError) as caught:
        arm().tunable("uper.mass", "elbow.mass", "gravity.w", "fluid.salt", "slide.mass", "mass")
    assert caught.value.problems == (
        "`uper.mass`: part `uper` is unknown; did you mean `upper` or `euler`?",
        "`elbow.mass`: Joint `elbow` has no tunable number `mass`; it has friction_width, "
        "parent_pose.<x, y, z, rx, ry, rz>, child_pose.<x, y, z, rx, ry, rz>, armature, damping, "
        "friction, friction_asymmetry, stiffness",
        "`gravity.w` leads nowhere; there are gravity.<xyz>, fluid.density, fluid.viscosity, "
        "fluid.current.<xyz>, fluid.<frame>.volume, fluid.<frame>.center.<xyz> and "
        "fluid.<frame>.<linear_drag, quadratic_drag, added_mass>.<x, y, z, rx, ry, rz>",
        "`fluid.salt` leads nowhere; there are gravity.<xyz>, fluid.density, fluid.viscosity, "
        "fluid.current.<xyz>, fluid.<frame>.volume, fluid.<frame>.center.<xyz> and "
        "fluid.<frame>.<linear_drag, quadratic_drag, added_mass>.<x, y, z, rx, ry, rz>",
        "`slide.mass`: Body `slide` has no tunable number `mass`; it has length",
        "`mass`: part `mass` is unknown; known: `coil`, `elbow`, `euler`, `fan`, `finger`, `gear`, "
        "`grease`, `home`, `hook`, `jet`, `lower`, `mill` and 9 more",
    )


def test_values_are_checked():
    machine = arm().tunable("upper.mass")
    with pytest.raises(MachineError, match=r"did you mean `upper\.mass`"):
        machine.with_parameters({"uper.mass": 1.0})
    with pytest.raises(MachineError, match="1 parameter values"):
        machine.with_parameters([1.0, 2.0])
    with pytest.raises(MachineError, match="must be positive"):
        machine.with_parameters([-1.0])


def test_moments_are_tunable_as_they_enter_linearly():
    machine = arm().tunable("upper.mass", "upper.first.y", "upper.second.xz", "coil.first.x")
    before = arm().bodies[arm().body_index["upper"]].moments
    changed = machine.with_parameters({"upper.mass": before.total + 1.0})
    after = changed.bodies[changed.body_index["upper"]].moments
    assert after.total == before.total + 1.0
    assert np.array_equal(after.first, before.first)
    assert np.array_equal(after.second, before.second)
    with pytest.raises(MachineError, match="two ways to say the same"):
        arm().tunable("upper.first.x", "upper.center.x")


def test_drag_and_added_mass_are_tunable():
    body = Immersed("b", added_mass=np.arange(1, 7.0), linear_drag=np.ones(6))
    machine = Machine(
        [Body("b", Moments.of_body(1.0, np.zeros(3), np.eye(3)))],
        [Joint("j", Free(), "world", "b")],
        fluid=Fluid([body]),
    )
    values = {"fluid.b.linear_drag.rz": 7.0, "fluid.b.added_mass.x.rz": 0.5}
    found = machine.tunable(*values).with_parameters(values).fluid.immersed[0]
    assert found.linear_drag[5, 5] == 7.0
    assert found.linear_drag[0, 0] == 1.0
    assert found.added_mass[0, 5] == found.added_mass[5, 0] == 0.5
