"""Editing: new machines from old ones; the old one stays as it was."""

import numpy as np
import pytest
from machine_samples import arm, body_poses, chain, random_pose, some_moments

from framefree.geometry.moments import Moments
from framefree.machine import (
    Body,
    Fixed,
    Frame,
    Free,
    Immersed,
    Joint,
    JointForce,
    Locked,
    Loop,
    Machine,
    MachineError,
    Prismatic,
    Revolute,
    Spherical,
    Spring,
    StateError,
)


def test_replace_mass_center_and_inertia():
    machine = arm()
    heavy = machine.replace("upper", mass=5.0, center=(0.2, 0, 0))
    moments = heavy.body("upper").moments
    assert moments.total == pytest.approx(5.0)
    assert np.allclose(moments.center, (0.2, 0, 0))
    old = machine.body("upper").moments
    assert np.allclose(moments.moment_at_center, old.moment_at_center, atol=1e-15)
    assert old.total == 2.0
    assert heavy.body("lower") == machine.body("lower")
    wide = machine.replace("upper", inertia_at_center=np.diag([0.3, 0.3, 0.3]))
    assert np.allclose(wide.body("upper").moments.moment_at_center, 0.3 * np.eye(3))


def test_replace_gives_mass_to_a_body_without():
    with pytest.raises(MachineError, match="`center` is needed too"):
        arm().replace("slide", mass=1.0)
    filled = arm().replace("slide", mass=1.0, center=(0, 0, 0), inertia_at_center=np.eye(3))
    assert filled.body("slide").moments.total == 1.0


def test_replace_fields_of_any_part():
    machine = arm()
    assert machine.replace("elbow", damping=3.0).joint("elbow").damping.item() == 3.0
    assert machine.replace("rod", length=0.9).loops[0].length == 0.9
    assert machine.replace("fan", spin=1).actuators[2].spin == 1
    assert machine.replace("tip", pose=(1, 0, 0)).frame("tip").pose[0, 3] == 1.0
    assert machine.replace(gravity=(0, 0, 0)).gravity.tolist() == [0, 0, 0]
    rigid = machine.detach("gear").replace("elbow", kind=Fixed())
    assert rigid.nv == 2
    ball = machine.detach("gear").replace("elbow", kind=Spherical(), damping=2.0)
    assert ball.joint("elbow").damping.tolist() == [2.0, 2.0, 2.0]
    assert machine.replace("elbow", kind=Revolute("x")).joint("elbow").upper.item() == 2.0


def test_replace_length_moves_what_is_outward():
    machine = arm()
    long = machine.replace("upper", length=0.8, mass=3.0)
    assert np.allclose(long.joint("elbow").parent_pose[:3, 3], (0.8, 0, 0))
    assert long.body("upper").moments.total == pytest.approx(3.0)
    assert np.allclose(
        machine.replace("upper", length=0.8, mass=3.0, name="u").joints[1].parent_pose,
        long.joints[1].parent_pose,
    )
    longer = machine.replace("lower", length=2 * np.hypot(0.3, 0.1))
    assert np.allclose(longer.joint("finger").parent_pose[:3, 3], (0.6, 0, 0.2))
    along = np.array([0.3, 0, 0.1]) / np.hypot(0.3, 0.1)
    tip = np.array([0.4, 0, 0])
    assert np.allclose(longer.frame("tip").pose[:3, 3], tip + (tip @ along) * along)


def test_rename_is_followed_everywhere():
    machine = arm().replace("lower", name="forearm").replace("elbow", name="hinge")
    machine = machine.replace("tip", name="nose").replace("fan", name="rotor")
    assert machine.joint("hinge").child == "forearm"
    assert machine.frame("nose").body == "forearm"
    assert machine.loops[0].frame_b == "nose"
    assert machine.fluid.immersed[0].frame == "forearm"
    assert machine.couplings[0].sources == ("hinge",)
    assert machine.keyframes[0].x[0][0] == "hinge"
    assert machine.keyframes[0].u[0][0] == "rotor"
    assert machine.nx == arm().nx
    with pytest.raises(MachineError, match="occurs more than once"):
        arm().replace("lower", name="upper")


def test_ambiguous_names_must_be_qualified():
    machine = Machine([Body("a", some_moments())], [Joint("a", Revolute(), "world", "a")])
    with pytest.raises(MachineError, match="say which: `body:a`, `joint:a`"):
        machine.replace("a", damping=1.0)
    assert machine.replace("joint:a", damping=1.0).joint("a").damping.item() == 1.0
    assert machine.replace("body:a", mass=4.0).body("a").moments.total == 4.0
    renamed = machine.replace("joint:a", name="j")
    assert renamed.body("a").name == "a"
    assert renamed.joint("j").child == "a"


def test_attach_and_detach_undo_each_other():
    machine = arm()
    parts = [
        Body("load", some_moments(4.0)),
        Joint("grip", Spherical(), "tip", "load"),
        Frame("eye", "load", (0, 0, 0.1)),
        Spring("band", "eye", "upper", some_moments()),
        Loop("weld", "weld", "eye", "slide"),
        JointForce("twist_motor", "grip", (0, 0, 1.0)),
        Immersed("eye", 0.1),
    ]
    loaded = machine.attach(*parts)
    assert loaded.nv == machine.nv + 3
    assert loaded.nu == machine.nu + 1
    assert len(loaded.fluid.immersed) == 2
    assert loaded.detach("load") == machine
    assert loaded.detach("grip") == machine
    assert machine == arm()


def test_detach_takes_the_subtree_and_all_references():
    left = arm().detach("lower")
    assert [body.name for body in left.bodies] == ["upper"]
    assert [frame.name for frame in left.frames] == ["hook"]
    assert [spring.name for spring in left.springs] == ["euler"]
    assert not left.dampers
    assert not left.loops
    assert not left.couplings
    assert [actuator.name for actuator in left.actuators] == ["motor"]
    assert not left.fluid.immersed
    assert [shape.frame for shape in left.geometry] == ["upper"]
    x, v, u = left.keyframe("home")
    assert (x.tolist(), v.tolist(), u.tolist()) == ([0.0], [1.0], [0.0])


def test_detach_single_parts():
    machine = arm().detach("coil", "gear", "motor", "home")
    assert [spring.name for spring in machine.springs] == ["twist", "euler"]
    assert not machine.couplings
    assert "motor" not in machine.u_names
    assert not machine.keyframes
    assert not arm().detach("tip").loops


def test_merge_places_the_other_machine():
    rng = np.random.default_rng(0)
    one, other, where = arm(), chain(seed=1), random_pose(rng)
    both = one.merge(other, prefix="right/", at="tip", pose=where)
    assert both.nv == one.nv + other.nv
    x1, x2 = one.random(rng), other.random(rng)
    x = both.neutral()
    for machine, part, prefix in ((one, x1, ""), (other, x2, "right/")):
        for joint in machine.joints:
            x[both.x_slice[prefix + joint.name]] = part[machine.x_slice[joint.name]]
    poses, poses1, poses2 = body_poses(both, x), body_poses(one, x1), body_poses(other, x2)
    base = poses1["lower"] @ one.frame("tip").pose @ where
    for name, pose in poses1.items():
        assert np.allclose(poses[name], pose, atol=1e-12)
    for name, pose in poses2.items():
        if name != "world":
            assert np.allclose(poses["right/" + name], base @ pose, atol=1e-11)


def test_merge_carries_everything_along():
    both = arm().merge(arm(), prefix="b_", pose=(0, 1, 0))
    assert both.nu == 2 * arm().nu
    assert both.frame("b_hook").body == "world"
    assert np.allclose(both.frame("b_hook").pose[:3, 3], (0.6, 1, 0))
    euler = next(s for s in both.springs if s.name == "b_euler")
    assert np.allclose(both.frame(euler.frame_a).pose[:3, 3], (0, 1, 0))
    assert both.couplings[1].target == "b_finger"
    assert [i.frame for i in both.fluid.immersed] == ["lower", "b_lower"]
    assert both.keyframe("b_home")[0][4] == 0.3


def test_merge_turns_what_stood_on_the_other_world():
    where = random_pose(np.random.default_rng(6))
    both = arm().merge(arm().replace("hook", pose=where @ where), prefix="b_", at="tip", pose=where)
    assert both.frame("b_hook").body == "lower"
    expected = arm().frame("tip").pose @ where @ where @ where
    assert np.allclose(both.frame("b_hook").pose, expected, atol=1e-13)


def test_merge_in_place_keeps_the_world():
    both = chain().merge(chain(), prefix="b_")
    assert both.frame("world").body == "world"
    assert not both.frames
    assert both.joint("b_j0").parent == "world"


def test_merge_refuses_clashes():
    with pytest.raises(MachineError, match="occurs more than once"):
        chain().merge(chain())
    with pytest.raises(MachineError, match="same gravity"):
        chain().merge(chain().replace(gravity=(0, 0, 0)), prefix="b_")
    wet = arm().attach(arm().replace(fluid=None).fluid or Immersed("tip", 1.0))
    drier = arm().replace(fluid=wet.fluid.__class__((), 900.0))
    with pytest.raises(MachineError, match="same fluid"):
        wet.merge(drier, prefix="b_")


@pytest.mark.parametrize("index", range(9))
def test_lock_holds_a_joint_where_it_is(index):
    machine, rng = chain(), np.random.default_rng(index)
    joint = machine.joints[index]
    x = machine.random(rng)
    value = x[machine.x_slice[joint.name]]
    held = machine.lock(joint.name, value)
    assert held.nv == machine.nv - joint.nv
    assert isinstance(held.joint(joint.name).kind, Locked)
    rest = np.delete(x, machine.x_slice[joint.name])
    before, after = body_poses(machine, x), body_poses(held, rest)
    for name, pose in before.items():
        assert np.allclose(after[name], pose, atol=1e-13)
    assert held.unlock(joint.name) == machine


def test_lock_keeps_inputs_and_refuses_coupled_joints():
    held = arm().lock("shoulder", 0.3)
    assert held.nu == arm().nu
    assert held.lock("shoulder", 0.4).joint("shoulder").kind.value.item() == 0.4
    assert held.unlock("shoulder").joint("shoulder") == arm().joint("shoulder")
    with pytest.raises(MachineError, match="coupling `gear` uses it"):
        arm().lock("elbow")
    with pytest.raises(MachineError, match="is not locked"):
        arm().unlock("elbow")
    with pytest.raises(MachineError, match="1 numbers"):
        arm().lock("shoulder", (1, 2))
    with pytest.raises(StateError):
        held.validate(arm().neutral())


def test_locked_joint_can_be_moved_and_renamed_before_it_is_freed():
    held = arm().lock("shoulder", 0.3).replace("shoulder", parent_pose=(0, 0, 2), name="hip")
    freed = held.unlock("hip").joint("hip")
    assert freed.parent_pose[2, 3] == 2.0
    assert freed.damping.item() == 0.1


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.replace("elbo", damping=1), "did you mean `elbow`"),
        (lambda m: m.replace("elbow", dampin=1), "did you mean `damping`"),
        (lambda m: m.replace("upper", masss=1), "did you mean `mass`"),
        (lambda m: m.replace("upper", mass=-1), "must be positive"),
        (lambda m: m.replace("upper", mass=1, inertia=Moments.zero()), "either"),
        (lambda m: m.replace(gravty=1), "did you mean `gravity`"),
        (lambda m: m.replace("slide", length=1.0), "no outgoing joint or frame"),
        (lambda m: m.attach(3.0), "float cannot be attached"),
        (lambda m: m.attach(Body("new", None)), "is not connected"),
        (lambda m: m.detach("nothing"), "part `nothing` is unknown"),
        (lambda m: m.lock("knee"), "joint `knee` is unknown"),
        (lambda m: m.merge(m, "b_", at="nowhere"), "frame `nowhere` is unknown"),
    ],
)
def test_refusals(edit, message):
    with pytest.raises(MachineError, match=message):
        edit(arm())


def test_attach_a_free_body_needs_its_joint():
    machine = arm().attach(Body("ball", some_moments()), Joint("fly", Free(), "world", "ball"))
    assert machine.nx == arm().nx + 7
    assert Prismatic("x") == machine.joint("finger").kind
