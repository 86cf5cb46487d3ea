"""Machines that stand: statics by hand, Newton and Euler by Pinocchio, cones, refusals."""

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.certify.pinocchio_model import pinocchio_model
from framefree.control import ControlError
from framefree.control.references import ContactSchedule
from framefree.control.tasks import (
    CenterOfMassControl,
    ContactFrame,
    FrameControl,
    JointControl,
    LimitedTaskControl,
    MomentumControl,
    ProxQp,
    StrictPriority,
    TaskControl,
    task_report,
    unloaded_contacts,
)
from framefree.gallery.machines.quadruped import FOOT, LEGS, TORQUE, quadruped, standing
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, JointForce, Machine, Revolute

MACHINE = quadruped(touching=False)
STANDING = standing(MACHINE)
WEIGHT = 9.81 * sum(body.moments.total for body in MACHINE.bodies)
MU = 0.7
WAYS = ("pressed", "across")


def posture(Kp=50.0):
    """Return the posture of the legs, below all else."""
    legs = [joint.name for joint in MACHINE.joints[1:]]
    return JointControl(MACHINE, STANDING, Kp=Kp, Kd=14.0, joints=legs)


def feet(**settings):
    """Return the four feet."""
    settings = {"friction": MU, "radius": FOOT} | settings
    return [ContactFrame(f"{leg}_foot", name=leg, **settings) for leg in LEGS]


@lru_cache
def body_law():
    """Return a law for the trunk's pose, then the posture."""
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [posture()]]
    return LimitedTaskControl(MACHINE, levels, contacts=feet())


@lru_cache
def lifting_law():
    """Return a law whose feet are switched and carry at least 5 N, one of them with a path."""
    lift = FrameControl("hind_left_foot", "foot", Kp=100.0, only="position", name="lift")
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [lift], [posture()]]
    contacts = feet(switched=True, most=2 * WEIGHT, least=5.0)
    return LimitedTaskControl(MACHINE, levels, contacts=contacts)


def lifted(height, *open_feet):
    """Return the reference of the lifted foot, over where it stands, and loads of all feet."""
    pose = np.eye(4)
    pose[:3, 3] = [-0.19, 0.13, FOOT + height]
    named = {"foot.pose": pose, "foot.twist": np.zeros(6), "foot.acceleration": np.zeros(6)}
    return named | {f"{leg}.load": [float(leg not in open_feet)] for leg in LEGS}


def at_trunk(shift=(0, 0, 0), acceleration=(0, 0, 0, 0, 0, 0)):
    """Return a reference of the trunk beside where it stands."""
    G = np.eye(4)
    G[:3, 3] = STANDING[:3] + np.asarray(shift)
    named = {"trunk.pose": G, "trunk.twist": np.zeros(6)}
    return {**named, "trunk.acceleration": np.asarray(acceleration, float)}


def command(law, x=STANDING, v=None, **reference):
    """Return inputs and signals at a state."""
    v = np.zeros(law.machine.nv) if v is None else v
    named = {**at_trunk(), **reference}
    found = law.command(0.0, x, v, {k: named[k] for k in law.needs}, law.memory)
    return found.u, found.signals


def random_states(count, seed=0):
    """Return states near the standing one, with bodies and legs that move."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        step = rng.normal(size=MACHINE.nv) * np.r_[[0.1] * 3, [0.3] * 3, [0.25] * 12]
        yield MACHINE.integrate(STANDING, step), rng.normal(size=MACHINE.nv)


@lru_cache
def foot_places():
    """Return kernels of the poses of the feet."""
    return [ff.equations(MACHINE).kernel(f"frame_pose:{leg}_foot") for leg in LEGS]


def pinocchio_terms(x, v, a, below=FOOT):
    """Return M a + h of Pinocchio, and Jacobians (3 x nv, world axes) of points below the feet."""
    pin = pytest.importorskip("pinocchio")
    model = pinocchio_model(pin, MACHINE)
    model.armature = np.concatenate([np.broadcast_to(j.armature, j.nv) for j in MACHINE.joints])
    data = model.createData()
    q = np.array(x)
    q[3:7] = x[[4, 5, 6, 3]]
    tau = pin.rnea(model, data, q, v, a)
    pin.computeJointJacobians(model, data, q)
    jacobians = []
    for leg, place in zip(LEGS, foot_places(), strict=True):
        joint = model.getJointId(f"{leg}_knee")
        J = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        r = place(x)[:3, 3] - [0, 0, below] - data.oMi[joint].translation
        jacobians.append(J[:3] - pin.skew(r) @ J[3:])
    return tau, jacobians


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


def test_pyramid_is_inside_the_cone_and_as_wide_as_said():
    """Edges on the cone, faces within it: the share of friction lost is 1 - cos(pi / sides)."""
    for sides in (3, 4, 8, 13):
        contact = ContactFrame("f", MU, sides=sides, normal=(0.3, -1, 2))
        angle = np.linspace(0, 2 * np.pi, 2 * 3 * 8 * 13 + 1)
        across = np.column_stack([np.cos(angle), np.sin(angle)])
        reach = (contact.pyramid[0, 2] / (-contact.pyramid[:, :2] @ across.T).max(axis=0)) / MU
        assert reach.max() <= 1.0
        assert reach.max() == pytest.approx(1.0, abs=1e-8)
        assert reach.min() == pytest.approx(np.cos(np.pi / sides), abs=1e-8)
        assert contact.axes.T @ contact.axes == pytest.approx(np.eye(3), abs=1e-14)
        assert np.linalg.det(contact.axes) == pytest.approx(1.0)


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


def lying_on_feet(x):
    """Return a configuration with the trunk of x and feet where they were, by Newton's method."""
    wanted = [place(STANDING)[:3, 3] for place in foot_places()]
    x = x.copy()
    for _ in range(12):
        _, J = pinocchio_terms(x, np.zeros(18), np.zeros(18), below=0.0)
        at = [place(x)[:3, 3] for place in foot_places()]
        x[7:] += np.linalg.solve(np.vstack(J)[:, 6:], np.concatenate(wanted) - np.concatenate(at))
    return x


@pytest.mark.slow
def test_a_foot_that_cannot_be_loaded_is_named():
    """Motors of one leg without strength: its foot gets its least force, and the trunk sinks."""
    weak = MACHINE
    for part in ("hip", "thigh", "knee"):
        weak = weak.replace(f"actuator:hind_left_{part}", lower=-1e-3, upper=1e-3)
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [posture()]]
    law = LimitedTaskControl(weak, levels, contacts=feet(least=5.0))
    _, s = command(law)
    named = unloaded_contacts(law, [0.0], s["unloaded"][None])
    assert [one.name for one in named] == ["hind_left"]
    assert "hind_left" in str(named[0])
    assert s["hind_left.normal"] == pytest.approx(5.0, abs=1e-8)
    assert s["missed"][law.level_names.index("level 1")] > 0.1


def test_a_contact_that_slips_is_named():
    """A block on a slope steeper than its friction: it is held as far as friction goes."""
    block = Body("block", Moments.of_body(2.0, (0, 0, 0), 0.01 * np.eye(3)))
    slope, corners = 0.6, [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    gravity = 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    joint = Joint("base", Free(), "world", "block")
    machine = Machine((block,), (joint,), gravity=gravity, name="slope")
    for friction, slips in ((0.5, True), (0.75, False)):
        law = LimitedTaskControl(machine, [], contacts=[ContactFrame("block", friction, corners)])
        _, s = command(law, machine.neutral())
        assert s["unloaded"] == [float(slips)]
        assert s["block.cone"] <= 1.0
        if slips:
            # A face of the eight-sided pyramid is across the slope's direction.
            inner = friction * np.cos(np.pi / 8)
            slides = 9.81 * (np.sin(slope) - inner * np.cos(slope))
            assert s["missed"][law.level_names.index("contacts across")] == pytest.approx(
                slides, rel=1e-6
            )


def test_cones_and_motors_hold_however_fast_the_legs_whirl():
    law, rng = body_law(), np.random.default_rng(3)
    for x, v in random_states(20, seed=3):
        v = v * np.r_[[4.0] * 6, rng.uniform(20.0, 60.0, 12)]  # beyond `fastest`, 50 rad/s
        u, signals = command(law, x, v)
        for leg in LEGS:
            fx, fy, fz = signals[f"{leg}.force"]
            assert np.hypot(fx, fy) <= MU * fz + 1e-8  # N
        assert np.abs(u).max() <= TORQUE * (1 + 1e-9)
        assert signals["missed"][: law.level_names.index("friction") + 1].max() < 1e-8


def test_a_foot_at_its_least_force_is_named_and_tasks_give_way():
    """Backwards faster than levers allow: hind feet keep their least force, the trunk lags."""
    law = lifting_law()
    _, s = command(law, **at_trunk(acceleration=(-12.0, 0, 0, 0, 0, 0)), **lifted(0.0))
    names = [law.contact_names[k] for k in np.flatnonzero(s["unloaded"])]
    assert names == ["hind_left", "hind_right"]
    for leg in names:
        assert s[f"{leg}.normal"] == pytest.approx(5.0, abs=1e-8)
    assert s["missed"][law.level_names.index("level 1")] > 0.1
    assert all(s["missed"][law.level_names.index(f"contacts {way}")] < 1e-9 for way in WAYS)


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


def leaning_rod():
    """Return a rod on a hinge over one flat foot, and how this stands."""
    foot = Body("foot", Moments.of_body(1.0, (0, 0, 0), 0.01 * np.eye(3)))
    rod = Body("rod", Moments.of_body(4.0, (0, 0, 0.5), 0.1 * np.eye(3)))
    joints = (Joint("base", Free(), "world", "foot"), Joint("ankle", Revolute("y"), "foot", "rod"))
    machine = Machine(
        (foot, rod), joints, (Frame("sole", "foot", (0, 0, -0.05)),),
        actuators=(JointForce("ankle", "ankle"),), name="leaning",
    )  # fmt: skip
    corners = [(x, y, 0.0) for x in (-0.05, 0.15) for y in (-0.04, 0.04)]
    return machine, ContactFrame("sole", 0.8, corners)


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


def test_schedule_gives_loads_and_refuses_nonsense():
    """1 while it stands, 0 in the interval, smooth between."""
    schedule = ContactSchedule({"a": [(1.0, 2.0), (3.0, 4.0)], "b": []}, ramp=0.2)
    shares = [
        float(schedule.at(t)["a.load"]) for t in (0.5, 0.8, 0.9, 1.0, 1.5, 2.0, 2.1, 2.5, 3.5)
    ]
    assert shares == pytest.approx([1, 1, 0.5, 0, 0, 0, 0.5, 1, 0])
    assert float(schedule.at(1.5)["b.load"]) == 1.0
    with pytest.raises(ControlError, match="`a` must be pairs of times"):
        ContactSchedule({"a": [(2.0, 1.0)]})
    with pytest.raises(ControlError, match=r"lifted again at 2\.1 s, less than two ramps"):
        ContactSchedule({"a": [(1.0, 2.0), (2.1, 3.0)]})
    with pytest.raises(ControlError, match="`ramp`"):
        ContactSchedule({"a": []}, ramp=0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"friction": 0.0}, "`friction` of contact `foot` must be positive"),
        ({"friction": (0.5, 0.6)}, "must be one number"),
        ({"points": [(0, 0)]}, "rows of 3 finite numbers"),
        ({"points": [(0, 0, 0), (1, 0, 0), (2, 0, 0)]}, "do not lie on a line"),
        ({"normal": (0, 0, 0)}, "not all zero"),
        ({"sides": 2}, "an integer from 3 on"),
        ({"least": 5.0, "most": 5.0}, "0 <= `least` < `most`"),
        ({"switched": True}, "give a finite `most`"),
        ({"points": np.eye(3), "radius": 0.1}, "is flat, and cannot have a `radius`"),
        ({"Kd": -1.0}, "`Kd` of contact `foot` must be positive"),
    ],
)
def test_refusals(settings, message):
    """A contact that cannot be is refused with what would be right."""
    with pytest.raises(ControlError, match=message):
        ContactFrame("foot", **settings)


def test_refusals_of_laws():
    """Contacts that do not fit a machine or a law."""
    levels = [[posture()]]
    soft = quadruped()
    with pytest.raises(ControlError, match=r"give it machine\.detach\('front_left'\) and so on"):
        LimitedTaskControl(soft, [], contacts=feet())
    with pytest.raises(ControlError, match="`front_left` names two contacts"):
        LimitedTaskControl(MACHINE, levels, contacts=feet()[:1] * 2)
    with pytest.raises(ControlError, match="both are on `trunk`"):
        LimitedTaskControl(MACHINE, levels, contacts=[ContactFrame("trunk", ground="trunk")])
    with pytest.raises(ControlError, match="must hold ContactFrame"):
        LimitedTaskControl(MACHINE, levels, contacts=["front_left"])
    law = body_law()
    with pytest.raises(ControlError, match="a row for every time"):
        unloaded_contacts(law, [0.0, 1.0], np.zeros((1, 4)))


# ------------------------------------------------------------------ in closed form


def closed_form(friction=50.0, **reference):
    """Return the same levels in closed form: a function of x and v, and the names of its values."""
    law = TaskControl(
        MACHINE, body_law().levels, StrictPriority(), contacts=feet(friction=friction)
    )
    x, v = ca.SX.sym("x", MACHINE.nx), ca.SX.sym("v", MACHINE.nv)
    named = {**at_trunk(), **reference}
    made = law.control(0.0, x, v, {k: ca.DM(named[k]) for k in law.needs}, ca.SX(0, 1))
    values = {"u": made.u, **made.signals}
    function = ca.Function("law", [x, v], list(values.values()))

    def named_values(x, v):
        return dict(zip(values, (np.array(y).ravel() for y in function(x, v)), strict=True))

    return named_values


@pytest.mark.slow
def test_the_closed_form_is_the_law_within_limits_where_none_is_active():
    """Contacts stand, the base is carried and not driven; at rest and near it."""
    closed, states = closed_form(), [(STANDING, np.zeros(18))]
    states += [(MACHINE.integrate(STANDING, 0.02 * v), 0.02 * v) for _, v in random_states(3)]
    for x, v in states:
        found, (u, s) = closed(x, v), command(body_law(), x, v)
        assert max(s[f"{leg}.cone"].item() for leg in LEGS) < 0.9
        assert found["u"] == pytest.approx(u, abs=1e-8)
        for leg in LEGS:
            assert found[f"{leg}.force"] == pytest.approx(s[f"{leg}.force"], abs=1e-7)
        assert found["acceleration"] == pytest.approx(s["acceleration"], abs=1e-7)
        assert not found["unloaded"].any()
    # Forces that no ground gives are named: the trunk is asked to fall faster than freely.
    pulled = closed_form(**at_trunk(acceleration=(0, 0, -30.0, 0, 0, 0)))(STANDING, np.zeros(18))
    assert pulled["unloaded"].all()


def test_a_standing_machine_in_closed_form():
    """A leaning rod on a flat foot: statics by hand, and the foot's moment beyond its edge."""
    machine, contact = leaning_rod()
    law = TaskControl(machine, [[JointControl(machine, Kd=0.0, joints=["ankle"])]],
                      contacts=[contact])  # fmt: skip
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    made = law.control(0.0, x, v, {}, ca.SX(0, 1))
    names = ("acceleration", "sole.force", "unloaded")
    function = ca.Function("law", [x, v], [made.u, *(made.signals[n] for n in names)])
    for angle, holds in ((0.0, True), (0.1, True), (0.5, False)):
        at = np.array([0, 0, 0.05, 1, 0, 0, 0, angle])
        u, a, f, unloaded = (np.array(y).ravel() for y in function(at, np.zeros(7)))
        assert a == pytest.approx(np.zeros(7), abs=1e-9)
        assert u == pytest.approx([-4 * 9.81 * 0.5 * np.sin(angle)], abs=1e-9)
        f = f.reshape(4, 3)
        assert f.sum(axis=0) == pytest.approx([0, 0, 5 * 9.81], abs=1e-8)
        center = (f[:, 2:] * np.array(contact.points)).sum(axis=0) / f[:, 2].sum()
        assert center[0] == pytest.approx(4 * 0.5 * np.sin(angle) / 5, abs=1e-9)
        assert bool(unloaded[0]) == (not holds)
    report = task_report(law, at, np.zeros(7))
    assert report.levels[0].rank == 6
    assert "sole: normal" in report.levels[0].rows
    assert not report.levels[1].contradicting
