"""A long step is calls of rates and stages: it gives what the step that is written out gives."""

import casadi as ca
import numpy as np
import pytest
from simulate_machines import graded, pendulum

from framefree.control import ComputedTorque
from framefree.control.references import Hold, JointPath
from framefree.gallery import MACHINES
from framefree.machine.actuators import motors
from framefree.motion import equations
from framefree.simulate import Noise, simulate, staged
from framefree.simulate.integrators import RungeKuttaMuntheKaas4
from framefree.simulate.loop import ControlLoop
from framefree.simulate.staged import staged_step

DRIVEN = pendulum(3)
LAW = ComputedTorque(DRIVEN, stiffness=60.0, damping=15.0)
GOAL = JointPath(DRIVEN, lambda t: ca.vertcat(0.3 * ca.sin(2 * t), 0.2 * t, 0.1))
OTHER = graded(3)
BALLS = OTHER.attach(*motors([joint for joint in OTHER.joints if joint.kind.nv == 1]))
START = {"x0": np.array([0.1, -0.2, 0.3]), "duration": 0.12, "dt": 0.002}

CASES = {
    "law at every stage": (DRIVEN, LAW, GOAL, {}),
    "four steps a period": (DRIVEN, LAW, GOAL, {"control_dt": 0.008}),
    "rows in between": (DRIVEN, LAW, GOAL, {"control_dt": 0.008, "every": 1}),
    "first order": (DRIVEN, LAW, GOAL, {"control_dt": 0.008, "integrator": "euler"}),
    "drive, delay, noise": (
        DRIVEN,
        LAW,
        GOAL,
        {
            "control_dt": 0.008,
            "delay": 2,
            "predict": True,
            "lag": 0.02,
            "noise": Noise(1e-3, 1e-2),
        },
    ),
    "balls, friction, springs": (BALLS, None, None, {"x0": None}),
    "loops of bodies": (MACHINES["four-bars"](), None, None, {"x0": None}),
    "many": (
        DRIVEN,
        LAW,
        GOAL,
        {"control_dt": 0.008, "x0": np.random.default_rng(1).normal(0, 0.2, (5, 3))},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_agree_with_what_is_written_out(case, monkeypatch):
    machine, law, reference, options = CASES[case]
    given = {"integrator": "rk4", "record": ["energy"], **START, **options, "progress": False}
    runs = []
    for long in (np.inf, 0):
        monkeypatch.setattr(staged, "LONG", long)
        runs.append(simulate(machine, law, reference, **given))
    one, other = runs
    for name in ("t", "x", "v", "u"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11, err_msg=name)
    assert np.abs(np.diff(one.x, axis=-2)).max() > 1e-4, "it must move"


def test_calls_have_the_bits_of_one_state_in_many(monkeypatch):
    monkeypatch.setattr(staged, "LONG", 0)
    many = np.random.default_rng(2).normal(0, 0.2, (5, 3))
    options = {**START, "control_dt": 0.008, "progress": False}
    together = simulate(DRIVEN, LAW, GOAL, **{**options, "x0": many})
    alone = simulate(DRIVEN, LAW, GOAL, **{**options, "x0": many[3]})
    np.testing.assert_array_equal(together.x[3], alone.x)


def test_calls_written_out_have_the_same_bits():
    loop = ControlLoop(equations(DRIVEN, "tree"), LAW, GOAL, ratio=2)
    program = staged_step(loop, RungeKuttaMuntheKaas4())
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=(4, *port.shape)) for port, _ in program.inputs]
    looped, straight = program.compile()(*rows), program.compile_straight()(*rows)
    for a, b in zip(looped, straight, strict=True):
        np.testing.assert_array_equal(a, b)


def test_code_does_not_grow_with_the_steps_of_a_control_period():
    counts = []
    for ratio in (4, 16):
        loop = ControlLoop(
            equations(DRIVEN, "tree"), LAW, Hold(DRIVEN, [0.1, 0.2, 0.3]), ratio=ratio
        )
        program = staged_step(loop, RungeKuttaMuntheKaas4())
        counts.append({one.name(): one.n_instructions() for one in program.functions})
    begin = [count.pop("begin") for count in counts]
    assert counts[0] == counts[1]
    assert begin[1] - begin[0] <= 4 * 12  # the times of the steps, and nothing else
