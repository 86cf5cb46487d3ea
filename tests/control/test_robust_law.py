"""The robust law: what it asks for, on machines of several kinds."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.port import EndEffectorControl, PoseControl
from framefree.control.references.joints import Hold, JointPath, MinimumJerk
from framefree.control.robust import RobustControl
from framefree.gallery.machines.arms import revolute_chain
from framefree.gallery.machines.classics import four_bars, four_bars_at
from framefree.gallery.machines.crane import (
    COORDINATES,
    closed_form,
    crane,
    crane_model,
    crane_state,
)
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.machine import Continuous, Coupling, Joint, JointForce, Loop, MachineError, Spherical
from framefree.machine.read import read
from framefree.motion import Constrained
from framefree.motion.embedded import Embedded, tunable_body
from framefree.motion.embedded.choice import SingularError
from framefree.motion.embedded.maps import Embedding
from framefree.simulate import SimulationError, simulate
from framefree.simulate.measures import rate


def driven(machine, joints=None):
    names = [joint.name for joint in machine.joints] if joints is None else joints
    return replace(machine, actuators=tuple(JointForce(f"m_{name}", name) for name in names))


def evaluated(law, x, v, reference):
    """The command at a state, in numbers."""
    t, xs, vs = ca.SX.sym("t"), ca.SX.sym("x", len(x)), ca.SX.sym("v", len(v))
    made = law.control(t, xs, vs, {k: ca.DM(a) for k, a in reference.items()}, ca.SX(0, 1))
    names = list(made.signals)
    outputs = [made.u, *(made.signals[name] for name in names)]
    found = ca.Function("law", [t, xs, vs], [ca.densify(ca.SX(o)) for o in outputs])(0, x, v)
    values = [np.array(value).ravel() for value in found]
    return values[0], dict(zip(names, values[1:], strict=True))


def wanted(rng, machine, x):
    return {
        "x": x + 0.1 * rng.normal(size=machine.nx),
        "v": rng.normal(size=machine.nv),
        "a": rng.normal(size=machine.nv),
    }


CASES = {
    "arm": lambda: (driven(revolute_chain(3)), None, np.array([0.3, 0.5, -0.4])),
    "crane model": lambda: (crane_model(), None, crane_state(crane_model(), (0.3, 0.8, 0.1))[0]),
    "crane": lambda: (crane(), None, crane_state(crane(), (0.3, 0.8, 0.1))[0]),
    "five-bar": lambda: (five_bar(0.5), None, five_bar_at(five_bar(0.5), (0.03, 0.4))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.first_cases(3)
def test_closed_loop_is_the_one_of_the_proof(case, printed):
    """Gamma ds/dt + C s = -K s - kappa sat(s/eps), by the machine's own forward dynamics."""
    machine, equations, x = CASES[case]()
    n = Embedded(machine).map.nv
    gains = {"Lambda": np.linspace(1, 2, n), "K": np.linspace(3, 9, n), "kappa": 5.0, "eps": 0.7}
    law = RobustControl(machine, **gains, printed=printed, equations=equations)
    eom, rng = law.embedded, np.random.default_rng(3)
    for _ in range(5):
        qd = rng.normal(size=n)
        q = x if law._solved else x[law.places[0]]
        full, v = eom.expand(q, qd)
        assert np.allclose(full, x, atol=1e-9)
        reference = wanted(rng, machine, x)
        u, signals = evaluated(law, x, v, reference)
        force = eom.kernel("generalised_force")(q, joint_force(machine, u))
        assert np.allclose(force, signals["force"], rtol=1e-10)
        a = eom.forward(q, qd, force)
        s = signals["s"]
        pace = law.Lambda * (qd - reference["v"][law.places[1]])
        s_rate = a - reference["a"][law.places[1]] + pace
        C, M = eom.coriolis(q, qd), eom.mass(q)
        pushed = law.K * s + law.kappa * np.clip(s / law.eps, -1, 1)
        left = M @ s_rate + (0 if printed else C @ s)
        assert np.allclose(left, -pushed, rtol=1e-8, atol=1e-8 * np.abs(pushed).max())
        assert np.isclose(signals["V"][0], s @ M @ s / 2)


def joint_force(machine, u):
    force = np.zeros(machine.nv)
    for actuator, value in zip(machine.actuators, u, strict=True):
        force[machine.v_slice[actuator.joint]] = value
    return force


@pytest.mark.parametrize("printed", [False, True])
def test_stated_rate_of_V_is_that_of_the_record(printed):
    """By differences of V, in the nominal model: the statement uses no acceleration at all."""
    model = crane_model()
    law = RobustControl(model, K=(60, 90, 200), kappa=20, eps=0.5, printed=printed)
    x, v = crane_state(model, (0.4, 0.9, 0.12), (1.5, -0.8, 0.2))
    path = Hold(model, crane_state(model, (0.0, 0.7, 0.1))[0])
    run = simulate(model, law, path, x, v, duration=0.3, dt=1e-3, formulation=law.embedded)
    stated = run["V_rate"][2:-2]
    assert np.abs(rate(run.t, run["V"]) - stated).max() < 1e-6 * np.abs(stated).max()


def test_printed_law_lets_V_rise_where_the_corrected_one_does_not():
    """Without any uncertainty, over random states; from the recorded V alone."""
    model, rng = crane_model(), np.random.default_rng(5)
    q = rng.uniform((-1, 0.2, 0.03), (1, 1.2, 0.17), (32, 3))
    x, v = crane_state(model, q, rng.normal(size=(32, 3)) * (1.5, 1.0, 0.15))
    path, largest = Hold(model, crane_state(model, (0.0, 0.7, 0.1))[0]), {}
    for printed in (True, False):
        law = RobustControl(model, Lambda=1.0, K=30.0, kappa=50.0, eps=1e-2, printed=printed)
        options = {"duration": 0.05, "dt": 5e-4, "formulation": law.embedded}
        run = simulate(model, law, path, x, v, **options)
        largest[printed] = np.diff(run["V"], axis=1).max()
    assert largest[True] > 0.1
    assert largest[False] < 0


def test_closed_form_and_solved_loop_ask_for_the_same():
    machine, rng = crane(), np.random.default_rng(0)
    gains = {"K": (10, 20, 30), "kappa": (5, 6, 7), "eps": 0.1}
    x, v = crane_state(machine, (0.3, 0.8, 0.1), (0.4, -0.3, 0.1))
    reference = wanted(rng, machine, x)
    solved = Embedded(machine, independent=COORDINATES, start=x)
    one, _ = evaluated(RobustControl(machine, **gains, equations=solved), x, v, reference)
    other = RobustControl(machine, **gains, equations=closed_form(machine))
    assert np.allclose(one, evaluated(other, x, v, reference)[0], rtol=1e-10)


def test_more_actuators_than_needed_share_the_force():
    machine = crane()
    more = replace(machine, actuators=(*machine.actuators, JointForce("elbow", "zeta")))
    law, x = RobustControl(more), crane_state(more, (0.3, 0.8, 0.1))[0]
    u, signals = evaluated(law, x, np.zeros(5), wanted(np.random.default_rng(1), more, x))
    force = law.embedded.kernel("generalised_force")(x, joint_force(more, u))
    assert np.allclose(force, signals["force"], rtol=1e-9)
    assert abs(u[3]) > 1.0


def test_parameters_of_the_model_reach_the_law():
    model = tunable_body(crane_model(), "arm", ("tip",))
    law, x = RobustControl(model), crane_state(model, (0.3, 0.8, 0.1))[0]
    rest, still = np.zeros(3), np.zeros(4)
    d, mass = law.uncertainty(x, still, rest, rest)
    heavy, _ = law.uncertainty(x, still, rest, rest, {"body:arm.mass": 78.0})
    q = np.array([0.3, 0.8, 0.1])
    assert np.allclose(d, law.embedded.gravity(q, model.parameters.values()))
    assert np.allclose(mass, law.embedded.mass(q, model.parameters.values()))
    assert heavy[1] > d[1] + 50


# ------------------------------------------------ which coordinates are chosen

BARS = """<mujoco><worldbody>
  <body name="a"><joint name="ja" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="1"/>
    <body name="b" pos="0 0 0.5"><joint name="jb" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 1 0 0.1" size="0.02" mass="1"/></body></body>
  <body name="c" pos="1 0 0"><joint name="jc" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02" mass="1"/></body>
</worldbody>
<equality><connect body1="b" body2="c" anchor="1 0 0.1"/></equality>
<actuator>DRIVES</actuator></mujoco>"""
BELT = """<mujoco><worldbody><body name="a"><joint name="p" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="1"/>
  <body name="b" pos="0 0 0.5"><joint name="q" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="1"/></body></body></worldbody>
<equality><joint joint1="q" joint2="p" polycoef="0.1 2 0.3 0 0"/></equality>
<actuator><motor joint="DRIVEN"/></actuator></mujoco>"""


@pytest.mark.parametrize("joint", ["ja", "jb", "jc"])
def test_the_driven_joint_of_a_file_is_the_coordinate(joint):
    law = RobustControl(read(BARS.replace("DRIVES", f'<motor joint="{joint}"/>')))
    assert law.coordinates == (joint,)


@pytest.mark.parametrize("joint", ["p", "q"])
def test_a_driven_coordinate_goes_before_its_coupling(joint):
    """On either side of q = 0.1 + 2 p + 0.3 p^2; its error follows e' = -Lambda e."""
    machine = read(BELT.replace("DRIVEN", joint))
    law = RobustControl(machine, Lambda=3.0, K=5.0, kappa=3.0, eps=0.05)
    assert law.coordinates == (joint,)
    x = np.array([0.2, 0.1 + 0.4 + 0.012])
    goal = Hold(machine, np.array([0.0, 0.1]))
    run = simulate(machine, law, goal, x, duration=2.5, dt=1e-3)
    place = machine.x_names.index(joint)
    assert np.allclose(run["e"].ravel(), run.x[:, place] - (0.0, 0.1)[place])
    late = run.t > 1.5
    assert np.allclose(np.diff(np.log(np.abs(run["e"].ravel()[late]))) / 1e-3, -3.0, atol=0.01)


def test_coordinates_are_chosen_at_the_start():
    """Where all joints are driven, one that leads well there; elsewhere it may be another."""
    drives = "".join(f'<motor joint="{name}"/>' for name in ("ja", "jb", "jc"))
    machine = read(BARS.replace("DRIVES", drives))
    form, rng = Constrained(machine), np.random.default_rng(0)
    chosen = set()
    for _ in range(6):
        start = form.assemble(rng.uniform(-3, 3, 3))
        law = RobustControl(machine, start=start)
        (name,) = law.coordinates
        chosen.add(name)
        # By differences: the others follow at a moderate pace, so this one leads well.
        A = form.numbers("constraint", x=start, v=np.zeros(3))[0]
        rates = np.linalg.svd(A)[2][-1]
        assert np.abs(rates).max() < 8 * abs(rates[machine.v_names.index(name)])
    assert len(chosen) > 1


def test_starts_that_do_not_serve_are_refused():
    machine = five_bar()
    with pytest.raises(ControlError, match="takes `start` to choose equations by itself"):
        RobustControl(machine, equations=Embedded(machine), start=machine.neutral())
    far = replace(machine, loops=(Loop("rod", "distance", "world", "tip", length=50.0),))
    with pytest.raises(ControlError, match=r"(?s)no minimal coordinates.*neutral.*Give `start`"):
        RobustControl(far)
    with pytest.raises(MachineError, match=r"names of velocities or .driven., got .left."):
        Embedded(machine, independent="left")


# ------------------------------------------------ what is refused


def test_wrong_gains_and_machines_are_refused():
    with pytest.raises(ControlError, match="`K` of RobustControl must be one positive number or 3"):
        RobustControl(crane_model(), K=(1.0, 2.0))
    with pytest.raises(ControlError, match="got 'high'"):
        RobustControl(crane_model(), K="high")
    with pytest.raises(ControlError, match="`eps`"):
        RobustControl(crane_model(), eps=0.0)
    with pytest.raises(ControlError, match="reach 2 of its 3 independent velocities"):
        RobustControl(replace(crane_model(), actuators=crane_model().actuators[:2]))
    with pytest.raises(ControlError, match="those of its machine"):
        RobustControl(crane_model(), equations=Embedded(crane_model()))
    arm = driven(revolute_chain(2))
    torques = JointForce("b", "joint0", gear=(1.0, 0.0, 0.0))
    ball = replace(
        arm,
        joints=(Joint("joint0", Spherical(), "world", "link0"), arm.joints[1]),
        actuators=(torques, arm.actuators[1]),
    )
    with pytest.raises(ControlError, match="joint `joint0` is Spherical"):
        RobustControl(ball)
    wheel = replace(arm, joints=(Joint("joint0", Continuous("z"), "world", "link0"), arm.joints[1]))
    with pytest.raises(ControlError, match=r"is Continuous: .*make it Revolute"):
        RobustControl(wheel)


def test_coordinates_that_are_not_of_joints_are_refused():
    arm = driven(revolute_chain(2))
    sum_and_difference = Embedding(("p", "m"), lambda q: ca.vertcat(q[0] + q[1], q[0] - q[1]))
    with pytest.raises(
        ControlError, match="must be coordinates of the machine's joints, got: p, m"
    ):
        RobustControl(arm, equations=Embedded(arm, sum_and_difference))


def test_mimic_joints_are_followed():
    """A coupled chain: one motor moves both joints."""
    arm = driven(revolute_chain(2), ["joint0"])
    arm = replace(arm, couplings=(Coupling.mimic("belt", "joint1", "joint0", 0.5),))
    law = RobustControl(arm, Lambda=4.0, K=4.0, kappa=5.0, eps=0.1)
    path = JointPath(arm, lambda t: [ca.sin(t), 0.5 * ca.sin(t)])
    run = simulate(arm, law, path, np.array([0.4, 0.2]), duration=3.0, dt=1e-3)
    assert law.coordinates == ("joint0",)
    assert np.abs(run["e"][run.t > 2.5]).max() < 1e-3


def flat_four_bar():
    machine = driven(four_bars(1), [four_bars(1).joints[0].name])
    start, _ = four_bars_at(machine, 0.4, 0.0)
    first = machine.joints[0].name
    law = RobustControl(machine, equations=Embedded(machine, independent=[first], start=start))
    return machine, law, start


def test_paths_through_a_singular_position_are_refused():
    machine, law, start = flat_four_bar()
    beyond, before = four_bars_at(machine, 2.4, 0.0)[0], four_bars_at(machine, 1.2, 0.0)[0]
    law.check(MinimumJerk(machine, [start, before], [0, 2]), np.linspace(0, 2, 20))
    with pytest.raises(SingularError, match="is near a singular position"):
        law.check(MinimumJerk(machine, [start, beyond], [0, 2]), np.linspace(0, 2, 21))


def test_a_run_into_a_singular_position_stops():
    machine, law, start = flat_four_bar()
    path = MinimumJerk(machine, [start, four_bars_at(machine, 2.4, 0.0)[0]], [0, 2])
    with pytest.raises(SimulationError, match="a closed chain passes a position") as caught:
        simulate(machine, law, path, start, duration=2, dt=1e-3, formulation=law.embedded)
    margin = caught.value.run["margin"]
    assert margin[-1] < 0.02 < margin[0]


@pytest.mark.parametrize("law", [RobustControl, PoseControl, EndEffectorControl])
def test_the_name_of_a_file_is_no_machine(law):
    with pytest.raises(
        ControlError, match=r"must be a Machine, got 'crane\.xml'; .*framefree\.read"
    ):
        law("crane.xml")
