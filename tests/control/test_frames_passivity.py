"""Frames followed in part on vehicles with few inputs, and a craft that leans."""

import casadi as ca
import numpy as np
import pytest
from test_passivity_law import frame_reference, joint_reference, vehicle
from test_underactuated import copter_arm, vessel

from framefree.control.law import ControlError
from framefree.control.passive import (
    EndEffectorPassivity,
    FramesPassivity,
    FreeFloating,
    HorizontalLean,
    PassiveGoal,
    Underactuated,
)
from framefree.control.references import FramePath
from framefree.machine import Frame
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.tree import Tree
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error


def rates(law, machine):
    """Return dV/dt along the true motion and that of the memory, and as stated."""
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    memory, symbols = ca.SX.sym("memory", len(law.memory)), law.symbols()
    given = [x, v, *(s for s, _ in symbols.values())] + ([memory] if len(law.memory) else [])
    u, *values = law.traced[0](*given)
    signals = dict(zip(law.traced[1], values, strict=False))
    state = Tree(machine).at(x, v)
    force = input_matrix(state) @ u + input_bias(state)
    V, a = signals["V"], Tree(machine).functions["forward"](x, v, force)
    true = ca.jtimes(V, x, machine.rate_matrix(x) @ v) + ca.jtimes(V, v, a)
    for symbol, rate in symbols.values():
        true += ca.jtimes(V, ca.vec(symbol), ca.vec(rate))
    if len(law.memory):
        true += ca.jtimes(V, memory, values[-1])
    return ca.Function("rates", given, [true, signals["V_rate"], signals["task_pivot"]])


def worst(law, machine, reference, rng, count=10):
    function, gaps = rates(law, machine), []
    while len(gaps) < count:
        own = [rng.normal(size=len(law.memory))] if len(law.memory) else []
        at = machine.random(rng), rng.normal(size=machine.nv)
        true, stated, pivot = (float(value) for value in function(*at, *reference(), *own))
        if pivot > 1e-3:  # elsewhere the goals cannot be moved in all directions
            gaps.append(abs(true - stated) / (1 + abs(stated)))
    return max(gaps)


def copter_goals(tool="tool", body="hull"):
    return PassiveGoal(tool), PassiveGoal(body, "z"), PassiveGoal(body, "attitude", 5.0)


def test_V_falls_as_stated_while_the_craft_leans():
    rng = np.random.default_rng(0)
    machine = copter_arm(rng)
    law = FramesPassivity(machine, K=2.0, freedom=Underactuated(), goals=copter_goals(),
                          lean=HorizontalLean("hull"), posture_gain=0.0)  # fmt: skip
    assert len(law.memory) == 6
    assert worst(law, machine, lambda: frame_reference(rng) + frame_reference(rng), rng) < 1e-9


def test_V_falls_as_stated_with_a_posture_in_what_is_left():
    rng = np.random.default_rng(1)
    machine = vehicle(rng, fluid=False, thrusters=False, gravity=(0, 0, 0), joints=3)
    law = FramesPassivity(machine, K=2.0, freedom=FreeFloating(), goals=PassiveGoal("tool", "xz"),
                          follow_posture=True)  # fmt: skip
    reference = lambda: frame_reference(rng) + joint_reference(machine, rng)  # noqa: E731
    assert worst(law, machine, reference, rng) < 1e-8


def test_a_pose_is_a_place_and_an_attitude():
    """Two goals of one frame are the law of its pose: the same inputs, the same V."""
    rng = np.random.default_rng(2)
    machine = vehicle(rng, joints=2)
    goals = PassiveGoal("tool", "xyz", 50.0, 2.0), PassiveGoal("tool", "attitude", 5.0, 3.0)
    parts = FramesPassivity(machine, goals=goals)
    whole = EndEffectorPassivity(machine, stiffness=(50.0, 5.0), rates=(2.0, 3.0))
    given = [machine.random(rng), rng.normal(size=machine.nv), *frame_reference(rng)]
    for one, other in zip(parts.traced[0](*given)[:3], whole.traced[0](*given)[:3], strict=True):
        assert np.allclose(one.full(), other.full(), rtol=1e-8, atol=1e-8)


def test_the_bow_of_a_vessel_follows_a_path_and_sway_follows_by_itself():
    machine = vessel(np.random.default_rng(3), joints=0).attach(Frame("bow", "hull", (1.5, 0, 0)))
    law = FramesPassivity(machine, K=(20.0, 10.0), freedom=Underactuated(),
                          goals=PassiveGoal("bow", "xy", 20.0, 1.0), posture_gain=0.0)  # fmt: skip

    def path(t):
        G = ca.SX.eye(4)
        G[0, 3], G[1, 3] = 1.5 + 0.4 * t, 0.3 * ca.sin(0.5 * t)
        return G

    x0 = machine.integrate(machine.neutral(), [0.1, 0.2, 0.3])
    run = simulate(machine, law, FramePath("bow", path), x0, duration=12.0, dt=5e-3, record=())
    assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-4
    assert run["V_rate"].max() <= 0
    assert run["goal_distance"][-1] < 1e-3 * run["goal_distance"][0]
    # Sway is what nobody commands: drag keeps it small, and it is not zero.
    assert 1e-3 < np.abs(run.v[:, 1]).max() < 1.0


def test_a_lean_turns_the_thrust_where_the_acceleration_should_be():
    rng = np.random.default_rng(4)
    machine, lean = copter_arm(rng), HorizontalLean("hull")
    own = ca.SX.sym("own", 6)
    state = Tree(machine).at(ca.SX.sym("x", machine.nx))
    leaning = lean.attitude(state, own, ca.SX.eye(3), ca.SX(3, 1))
    moving = ca.jtimes(ca.vec(leaning.R), own[:2], own[2:4])
    function = ca.Function("lean", [own], [leaning.R, leaning.w, ca.reshape(moving, 3, 3)])
    values = rng.normal(size=6)
    R, w, rate = (value.full() for value in function(values))
    along = np.array([values[0], values[1], 9.81])
    assert np.allclose(R[:, 2], along / np.linalg.norm(along))
    W = R.T @ rate
    assert np.allclose(w.ravel(), [W[2, 1], W[0, 2], W[1, 0]])
    assert np.allclose(lean.roots.real.max(), np.roots([1, 24, 144, 576, 576, 216]).real.max())


def test_wrong_uses_are_explained():
    rng = np.random.default_rng(5)
    machine = copter_arm(rng, joints=1)
    options = {"freedom": Underactuated()}
    with pytest.raises(ControlError, match=r"commands 5 velocities .* got 7"):
        FramesPassivity(machine, goals=copter_goals(), **options)
    with pytest.raises(ControlError, match='needs a goal that follows "attitude"'):
        FramesPassivity(machine, goals=PassiveGoal("tool"), lean=HorizontalLean("hull"), **options)
    with pytest.raises(ControlError, match="must be PassiveGoals"):
        FramesPassivity(machine, goals=("tool",), **options)
    with pytest.raises(ControlError, match="must be a HorizontalLean, got 3"):
        FramesPassivity(machine, goals=PassiveGoal("tool"), lean=3, **options)
    with pytest.raises(ControlError, match=r"must be a Freedom such as .* got 'free'"):
        FramesPassivity(machine, goals=PassiveGoal("tool"), freedom="free")
    with pytest.raises(ControlError, match="`stiffness` of the goal of `tool` must be positive"):
        PassiveGoal("tool", "z", -1.0)
    with pytest.raises(ControlError, match='"attitude" or axes'):
        PassiveGoal("tool", "xx")
    with pytest.raises(ControlError, match="do not make a stable loop"):
        HorizontalLean("hull", stiffness=40.0, damping=1.0)
    floating = vehicle(rng, fluid=False, gravity=(0, 0, 0), joints=1)
    with pytest.raises(ControlError, match="needs gravity down along z"):
        FramesPassivity(floating, goals=copter_goals("link0")[1:], lean=HorizontalLean("hull"))
