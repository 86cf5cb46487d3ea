"""Robots of our own against MuJoCo: tendons, gripper actuators, gravity compensation, limits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_mjcf_against_mujoco import Pair, gap, transport

from framefree.machine import ConstantForce, JointTendon, TendonForce, motors
from framefree.machine.formats.markup import ReadError
from framefree.machine.formats.writing import WriteError
from framefree.machine.read import read
from framefree.motion import equations
from framefree.simulate import FirstOrder, simulate

mujoco = pytest.importorskip("mujoco")
FOLDER = Path(__file__).parent.parent / "data" / "mjcf"
ROBOTS = ("arm", "gripper", "hand", "linkage", "walker")
OFF = mujoco.mjtDisableBit


def text_of(name):
    return (FOLDER / f"{name}.xml").read_text()


class Robot(Pair):
    """A fixture without loops, contact and dry friction, in both engines."""

    def __init__(self, name):
        super().__init__(text_of(name))
        own = [replace(joint, friction=0.0) for joint in self.machine.joints]
        self.machine = replace(self.machine, joints=own, loops=(), couplings=())
        self.model.opt.disableflags |= OFF.mjDSBL_CONSTRAINT
        self.kept = [self.model.actuator(a.name).id for a in self.machine.actuators]

    def unlimited(self):
        self.model.opt.disableflags |= OFF.mjDSBL_CLAMPCTRL
        self.model.actuator_forcelimited[:] = False
        self.model.jnt_actfrclimited[:] = False
        self.model.tendon_actfrclimited[:] = False
        return self

    def drive(self, u):
        self.data.ctrl[:] = 0.0
        self.data.ctrl[self.kept] = u


@pytest.mark.parametrize("name", ROBOTS)
def test_mass_bias_acceleration_and_inputs(name):
    robot, rng = Robot(name).unlimited(), np.random.default_rng(1)
    machine, model, data = robot.machine, robot.model, robot.data
    eom = equations(machine, "tree")
    functions = [
        eom.functions[q] for q in ("mass", "bias", "forward:u", "input_matrix", "input_bias")
    ]
    M_theirs = np.zeros((model.nv, model.nv))
    for _ in range(20):
        (x, v), u = robot.random(rng), rng.normal(size=machine.nu)
        robot.drive(0.0)
        robot.set(x, v)
        T = robot.turn(x)
        mujoco.mj_fullM(model, data, M_theirs)
        mass, bias, forward, B, own = functions
        assert gap(mass(x).full(), T.T @ M_theirs @ T) <= 1e-10
        compensated = _as_actuators(robot)
        inertial = T.T @ (data.qfrc_bias - data.qfrc_passive - compensated)
        moving = T.T @ M_theirs @ T @ transport(machine, v)
        assert gap(bias(x, v).full().ravel(), inertial + moving) <= 1e-10
        servo = T.T @ data.qfrc_actuator
        assert gap(own(x, v).full().ravel(), servo - T.T @ compensated) <= 1e-10
        robot.drive(u)
        robot.set(x, v)
        assert gap(B(x).full() @ u, T.T @ data.qfrc_actuator - servo) <= 1e-10
        a = forward(x, v, u).full().ravel()
        assert gap(T @ (a + transport(machine, v)), data.qacc) <= 1e-10


def _as_actuators(robot):
    """Forces of gravity compensation that MuJoCo counts as those of actuators."""
    chosen = robot.model.jnt_actgravcomp[robot.model.dof_jntid].astype(bool)
    return np.where(chosen, robot.data.qfrc_gravcomp, 0.0)


@pytest.mark.parametrize("name", ROBOTS)
def test_short_runs_with_all_limits(name):
    robot, rng = Robot(name), np.random.default_rng(2)
    machine, model, data = robot.machine, robot.model, robot.data
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 2e-4
    x, v = machine.neutral(), 0.3 * rng.normal(size=machine.nv)
    u = np.clip(3 * rng.normal(size=machine.nu), *machine.input_limits)
    lag = (
        FirstOrder(np.full(machine.nu, 1e9)) if machine.nu else None
    )  # the inputs stay what they are
    run = simulate(machine, x0=x, v0=v, duration=0.2, dt=2e-4, lag=lag, u0=u, record=())
    robot.drive(u)
    robot.set(x, v)
    for _ in range(1000):
        mujoco.mj_step(model, data)
    moved = machine.difference(run.x[-1], np.array(data.qpos))
    assert np.abs(moved).max() < 1e-6
    assert np.abs(machine.difference(x, run.x[-1])).max() > 0.01


def test_a_gripper_has_its_tendon_and_motors():
    machine = read(FOLDER / "gripper.xml")
    split = machine.tendon("split")
    assert isinstance(split, JointTendon)
    assert split.coordinates == ("left_slide", "right_slide")
    assert (split.lower, split.upper) == (0.0, 0.04)
    assert (split.effort_lower, split.effort_upper) == (-30.0, 60.0)
    close = next(a for a in machine.actuators if a.name == "close")
    assert isinstance(close, TendonForce)
    assert (close.force_lower, close.force_upper) == (-100.0, 90.0)
    assert (close.lower[0], close.upper[0]) == (0.0, 255.0)
    np.testing.assert_array_equal(machine.keyframe("open")[2], [0.5, 100, 0.1, 2])


def test_one_sided_effort_stays_one_sided():
    shoulder = read(FOLDER / "arm.xml").joint("shoulder")
    assert [bound.tolist() for bound in shoulder.effort_range] == [[-0.1], [5.0]]


def test_gravity_compensation_is_a_force_and_can_be_left_out():
    machine = read(FOLDER / "arm.xml")
    assert [type(part) for part in machine.springs] == [ConstantForce] * 3
    bare = read(FOLDER / "arm.xml", without="gravcomp")
    assert not bare.springs
    assert sum("`gravcomp`" in note for note in bare.ignored) == 3


def test_groups_and_adhesion_are_listed():
    machine = read(FOLDER / "arm.xml")
    assert [a.name for a in machine.actuators] == ["main", "helper", "servo", "wheel", "jet"]
    notes = " ".join(machine.ignored)
    assert "`actuatorgroupdisable` disables its group 3" in notes
    assert "adhesion moves nothing" in notes


def test_narrow_ranges_of_tendons_are_said():
    (note,) = read(FOLDER / "hand.xml").problems
    assert "<fixed> `stiff`" in note
    assert "nearly still" in note


def test_dry_friction_is_said_to_be_smooth():
    (note,) = [n for n in read(FOLDER / "walker.xml").ignored if "frictionloss" in n]
    assert "`front_hip`, `rear_hip0`, `rear_hip1`" in note


def test_one_actuator_can_be_left_out_by_name():
    text = text_of("hand").replace(
        "</actuator>", '<damper name="brake" joint="wrist" kv="1" ctrlrange="0 1"/></actuator>'
    )
    with pytest.raises(ReadError, match='`without="actuator:brake"` leaves it out'):
        read(text)
    machine = read(text, without="actuator:brake")
    assert len(machine.actuators) == 4
    assert any("brake" in note and "on request" in note for note in machine.ignored)
    with pytest.raises(ReadError, match="names actuator `break`, which is not there"):
        read(text, without=("actuator:brake", "actuator:break"))


@pytest.mark.parametrize(
    ("attribute", "words"),
    [('armature="0.1"', "`armature`"), ('stiffness="1" springyield="0.1"', "springyield")],
)
def test_what_tendons_cannot_do_is_refused(attribute, words):
    text = text_of("gripper").replace('<fixed name="geared"', f'<fixed name="geared" {attribute}')
    with pytest.raises(ReadError, match=words):
        read(text)
    assert read(text, without="tendon").tendon("geared").coordinates == ("roll", "left_slide")


def test_two_actuators_give_one_joint_armature_and_damping_together():
    shoulder = read(FOLDER / "arm.xml").joint("shoulder")
    assert shoulder.armature[0] == pytest.approx(20**2 * 0.02 + 3**2 * 0.04)
    assert shoulder.damping[0] == pytest.approx(20**2 * 0.01 + 3**2 * 0.05)


@pytest.mark.parametrize("name", ["gripper", "hand", "linkage", "walker"])
def test_what_is_read_is_written_again(name):
    machine = read(FOLDER / f"{name}.xml", without="equality" if name == "linkage" else ())
    again = read(machine.to_mjcf())
    assert again.tendons == machine.tendons
    for one, two in zip(machine.actuators, again.actuators, strict=True):
        assert one == two
    for one, two in zip(machine.joints, again.joints, strict=True):
        for field in ("lower", "upper", "effort_limit", "effort_lower", "damping", "stiffness"):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_writing_keeps_one_sided_limits_and_refuses_what_it_cannot_say():
    machine = read(FOLDER / "arm.xml", without=("gravcomp", "actuator"))
    bounds = {"lower": -0.3, "upper": np.inf, "effort_limit": 4.0, "effort_lower": -np.inf}
    again = read(machine.replace("bend", **bounds).to_mjcf())
    bend = again.joint("bend")
    assert (bend.lower[0], bend.upper[0]) == (-0.3, np.inf)
    assert [float(side[0]) for side in bend.effort_range] == [-np.inf, 4.0]
    assert [float(side[0]) for side in again.joint("shoulder").effort_range] == [-0.1, 5.0]
    for joint, field in (("spin", "effort_limit"), ("bend", "velocity_limit")):
        limited = machine.replace(joint, **{field: 3.0})
        with pytest.raises(WriteError, match=f"MJCF has no `{field}`.*`{joint}`"):
            limited.to_mjcf()
        assert "worldbody" in limited.to_mjcf(without=field)
    with pytest.raises(WriteError, match="a range with room in it"):
        machine.replace("bend", lower=0.1, upper=0.1).to_mjcf()


def test_weight_that_is_carried_is_written_as_gravcomp():
    text = text_of("arm").replace('<geom type="sphere" size="0.03"/>', "")
    machine = read(text)
    again = read(machine.to_mjcf())
    for one, two in zip(machine.springs, again.springs, strict=True):
        np.testing.assert_allclose(two.force, one.force, rtol=1e-12)
        np.testing.assert_allclose(two.point, one.point, rtol=1e-12)
    with pytest.raises(WriteError, match="spring `gravcomp_elbow`"):
        read(FOLDER / "arm.xml").to_mjcf()


def test_parts_without_names_keep_clear_of_those_with():
    machine = read(
        """<mujoco><worldbody><body name="b"><joint name="j" type="hinge"/>
        <joint name="k" type="slide"/>
        <geom size="1"/><site name="site1"/><site/></body></worldbody>
        <tendon><fixed><joint joint="j" coef="1"/></fixed>
        <fixed name="tendon0"><joint joint="j" coef="2"/></fixed></tendon>
        <actuator><motor joint="j"/><motor name="actuator0" tendon="tendon0"/></actuator>
        <keyframe><key/><key name="key0" qpos="1 0"/></keyframe></mujoco>"""
    )
    assert {"tendon0", "tendon0_"} == {tendon.name for tendon in machine.tendons}
    assert [a.name for a in machine.actuators] == ["actuator0_", "actuator0"]
    assert {"site1", "site1_"} <= {frame.name for frame in machine.frames}
    assert {"key0", "key0_"} <= {key.name for key in machine.keyframes}


def test_limits_of_servos_and_motors_survive_other_motors():
    machine = read(FOLDER / "walker.xml")
    plain = {motor.joint: motor for motor in motors(machine.joints[1:])}
    ends = {name: (float(m.lower[0]), float(m.upper[0])) for name, m in plain.items()}
    assert ends["front_hip"] == (-20.0, 20.0)
    assert ends["rear_hip1"] == (-4.0, 8.0)  # gear 4: of the input [-2, 2] and the force [-1, 5]
    # a tendon pulls the joint too: what its own motor can do is not all
    hand = read(FOLDER / "hand.xml")
    assert np.isinf(hand.joint("j2").effort_limit).all()


def test_a_gear_beyond_all_numbers_is_refused():
    for target in ('joint="j"', 'tendon="t"'):
        with pytest.raises(ReadError):
            read(
                f"""<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>
                <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
                <actuator><general {target} gear="1e200" damping="1" armature="1"/></actuator>
                </mujoco>"""
            )


def test_an_empty_row_of_numbers_is_refused_and_the_next_model_is_read():
    """MuJoCo's compiler breaks down over it, and hangs at its next warning."""
    with pytest.raises(ReadError, match="`anchor` is empty"):
        read(
            """<mujoco><worldbody><body name="b"><joint/><geom size="1"/></body></worldbody>
            <equality><connect body1="b" anchor=""/></equality></mujoco>"""
        )
