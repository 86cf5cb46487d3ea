"""Stability is that of equilibria and steady motions, user constraints included; or it is refused.

Eigenvalues are compared with those of derivations by hand.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import n_four_bar

import framefree as ff
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Cylindrical,
    Frame,
    Free,
    Joint,
    Machine,
    Planar,
    Prismatic,
    Revolute,
)
from framefree.machine.actuators import JointForce, Propeller
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.rows import Acceleration, Holonomic, Nonholonomic
from framefree.solve import SolveError, equilibrium, stability, trim

G = 9.81
MASS, LENGTH, INERTIA = 2.0, 0.3, 0.05
ABOUT_PIVOT = INERTIA + MASS * LENGTH**2
RATE = np.sqrt(MASS * G * LENGTH / ABOUT_PIVOT)


def rod(scale=1.0, mass=1.0):
    moment = INERTIA * mass * scale**2
    return Moments.of_body(MASS * mass, (0, 0, -LENGTH * scale), np.diag([moment] * 3))


def pendulum(scale=1.0, mass=1.0, **joint):
    return Machine(
        [Body("rod", rod(scale, mass))], [Joint("pivot", Revolute("x"), "world", "rod", **joint)]
    )


def pendulum_on_a_cart():
    cart = Moments.of_body(5.0, (0, 0, 0), np.eye(3))
    joints = [
        Joint("rail", Prismatic("y"), "world", "cart"),
        Joint("pivot", Revolute("x"), "cart", "rod"),
    ]
    return Machine([Body("cart", cart), Body("rod", rod())], joints)


# ------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("angle", [0.3, 1.5, -3.0, 1e-3])
def test_a_state_that_accelerates_gets_no_verdict(angle):
    a = -(RATE**2) * np.sin(angle)
    words = f"but `pivot` accelerates by {a:.4g}; `trim` and `equilibrium` find such states"
    with pytest.raises(SolveError, match=re.escape(words)):
        stability(pendulum(), [angle])


@pytest.mark.parametrize(("scale", "mass"), [(1e-3, 1e-6), (1e-3, 1e6), (1e3, 1.0), (1e3, 1e-6)])
def test_refusals_and_verdicts_do_not_depend_on_units(scale, mass):
    machine = pendulum(scale, mass)
    for angle, verdict in ((0.0, "stable"), (np.pi, "unstable")):
        result = stability(machine, [angle])
        assert result.verdict == verdict
        assert np.abs(result.eigenvalues).max() == pytest.approx(RATE / np.sqrt(scale), rel=1e-9)
        assert equilibrium(machine, [angle + 0.2]).stability.verdict == verdict
    with pytest.raises(SolveError, match="accelerates"):
        stability(machine, [1e-3])
    held = trim(machine.attach(JointForce("motor", "pivot")), [0.7])
    assert held.success
    assert held.u[0] == pytest.approx(MASS * mass * G * LENGTH * scale * np.sin(0.7), rel=1e-9)


def test_a_light_part_of_a_heavy_machine_is_seen():
    """The weight of the cart, a million times that of the rod, hides nothing."""
    heavy = Moments.of_body(1e6 * MASS, (0, 0, 0), 1e6 * np.eye(3))
    machine = pendulum_on_a_cart().replace("cart", inertia=heavy)
    assert stability(machine, [0.0, 0.0]).verdict == "marginal"
    with pytest.raises(SolveError, match="`pivot` accelerates"):
        stability(machine, [0.0, 1e-4])


def test_inputs_take_part_in_the_balance():
    machine = pendulum().attach(JointForce("motor", "pivot"))
    u = MASS * G * LENGTH * np.sin(0.7)
    result = stability(machine, [0.7], u=[u])
    assert result.verdict == "stable"
    assert abs(result.modes[0].frequency - RATE * np.sqrt(np.cos(0.7))) < 1e-9
    for wrong in (0.0, 1.001 * u, -u):
        with pytest.raises(SolveError, match="accelerates"):
            stability(machine, [0.7], u=[wrong])
    with pytest.raises(SolveError, match="inputs must be 1 finite numbers"):
        stability(machine, [0.7], u=[np.nan])


def test_a_motion_that_is_steady_for_an_instant_only_is_refused():
    """At the bottom of its swing a pendulum does not accelerate."""
    with pytest.raises(SolveError, match=r"for an instant only; .* s later `pivot` accelerates"):
        stability(pendulum(), [0.0], [2.0])


def test_a_falling_craft_is_refused_and_a_hovering_one_is_not():
    body = Body("hull", Moments.of_body(1.2, (0, 0, 0), np.diag([0.01, 0.012, 0.02])))
    fan = Propeller("fan", "hull", torque_ratio=0.0)
    craft = Machine([body], [Joint("base", Free(), "world", "hull")], actuators=[fan])
    with pytest.raises(SolveError, match=r"`base\.vz` accelerates by -9\.81"):
        stability(craft, craft.neutral())
    assert stability(craft, craft.neutral(), u=[1.2 * G]).verdict == "marginal"
    tilted = np.array([0, 0, 0, np.cos(0.1), np.sin(0.1), 0, 0])
    with pytest.raises(SolveError, match="accelerates"):
        stability(craft, tilted, u=[1.2 * G])


def test_open_loops_are_refused():
    machine = n_four_bar(1)
    x = np.array([{"p0": -1.2, "p1": -1.2, "e0": 1.3}[name] for name in machine.x_names])
    with pytest.raises(SolveError, match="the position error of constraint"):
        stability(machine, x)


def test_a_free_screw_swings_as_its_pitch_says():
    """A weight on a vertical screw falls, unless a spring at the joint holds it."""
    nut = Body("nut", Moments.of_body(1.0, (0, 0, 0), 0.02 * np.eye(3)))
    pitch, k = 0.05, 3.0
    screw = Joint("screw", ff.machine.Helical("z", pitch), "world", "nut", stiffness=k)
    down = equilibrium(Machine([nut], [screw]))
    assert down.success
    assert down.x[0] == pytest.approx(-pitch * G / k, rel=1e-9)
    rate = np.sqrt(k / (0.02 + pitch**2))
    assert down.stability.modes[0].frequency == pytest.approx(rate, rel=1e-9)


# ------------------------------------------------------------------------------ user constraints


def test_a_held_cart_makes_a_plain_pendulum():
    machine = pendulum_on_a_cart()
    held = Constrained(machine, [Holonomic("stop", lambda x, t: x[0] - 0.3)])
    down = equilibrium(held, [0.3, 0.4])
    assert down.success
    assert down.x == pytest.approx([0.3, 0.0], abs=1e-9)
    assert np.sort(down.stability.eigenvalues.imag) == pytest.approx([-RATE, RATE], rel=1e-9)
    assert stability(held, down.x).verdict == "stable"
    # Without the constraint the cart gives way, and the pendulum swings faster.
    free = stability(machine, [0.3, 0.0])
    assert free.modes[0].frequency > 1.1 * RATE
    with pytest.raises(SolveError, match=r"position error of constraint `stop` is -0\.3"):
        stability(held, [0.0, 0.0])


def test_two_pendulums_that_go_together():
    bodies = [Body(name, rod(scale)) for name, scale in (("long", 1.0), ("short", 0.5))]
    joints = [Joint(b.name, Revolute("x"), "world", b.name) for b in bodies]
    together = Constrained(Machine(bodies, joints), [Holonomic("rod", lambda x, t: x[0] - x[1])])
    result = stability(together, [0.0, 0.0])
    inertia = ABOUT_PIVOT * (1 + 0.25)
    assert len(result.eigenvalues) == 2
    assert result.modes[0].frequency == pytest.approx(
        np.sqrt(1.5 * MASS * G * LENGTH / inertia), rel=1e-9
    )
    with pytest.raises(SolveError, match="velocity error of constraint `rod`"):
        stability(together, [0.0, 0.0], [1.0, -1.0])


def sleigh(ahead):
    """A blade at the origin of a body that slides on a plane, its mass center `ahead` of it."""
    body = Body("hull", Moments.of_body(3.0, (ahead, 0, 0), np.diag([0.1, 0.1, 0.2])))
    machine = Machine([body], [Joint("plane", Planar("z"), "world", "hull")], gravity=(0, 0, 0))
    return Constrained(machine, [Nonholonomic("blade", lambda x, v, t: v[1])])


@pytest.mark.parametrize("speed", [2.0, -2.0, 0.5])
def test_chaplygin_sleigh(speed):
    """(I + m a^2) w' + m a V w = 0: stable with its mass ahead of the blade [Neimark1972]."""
    ahead = 0.4
    found = trim(sleigh(ahead), v=[speed, 0, 0])
    assert found.success, found.message
    root = -3.0 * ahead * speed / (0.2 + 3.0 * ahead**2)
    values = found.stability.eigenvalues
    assert len(values) == 5  # three positions and two velocities
    assert np.abs(values - root).min() < 1e-9
    assert np.sort(np.abs(values))[:4] == pytest.approx([0, 0, 0, 0], abs=1e-9)
    assert found.stability.verdict == ("marginal" if speed > 0 else "unstable")
    again = stability(sleigh(ahead), found.x, found.v)
    assert again.verdict == found.stability.verdict


def test_a_blade_at_rest_allows_turning_and_sliding_along_only():
    result = stability(sleigh(0.4), sleigh(0.4).machine.neutral())
    assert len(result.eigenvalues) == 5
    assert np.abs(result.eigenvalues).max() == 0.0
    with pytest.raises(SolveError, match="velocity error of constraint `blade` is 1"):
        stability(sleigh(0.4), sleigh(0.4).machine.neutral(), [0, 1.0, 0])


def rolling_disc():
    """A wheel that rolls along a slope without slipping, held by a spring on its axle."""
    body = Body("wheel", Moments.of_body(2.0, (0, 0, 0), np.diag([0.02, 0.03, 0.02])))
    axle = Body("axle", Moments.of_body(0.5, (0, 0, 0), 0.01 * np.eye(3)))
    joints = [
        Joint("along", Prismatic("x"), "world", "axle", stiffness=40.0),
        Joint("spin", Revolute("y"), "axle", "wheel"),
    ]
    tilt = 0.2
    gravity = (G * np.sin(tilt), 0, -G * np.cos(tilt))
    machine = Machine([axle, body], joints, gravity=gravity)
    radius = 0.1
    return Constrained(machine, [Nonholonomic("roll", lambda x, v, t: v[0] - radius * v[1])])


def test_a_wheel_on_a_slope_rolls_to_its_spring():
    found = equilibrium(rolling_disc(), [0.0, 0.0])
    assert found.success, found.message
    assert found.x[0] == pytest.approx(2.5 * G * np.sin(0.2) / 40.0, rel=1e-9)
    rate = np.sqrt(40.0 / (2.5 + 0.03 / 0.1**2))
    assert np.sort(found.stability.eigenvalues.imag)[[0, -1]] == pytest.approx(
        [-rate, rate], rel=1e-9
    )
    # The wheel's angle itself is nowhere tied down: one neutral direction.
    assert len(found.stability.eigenvalues) == 3


def test_accelerations_that_are_prescribed_leave_positions_and_velocities_open():
    machine = pendulum_on_a_cart()
    rows = Acceleration("still", lambda x, v, t: (np.array([[1.0, 0.0]]), np.array([[0.0]])))
    result = stability(Constrained(machine, [rows]), [0.2, 0.0])
    assert len(result.eigenvalues) == 4
    assert np.sort(result.eigenvalues.imag)[[0, -1]] == pytest.approx([-RATE, RATE], rel=1e-9)


def test_inputs_hold_a_constrained_machine():
    """The force on the cart is taken by the stop, so that any input balances it."""
    machine = pendulum_on_a_cart().attach(JointForce("push", "pivot"))
    held = Constrained(machine, [Holonomic("stop", lambda x, t: x[0] - 0.3)])
    found = trim(held, [0.3, 0.5])
    assert found.success
    assert found.u[0] == pytest.approx(MASS * G * LENGTH * np.sin(0.5), rel=1e-9)


def test_the_tree_of_a_machine_is_taken_as_the_machine():
    result = stability(ff.equations(pendulum(), "tree"), [0.0])
    assert np.abs(result.eigenvalues).max() == pytest.approx(RATE, rel=1e-12)


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (lambda: ff.equations(pendulum(), "maximal"), "has coordinates of its own"),
        (lambda: ff.equations(n_four_bar(1), "embedded"), "has coordinates of its own"),
        (
            lambda: Constrained(pendulum(), [Holonomic("drive", lambda x, t: x[0] - t)]),
            "a constraint depends on time",
        ),
        (lambda: Constrained(pendulum().tunable("rod.mass")), "tunable numbers"),
        (lambda: "pendulum", "a Machine or Equations are needed, got str"),
    ],
)
def test_what_cannot_be_balanced_is_refused(system, words):
    for solve in (equilibrium, trim, lambda one: stability(one, [0.0])):
        with pytest.raises(SolveError, match=words):
            solve(system())


# ------------------------------------------------------------------------------ limits of inputs


@pytest.mark.parametrize("gain", [2.0, -2.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_force_limits_of_a_motor_with_negative_gain(gain, side):
    """f = gain u within (-1, 3) N m: one side can be held, the other cannot."""
    motor = JointForce("motor", "pivot", gain=gain, force_lower=-1.0, force_upper=3.0)
    needed = MASS * G * LENGTH * np.sin(0.4 * side)
    found = trim(pendulum().attach(motor), [0.4 * side], hold=("pivot",))
    assert found.success == (needed > 0)
    if found.success:
        assert gain * found.u[0] == pytest.approx(needed, rel=1e-9)
    else:
        assert "inputs at their limits: `motor`" in found.message
        assert gain * found.u[0] == pytest.approx(-1.0, rel=1e-6)


@pytest.mark.parametrize("gain", [50.0, -50.0])
def test_force_limits_of_a_servo(gain):
    """f = gain u - 50 q within limits: the input alone says nothing of the force."""
    needed = MASS * G * LENGTH * np.sin(0.7)

    def servo(limit):
        return JointForce(
            "servo", "pivot", gain=gain, bias_terms=(0.0, -50.0, -1.0),
            force_lower=-limit, force_upper=limit,
        )  # fmt: skip

    strong = trim(pendulum().attach(servo(1.01 * needed)), [0.7], hold=("pivot",))
    assert strong.success
    assert gain * strong.u[0] - 50.0 * 0.7 == pytest.approx(needed, rel=1e-9)
    weak = trim(pendulum().attach(servo(0.9 * needed)), [0.7], hold=("pivot",), attempts=2)
    assert not weak.success


def test_a_constant_force_of_a_motor_counts_against_its_limits():
    needed = MASS * G * LENGTH * np.sin(0.5)
    limits = {"force_lower": -np.inf, "force_upper": needed + 0.1}
    motor = JointForce("motor", "pivot", gain=-1.0, bias_terms=(needed - 0.5, 0, 0), **limits)
    found = trim(pendulum().attach(motor), [0.5], hold=("pivot",))
    assert found.success
    assert found.u[0] == pytest.approx(-0.5, rel=1e-9)
    weak = replace(motor, force_upper=needed - 0.1)
    assert not trim(pendulum().attach(weak), [0.5], hold=("pivot",), attempts=2).success


def test_inverse_kinematics_keeps_a_screw_within_its_turns():
    """Limits of a screw are angles; with a pitch of 5 mm/rad it rises 4 mm in 0.8 rad."""
    nut = Body("nut", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    for kind, reach in ((ff.machine.Helical("z", 0.005), 0.004), (Cylindrical("z"), 0.8)):
        joint = Joint("screw", kind, "world", "nut", lower=-0.8, upper=0.8)
        machine = Machine([nut], [joint], (Frame("top", "nut", (0, 0, 0.1)),))
        inside = ff.solve.inverse_kinematics(machine, {"top": (0, 0, 0.1 + 0.9 * reach)})
        beyond = ff.solve.inverse_kinematics(machine, {"top": (0, 0, 0.1 + 1.1 * reach)})
        assert inside.reached
        assert not beyond.reached
        assert "out of reach" in beyond.message
        assert beyond.x[0] == pytest.approx(0.8, abs=1e-9)


# ------------------------------------------------------------------------------ the same twice


@pytest.mark.parametrize(
    ("system", "x", "v"),
    [
        (pendulum(damping=0.3), [0.0], [0.0]),
        (pendulum_on_a_cart(), [0.3, np.pi], [1.0, 0.0]),
        (sleigh(0.4), [0.0, 0.0, 1.0, 0.0], [2.0, 0.0, 0.0]),
        (rolling_disc(), [2.5 * G * np.sin(0.2) / 40.0, 0.0], [0.0, 0.0]),
    ],
)
def test_eigenvalues_are_those_of_the_linearisation(system, x, v):
    """`linearise` takes slopes of the acceleration, `stability` those of the balance of forces."""
    linear = ff.solve.linearise(system, np.array(x), np.array(v))
    expected = np.sort_complex(linear.eigenvalues)
    values = np.sort_complex(stability(system, x, v).eigenvalues)
    assert linear.steady
    assert np.abs(values - expected).max() < 1e-9 * (1 + np.abs(expected).max())
