"""A base that something else moves: V falls as stated whatever moves it, if that is measured."""

import casadi as ca
import numpy as np
import pytest
from test_passivity_law import frame_reference, joint_reference, vehicle

from framefree.control.law import ControlError
from framefree.control.passive import CarriedBase, EndEffectorPassivity, PassivityControl
from framefree.control.references import Hold
from framefree.geometry import Moments
from framefree.machine import Joint, Prismatic
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.tree import Tree
from framefree.simulate import JointAccelerations, SimulationError, simulate


def rates(law, machine, known=True):
    """Return dV/dt along the motion of joints on a base of given acceleration, and as stated."""
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    base = ca.SX.sym("base", 6)
    symbols = law.symbols()
    inputs = [x, v, *(s for s, _ in symbols.values()), *([base] if known else [])]
    u, *values = law.traced[0](*inputs)
    signals = dict(zip(law.traced[1], values, strict=True))
    state = Tree(machine).at(x, v)
    # Joints alone: M_qq a_q = their forces - what the base's acceleration asks for.
    lacking = state.inverse(ca.vertcat(base, ca.SX(machine.nv - 6, 1)))
    force = input_matrix(state) @ u + input_bias(state)
    a_q = ca.solve(state.mass[6:, 6:], (force - lacking)[6:])
    V, a = signals["V"], ca.vertcat(base, a_q)
    true = ca.jtimes(V, x, machine.rate_matrix(x) @ v) + ca.jtimes(V, v, a)
    for symbol, rate in symbols.values():
        true += ca.jtimes(V, ca.vec(symbol), ca.vec(rate))
    given = [x, v, *(s for s, _ in symbols.values()), base]
    return ca.Function("rates", given, [true, signals["V_rate"]])


def worst(function, machine, reference, rng, count=10):
    gaps = []
    for _ in range(count):
        state = machine.random(rng), rng.normal(size=machine.nv)
        true, stated = (float(v) for v in function(*state, *reference(), rng.normal(size=6)))
        gaps.append(abs(true - stated) / (1 + abs(stated)))
    return max(gaps)


def test_V_falls_as_stated_on_a_base_that_is_moved():
    rng = np.random.default_rng(0)
    machine = vehicle(rng, thrusters=False, fluid=False)
    tracking = PassivityControl(machine, K=2.0, freedom=CarriedBase())
    assert tracking.measures == ("accelerations",)
    gap = worst(rates(tracking, machine), machine, lambda: joint_reference(machine, rng), rng)
    assert gap < 1e-9
    reaching = EndEffectorPassivity(machine, K=2.0, freedom=CarriedBase(), frame="tool")
    gap = worst(rates(reaching, machine), machine, lambda: frame_reference(rng), rng)
    assert gap < 1e-6


def test_without_the_acceleration_the_rate_is_that_of_a_steady_base():
    rng = np.random.default_rng(1)
    machine = vehicle(rng, thrusters=False, fluid=False, joints=2)
    law = PassivityControl(machine, K=2.0, freedom=CarriedBase(acceleration=None))
    assert law.measures == ()
    function = rates(law, machine, known=False)
    state = machine.random(rng), rng.normal(size=machine.nv)
    reference = joint_reference(machine, rng)
    steady = [float(v) for v in function(*state, *reference, np.zeros(6))]
    assert steady[0] == pytest.approx(steady[1], rel=1e-9)
    moved = [float(v) for v in function(*state, *reference, np.ones(6))]
    assert abs(moved[0] - moved[1]) > 1e-2
    # The difference is the power on s of the force M_qb e.
    names = law.traced[1]
    s = law.traced[0](*state, *reference)[1 + names.index("s")].full().ravel()
    M = Tree(machine).functions["mass"](state[0]).full()
    assert moved[0] - moved[1] == pytest.approx(-s @ M[6:, :6] @ np.ones(6), rel=1e-8)


def test_the_base_weighs_nothing_to_the_law():
    """What the base is and what acts on it does not enter the inputs."""
    rng = np.random.default_rng(2)
    machine = vehicle(rng, thrusters=False, fluid=False, joints=2)
    heavy = machine.replace("hull", mass=1e3)
    given = [machine.random(rng), rng.normal(size=8), *joint_reference(machine, rng), np.ones(6)]
    laws = [PassivityControl(m, K=2.0, freedom=CarriedBase()) for m in (machine, heavy)]
    one, other = (law.traced[0](*given)[0].full() for law in laws)
    assert np.allclose(one, other, rtol=1e-9)


def test_a_run_reads_the_sensor():
    rng = np.random.default_rng(3)
    machine = vehicle(rng, thrusters=False, fluid=False, joints=2, gravity=(0, 0, 0))
    machine = machine.replace("hull", inertia=Moments.of_body(1e3, (0, 0, 0), 1e3 * np.eye(3)))
    law = PassivityControl(machine, K=4.0, stiffness=8.0, freedom=CarriedBase())
    x0 = machine.integrate(machine.neutral(), np.r_[np.zeros(6), 0.2, -0.2])
    options = {"duration": 1.0, "dt": 2e-3, "control_dt": 2e-3, "record": ()}
    run = simulate(machine, law, Hold(machine, machine.neutral()), x0,
                   sensors=JointAccelerations(joints=("base",)), **options)  # fmt: skip
    assert run["V"][-1] < 0.3 * run["V"][0]
    with pytest.raises(SimulationError, match="accelerations"):
        simulate(machine, law, Hold(machine, machine.neutral()), x0, **options)
    wrong = JointAccelerations(joints=("base",), deviation=(1, 2))
    with pytest.raises(SimulationError, match="one number or 6, got 2"):
        simulate(machine, law, Hold(machine, machine.neutral()), x0, sensors=wrong, **options)


def test_joints_must_be_taken_from_the_world_on():
    rng = np.random.default_rng(4)
    machine = vehicle(rng, thrusters=False, fluid=False)
    law = PassivityControl(machine, freedom=CarriedBase(("base", "joint0")))
    assert law.joints == tuple(f"joint{k}" for k in range(1, 6))
    with pytest.raises(ControlError, match="`joint1` is carried by `link0`"):
        PassivityControl(machine, freedom=CarriedBase(("base", "joint1")))
    slide = machine.replace("base", kind=Prismatic("x"))
    assert isinstance(slide.joint("base"), Joint)
    assert PassivityControl(slide, freedom=CarriedBase()).freedom.sizes(slide) == {
        "accelerations": 1
    }
