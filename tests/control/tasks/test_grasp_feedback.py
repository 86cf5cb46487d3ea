"""Measured grasp wrenches: what is missing dies out as stated, on both plants, within limits."""

import casadi as ca
import numpy as np
import pytest
from test_grasps import carried, evaluated, law_with, machine_with, references

from framefree.control import LimitedTaskControl
from framefree.control.law import ControlError
from framefree.control.references import FramePath
from framefree.control.tasks import HeldObject, RigidCoupling
from framefree.machine import Frame, Loop
from framefree.motion import equations
from framefree.simulate import ForceSensor, SimulationError, simulate
from framefree.simulate.events import Change

K, SQUEEZE, CHANGE, PERIOD = 4.0, 12.0, 0.5, 1e-3
SENSORS = tuple(ForceSensor(name=f"grasp_{s}.measured", frame=f"link_7_{s}") for s in "lr")


def limited(law):
    """The same tasks as a law within limits, of which none acts."""
    return LimitedTaskControl(law.machine, law.levels, held=law.held, joint_limits=False)


def pressing(machine, run, row):
    """Return the force by which the plant's loops press the body, along the line of the hands."""
    x = run.x[row]
    _, wrenches, _ = carried(machine, x, run.v[row], run.u[row])
    functions = equations(machine, "constrained").functions
    left, right = (functions[f"frame_pose:object_{s}"](x).full()[:3, 3] for s in "lr")
    line = (right - left) / np.linalg.norm(right - left)
    return (wrenches[0, :3] - wrenches[1, :3]) @ line / 2


@pytest.mark.parametrize(
    ("plant", "within_limits"),
    [
        ("native", False),
        pytest.param("native", True, marks=pytest.mark.slow),
        pytest.param("mujoco", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_what_is_missing_dies_out(plant, within_limits):
    """The plant's own loops, not the law, tell: e(t) = e(0) exp(-K t), from where feedback begins.

    The law does not know that a link of one arm is heavier: the hands press less than they should.
    """
    machine, x0 = machine_with("weld", "weld")
    heavy = machine.tunable("link_5_l.mass").with_parameters({"link_5_l.mass": 4.0})
    plain, told = (
        law_with(machine, "weld", "weld", squeeze=SQUEEZE, feedback=k) for k in (1e-12, K)
    )
    laws = [limited(law) if within_limits else law for law in (plain, told)]
    run = simulate(
        heavy, laws[0], references(), x0, duration=CHANGE + 0.5, dt=PERIOD, control_dt=PERIOD,
        plant=plant, integrator="euler", every=25, record=(), sensors=SENSORS,
        events=[Change(CHANGE, law=laws[1])],
    )  # fmt: skip
    begin, end = round(CHANGE / PERIOD / 25), len(run.t) - 1
    rows = [begin, begin + 8, end]
    missing = np.array([SQUEEZE - pressing(heavy, run, row) for row in rows])
    assert abs(missing[0]) > 1.0, "the model must be wrong enough"
    stated = missing[0] * np.exp(-K * (run.t[rows] - run.t[begin]))
    np.testing.assert_allclose(missing, stated, atol=0.02 * abs(missing[0]))
    # What the law calls the error is the same, in the axes of the grasp.
    error = np.linalg.norm(run["grasp_l.wrench_error"][rows, :3], axis=1)
    np.testing.assert_allclose(error / error[0], stated / stated[0], atol=0.03)


def with_balls(machine):
    """Return the machine with two balls on the axis of the right grasp in place of its hinge.

    MJCF has no loops that are hinges.
    """
    parts = []
    for k, at in enumerate((-0.05, 0.05)):
        pose = np.eye(4)
        pose[1, 3] = at
        parts += [Frame(f"hand{k}", "link_7_r", pose)]
        parts += [Frame(f"end{k}", "object", machine.frame("object_r").pose @ pose)]
        parts += [Loop(f"ball{k}", "ball", f"hand{k}", f"end{k}")]
    return machine.detach("grasp_r").attach(*parts)


@pytest.mark.parametrize(
    ("plant", "kinds"),
    [
        ("native", ("weld", "hinge")),
        ("native", ("slider", "weld")),
        ("mujoco", ("weld", "hinge")),
    ],
)
@pytest.mark.slow
def test_hinges_and_sliders_in_runs(plant, kinds):
    """The body follows its path, the grasps stay closed, and carry what the law says."""
    machine, x0 = machine_with(*kinds)
    moved = with_balls(machine) if plant == "mujoco" else machine
    law = law_with(machine, *kinds, squeeze=SQUEEZE)
    functions = equations(machine, "constrained").functions
    first = functions["frame_pose:object"](x0).full()

    def path(t):
        pose = ca.SX(first)
        pose[2, 3] += 0.05 * (1 - ca.cos(4 * t))
        return pose

    run = simulate(
        moved, law, FramePath("target", path), x0, duration=0.4, dt=PERIOD, control_dt=PERIOD,
        plant=plant, integrator="euler", every=50, record=(),
    )  # fmt: skip
    height = functions["frame_pose:object"](run.x[-1]).full()[2, 3] - first[2, 3]
    assert height == pytest.approx(0.05 * (1 - np.cos(1.6)), abs=5e-4)
    assert np.abs(run["control.error"]).max() < 1e-3
    for side in "lr":
        assert np.abs(run[f"grasp_{side}.error"]).max() < 1e-3
    for row in (1, -1):
        _, wrenches, _ = carried(machine, run.x[row], run.v[row], run.u[row])
        for k, side in enumerate("lr"):
            np.testing.assert_allclose(wrenches[k], run[f"grasp_{side}.wrench"][row], atol=0.2)


@pytest.mark.slow
def test_hands_press_no_harder_than_grasps_carry():
    """By the same share in both hands: what is left out moves nothing."""
    machine, x = machine_with("weld", "weld")
    most, v, found = np.array([9.0] * 3 + [3.0] * 3), np.zeros(machine.nv), {}
    for carries in (None, most):
        law = law_with(machine, "weld", "weld", squeeze=40.0, carries=carries)
        rest = law_with(machine, "weld", "weld", carries=carries)
        pressed, still = (evaluated(one, x, v, references()) for one in (law, rest))
        np.testing.assert_allclose(
            pressed["control.residual"], still["control.residual"], atol=1e-6
        )
        found[carries is None] = np.array(
            [pressed[f"grasp_{s}.wrench"] - still[f"grasp_{s}.wrench"] for s in "lr"]
        )
    share = found[False][0, 1] / found[True][0, 1]
    assert 0 < share < 0.5
    np.testing.assert_allclose(found[False], share * found[True], atol=1e-9)
    turns = carried(machine, x, v, np.zeros(14))[2]
    local = np.array(
        [np.kron(np.eye(2), R).T @ w for R, w in zip(turns, found[False], strict=True)]
    )
    assert (np.abs(local) / most).max() == pytest.approx(1.0)


def test_refusals():
    weld = RigidCoupling("link_7_l", "object_l", name="grasp_l")
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ControlError, match="`feedback` of the held body `object` must be"):
            HeldObject("object", (weld,), feedback=wrong)
    machine, x0 = machine_with("weld", "weld")
    law = law_with(machine, "weld", "weld", feedback=K)
    with pytest.raises(SimulationError, match=r"reads the sensor `grasp_l\.measured`; given: none"):
        simulate(machine, law, references(), x0, duration=0.1, dt=1e-3, control_dt=1e-3)
