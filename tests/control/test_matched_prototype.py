"""Matched prototypes: found with the poles asked for, as published, or proved not to exist."""

import warnings

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.optimize import linprog

from framefree.control import PrototypeControl
from framefree.control.law import ControlError
from framefree.control.prototype.matched import NoPrototypeError, matched_prototype
from framefree.control.prototype.matched.existence import exists, proof, unreached_rows
from framefree.control.prototype.rest import RestDynamics, rest_dynamics
from framefree.control.prototype.tuning import characteristic, matching
from framefree.errors import FramefreeError
from framefree.gallery.machines import multicopters, planar
from framefree.gallery.machines.balancing import ball_on_plate, cart_pole
from framefree.gallery.machines.multicopter_load import quadcopter_and_load
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Frame,
    Free,
    Joint,
    JointForce,
    Machine,
    Prismatic,
    Propeller,
    Revolute,
    Spring,
    Universal,
)

POLES = characteristic((2.0, 0.8), (5.0, 0.7))


def near(poles, wanted, tolerance=1e-6):
    roots = np.roots([1.0, *np.asarray(wanted)[len(poles) - 1 :: -1]])
    return all(np.abs(poles - root).min() < tolerance for root in roots)


def slopes_by_mujoco(machine, law, size=1e-5):
    """Slopes of the errors' rates under a law, the plant by MuJoCo and by differences."""
    model = mujoco.MjModel.from_xml_string(machine.to_mjcf())
    data = mujoco.MjData(model)
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    rest, neutral = ca.SX(machine.nv, 1), machine.neutral()
    reference = {"x": ca.SX(ca.DM(neutral)), "v": rest, "a": rest}
    control = ca.Function("u", [x, v], [law.control(0, x, v, reference, ca.SX(0, 1)).u])

    def rate(z):
        shift, data.qvel = np.split(z, 2)
        data.qpos = neutral
        mujoco.mj_integratePos(model, data.qpos, shift, 1.0)
        data.ctrl = np.array(control(data.qpos, data.qvel)).ravel()
        mujoco.mj_forward(model, data)
        return np.concatenate([data.qvel, data.qacc])

    n = 2 * machine.nv
    return np.array([(rate(size * e) - rate(-size * e)) / (2 * size) for e in np.eye(n)]).T


def craft_with_load(joint, propellers=6, load=0.4, rod=0.6):
    """A multicopter of the user that carries a load on a rod below its middle."""
    places = [2 * np.pi * k / propellers for k in range(propellers)]
    frames = [
        Frame(f"rotor{k}", "body", (0.3 * np.cos(a), 0.3 * np.sin(a), 0.0))
        for k, a in enumerate(places)
    ]
    thrusts = [
        Propeller(f"p{k}", f"rotor{k}", torque_ratio=0.02, spin=(-1) ** k, lower=0.0, upper=12.0)
        for k in range(propellers)
    ]
    body = Moments.of_body(2.2, (0, 0, 0), np.diag([0.03, 0.03, 0.05]))
    weight = Moments.of_body(load, (0, 0, -rod), 1e-3 * np.eye(3))
    return Machine(
        (Body("body", body), Body("load", weight)),
        (Joint("base", Free(), "world", "body"), Joint("hang", joint, "body", "load")),
        tuple(frames),
        actuators=tuple(thrusts),
        name="craft with load",
    )


def masses(count, seed=0):
    """A row of masses with springs between them, the first one driven."""
    rng = np.random.default_rng(seed)
    bodies = [Moments.of_body(m, (0, 0, 0), 1e-3 * np.eye(3)) for m in rng.uniform(0.3, 2, count)]
    names = [f"m{k}" for k in range(count)]
    return Machine(
        tuple(Body(name, moments) for name, moments in zip(names, bodies, strict=True)),
        tuple(Joint(f"slide{k}", Prismatic("x"), "world", f"m{k}") for k in range(count)),
        springs=tuple(
            Spring(f"s{k}", f"m{k}", f"m{k + 1}", Moments(k_, np.zeros(3), np.zeros((3, 3))))
            for k, k_ in enumerate(rng.uniform(5, 30, count - 1))
        ),
        actuators=(JointForce("motor", "slide0"),),
        gravity=(0, 0, 0),
        name="row of masses",
    )


@pytest.fixture(scope="module")
def caught():
    return matched_prototype(cart_pole(), 2.0, poles=POLES)


def test_cart_pole_has_the_poles_asked_for(caught):
    assert caught.matching.error < 1e-10
    assert near(caught.matching.poles, POLES)
    for kind in (caught.inertia, caught.damping, caught.stiffness):
        for moments in kind.values():
            form = np.asarray(moments.matrix6)
            assert np.linalg.eigvalsh(form)[0] > -1e-9 * np.abs(form).max()


def test_cart_pole_has_them_in_mujoco_too(caught):
    A = slopes_by_mujoco(caught.machine, caught.law(approach="body"))
    assert near(np.linalg.eigvals(A), POLES, 1e-4)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_stable_polynomial_can_be_had_with_one_input(count, seed):
    rng = np.random.default_rng(seed)
    wanted = characteristic(
        *zip(rng.uniform(1.5, 6, count), rng.uniform(0.3, 1.5, count), strict=True)
    )
    found = matched_prototype(masses(count, seed), 3.0, poles=wanted)
    assert found.matching.error < 1e-8
    assert near(found.matching.poles, wanted, 1e-5)


def test_pvtol_fulfils_the_published_conditions():
    """l = h, Upsilon = 0, Theta = m (h - s)(s - eps), Pi = m g (h - s), own centers."""
    mass, inertia, arm, inclination = 1.0, 0.017, 0.24, 20.0
    machine = planar.pvtol(mass, inertia, arm, inclination)
    found = matched_prototype(machine, 3.0)
    assert found.matching.error < 1e-10
    assert found.matching.stable_at_rest
    (M,), (D,), (K,) = (kind.values() for kind in (found.inertia, found.damping, found.stiffness))
    s, l, h = (moments.first[1] / moments.total for moments in (M, D, K))
    eps = inertia * np.tan(np.deg2rad(inclination)) / (mass * arm)

    def central(moments):
        return moments.moment_at_center[2, 2]

    assert l == pytest.approx(h, rel=1e-8)
    assert central(D) == pytest.approx(0, abs=1e-8)
    assert central(M) == pytest.approx(M.total * (h - s) * (s - eps), rel=1e-7)
    assert central(K) == pytest.approx(M.total * 9.81 * (h - s), rel=1e-7)


def test_ball_on_plate():
    machine = ball_on_plate()
    rest = rest_dynamics(machine)
    # A ball that rolls down a plane tilted by a falls with 5/7 g a; its carrier weighs a little.
    share = (0.1 * 1.001 * 9.81) / (0.1 * 1.401)
    assert np.linalg.solve(rest.M, rest.K)[2:, :2] == pytest.approx(
        np.array([[0.0, -share], [share, 0.0]]), rel=2e-3, abs=1e-9
    )
    found = matched_prototype(machine, 3.0)
    assert found.matching.error < 1e-10
    assert found.matching.stable_at_rest
    assert np.allclose(found.matching.poles, found.matching.template_poles, atol=1e-6)


@pytest.mark.parametrize(
    ("joint", "rate", "slowest"),
    [
        (Universal("x", "y"), 1.5, -0.7),
        (Revolute("y"), 1.5, -0.7),
        (Universal("x", "y"), 4.0, -0.5),
    ],
)
def test_load_below_a_hexacopter(joint, rate, slowest):
    """It swings at 4.4 rad/s by itself: prototypes slower than that have negative springs."""
    found = matched_prototype(craft_with_load(joint), rate)
    assert found.matching.error < 1e-9
    assert found.slowest < slowest
    assert not found.everywhere
    assert "positive about rest only" in str(found)
    with pytest.raises(ControlError, match="not positive semidefinite"):
        PrototypeControl(found.machine, **found.parameters, approach="body")
    poles = np.linalg.eigvals(slopes_by_mujoco(found.machine, found.law(approach="body")))
    apart = np.abs(poles[:, None] - found.matching.template_poles).min(axis=1)
    assert apart.max() < 1e-3


def test_configuration_about_which_parameters_are_positive_is_one():
    found = matched_prototype(cart_pole(), 2.0)
    for near in ((0.0,), (0.0, np.nan)):
        with pytest.raises(FramefreeError, match="`near` of a prototype"):
            found.law(approach="body", near=near)


def test_quadcopter_whose_drag_pulls_beside_its_center_is_matched_without_a_warning():
    found = matched_prototype(multicopters.quadcopter(), 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        law = found.law(approach="body")
    assert matching(law).error < 1e-9


@pytest.mark.slow
def test_quadcopter_with_load_and_quadcopter_with_drag():
    found = matched_prototype(quadcopter_and_load(), 4.0, leave=("ball.wz",))
    assert found.matching.error < 1e-9
    moving = np.abs(found.matching.poles) > 1e-6
    assert moving.sum() == 16
    assert found.matching.poles[moving].real.max() < -0.5
    found = matched_prototype(multicopters.quadcopter(), 4.0)
    assert found.matching.error < 1e-9
    assert found.matching.stable_at_rest


def test_fully_actuated_machines_take_every_prototype():
    found = matched_prototype(multicopters.tricopter(drag=False), 3.0)
    assert found.matching.stable_at_rest
    assert found.matching.error == 0


# ---------------------------------------------------------------------- none


def test_friction_in_the_hinge_leaves_no_prototype():
    """c_K = (0, -m g l) and c_D = (0, b) point against each other: m g l c_D + b c_K = 0."""
    machine = cart_pole(friction=0.02)
    with pytest.raises(NoPrototypeError, match=r"friction of 0\.02") as caught:
        matched_prototype(machine, 2.0)
    found = caught.value.proof
    ratio = float(found.damping.item() / found.stiffness.item())
    assert ratio == pytest.approx(0.2 * 9.81 * 0.5 / 0.02, rel=1e-6)
    c_M, c_D, c_K = unreached_rows(rest_dynamics(machine))
    left = c_M * found.inertia + c_K * found.stiffness + c_D * found.damping
    assert np.abs(left).max() < 1e-8
    helped = matched_prototype(machine, 2.0, without_damping=True)
    assert helped.matching.error > 1e-3
    assert np.isfinite(helped.matching.poles).all()


def test_what_no_input_reaches_is_named():
    pole = cart_pole()
    driven = pole.replace(actuators=(JointForce("motor", "hinge"),))
    with pytest.raises(NoPrototypeError, match=r"motion of `slide`, which nothing holds"):
        matched_prototype(driven, 2.0)
    rod = Moments.of_body(0.3, (0, 0, -0.4), 1e-3 * np.eye(3))
    hanging = pole.attach(Body("bell", rod), Joint("swing", Revolute("y"), "world", "bell"))
    with pytest.raises(NoPrototypeError, match=r"`swing` with the eigenvalue 0 \+- 4\.9\d*i"):
        matched_prototype(hanging, 2.0)


def test_an_unreached_spin_can_be_left():
    machine = quadcopter_and_load()
    with pytest.raises(NoPrototypeError, match=r"`ball\.wz`, which nothing holds"):
        matched_prototype(machine, 4.0)
    with pytest.raises(ControlError, match="forces act on it"):
        matched_prototype(machine, 4.0, leave=("base.wz",))
    with pytest.raises(ControlError, match="no velocity of"):
        matched_prototype(machine, 4.0, leave=("ball.w",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "`rate`.*positive"),
        ({"rate": 2.0, "poles": (1.0, 1.0)}, "must be 4 coefficients"),
        ({"rate": 2.0, "poles": (1.0, 1.0, 1.0, 0.1)}, "stable polynomial"),
        ({"rate": 2.0, "pairs": ("cart",)}, "none was found on"),
        ({"rate": 2.0, "pairs": ()}, "at least one pair"),
        ({"rate": 2.0, "pairs": ("stick",)}, "stick"),
        ({"rate": 2.0, "x_R": (0.0, 0.3)}, "accelerates by"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, message):
    with pytest.raises(ControlError, match=message):
        matched_prototype(cart_pole(), **options)


def test_existence_agrees_with_a_linear_program():
    """For one direction without input N must lie in two half spaces and not against a third."""
    rng, machine, told = np.random.default_rng(0), cart_pole(), []
    for _ in range(60):
        root = rng.normal(size=(2, 2))
        M = root @ root.T + 0.1 * np.eye(2)
        D, K = (rng.normal(size=(2, 2)) * rng.choice([0.0, 1.0]) for _ in range(2))
        rest = RestDynamics(machine, np.zeros(2), np.zeros(1), M, D, K, np.array([[1.0], [0.3]]))
        c_M, c_D, c_K = (row.ravel() for row in unreached_rows(rest))
        program = linprog(
            [0.0, 0.0, -1.0],
            [[*-c_M, 1.0], [*-c_K, 1.0], [*-c_D, 0.0], [*c_M, 0.0]],
            [0.0, 0.0, 0.0, 1.0],
            bounds=[(-1e3, 1e3)] * 2 + [(None, 1.0)],
        )
        expected = -program.fun > 1e-6
        told.append(expected)
        assert exists(rest) == expected
        assert (proof(rest) is None) == expected
    assert 10 < sum(told) < 50
