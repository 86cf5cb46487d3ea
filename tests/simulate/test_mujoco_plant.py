"""MuJoCo moves the written machine as our own plant does, under the same law."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from simulate_machines import PD, Sine, free_body, pendulum, swinging

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Cylindrical,
    Fluid,
    Frame,
    Free,
    Helical,
    Immersed,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.actuators import Propeller, SpinningPropeller
from framefree.machine.damper import Damper
from framefree.machine.read import read
from framefree.machine.spring import Spring
from framefree.simulate import Noise, Pulse, SetParameters, SimulationError, simulate

pytest.importorskip("mujoco")
DATA = Path(__file__).parents[1] / "data" / "mjcf"


def both(machine, law=None, reference=None, **options):
    native = simulate(machine, law, reference, **options)
    theirs = simulate(machine, law, reference, plant="mujoco", **options)
    assert np.array_equal(native.t, theirs.t)
    gap = np.abs(machine.difference(native.x, theirs.x)).max()
    return max(gap, np.abs(native.v - theirs.v).max()), theirs


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_plain_coordinates_agree_to_rounding(integrator):
    """The same steps of the same method, by two engines."""
    machine = pendulum(3, kinds=[Revolute("x"), Prismatic((1, 0, 1)), Universal("x", "y")])
    x, v = swinging(machine)
    gap, theirs = both(
        machine, PD(machine), Sine(machine.nv), x0=x, v0=v, duration=0.3, dt=1e-3,
        integrator=integrator, control_dt=5e-3, delay=1, noise=Noise(1e-3, 1e-2),
    )  # fmt: skip
    assert gap < 1e-9
    assert theirs.meta["applied_by_us"] == []


@pytest.mark.parametrize(
    "kinds",
    [
        [Free(), Revolute("x")],
        [Spherical(), Continuous("y")],
        [Planar((1, 2, 3)), Cylindrical("x")],
    ],
)
def test_groups_agree_within_the_error_of_integration(kinds):
    machine = pendulum(2, kinds=kinds)
    x, v = swinging(machine)
    gaps = [
        both(machine, x0=x, v0=v, duration=0.2, dt=dt, integrator="rk4", record=())[0]
        for dt in (4e-3, 2e-3)
    ]
    assert gaps[0] < 1e-4
    assert gaps[1] < max(gaps[0] / 3, 1e-13)  # ball joints alone agree to rounding


def springy():
    """Springs, dampers, friction, fluid with added mass: all that MJCF cannot express."""
    machine = pendulum(2, kinds=[Revolute("x"), Revolute("y")])
    points = Moments.of_points(np.array([[0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.1]]), np.full(3, 20.0))
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    tip = Immersed(
        "tip",
        volume=4e-4,
        center=(0, 0, 0.2),
        added_mass=root @ root.T / 20,
        linear_drag=np.full(6, 0.2),
        quadratic_drag=np.full(6, 0.3),
    )
    fluid = Fluid([tip], current=(0.3, 0, 0.1))
    joints = [replace(joint, friction=0.05, friction_width=0.2) for joint in machine.joints]
    return replace(
        machine,
        joints=joints,
        springs=(Spring("hold", "world", "tip", points),),
        dampers=(Damper("slow", "rod0", "tip", points),),
        fluid=fluid,
    )


def test_forces_that_mjcf_cannot_express():
    machine = springy()
    gap, theirs = both(
        machine, x0=[0.5, -0.4], v0=[1.0, 0.5], duration=0.2, dt=1e-3, integrator="euler",
        disturbances=[Pulse("rod0", (1.0, 0, 0, 0, 0.1, 0), 0.05, 0.1)],
    )  # fmt: skip
    assert gap < 1e-9
    assert theirs.meta["applied_by_us"] == [
        "spring `hold`",
        "damper `slow`",
        "fluid",
        "friction of joint `j0`",
        "friction of joint `j1`",
        "disturbance of `rod0`",
    ]


def test_leaving_one_of_them_out_would_show():
    machine = springy()
    options = {"x0": [0.5, -0.4], "duration": 0.2, "dt": 1e-3, "integrator": "euler", "record": ()}
    whole = simulate(machine, plant="mujoco", **options)
    for part in ({"springs": ()}, {"dampers": ()}, {"fluid": None}):
        other = simulate(replace(machine, **part), plant="mujoco", **options)
        assert np.abs(other.v - whole.v).max() > 1e-2


def test_damping_and_springs_of_a_ball():
    ball = Joint("j0", Spherical(), "world", "rod0", damping=(0.3, 0.1, 0.2), stiffness=2.0)
    machine = replace(pendulum(1, driven=False), joints=[ball])
    gap, theirs = both(
        machine, v0=[1.0, 2.0, 0.5], duration=0.2, dt=2e-4, integrator="euler", record=()
    )
    assert gap < 2e-4
    assert theirs.meta["applied_by_us"] == ["damping of joint `j0`"]


def test_even_damping_of_a_ball_is_mujocos_own_and_keeps_the_order():
    ball = Joint("j0", Spherical(), "world", "rod0", damping=0.4, stiffness=2.0)
    machine = replace(pendulum(1, driven=False), joints=[ball])
    gap, theirs = both(machine, v0=[1.0, 2.0, 0.5], duration=0.2, dt=2e-3, record=())
    assert not theirs.meta.get("applied_by_us")
    assert gap < 1e-8  # held over the step it would be of first order: 1e-3


@pytest.mark.parametrize("name", ["gripper", "hand", "arm"])
def test_robots_with_tendons_and_compensated_weight(name):
    machine = read(DATA / f"{name}.xml")
    machine = replace(machine, joints=[replace(j, friction=0.0) for j in machine.joints])
    v0 = 0.1 * np.random.default_rng(1).normal(size=machine.nv)
    gap, theirs = both(machine, v0=v0, duration=0.1, dt=2e-4, record=(), limits=False)
    assert gap < 1e-7
    ours = theirs.meta.get("applied_by_us") or []
    # `elbow` has a camera without compensation on it: its center is not that of the force
    assert ours == (["spring `gravcomp_elbow`"] if name == "arm" else [])


def quadcopter(extra=()):
    frames = [
        Frame(f"arm{k}", "body", (np.cos(k * np.pi / 2), np.sin(k * np.pi / 2), 0))
        for k in range(4)
    ]
    machine = free_body(gravity=(0, 0, -9.81)).attach(*frames)
    rotors = [
        Propeller(f"rotor{k}", f"arm{k}", spin=(-1) ** k, torque_ratio=0.02) for k in range(4)
    ]
    return machine.attach(*rotors, *extra)


def test_propellers():
    """Written as motors where they can be, ours where they turn as bodies of their own."""
    from framefree.control.law import OpenLoop

    machine = quadcopter()
    law = OpenLoop(machine, lambda t: [5.0, 5.1, 4.9, 5.2])
    gap, theirs = both(machine, law, duration=0.2, dt=5e-4, lag=0.05, integrator="rk4")
    assert gap < 5e-3
    assert theirs.meta["applied_by_us"] == []
    blade = Moments.of_body(0.01, (0, 0, 0), 1e-4 * np.eye(3))
    spun = machine.attach(
        Body("blade", blade),
        Joint("spin", Revolute("z"), "arm0", "blade"),
        SpinningPropeller("air", "blade", "spin", thrust_coefficient=1e-4, torque_coefficient=1e-6),
    )
    v = np.array([0, 0, 0, 0, 0, 0, 100.0])
    gap, theirs = both(
        spun, OpenLoop(machine, law.inputs), v0=v, duration=0.1, dt=5e-4, integrator="euler"
    )
    assert gap < 5e-2
    assert "actuator `air`" in theirs.meta["applied_by_us"]
    assert np.ptp(theirs.v[:, 6]) > 0.5  # the air slows the blade


def test_loops_are_equalities():
    """MuJoCo's are soft: what is left open falls with its reference time, two steps."""
    machine = n_four_bar(1, "ball")
    thick = Moments.of_body(
        1.0, (0.5, 0, 0), np.diag([1e-3, 1 / 12, 1 / 12])
    )  # MuJoCo has no lines
    machine = replace(machine, bodies=[Body(body.name, thick) for body in machine.bodies])
    x, v = four_bar_state(machine, 0.3, 1.0)
    gap, theirs = both(machine, x0=x, v0=v, duration=0.3, dt=2e-4, every=10)
    assert gap < 1e-6
    assert np.abs(theirs.signals["position_error"]).max() < 1e-8


def test_limits():
    machine = pendulum()
    machine = replace(
        machine, actuators=[replace(a, lower=-1.0, upper=1.0) for a in machine.actuators]
    )
    options = {
        "x0": [0.5, 0.5],
        "duration": 0.1,
        "dt": 1e-3,
        "integrator": "euler",
        "control_dt": 1e-3,
    }
    assert both(machine, PD(machine), **options)[0] < 1e-10
    assert both(machine, PD(machine), limits=False, **options)[0] < 1e-10
    weak = replace(machine, joints=[replace(j, effort_limit=0.3) for j in machine.joints])
    assert both(weak, PD(weak), **options)[0] < 1e-10


def test_parameters():
    machine = pendulum().tunable("rod1.mass")
    options = {
        "x0": [0.5, 0.5], "duration": 0.1, "dt": 1e-3, "integrator": "euler",
        "parameters": {"rod1.mass": 3.0}, "events": [SetParameters(0.05, plant={"rod1.mass": 0.5})],
    }  # fmt: skip
    assert both(machine, **options)[0] < 1e-10


def test_refused():
    machine = pendulum(1, kinds=[Helical("z", pitch=0.1)])
    with pytest.raises(SimulationError, match=r"MuJoCo cannot be the plant: .*helical"):
        simulate(machine, duration=0.1, dt=1e-3, plant="mujoco")
    with pytest.raises(SimulationError, match='the integrators "rk4", "euler" and "implicit"'):
        simulate(pendulum(), duration=0.1, dt=1e-3, plant="mujoco", integrator="midpoint")
