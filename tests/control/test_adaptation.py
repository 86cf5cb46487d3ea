"""Adaptation: V with the true numbers falls as stated, and estimates stay those of a machine."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from closed_loop import ClosedLoop
from unknown_machines import arm, floating, start_of, swing

from framefree import simulate
from framefree.control import (
    Adaptation,
    AdaptivePassivity,
    EndEffectorControl,
    IntegralAction,
    PassivityControl,
    RobustControl,
)
from framefree.control.law import ControlError
from framefree.control.passive import FreeFloating
from framefree.control.robust import UncertaintyWarning, assess
from framefree.control.unknown import natural
from framefree.control.unknown.adaptation import slope_function
from framefree.geometry import Moments, se3
from framefree.machine import Body
from framefree.motion.regressor import moments_of_vector, moments_vector
from framefree.motion.tree import Tree
from framefree.simulate import Pulse
from framefree.simulate.measures import rate_error

GAINS = {"K": 4.0, "stiffness": 8.0, "Lambda": 0.2}
LOAD = Moments.of_body(1.5, (0.1, 0.05, 0.1), np.diag([0.02, 0.03, 0.02]))


def loaded(machine, name="link2"):
    """The machine with a load on one body."""
    bodies = [
        Body(one.name, one.moments + LOAD) if one.name == name else one for one in machine.bodies
    ]
    return replace(machine, bodies=tuple(bodies))


def near(size):
    """A memory near the first one: bodies' numbers a little larger, others off."""

    def make(rng, first):
        return first * (1 + size * rng.uniform(0.1, 0.3)) + 1e-3 * rng.uniform(size=len(first))

    return make


# ------------------------------------------------------------------ the stated rate, exactly

CASES = {
    "load on an arm": (arm, ("link2",), {}),
    "two bodies": (arm, ("link1", "link2"), {}),
    "friction and damping": (
        arm,
        ("damping", "friction"),
        {"gain": {"damping": 0.3, "friction": 2}},
    ),
    "all of it": (arm, ("link2", "damping", "armature"), {"gain": 0.4}),
    "load of a vehicle": (floating, ("lower",), {}),
    "hull and drag": (floating, ("hull", "drag"), {"gain": 0.5}),
    "current": (floating, ("fluid.current.x", "fluid.current.y", "fluid.current.z"), {"gain": 0.1}),
}


def true_machine(machine):
    """Other numbers everywhere that may be unknown."""
    joints = tuple(
        replace(joint, damping=joint.damping * 1.7 + 0.1, friction=joint.friction * 1.4)
        for joint in machine.joints
    )
    bodies = tuple(Body(one.name, one.moments + LOAD * 0.3) for one in machine.bodies)
    return replace(machine, joints=joints, bodies=bodies)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.first_cases(3)
def test_V_falls_as_stated(case):
    make, words, options = CASES[case]
    machine = make()
    paths = Adaptation(words).paths(machine)
    other = true_machine(machine).tunable(*paths).parameters.defaults
    if "current" in case:
        other = np.array([0.1, 0.25, -0.2])
    elif case == "hull and drag":
        other = np.where(other > 0, other * 1.1, other)
    truth = machine.tunable(*paths).with_parameters(other.tolist())
    law = AdaptivePassivity(
        machine, **GAINS, unknown=Adaptation(words, cost=0.5, truth=truth, **options)
    )
    loop = ClosedLoop(law, truth)
    assert loop.worst(near(0.1), 5) < 1e-9
    # The law that does not adapt states the same rate, and is wrong by far.
    still = PassivityControl(machine, **GAINS, unknown=IntegralAction(1.0))
    assert ClosedLoop(still, truth).worst(lambda rng, first: 0 * first, 5) > 1e-3


def test_the_slope_is_that_of_the_regressor():
    machine = arm()
    model = Adaptation(("link1", "link2", "damping", "friction")).numbers(machine).machine
    rng = np.random.default_rng(3)
    x, (v, v_r, a_r, s) = machine.random(rng), rng.normal(size=(4, machine.nv))
    pi = model.parameters.defaults
    Y = Tree(model).functions["tracking_regressor:met"](x, v, v_r, a_r, pi)[0].full()
    slope = slope_function(model)(x, v, v_r, a_r, pi, s).full().ravel()
    assert np.allclose(slope, Y.T @ s, atol=1e-12)


def test_port_laws_adapt_too():
    machine = floating()
    machine = replace(machine, fluid=None)
    truth = loaded(machine, "lower")
    law = EndEffectorControl(
        machine, damping=4.0, frame="hull", unknown=Adaptation(("lower",), cost=0.5, truth=truth)
    )
    loop = FrameLoop(law, truth)
    assert loop.worst(near(0.1), 4) < 1e-9


class FrameLoop(ClosedLoop):
    """The same for the pose of the hull."""

    def references(self, machine):

        names = [f"hull.{what}" for what in ("pose", "twist", "acceleration")]
        G, xi, a = (ca.SX.sym(name, *shape) for name, shape in
                    zip(names, ((4, 4), (6, 1), (6, 1)), strict=True))  # fmt: skip
        return dict(zip(names, (G, xi, a), strict=True)), [G, xi], [G @ se3.wed(xi), a]

    def reference(self, rng):

        return [ca.DM(se3.exp(rng.normal(size=6))), rng.normal(size=6), rng.normal(size=6)]


# ------------------------------------------------------------------ runs


@pytest.mark.parametrize("prediction", [0.0, 0.02])
@pytest.mark.first_cases(1)
def test_a_load_is_met_in_a_run_and_stays_a_body(prediction):
    machine, truth = arm(), loaded(arm())
    adaptation = Adaptation(("link2",), cost=0.2, truth=truth, prediction=prediction, filter=5.0)
    reference = swing(machine)
    x, v = start_of(reference)
    options = {"duration": 4.0, "dt": 4e-4, "record": ()}
    fixed = simulate(truth, PassivityControl(machine, **GAINS), reference, x, v, **options)
    law = AdaptivePassivity(machine, **GAINS, unknown=adaptation)
    run = simulate(truth, law, reference, x, v, **options)
    late = run.t > 3
    gaps = [np.abs(one.x - one.reference["x"])[late].max() for one in (fixed, run)]
    assert gaps[1] < gaps[0] / 10
    assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6
    assert (np.diff(run["V"]) < 1e-12).all()
    least = [
        np.linalg.eigvalsh(moments_of_vector(row).matrix4).min() for row in run["numbers"][::50]
    ]
    assert min(least) > 0


def test_saturation_is_counted():
    machine = arm()
    weak = replace(
        machine, actuators=tuple(replace(a, lower=-6.0, upper=6.0) for a in machine.actuators)
    )
    truth = loaded(weak)
    adaptation = Adaptation(("link2",), cost=0.5, truth=truth, largest=(8.0, 0.5))
    law = AdaptivePassivity(weak, **GAINS, unknown=adaptation)
    reference = swing(weak)
    x, v = start_of(reference)
    run = simulate(truth, law, reference, x + 0.3, v, duration=0.6, dt=2e-4, record=())
    assert np.abs(run["unrealised"]).max() > 1
    scale = np.abs(run["V_rate"]).max()
    gap = np.diff(run["V"]) / np.diff(run.t) - (run["V_rate"][1:] + run["V_rate"][:-1]) / 2
    P = run["numbers"][1:]
    inside = P[:, 0] + (P[:, 4] + P[:, 7] + P[:, 9]) / 0.5**2 < 7.9
    assert 100 < inside.sum() < len(gap) - 100
    assert np.median(np.abs(gap[inside])) < 1e-6 * scale
    assert gap.max() < 1e-3 * scale  # at its bound the estimate lets V fall faster than stated


def test_numbers_stay_within_their_bounds():
    """Friction that is not there: the estimate falls to zero and no further."""
    machine = arm()
    truth = replace(machine, joints=tuple(replace(j, friction=0.0) for j in machine.joints))
    law = AdaptivePassivity(machine, **GAINS, unknown=Adaptation(("friction",), gain=20.0))
    reference = swing(machine)
    run = simulate(truth, law, reference, *start_of(reference), duration=3.0, dt=1e-3, record=())
    assert run["numbers"].min() > -1e-4
    assert "V" not in run.signals


def test_a_sampled_law_keeps_bodies_bodies_and_bounds_bounds():
    """Steps so long that Euler's would make the mass negative."""
    numbers = moments_vector(LOAD)
    slope = 40.0 * numbers / (numbers @ numbers)
    euler = numbers + 0.1 * ca.DM(natural.rate(ca.DM(numbers), ca.DM(slope), 0.05)).full().ravel()
    assert np.linalg.eigvalsh(moments_of_vector(euler).matrix4).min() < 0
    after = ca.DM(natural.step(ca.DM(numbers), ca.DM(slope), 0.05, None, 0.1)).full().ravel()
    assert np.linalg.eigvalsh(moments_of_vector(after).matrix4).min() > 0
    short = ca.DM(natural.step(ca.DM(numbers), ca.DM(slope), 0.05, None, 1e-8)).full().ravel()
    rate = ca.DM(natural.rate(ca.DM(numbers), ca.DM(slope), 0.05)).full().ravel()
    assert np.allclose((short - numbers) / 1e-8, rate, rtol=1e-4, atol=1e-5)
    machine, truth = arm(), loaded(arm())
    still = replace(truth, joints=tuple(replace(j, friction=0.0) for j in truth.joints))
    law = AdaptivePassivity(
        machine, **GAINS, unknown=Adaptation(("link2", "friction"), cost=0.2, gain=20.0)
    )
    reference = swing(machine)
    options = {"duration": 4.0, "dt": 1e-3, "control_dt": 5e-3, "record": ()}
    run = simulate(still, law, reference, *start_of(reference), **options)
    friction = [k for k, path in enumerate(law.unknown.paths(machine)) if "friction" in path]
    assert run["numbers"][:, friction].min() >= 0
    fixed = PassivityControl(machine, **GAINS)
    other = simulate(still, fixed, reference, *start_of(reference), **options)
    gaps = [np.abs(one.x - one.reference["x"])[-200:].max() for one in (other, run)]
    assert gaps[1] < gaps[0] / 10


def test_natural_adaptation_is_the_slope_of_its_distance():
    rng = np.random.default_rng(0)
    one, other = (moments_vector(LOAD + LOAD.moved(np.eye(4)) * f) for f in (0.3, 1.0))
    slope = rng.normal(size=10)
    rate = ca.DM(natural.rate(ca.DM(one), ca.DM(slope), 0.7)).full().ravel()
    p = ca.SX.sym("p", 10)
    d = ca.Function("d", [p], [ca.jtimes(natural.divergence(ca.DM(other), p), p, ca.DM(rate))])
    assert 0.7 * float(d(one)) == pytest.approx(-slope @ (one - other), rel=1e-10)
    assert float(natural.divergence(ca.DM(other), ca.DM(one))) > 0
    assert float(natural.divergence(ca.DM(one), ca.DM(one))) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("nobody",), {}, "nobody"),
        (("gains",), {}, "gains of actuators"),
        (("link2",), {"first": {"link2.mass": 0.0}}, "first estimate of `link2` must be a body"),
        (("damping",), {"gain": {"friction": 1.0}}, "has none for `joint0.damping`"),
        (("link2",), {"cost": -1.0}, "`cost` of Adaptation must be positive"),
    ],
)
def test_what_cannot_adapt(words, options, message):
    with pytest.raises(Exception, match=message):
        AdaptivePassivity(arm(), **GAINS, unknown=Adaptation(words, **options))


def test_what_is_no_adaptive_law():
    with pytest.raises(ControlError, match="must be an Adaptation"):
        AdaptivePassivity(arm(), **GAINS)
    machine = floating()
    with pytest.raises(ControlError, match="the freedom FreeFloating"):
        AdaptivePassivity(
            replace(machine, fluid=None, gravity=(0, 0, 0)), K=4.0, stiffness=8.0, Lambda=0.2,
            freedom=FreeFloating("to_hull"), unknown=Adaptation(("lower",)),
        )  # fmt: skip


# ------------------------------------------------------------------ kappa that grows


def robust(machine, **options):
    gains = {"Lambda": 4.0, "K": 3.0, "kappa": 0.5, "eps": 0.05}
    return RobustControl(machine, **{**gains, **options})


def test_V_with_kappa_that_grows_falls_as_stated():
    loop = ClosedLoop(robust(arm(), growth=[20.0, 30.0, 40.0]))
    assert loop.worst(lambda rng, first: first + rng.uniform(size=3), 10) < 1e-9


def test_kappa_grows_to_what_it_meets():
    machine = arm()
    push = [
        Pulse(joint.name, [size]) for joint, size in zip(machine.joints, (3.0, -2, 1), strict=True)
    ]
    reference = swing(machine)
    start = start_of(reference)
    options = {"duration": 4.0, "dt": 1e-3, "record": (), "disturbances": push}
    fixed = simulate(machine, robust(machine), reference, *start, **options)
    law = robust(machine, growth=50.0)
    run = simulate(machine, law, reference, *start, **options)
    kappa = run["kappa"]
    assert (np.diff(kappa, axis=0) >= 0).all()
    assert (kappa[-1] > 0.5).any()
    late = run.t > 3
    assert np.abs(run["s"])[late].max() < 1.1 * 0.05
    assert np.abs(run["e"])[late].max() < np.abs(fixed["e"])[late].max() / 5
    with pytest.warns(UncertaintyWarning):
        found = assess(law, run)
    assert np.array_equal(found.kappa, kappa[-1])
    assert found.V_left <= 1


def test_growth_that_cannot_be():
    with pytest.raises(ControlError, match="`growth`"):
        robust(arm(), growth=[1.0, 0.0, 1.0])
