"""What a prototype's law chooses or offers: approach, transport map, centers over the mass."""

import dataclasses

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.transport import straight
from framefree.control.prototype.tuning import characteristic, free_body, matching, thrust_borne
from framefree.control.references import Hold, JointPath
from framefree.errors import FramefreeWarning
from framefree.gallery.machines.five_bar import five_bar
from framefree.gallery.machines.multicopters import quadcopter, tricopter
from framefree.gallery.machines.scara import scara
from framefree.geometry import Moments
from framefree.machine import Body, Fluid, Free, Immersed, Joint, Machine, Wrench
from framefree.simulate import simulate

POLES = characteristic((3.0, 0.8), (12.0, 0.8))
FREQUENCY, RATIO, MASS = 2.0, 0.6, 1.3


def straight_law(machine, center):
    """Gains about one center, and errors of position that go straight ways."""
    theta = np.diag([0.02, 0.03, 0.04])
    kinds = (MASS, 2 * RATIO * FREQUENCY * MASS, FREQUENCY**2 * MASS)
    gains = [
        {"body": Moments.of_body(k, center, f * theta)}
        for k, f in zip(kinds, (1.0, 6.0, 20.0), strict=True)
    ]
    return PrototypeControl(machine, *gains, approach="energy", transport=straight(machine, center))


def tumbling(machine):
    """A reference that moves and turns about two axes."""

    def path(t):
        a, b = 0.9 * ca.sin(1.3 * t), 0.7 * t
        turn = ca.vertcat(
            ca.cos(a / 2) * ca.cos(b / 2),
            ca.sin(a / 2) * ca.cos(b / 2),
            ca.sin(a / 2) * ca.sin(b / 2),
            ca.cos(a / 2) * ca.sin(b / 2),
        )
        return ca.vertcat(ca.sin(t), ca.cos(0.7 * t), 0.4 * t, turn)

    return JointPath(machine, path)


@pytest.mark.parametrize("center", [(0.0, 0.0, 0.0), (0.1, -0.05, 0.2)])
def test_errors_of_position_go_straight_ways(center):
    """The center's error follows m e'' + d e' + k e = 0 in the world, whatever turns."""
    machine = tricopter(drag=False)
    law, reference = straight_law(machine, center), tumbling(machine)
    x_R, v_R = (np.array(value).ravel() for value in reference.function(0.0)[:2])
    run = simulate(
        machine,
        law,
        reference,
        machine.integrate(x_R, np.array([0.4, -0.3, 0.2, 0.5, -0.6, 0.4])),
        v_R + np.array([0.3, 0.1, -0.2, 0.4, 0.3, -0.5]),
        duration=2.0,
        dt=1e-3,
        limits=False,
        progress=False,
    )

    def place(x):
        q = x[:, 3:7]
        w, r = q[:, :1], q[:, 1:]
        h = np.broadcast_to(center, r.shape)
        return x[:, :3] + h + 2 * np.cross(r, np.cross(r, h) + w * h)

    e = place(run.x) - place(run.reference["x"])
    rate = (-3 * e[0] + 4 * e[1] - e[2]) / (2 * (run.t[1] - run.t[0]))
    damped = FREQUENCY * np.sqrt(1 - RATIO**2)
    t = run.t[:, None]
    second = (rate + RATIO * FREQUENCY * e[0]) / damped
    swing = e[0] * np.cos(damped * t) + second * np.sin(damped * t)
    assert np.abs(e - np.exp(-RATIO * FREQUENCY * t) * swing).max() < 2e-5
    drop = np.gradient(run["W"], run.t)[5:-5]
    assert np.abs(drop + run["W_loss"][5:-5]).max() < 1e-4 * np.abs(drop).max()


def test_straight_ways_need_the_center_of_stiffness_and_one_free_body():
    machine = tricopter(drag=False)
    law = straight_law(machine, (0.1, 0.0, 0.2))
    with pytest.raises(ControlError, match="does not carry the potential"):
        PrototypeControl(
            machine,
            law.inertia,
            law.damping,
            law.stiffness,
            approach="energy",
            transport=straight(machine, (0.1, 0.0, 0.0)),
        )
    with pytest.raises(ControlError, match="must be one free body"):
        straight(scara())
    options = law.inertia, law.damping, law.stiffness, "energy"
    with pytest.raises(ControlError, match="must be a function of x and x_R, got 3"):
        PrototypeControl(machine, *options, transport=3)


def test_the_approach_is_chosen_with_a_reason():
    machine = tricopter(drag=False)
    one = Moments.of_body(1.0, (0, 0, 0), np.eye(3))
    assert PrototypeControl(machine, *[{"body": one}] * 3).approach == "energy"
    arm = scara()
    joints = {(j.parent, j.child): one for j in arm.joints if j.parent != "world"}
    every = {("world", arm.joints[0].child): one, **joints}
    tool = arm.bodies[-1].name
    with pytest.warns(FramefreeWarning, match="takes the body approach.*no transport map"):
        law = PrototypeControl(arm, every, every, {tool: one})
    assert law.approach == "body"
    closed = five_bar()
    shared = {body.name: one for body in closed.bodies}
    with pytest.warns(FramefreeWarning, match="has loops or couplings"):
        assert PrototypeControl(closed, shared, shared, shared).approach == "body"


def with_center(center):
    """A quadcopter whose center of mass is somewhere else."""
    machine = quadcopter(drag=False, offset=False)
    moments = Moments.of_body(1.001, center, np.diag([17.9e-3, 18e-3, 30.7e-3]))
    return dataclasses.replace(machine, bodies=(Body("body", moments),))


@pytest.mark.parametrize("center", [(0.01, 0.0, 0.0), (-0.004, 0.02, 0.03)])
def test_gains_stand_over_the_center_of_mass(center):
    machine = with_center(center)
    gains = thrust_borne(1.001, POLES, (2.5, 0.7), 0.0307, center=center)
    found = matching(PrototypeControl(machine, **gains.on("body"), approach="body"))
    assert found.error < 1e-10
    assert found.moved < 1e-6
    roots = np.roots(POLES[::-1])
    assert all(np.abs(found.poles - root).min() < 1e-5 for root in roots)


@pytest.mark.parametrize("poles", [POLES, characteristic((1.0, 0.7), (4.0, 0.7))])
def test_gains_that_stand_beside_it_are_told(poles):
    machine = with_center((0.01, 0.0, 0.0))
    gains = thrust_borne(1.001, poles, (2.5, 0.7), 0.0307)
    with pytest.warns(FramefreeWarning, match="passes 10 mm beside the center of mass"):
        law = PrototypeControl(machine, **gains.on("body"), approach="body")
    assert matching(law).moved > 1e-4


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_a_fluid_that_sways_and_turns_is_known_to_the_law(plant):
    """A body with six inputs moves as it would without the fluid; one whose law is not told no."""
    if plant == "mujoco":
        pytest.importorskip("mujoco")

    def body(flow, fluid=True):
        wet = Immersed("hull", 3e-3, linear_drag=[6.0] * 6, added_mass=[1.0] * 3 + [0.01] * 3)
        return Machine(
            (Body("hull", Moments.of_body(3.0, (0, 0, 0), np.diag([0.05, 0.06, 0.07]))),),
            (Joint("base", Free(), "world", "hull"),),
            actuators=(Wrench("push", "hull", np.eye(6)),),
            fluid=Fluid((wet,), flow=flow) if fluid else None,
            name="hull",
        )

    def sway(position, time):
        return [0.5 * ca.sin(3 * time) - position[1], position[0], 0.2 * ca.cos(position[0])]

    gains = free_body(3.0, (0.05, 0.06, 0.07), (2.0, 0.8), (3.0, 0.8)).on("hull")
    still, moving = body(None, fluid=False), body(sway)
    x0 = still.integrate(still.neutral(), np.array([0.5, -0.3, 0.2, 0.3, 0.2, -0.4]))

    def flown(machine, known):
        law = PrototypeControl(known, **gains)
        goal = Hold(known, known.neutral())
        return simulate(machine, law, goal, x0, duration=0.5, dt=2e-3, plant=plant, every=10).x

    apart = np.abs(flown(moving, moving) - flown(still, still)).max()
    assert apart < (1e-7 if plant == "native" else 2e-3)
    assert np.abs(flown(moving, still) - flown(still, still)).max() > 0.05


def test_inertia_that_is_negative_is_told_as_such():
    machine = scara()
    wrong = Moments.of(1.0, (0, 0, 0), -np.eye(3))
    with pytest.raises(ControlError, match="inertia of the prototype is not positive semidef"):
        PrototypeControl(machine, {"link2": wrong}, {}, {})
