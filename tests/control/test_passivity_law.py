"""The passivity laws: V falls as stated, on every base, whatever C, drag and current are."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.passive import (
    EndEffectorPassivity,
    EulerPassivity,
    FreeFloating,
    PassivityControl,
    Rolling,
    StationKeeping,
)
from framefree.geometry import Moments, quaternion, se3
from framefree.machine import (
    Body,
    Damper,
    Fluid,
    Frame,
    Free,
    Immersed,
    Joint,
    JointForce,
    Machine,
    Planar,
    Revolute,
    Spherical,
    Wrench,
)
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Nonholonomic
from framefree.motion.tree import Tree
from framefree.motion.tree.euler import from_angles
from framefree.motion.velocity_terms import coriolis_times, drag_times


def inertia(rng):
    points = rng.normal(size=(6, 3)) * 0.3
    return Moments.of_points(points, rng.uniform(0.1, 0.4, 6))


def placed(rng):
    return np.array(ca.DM(se3.exp(rng.normal(size=6) * 0.4)))


def vehicle(rng, *, fluid=True, thrusters=True, gravity=(0.0, 0.0, -9.81), joints=6, ball=False):
    """A free base with an arm, in a current if there is a fluid."""
    bodies = [Body("hull", inertia(rng)), *(Body(f"link{i}", inertia(rng)) for i in range(joints))]
    kinds = [Spherical() if ball and i == 0 else Revolute("xyz"[i % 3]) for i in range(joints)]
    chain = [Joint("base", Free(), "world", "hull")]
    for i, kind in enumerate(kinds):
        parent = "hull" if i == 0 else f"link{i - 1}"
        chain.append(
            Joint(f"joint{i}", kind, parent, f"link{i}", parent_pose=placed(rng), damping=0.3)
        )
    motors = [
        Wrench(f"motor{i}", f"link{i}", np.eye(6)[:, 3:]) if isinstance(k, Spherical)
        else JointForce(f"motor{i}", f"joint{i}")
        for i, k in enumerate(kinds)
    ]  # fmt: skip
    if thrusters:
        motors.append(Wrench("thrusters", "hull", np.eye(6)))
    frames = (Frame("tool", f"link{joints - 1}", placed(rng)), Frame("wet", "hull", placed(rng)))
    water, dampers = None, ()
    if fluid:
        A = rng.normal(size=(6, 6))
        water = Fluid(
            (Immersed("wet", 1e-3, (0.1, 0.0, 0.2), A @ A.T, rng.uniform(1, 3, 6), 2.0),
             Immersed("link0", 1e-4, (0, 0, 0.1), np.diag(rng.uniform(0.1, 1, 6)), 0.2, 0.4)),
            current=(0.4, -0.3, 0.2),
        )  # fmt: skip
        dampers = (Damper("tether", "world", "hull", np.eye(6) * 0.5),)
    return Machine(
        tuple(bodies), tuple(chain), frames, dampers=dampers, actuators=tuple(motors),
        fluid=water, gravity=gravity, name="vehicle",
    )  # fmt: skip


def rate_gap(law, machine, given=None, equations=None):
    """Return dV/dt by the chain rule along the true motion, and as stated, from a random state."""
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    symbols = law.symbols()
    signals = dict(
        zip(
            law.traced[1],
            law.traced[0](x, v, *(s for s, _ in symbols.values()))[1:],
            strict=True,
        )
    )
    u = law.traced[0](x, v, *(s for s, _ in symbols.values()))[0]
    state = Tree(machine).at(x, v)
    force = input_matrix(state) @ u + input_bias(state)
    a = (equations or Tree(machine)).functions["forward"](x, v, force)
    V = signals["V"]
    true = ca.jtimes(V, x, machine.rate_matrix(x) @ v) + ca.jtimes(V, v, a)
    for symbol, rate in symbols.values():
        true += ca.jtimes(V, ca.vec(symbol), ca.vec(rate))
    inputs = [x, v, *(s for s, _ in symbols.values())]
    return ca.Function("gap", inputs, [true, signals["V_rate"], V])


def joint_reference(machine, rng):
    return [machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)]


def frame_reference(rng):
    return [np.array(ca.DM(se3.exp(rng.normal(size=6)))), rng.normal(size=6), rng.normal(size=6)]


def worst(gap, machine, reference, rng, count=20, state=None):
    found = 0.0
    for _ in range(count):
        x, v = (machine.random(rng), rng.normal(size=machine.nv)) if state is None else state()
        true, stated, _ = (float(value) for value in gap(x, v, *reference()))
        found = max(found, abs(true - stated) / (1 + abs(stated)))
    return found


@pytest.mark.parametrize("form", ["skew", "kirchhoff"])
@pytest.mark.parametrize("drag", ["wanted", "met"])
def test_V_falls_as_stated_in_a_current(form, drag):
    rng = np.random.default_rng(1)
    machine = vehicle(rng, joints=2, ball=True)
    law = PassivityControl(machine, K=2.0, stiffness=3.0, Lambda=0.4, form=form, drag=drag)
    gap = rate_gap(law, machine)
    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng) < 1e-9


def test_V_falls_as_stated_at_pitch_90_degrees():
    rng = np.random.default_rng(2)
    machine = vehicle(rng, joints=2)
    gap = rate_gap(PassivityControl(machine, K=2.0), machine)

    def upright():
        x = machine.random(rng)
        x[3:7] = np.array(ca.DM(from_angles(ca.DM([0.3, np.pi / 2, -1.0])))).ravel()
        return x, rng.normal(size=machine.nv)

    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng, state=upright) < 1e-9


def test_V_falls_as_stated_where_attitude_is_stiffer_about_one_axis():
    rng = np.random.default_rng(11)
    machine = vehicle(rng, joints=1, ball=True)
    stiffness = np.array([3.0, 3.0, 3.0, 1.0, 2.0, 4.0, 3.0, 1.0, 2.0])
    gap = rate_gap(PassivityControl(machine, K=2.0, stiffness=stiffness), machine)
    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng, 10) < 1e-9


@pytest.mark.parametrize("form", ["skew", "kirchhoff", "adjoint"])
def test_coriolis_and_drag_terms_are_those_of_the_equations(form):
    """C v + D v is all of the bias but weight and buoyancy; both are linear in their second v."""
    rng = np.random.default_rng(12)
    flowing = vehicle(rng, joints=2)
    still = replace(flowing, fluid=replace(flowing.fluid, current=(0, 0, 0)))
    x, v, y = (ca.SX.sym(n, k) for n, k in (("x", still.nx), ("v", still.nv), ("y", still.nv)))

    def terms(machine):
        state = Tree(machine).at(x, v)
        parts = [coriolis_times(state, form, y), drag_times(state, y)]
        return ca.Function("terms", [x, v, y], parts)

    bias = Tree(still).functions["bias"]
    dry = terms(replace(still, fluid=None))
    in_still, in_current = terms(still), terms(flowing)
    for _ in range(10):
        q, rate, other = still.random(rng), rng.normal(size=8), rng.normal(size=8)
        C, D = (value.full() for value in in_still(q, rate, rate))
        moving = bias(q, rate).full() - bias(q, np.zeros(8)).full()
        assert np.allclose(C + D, moving, atol=1e-10)
        # What the water does in a current is what it does at rest to the relative velocity.
        R = quaternion.to_rotation(ca.DM(q[3:7])).full()
        relative = rate.copy()
        relative[:3] -= R.T @ flowing.fluid.current
        for k in (0, 1):
            carried = in_current(q, rate, other)[k] - dry(q, rate, other)[k]
            at_rest = in_still(q, relative, other)[k] - dry(q, relative, other)[k]
            assert np.allclose(carried.full(), at_rest.full(), atol=1e-10)
            doubled = in_current(q, rate, 2 * other)[k].full()
            assert np.allclose(doubled, 2 * in_current(q, rate, other)[k].full(), atol=1e-10)


def test_the_plain_adjoint_form_misses_the_stated_rate_by_its_part_that_is_not_skew():
    rng = np.random.default_rng(3)
    machine = vehicle(rng, joints=2, fluid=False)
    law = PassivityControl(machine, K=2.0, form="adjoint")
    gap, tree = rate_gap(law, machine), Tree(machine)
    names = law.traced[1]
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    M = tree.functions["mass"](x)
    M_dot = ca.reshape(ca.jtimes(ca.vec(M), x, machine.rate_matrix(x) @ v), *M.shape)
    skewless = ca.Function("S", [x, v], [M_dot - 2 * tree.functions["coriolis:adjoint"](x, v)])
    seen = 0.0
    for _ in range(10):
        given = [machine.random(rng), rng.normal(size=machine.nv), *joint_reference(machine, rng)]
        true, stated, _ = (float(value) for value in gap(*given))
        s = np.array(law.traced[0](*given)[1 + names.index("s")]).ravel()
        missing = s @ skewless(*given[:2]).full() @ s / 2
        assert abs(true - stated - missing) < 1e-9 * (1 + abs(true))
        seen = max(seen, abs(missing))
    assert seen > 1e-2


def test_station_keeping_falls_as_stated_without_a_reference():
    rng = np.random.default_rng(4)
    machine = vehicle(rng, joints=1)
    law = StationKeeping(machine, K=2.0, place=machine.random(rng))
    assert law.needs == ()
    assert worst(rate_gap(law, machine), machine, list, rng) < 1e-9


def test_end_effector_law_falls_as_stated_and_asks_exactly_for_the_frames_twist():
    rng = np.random.default_rng(5)
    machine = vehicle(rng, joints=3)
    law = EndEffectorPassivity(machine, K=2.0, frame="tool", weights=rng.uniform(1, 5, machine.nv))
    gap = rate_gap(law, machine)
    assert worst(gap, machine, lambda: frame_reference(rng), rng, 10) < 1e-9
    J = Tree(machine).functions["jacobian:tool"]
    where = 1 + law.traced[1].index("s")
    x, (_, twist, rate) = machine.random(rng), frame_reference(rng)
    G = Tree(machine).functions["frame_pose:tool"](x).full()
    v = rng.normal(size=machine.nv)
    s = law.traced[0](x, v, G, twist, rate)[where]
    assert np.allclose(J(x).full() @ (v - s.full().ravel()), twist, atol=1e-10)


def test_floating_base_with_momentum_falls_as_stated():
    rng = np.random.default_rng(6)
    machine = vehicle(rng, fluid=False, thrusters=False, gravity=(0, 0, 0))
    tracking = PassivityControl(machine, K=2.0, freedom=FreeFloating())
    assert tracking.joints == tuple(f"joint{i}" for i in range(6))
    gap = rate_gap(tracking, machine)
    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng, 10) < 1e-9
    reaching = EndEffectorPassivity(machine, K=2.0, freedom=FreeFloating(), frame="tool")
    gap = rate_gap(reaching, machine)
    assert worst(gap, machine, lambda: frame_reference(rng), rng, 10) < 1e-6


def cart(rng, bent=0.0):
    bodies = (Body("cart", inertia(rng)), Body("left", inertia(rng)), Body("right", inertia(rng)),
              Body("arm", inertia(rng)))  # fmt: skip
    joints = (
        Joint("base", Planar(), "world", "cart"),
        Joint("wheel_left", Revolute("y"), "cart", "left", parent_pose=(0, 0.3, 0)),
        Joint("wheel_right", Revolute("y"), "cart", "right", parent_pose=(0, -0.3, 0)),
        Joint("arm", Revolute("z"), "cart", "arm", parent_pose=(0.2, 0, 0)),
    )
    motors = tuple(JointForce(f"{j.name}_motor", j.name) for j in joints[1:])
    machine = Machine(bodies, joints, actuators=motors, name="cart")

    def slip(x, v, t):
        vx, vy, w, left, right = (v[k] for k in range(5))
        radius = 0.1 + bent * ca.sin(x[6])
        return ca.vertcat(vx - 0.3 * w - 0.1 * left, vx + 0.3 * w - radius * right, vy)

    return machine, (Nonholonomic("rolling", slip),)


@pytest.mark.parametrize("bent", [0.0, 0.05])
def test_rolling_base_falls_as_stated(bent):
    rng = np.random.default_rng(7)
    machine, constraints = cart(rng, bent)
    law = PassivityControl(machine, K=2.0, freedom=Rolling(constraints))
    equations = Constrained(machine, constraints)
    gap = rate_gap(law, machine, equations=equations)

    def consistent():
        x, v = machine.random(rng), rng.normal(size=machine.nv)
        left, right = 0.1 * v[3], (0.1 + bent * np.sin(x[6])) * v[4]
        v[:3] = (left + right) / 2, 0.0, (right - left) / 0.6
        return x, v

    assert worst(gap, machine, lambda: joint_reference(machine, rng), rng, 10, consistent) < 1e-8


def test_euler_law_agrees_away_from_pitch_90_and_grows_there():
    rng = np.random.default_rng(8)
    machine = vehicle(rng, joints=1)
    law = EulerPassivity(machine, K=2.0)
    function, _ = law.traced
    reference = [machine.neutral(), np.zeros(machine.nv), np.zeros(machine.nv)]
    gap = rate_gap(law, machine)
    sizes = []
    for pitch in (0.3, np.pi / 2 - 1e-3, np.pi / 2 - 1e-6):
        x, v = machine.neutral(), rng.normal(size=machine.nv)
        x[3:7] = np.array(ca.DM(from_angles(ca.DM([0.1, pitch, 0.2])))).ravel()
        sizes.append(np.abs(np.array(function(x, v, *reference)[0])).max())
        if pitch < 1:
            true, stated, _ = (float(value) for value in gap(x, v, *reference))
            assert abs(true - stated) < 1e-9 * (1 + abs(stated))
    assert sizes[1] > 100 * sizes[0]
    assert sizes[2] > 100 * sizes[1]


def test_law_is_the_same_in_every_world_frame():
    rng = np.random.default_rng(9)
    machine = vehicle(rng, joints=2, fluid=False, gravity=(0, 0, 0))
    function, _ = PassivityControl(machine, K=2.0).traced
    turn = np.array(ca.DM(se3.exp(rng.normal(size=6))))
    free = machine.joint("base").kind

    def seen(x):
        G = turn @ np.array(ca.DM(free.pose(ca.DM(x[:7]))))
        return np.concatenate(
            [G[:3, 3], np.array(ca.DM(quaternion.from_rotation(G[:3, :3]))).ravel(), x[7:]]
        )

    x, v, (x_d, v_d, a_d) = (
        machine.random(rng),
        rng.normal(size=machine.nv),
        joint_reference(machine, rng),
    )
    here = function(x, v, x_d, v_d, a_d)[0].full()
    there = function(seen(x), v, seen(x_d), v_d, a_d)[0].full()
    assert np.allclose(here, there, atol=1e-10 * (1 + np.abs(here).max()))


def test_refusals():
    rng = np.random.default_rng(10)
    machine = vehicle(rng, thrusters=False, fluid=False)
    with pytest.raises(ControlError, match="reach 6 of the 12"):
        PassivityControl(machine)
    with pytest.raises(ControlError, match=r"momentum of `vehicle` is not constant.*gravity"):
        PassivityControl(machine, freedom=FreeFloating())
    with pytest.raises(ControlError, match="`form`"):
        PassivityControl(vehicle(rng), form="printed")
    with pytest.raises(ControlError, match="one for all directions"):
        PassivityControl(vehicle(rng), stiffness=np.arange(1, 13))
    with pytest.raises(ControlError, match="do not determine"):
        PassivityControl(cart(rng)[0], freedom=Rolling((Nonholonomic("n", lambda x, v, t: v[0]),)))
