"""What a newcomer gets wrong is answered by one line that says what would be right."""

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.campaign import Simulations, Uniform
from framefree.control.references import Hold, JointPath
from framefree.gallery import MACHINES
from framefree.machine import Body, Joint, Machine, Revolute


@pytest.fixture(scope="module")
def arm():
    return MACHINES["driven-iiwa"]()


START = np.array([0.0, 0.6, 0.0, -1.2, 0.0, 0.8, 0.0])
LAWS = {
    "ComputedTorque": {"stiffness": 1.0, "damping": 1.0},
    "PDGravity": {"stiffness": 1.0, "damping": 1.0},
    "PassivityControl": {},
    "AdaptivePassivity": {},
    "StationKeeping": {},
    "EndEffectorPassivity": {},
    "FramesPassivity": {},
    "EndEffectorControl": {},
    "PoseControl": {},
    "VelocityControl": {},
    "RobustControl": {},
    "PrototypeControl": {"inertia": 1.0, "damping": 1.0, "stiffness": 1.0},
    "Impedance": {"frame": "tool", "stiffness": 1.0, "damping": 1.0},
    "PassiveImpedance": {"frame": "tool", "stiffness": 1.0, "damping": 1.0, "margin": 1.0},
    "HybridControl": {
        "frame": "tool",
        "force": 1.0,
        "normal": (0, 0, 1),
        "stiffness": 1.0,
        "damping": 1.0,
        "inertia": 1.0,
    },
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("wrong", ["iiwa", None, MACHINES["iiwa"]])
def test_a_law_says_that_it_needs_a_machine(name, wrong):
    with pytest.raises(ff.control.ControlError, match=r"`machine` of .* must be a Machine, got"):
        getattr(ff.control, name)(wrong, **LAWS[name])


def body(name="link"):
    return Body(name, ff.Moments.of_body(1.0, (0, 0, 0), np.eye(3)))


def joint():
    return Joint("hinge", Revolute("x"), "world", "link")


def simulations(arm):
    law = ff.control.PDGravity(arm, stiffness=1.0, damping=1.0)
    options = {"duration": 0.01, "dt": 1e-3}
    return Simulations({"a": lambda run: 0.0}, arm, law, Hold(arm, START), START, options=options)


MISTAKES = {
    "`gravity` must be a vector of 3 numbers, got 9.81": lambda arm: Machine(
        [body()], [joint()], gravity=9.81
    ),
    "the axis of a revolute joint must be a vector": lambda arm: Revolute(1),
    "`bodies` must be a list, got None": lambda arm: Machine(None, [joint()]),
    "`joints` must be a list, got Joint": lambda arm: Machine([body()], joint()),
    "`motors` takes joints, .* got 'hinge'": lambda arm: ff.machine.motors("hinge"),
    "`motors` takes joints, .* got Machine": lambda arm: ff.machine.motors(arm),
    "`other` must be a Machine, got None": lambda arm: arm.merge(None),
    "`rng` must be a generator of NumPy": lambda arm: arm.random(3),
    "`stiffness` must be real numbers, got None": lambda arm: ff.control.PDGravity(arm, None, 1.0),
    "`stiffness` must be real numbers, got '1'": lambda arm: ff.control.PDGravity(arm, "1", 1.0),
    "motors.machine.joints.*puts one on each": lambda arm: ff.control.PDGravity(
        MACHINES["iiwa"](), 1.0, 1.0
    ),
    "joint `jont1`; did you mean `joint1`": lambda arm: ff.control.PDGravity(
        arm, {"jont1": 1.0}, 1.0
    ),
    "`x` of Hold must be 7 numbers": lambda arm: Hold(arm, [0.0, 0.0]),
    "`machine` of Hold must be a Machine": lambda arm: Hold(START, arm),
    "did you mean `pinocchio`": lambda arm: arm.layout("pinochio"),
    "`base` must be .* did you mean `free`": lambda arm: ff.read("<robot/>", base="fre"),
    "got nothing": lambda arm: ff.read(""),
    "the text is empty": lambda arm: ff.read(b" \n"),
    "there is no run at `nowhere`$": lambda arm: ff.Run.load("nowhere"),
    "a campaign runs `Simulations": lambda arm: ff.campaign("scara", {"a": "1:2"}, out="no"),
    "did you mean `x0.joint1`": lambda arm: ff.campaign(
        simulations(arm), {"x0.joit1": Uniform(0, 1)}, runs=2, out="no"
    ),
    "did you mean `sobol`": lambda arm: ff.campaign(
        simulations(arm), {"x0.joint1": Uniform(0, 1)}, runs=2, sample="sobl", out="no"
    ),
    "a range must go from low to high, got a:1": lambda arm: Uniform("a", 1),
    "`states` must be a whole number": lambda arm: ff.certify.check(arm, states=-1),
    "`data` must be a Recording or a Run": lambda arm: ff.identify.fit(arm, None),
    "no parametrisation `sew`; did you mean `skew`": lambda arm: ff.certify.check(
        arm, parametrisations=["sew"]
    ),
    "at t = 0 s, got None": lambda arm: ff.simulate(
        arm, lambda t, x, v: None, duration=0.01, dt=1e-3
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_answered(arm, message):
    with pytest.raises(ff.FramefreeError, match=message):
        MISTAKES[message](arm)


def test_gravity_may_be_zero():
    assert not Machine([body()], [joint()], gravity=0).gravity.any()


def test_signals_are_named_when_one_is_mistyped(arm):
    law = ff.control.PDGravity(arm, stiffness=1.0, damping=1.0)
    run = ff.simulate(arm, law, Hold(arm, START), x0=START, duration=2e-3, dt=1e-3)
    for get in (run.__getitem__, run.signals.__getitem__):
        with pytest.raises(KeyError, match="has no `Vrate`; did you mean `V_rate`"):
            get("Vrate")
    assert run.signals.get("Vrate") is None


@pytest.mark.parametrize("plant", ["native", "mujoco"])
@pytest.mark.filterwarnings("ignore")
def test_an_input_that_is_not_a_number_ends_the_run(arm, plant):
    """Limits of motors do not make a full torque of it."""

    def law(t, x, v):
        return np.full(7, 0.0 if t < 3e-3 else np.nan)

    with pytest.raises(ff.FramefreeError, match=r"at 0\.003 s `u\.joint1"):
        ff.simulate(arm, law, x0=START, duration=0.01, dt=1e-3, plant=plant)


def test_a_reference_that_ends_is_named(arm):
    path = JointPath(arm, lambda t: [start + ca.sqrt(0.005 - t) for start in START])
    law = ff.control.ComputedTorque(arm, stiffness=100.0, damping=20.0)
    with pytest.raises(ff.FramefreeError, match="the reference is not defined at this time"):
        ff.simulate(arm, law, path, x0=START, duration=0.01, dt=1e-3)
