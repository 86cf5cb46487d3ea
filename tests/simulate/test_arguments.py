"""What people really type: it works, or the message says what would be right."""

import numpy as np
import pytest

import framefree as ff
from framefree.control.references import Hold, MinimumJerk
from framefree.gallery import MACHINES


@pytest.fixture(scope="module")
def scara():
    return MACHINES["scara"]()


SHORT = {"duration": 0.1, "dt": 1e-2}


def test_a_plain_function_is_a_law(scara):
    """The same inputs as those of a law made of expressions, evaluated once a step."""
    run = ff.simulate(scara, lambda t, x, v: [np.sin(9 * t), -v[1]], x0=[0.1, 0.2], **SHORT)
    np.testing.assert_allclose(run.u[:-1, 0], np.sin(9 * run.t[:-1]), atol=1e-14)
    np.testing.assert_allclose(run.u[:-1, 1], -run.v[:-1, 1], atol=1e-14)


def test_a_function_reads_the_reference(scara):
    def stiff(t, x, v, reference):
        return reference["x"] - x - v

    goal = np.array([0.3, -0.2])
    run = ff.simulate(scara, stiff, Hold(scara, goal), **SHORT)
    np.testing.assert_allclose(run.u[0], goal)


def test_a_function_runs_on_mujoco(scara):
    run = ff.simulate(scara, lambda t, x, v: np.ones(2), plant="mujoco", **SHORT)
    np.testing.assert_allclose(run.u[:-1], 1.0)


def test_one_part_may_stand_alone(scara):
    push = ff.simulate.Pulse(scara.bodies[-1].name, (0, 1, 0, 0, 0, 0), duration=0.05)
    alone = ff.simulate(scara, disturbances=push, record="energy", **SHORT)
    listed = ff.simulate(scara, disturbances=[push], record=["energy"], **SHORT)
    np.testing.assert_array_equal(alone.x, listed.x)
    assert "kinetic" in alone.signals


class CommandLess(ff.control.Law):
    def __init__(self, machine):
        self.machine = machine

    def control(self, t, x, v, reference, memory):
        return -v


def path(machine):
    return MinimumJerk(machine, points=[[0, 0], [1, 1]], times=[0, 1])


WRONG = {
    "a reference for a law": (lambda m: {"law": path(m)}, "got the reference MinimumJerk"),
    "a class": (lambda m: {"law": ff.control.PDGravity}, "got the class PDGravity: make one"),
    "a number for a law": (lambda m: {"law": 3.0}, r"or a function \(t, x, v\) -> u"),
    "a function of one argument": (lambda m: {"law": lambda t: t}, r"must take \(t, x, v\)"),
    "too few inputs": (lambda m: {"law": lambda t, x, v: 1.0}, "must give 2 inputs"),
    "words for inputs": (lambda m: {"law": lambda t, x, v: "ab"}, "must give 2 inputs"),
    "no inputs": (lambda m: {"law": lambda t, x, v: None}, "must give 2 inputs"),
    "a law without Command": (lambda m: {"law": CommandLess(m)}, "must return a .*Command"),
    "a law for a reference": (
        lambda m: {"reference": ff.control.OpenLoop(m, lambda t: [t, t])},
        "got the law OpenLoop; the law comes first",
    ),
    "an array for a reference": (lambda m: {"reference": np.zeros(2)}, "such as `Hold"),
    "a duration in words": (lambda m: {"duration": "1"}, r"positive time in s, got '1' \(str\)"),
    "a negative step": (lambda m: {"dt": -1e-3}, "`dt` must be a positive time in s, got -0.001"),
    "a step of no number": (lambda m: {"dt": float("nan")}, "positive time in s, got nan"),
    "a control period in words": (lambda m: {"control_dt": "1ms"}, "`control_dt` must be"),
    "a number for disturbances": (lambda m: {"disturbances": 3.0}, "one Disturbance or several"),
    "words for events": (lambda m: {"events": "release"}, "one Event or several"),
    "half a delay": (lambda m: {"delay": 0.5, "control_dt": 1e-2}, "`delay` must be a whole"),
    "a seed in words": (lambda m: {"seed": "a"}, "`seed` must be a whole number"),
    "no threads": (lambda m: {"threads": 0}, "`threads` must be a whole number from 1 on"),
}


@pytest.mark.parametrize("what", WRONG)
def test_messages(scara, what):
    make, words = WRONG[what]
    with pytest.raises(ff.FramefreeError, match=words):
        ff.simulate(scara, **{**SHORT, **make(scara)})


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("panda.urdf", "read by `framefree.read"),
        (MACHINES["scara"], "call it first"),
        (3, r"must be a Machine, got 3 \(int\)"),
    ],
)
def test_messages_about_the_machine(machine, words):
    with pytest.raises(ff.FramefreeError, match=words):
        ff.simulate(machine, **SHORT)


def test_equations_are_not_a_machine(scara):
    with pytest.raises(ff.FramefreeError, match="formulation=eom"):
        ff.simulate(ff.equations(scara), **SHORT)
