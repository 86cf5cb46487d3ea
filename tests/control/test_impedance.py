"""Impedance of a frame: V at its stated rate, the given inertia, null space, singular positions."""

import casadi as ca
import numpy as np
import pytest
from constrained_machines import crane
from law_checks import Fixed, closed_loop, driven, floating, rate_gap
from random_machines import random_machine, random_pose, random_state

from framefree.control import ControlError, Impedance
from framefree.control.references import FramePath
from framefree.control.shared.frame_error import frame_error
from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.geometry import se3
from framefree.motion import equations
from framefree.simulate import simulate
from framefree.simulate.measures import rate_error

BENT = np.array([0.3, 0.6, 0.2, -1.2, 0.4, 0.8, 0.1])


def tool_pose(machine, x, frame="tool"):
    return equations(machine, "tree").functions[f"frame_pose:{frame}"](x).full()


def moving(frame, G, rng):
    """Return a reference that leaves the pose G with some twist and acceleration."""
    twist, bend = 0.5 * rng.normal(size=(2, 6))

    def path(t):
        step = t * ca.DM(twist) + t * t * ca.DM(bend)
        return se3.compose(ca.DM(G), se3.exp(step))

    return FramePath(frame, path)


def near(rng, G, size=0.3):
    return G @ se3.exp(size * rng.normal(size=6)).full()


@pytest.mark.parametrize("inertia", [None, (2.0, 0.3)])
def test_rate_along_the_motion(inertia):
    machine, rng = driven(iiwa()), np.random.default_rng(0)
    L = rng.normal(size=(6, 6))
    options = {"null_damping": 0.5, "null_stiffness": 2.0, "posture": rng.normal(size=7)}
    law = Impedance(machine, "tool", L @ L.T + np.eye(6), (3.0, 1.0), inertia, **options)
    states = [(BENT + 0.3 * rng.normal(size=7), rng.normal(size=7)) for _ in range(6)]
    G = near(rng, tool_pose(machine, BENT))
    for reference in (Fixed("tool", G), moving("tool", G, rng)):
        gap, rates = rate_gap(closed_loop(law, reference), states)
        assert gap < 1e-8
        if inertia is not None:
            assert (rates <= 0).all()
    if inertia is None:
        plain = Impedance(machine, "tool", (50.0, 4.0), (3.0, 1.0), null_damping=0.5)
        assert (rate_gap(closed_loop(plain, Fixed("tool", G)), states)[1] <= 0).all()


@pytest.mark.parametrize("inertia", [None, (2.0, 0.3)])
def test_rate_with_springs_fluid_and_all_joints(inertia):
    rng = np.random.default_rng(1)
    machine = driven(random_machine(rng, bodies=4))
    while not 6 < machine.nv < 14:
        machine = driven(random_machine(rng, bodies=4))
    frame = machine.bodies[-1].name
    law = Impedance(machine, frame, (20.0, 2.0), (3.0, 1.0), inertia, null_damping=0.5)
    reference = Fixed(frame, random_pose(rng))
    states = [random_state(rng, machine)[:2] for _ in range(6)]
    assert rate_gap(closed_loop(law, reference), states)[0] < 1e-8


def test_recorded_rate_and_given_dynamics():
    """With an inertia the frame moves as a free body with spring and damper does."""
    machine, rng = driven(iiwa()), np.random.default_rng(2)
    G = near(rng, tool_pose(machine, BENT), 0.15)
    damping = np.array([3, 3, 2, 1, 0.5, 0.2, 0.02])
    law = Impedance(machine, "tool", (200.0, 8.0), (40.0, 1.6), (2.0, 0.08), null_damping=damping)
    v = 0.3 * rng.normal(size=7)
    run = simulate(
        machine, law, Fixed("tool", G), BENT, v, duration=0.3, dt=2.5e-4, progress=False, record=()
    )
    assert rate_error(run.t, run.signals["V"], run.signals["V_rate"]) < 1e-6
    assert rate_error(run.t, run.signals["V"], 1.0001 * run.signals["V_rate"]) > 1e-5
    assert run.signals["margin"].min() > law.singular
    assert np.abs(run.signals["missed"]).max() < 1e-9
    # Translation: 2 e'' + 40 e' + 200 e = 0, critically damped at 10 /s.
    e0 = run.signals["e"][0, :3]
    J = equations(machine, "tree").functions["jacobian:tool"](BENT).full()
    rate0 = -(tool_pose(machine, BENT)[:3, :3] @ (J @ v)[:3])
    t = run.t[:, None]
    exact = np.exp(-10 * t) * (e0 + (rate0 + 10 * e0) * t)
    np.testing.assert_allclose(run.signals["e"][:, :3], exact, atol=1e-7)


def test_natural_inertia_on_mujoco_and_another_plant():
    machine = driven(revolute_chain(4, 0.3, 1.0))
    x = np.array([0.4, 0.7, -0.5, 0.8])
    G = tool_pose(machine, x + np.array([0.2, -0.1, 0.2, 0.1]), "tip")
    law = Impedance(machine, "tip", (60.0, 0.0), (10.0, 0.0), null_damping=0.3)
    assert law.rows == [0, 1, 2]
    options = {"duration": 1.5, "dt": 1e-3, "progress": False, "record": ()}
    for plant in ("native", "mujoco"):
        run = simulate(machine, law, Fixed("tip", G), x, np.zeros(4), plant=plant, **options)
        assert np.linalg.norm(run.signals["e"][-1, :3]) < 0.1 * np.linalg.norm(
            run.signals["e"][0, :3]
        )
        if plant == "native":
            assert np.diff(run.signals["V"]).max() < 1e-9
            assert run.signals["V_rate"].max() <= 0
    heavier = machine.replace("link3", mass=1.5)
    run = simulate(heavier, law, Fixed("tip", G), x, np.zeros(4), **options)
    # The tip sags as the spring gives way to the weight that the model does not know.
    assert 0.02 < run.signals["e"][-1, 2] < 0.15


def test_null_space_is_not_felt():
    machine, rng = driven(iiwa()), np.random.default_rng(3)
    G = near(rng, tool_pose(machine, BENT))
    x, v = BENT, rng.normal(size=7)
    accelerations = []
    eom = equations(machine, "tree")
    J = eom.functions["jacobian:tool"](x).full()
    for options in (
        {"null_damping": 0.0},
        {"null_damping": 3.0, "null_stiffness": 9.0, "posture": np.ones(7)},
    ):
        for inertia in (None, (1.0, 0.1)):
            law = Impedance(machine, "tool", (100.0, 5.0), (9.0, 1.0), inertia, **options)
            u = closed_loop(law, Fixed("tool", G))(0.0, x, v)[3].full()[:, 0]
            accelerations.append(J @ eom.functions["forward"](x, v, u).full()[:, 0])
    np.testing.assert_allclose(accelerations[0], accelerations[2], atol=1e-8)
    np.testing.assert_allclose(accelerations[1], accelerations[3], atol=1e-8)


def test_near_and_at_half_turns():
    machine = floating()
    for inertia in (None, (1.0, 0.1)):
        law = Impedance(machine, "hand", (20.0, 2.0), (4.0, 0.5), inertia, null_damping=0.5)
        rng = np.random.default_rng(4)
        function = closed_loop(law, Fixed("hand", np.eye(4)))
        for angle, bound in ((np.pi - 1e-2, 1e-8), (np.pi - 1e-6, 1e-6), (np.pi, None)):
            for axis in (*np.eye(3), *rng.normal(size=(3, 3))):
                axis = axis / np.linalg.norm(axis)
                x = machine.neutral()
                x[3:7] = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
                state = x, 0.5 * rng.normal(size=machine.nv)
                if bound is None:
                    values = function(0.0, *state)
                    assert all(np.isfinite(value.full()).all() for value in values)
                else:
                    assert rate_gap(function, [state])[0] < bound


def test_singular_positions_are_damped_and_reported():
    machine = driven(iiwa())
    law = Impedance(machine, "tool", (100.0, 5.0), (9.0, 1.0), (1.0, 0.1), null_damping=1.0)
    x, v = ca.SX.sym("x", 7), ca.SX.sym("v", 7)
    # The wrist reaches no further: the elbow is straight at zero.
    G = tool_pose(machine, np.zeros(7))
    G[2, 3] += 0.3
    made = law.control(0, x, v, Fixed("tool", G).at(0), ca.SX(0, 1))
    names = "margin", "missed"
    function = ca.Function("f", [x, v], [made.u, *(made.signals[name] for name in names)])
    for bend in (0.0, 1e-12, 1e-6, 1e-3, 0.02):
        u, margin, missed = (value.full() for value in function(np.full(7, bend), np.zeros(7)))
        assert np.isfinite(u).all()
        assert np.abs(u).max() < 1e5
        assert margin < law.singular
        if bend < 1e-5:
            assert np.abs(missed).max() > 1.0
    gap, rates = rate_gap(
        closed_loop(law, Fixed("tool", G)), [(np.full(7, b), 0.1 * np.ones(7)) for b in (0.01, 0.1)]
    )
    assert gap < 1e-6
    assert np.isfinite(rates).all()


def test_drift_of_the_frame():
    """dy/dt = drift - J a, by differences along a motion."""
    from framefree.control import Model

    machine, rng = driven(iiwa()), np.random.default_rng(5)
    model = Model(machine)
    t, x, v = ca.SX.sym("t"), ca.SX.sym("x", 7), ca.SX.sym("v", 7)
    reference = moving("tool", near(rng, tool_pose(machine, BENT)), rng)
    error = frame_error(model.at(x, v).frame("tool"), "tool", reference.at(t))
    a = rng.normal(size=7)
    along = ca.vertcat(1, v, ca.DM(a))
    inputs = ca.vertcat(t, x, v)
    function = ca.Function(
        "f",
        [t, x, v],
        [
            ca.jtimes(error.y, inputs, along),
            error.drift - error.J @ a,
            ca.jtimes(error.e, inputs, along),
            error.L @ error.y,
        ],
    )
    for _ in range(5):
        values = [
            q.full() for q in function(0.0, BENT + 0.3 * rng.normal(size=7), rng.normal(size=7))
        ]
        np.testing.assert_allclose(values[0], values[1], atol=1e-10)
        np.testing.assert_allclose(values[2], values[3], atol=1e-10)


def test_closed_machine():
    machine = crane(closed=True)
    machine = machine if machine.nu else driven(machine)
    frame = machine.bodies[-1].name
    law = Impedance(machine, frame, (50.0, 0.0), (9.0, 0.0), null_damping=0.1)
    assert law.model.n < machine.nv


def test_refusals():
    machine = driven(iiwa())
    for changes, message in (
        ({"stiffness": -1.0}, "`stiffness` must be not negative"),
        ({"stiffness": np.ones(5)}, "three of translation, three of rotation"),
        ({"damping": (1.0, 0.0)}, "`damping` must be positive in every direction"),
        ({"null_damping": None}, "motions that `tool` does not feel: give their `null_damping`"),
        ({"null_stiffness": 1.0}, "both `null_stiffness` and `posture`"),
        ({"inertia": 0.0}, "`inertia` must be positive"),
        ({"singular": 2.0}, "`singular` must be between 0 and 1"),
        ({"stiffness": 0.0, "damping": 0.0}, "zero in every direction"),
        (
            {"stiffness": (1, 1, 1, 1, 1, 0), "damping": (1, 1, 1, 1, 1, 0), "inertia": 1.0},
            "free about all axes or about none",
        ),
    ):
        given = {"stiffness": 1.0, "damping": 1.0, "null_damping": 1.0, **changes}
        with pytest.raises(ControlError, match=message):
            Impedance(machine, "tool", **given)
    small = driven(revolute_chain(3))
    with pytest.raises(ControlError, match="3 velocities, too few for 6 directions of `tip`"):
        Impedance(small, "tip", 1.0, 1.0, 1.0)
