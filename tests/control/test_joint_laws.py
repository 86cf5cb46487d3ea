"""PD with gravity compensation and computed torque: V falls at its stated rate, everywhere."""

import numpy as np
import pytest
from constrained_machines import crane, n_four_bar, random_couplings
from law_checks import Moving, closed_loop, driven, floating, rate_gap
from random_machines import random_machine
from random_machines import random_state as random_motion

from framefree.control import Allocation, ComputedTorque, ControlError, Model, PDGravity
from framefree.control.references import Hold, MinimumJerk
from framefree.gallery.machines.arms import ball_chain, iiwa
from framefree.machine import Frame, Loop
from framefree.machine.actuators import JointForce
from framefree.motion import equations
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error

LAWS = (PDGravity, ComputedTorque)


def random_state(rng, machine):
    return random_motion(rng, machine)[:2]


def turned(axis, angle):
    """Return the quaternion wxyz of a turn."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


@pytest.mark.parametrize("law_class", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_rate_along_the_motion_of_random_machines(law_class, seed):
    """All joint kinds, springs, dampers, friction, and a fluid that flows."""
    rng = np.random.default_rng(seed)
    machine = driven(random_machine(rng, bodies=3))
    while not 2 < machine.nv < 13:
        machine = driven(random_machine(rng, bodies=3))
    gains = [_definite(rng, machine.nv) for _ in range(2)]
    law = law_class(machine, *gains)
    x_d, v_d = random_state(rng, machine)
    states = [random_state(rng, machine) for _ in range(8)]
    states.append((machine.integrate(x_d, 1e-7 * rng.normal(size=machine.nv)), v_d))
    held = closed_loop(law, Hold(machine, x_d))
    gap, rates = rate_gap(held, states)
    assert gap < 1e-9
    if law_class is ComputedTorque:
        assert (rates <= 0).all()
    moving = Moving(machine, x_d, v_d, rng.normal(size=machine.nv))
    assert rate_gap(closed_loop(law, moving), states)[0] < 1e-9


def _definite(rng, n):
    L = rng.normal(size=(n, n))
    return L @ L.T + 0.5 * np.eye(n)


@pytest.mark.parametrize("law_class", LAWS)
def test_near_and_at_half_turns(law_class):
    machine = floating()
    stiffness = {"float": [8.0, 6.0, 4.0, 2.0, 3.0, 4.0], "ball": [1.0, 2.0, 3.0]}
    law = law_class(machine, stiffness, {"float": 2.0, "ball": 1.0})
    function = closed_loop(law, Hold(machine, machine.neutral()))
    rng = np.random.default_rng(1)
    near, at = [], []
    for axis in (*np.eye(3), *rng.normal(size=(6, 3))):
        for angle, kept in ((np.pi - 1e-2, near), (np.pi - 1e-7, near), (np.pi, at)):
            q = turned(axis, angle)
            x = np.concatenate([rng.normal(size=3), q, q])
            kept.append((x, rng.normal(size=machine.nv)))
            kept.append((x, np.zeros(machine.nv)))
    assert rate_gap(function, near)[0] < 1e-6
    for state in at:
        assert all(np.isfinite(value.full()).all() for value in function(0.0, *state))


@pytest.mark.parametrize("law_class", LAWS)
def test_attitude_error_of_179_degrees_vanishes(law_class):
    machine = driven(ball_chain(1))
    gains = (0.05, 0.006) if law_class is PDGravity else (36.0, 12.0)
    start = turned((1, -2, 3), np.radians(179))
    run = simulate(
        machine, law_class(machine, *gains), Hold(machine, machine.neutral()), start,
        np.zeros(3), duration=3.0, dt=1e-3, progress=False,
    )  # fmt: skip
    assert np.linalg.norm(machine.difference(run.x[-1], machine.neutral())) < 2e-3
    assert np.diff(run.signals["V"]).max() < 1e-12


@pytest.mark.parametrize(
    ("make", "pd", "ct"),
    [
        (
            lambda: driven(iiwa()),
            ([60, 60, 40, 30, 10, 5, 1], [10, 10, 5, 3, 0.5, 0.2, 0.02]),
            (16.0, 8.0),
        ),
        (lambda: driven(ball_chain(2, 0.5, 2.0)), (5.0, 0.1), (16.0, 8.0)),
        (floating, ({"float": 8.0, "ball": 2.0}, {"float": 2.0, "ball": 0.1}), (16.0, 8.0)),
    ],
    ids=["iiwa", "balls", "floating"],
)
def test_recorded_rate(make, pd, ct):
    """The recorded V has the stated rate, by differences of fourth order."""
    machine, rng = make(), np.random.default_rng(2)
    x_d = machine.random(rng)
    x, v = (
        machine.integrate(x_d, 0.5 * rng.normal(size=machine.nv)),
        0.3 * rng.normal(size=machine.nv),
    )
    path = MinimumJerk(
        machine, np.stack([x_d, machine.integrate(x_d, np.full(machine.nv, 0.4))]), (0.0, 1.0)
    )
    cases = ((PDGravity(machine, *pd), Hold(machine, x_d)), (ComputedTorque(machine, *ct), path))
    for law, reference in cases:
        run = simulate(
            machine, law, reference, x, v, duration=0.2, dt=1e-4, progress=False, record=()
        )
        V, stated = run.signals["V"], run.signals["V_rate"]
        assert rate_error(run.t, V, stated) < 1e-6
        assert stated.max() <= 0
        # The check notices a rate that is off by a hundredth of a percent.
        assert rate_error(run.t, V, 1.0001 * stated) > 1e-5


class _WrongGravity(PDGravity):
    def control(self, t, x, v, reference, memory):
        made = super().control(t, x, v, reference, memory)
        return made._replace(u=1.001 * made.u)


def test_a_wrong_law_is_found():
    machine = driven(iiwa())
    gains = [60, 60, 40, 30, 10, 5, 1], [10, 10, 5, 3, 0.5, 0.2, 0.02]
    rng = np.random.default_rng(3)
    x_d = machine.random(rng)
    states = [random_state(rng, machine) for _ in range(3)]
    assert rate_gap(closed_loop(PDGravity(machine, *gains), Hold(machine, x_d)), states)[0] < 1e-10
    assert (
        rate_gap(closed_loop(_WrongGravity(machine, *gains), Hold(machine, x_d)), states)[0] > 1e-6
    )


def test_on_mujoco_and_on_another_plant():
    machine = floating()
    gains = {"float": 8.0, "ball": 2.0}, {"float": 4.0, "ball": 0.4}
    law = PDGravity(machine, *gains)
    rng = np.random.default_rng(4)
    x_d = machine.neutral()
    x, v = machine.integrate(x_d, 0.5 * rng.normal(size=machine.nv)), rng.normal(size=machine.nv)
    options = {"duration": 1.0, "dt": 2.5e-4, "progress": False, "record": ()}
    ours = simulate(machine, law, Hold(machine, x_d), x, v, **options)
    theirs = simulate(
        machine, law, Hold(machine, x_d), x, v, plant="mujoco", integrator="rk4", **options
    )
    assert np.abs(theirs.x - ours.x).max() < 5e-3
    # MuJoCo holds the command over a step: V is off by the first order of the step.
    V = theirs.signals["V"]
    assert rate_error(theirs.t, V, theirs.signals["V_rate"]) < 0.1
    assert V[-1] < 0.4 * V[0]
    heavier = machine.replace("arm", mass=0.7)
    other = simulate(heavier, law, Hold(machine, x_d), x, v, **options)
    assert np.isfinite(other.x).all()
    sag = np.abs(machine.difference(x_d, other.x[-1])).max()
    assert 1e-3 < sag < 1.0
    gap = rate_error(other.t, other.signals["V"], other.signals["V_rate"])
    assert gap > 1e-2  # the stated rate is that of the model


def test_computed_torque_is_linear():
    """The error of every joint is that of a critically damped oscillator."""
    machine = driven(ball_chain(2, 0.5, 2.0))
    rng = np.random.default_rng(5)
    x_d = machine.random(rng)
    e0 = 0.8 * rng.normal(size=machine.nv)
    law = ComputedTorque(machine, 25.0, 10.0)
    run = simulate(
        machine, law, Hold(machine, x_d), machine.integrate(x_d, e0), np.zeros(machine.nv),
        duration=0.5, dt=1e-3, progress=False, record=(),
    )  # fmt: skip
    exact = np.outer((1 + 5 * run.t) * np.exp(-5 * run.t), e0)
    np.testing.assert_allclose(run.signals["e"], exact, atol=1e-8)


def test_closed_machines():
    """A four-bar driven at one joint: V falls at its rate on the constrained plant."""
    machine = n_four_bar(1)
    machine = machine.attach(JointForce("motor", "p0"))
    for law_class, gains in ((PDGravity, (200.0, 20.0)), (ComputedTorque, (25.0, 10.0))):
        law = law_class(machine, *gains, independent=["p0"])
        assert law.model.v_names == ("p0",)
        closed = equations(machine, "constrained")
        start = closed.project(np.array([1.2, -1.2, 1.2])[: machine.nx], weight="unit").x
        goal = start + np.array([0.2, 0.0, 0.0])
        run = simulate(
            machine, law, Hold(machine, goal), start, np.zeros(machine.nv),
            duration=0.5, dt=2.5e-4, progress=False, record=(),
        )  # fmt: skip
        assert rate_error(run.t, run.signals["V"], run.signals["V_rate"]) < 1e-6
        assert abs(run.signals["e"][-1]).max() < abs(run.signals["e"][0]).max()


def test_couplings_leave_the_independent_joints():
    rng = np.random.default_rng(6)
    machine = driven(random_couplings(rng))
    law = ComputedTorque(machine, 9.0, 6.0)
    targets = {coupling.target for coupling in machine.couplings}
    assert set(law.model.v_names) == set(machine.v_names) - targets


def test_crane_in_either_order_of_velocities():
    machine = crane(closed=True)
    names = Model(machine).v_names
    forward, backward = Model(machine, names), Model(machine, names[::-1])
    assert forward.v_names == backward.v_names


@pytest.mark.parametrize("law_class", LAWS)
def test_within_limits_the_rate_tells_what_is_missing(law_class):
    machine = driven(ball_chain(1))
    machine = machine.detach(*(a.name for a in machine.actuators)).attach(
        *(JointForce(f"m{k}", "joint0", np.eye(3)[k], lower=-0.01, upper=0.02) for k in range(3))
    )
    law = law_class(machine, 4.0, 0.5, limits=True)
    rng = np.random.default_rng(8)
    states = [random_state(rng, machine) for _ in range(6)]
    function = closed_loop(law, Hold(machine, machine.neutral()))
    assert rate_gap(function, states)[0] < 1e-8
    inputs = np.array([function(0.0, *state)[3].full()[:, 0] for state in states])
    assert inputs.min() > -0.01 - 1e-9
    assert inputs.max() < 0.02 + 1e-9
    assert (inputs > 0.02 - 1e-9).any()


def test_holds_against_gravity():
    machine = driven(iiwa())
    law = PDGravity(machine, 10.0, 1.0)
    x = machine.random(np.random.default_rng(7))
    function = closed_loop(law, Hold(machine, x))
    u = function(0.0, x, np.zeros(7))[3].full()[:, 0]
    np.testing.assert_allclose(u, equations(machine, "tree").functions["gravity"](x).full()[:, 0])


# ---------------------------------------------------------------------- refusals


def test_joints_without_actuator_are_named():
    machine = iiwa()
    machine = machine.attach(*(JointForce(j.name, j.name) for j in machine.joints[:5]))
    for law_class in LAWS:
        with pytest.raises(ControlError, match="none for `joint6`, `joint7`"):
            law_class(machine, 1.0, 1.0)
    with pytest.raises(ControlError, match="needs an actuator for every velocity of `iiwa`"):
        Allocation(Model(iiwa())).require_full("a law")


@pytest.mark.parametrize(
    ("stiffness", "message"),
    [
        (-1.0, "`stiffness` must be positive in every direction"),
        (np.ones(3), "must be a number, 7 numbers .*joint1, joint2.* got shape"),
        (np.eye(7) + np.eye(7, k=1), "`stiffness` must be symmetric"),
        (np.nan, "`stiffness` must be finite"),
        ("high", "`stiffness` must be real numbers"),
        ({"joint1": 1.0}, "`stiffness` lacks a value for `joint2`"),
        ({"elbow": 1.0}, "names joint `elbow`; there are: joint1"),
    ],
)
def test_wrong_gains_are_refused(stiffness, message):
    with pytest.raises(ControlError, match=message):
        PDGravity(driven(iiwa()), stiffness, 1.0)


def test_independent_velocities_are_checked():
    with pytest.raises(ControlError, match="has no loops and no couplings"):
        PDGravity(driven(iiwa()), 1.0, 1.0, independent=["joint1"])


def test_part_of_a_ball_joint_cannot_be_independent():
    """A ball held by a slider-like loop leaves two of its velocities."""
    machine = ball_chain(1)
    frames = (Frame("tip", "link0", (0, 0, -0.1)), Frame("peg", "world", (0, 0, -0.2)))
    machine = machine.attach(*frames, Loop("string", "distance", "tip", "peg", length=0.15))
    start = equations(machine, "constrained").assemble(
        np.array([np.cos(0.4), np.sin(0.4), 0.0, 0.0])
    )
    assert len(start) == 4
    with pytest.raises(ControlError, match=r"of joint `joint0` only .* would be independent"):
        Model(machine, ["joint0.wy", "joint0.wz"])
