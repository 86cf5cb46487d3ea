"""Learned wrenches in laws: set against what they stand for, and adapted with V at its rate."""

from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np
import pytest
from closed_loop import ClosedLoop
from unknown_machines import arm, floating, start_of, swing

from framefree import simulate
from framefree.control import Adaptive, Assisted, ComputedTorque, OpenLoop, PassivityControl
from framefree.control.law import ControlError
from framefree.control.port import VelocityControl
from framefree.control.references.bodies import BodyVelocities
from framefree.control.unknown.learned import LearnedAdaptation, learned_interactions
from framefree.gallery.machines.chains import chain
from framefree.motion import equations
from framefree.simulate.measures import rate_error

GAINS = {"K": 4.0, "stiffness": 8.0, "Lambda": 0.2}


@dataclass(frozen=True)
class Drag:
    """Drag of a body against a current, and weight that it lacks along the direction of gravity."""

    coefficients: np.ndarray
    cubic: float = 0.0
    names: tuple = ("drag.linear", "drag.turning", "lift.weight", "current.x", "current.y",
                    "current.z")  # fmt: skip
    inputs: int = 0
    made: dict = field(default_factory=dict)

    def function(self):
        twist, R, down = ca.SX.sym("xi", 6), ca.SX.sym("R", 3, 3), ca.SX.sym("down", 3)
        nothing, c = ca.SX.sym("u", self.inputs), ca.SX.sym("c", 6)
        place = ca.SX.sym("r", 3)
        v = twist[:3] - R.T @ c[3:]
        force = -c[0] * v - c[2] * down - self.cubic * ca.dot(v, v) * v
        wrench = ca.vertcat(force, -c[1] * twist[3:])
        return ca.Function("drag", [twist, R, down, nothing, place, c], [wrench])

    def added_to(self, machine, bodies=None):
        own = learned_interactions(self, machine, bodies)
        return replace(machine, interactions=(*machine.interactions, *own))


TRUE = Drag(np.array([0.8, 0.05, 1.5, 0.2, -0.1, 0.15]))
WRONG = Drag(np.array([0.5, 0.1, 1.0, 0.0, 0.0, 0.0]))


def in_fluid(machine, model=TRUE):
    return replace(machine, interactions=learned_interactions(model, machine))


def test_interactions_are_the_wrench():
    machine = floating()
    plant, rng = in_fluid(machine), np.random.default_rng(0)
    x, v, a = machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv)
    eom = equations(machine)
    needed = 0.0
    for i, body in enumerate(machine.bodies):
        G, xi = eom.body_pose(x)[i], eom.body_velocity(x, v)[i]
        R, down = G[:3, :3], G[:3, :3].T @ [0, 0, -1.0]
        relative = xi[:3] - R.T @ TRUE.coefficients[3:]
        force = -0.8 * relative - 1.5 * down
        J = eom.jacobian(x, body.name)
        needed = needed - J.T @ np.concatenate([force, -0.05 * xi[3:]])
    found = equations(plant).inverse(x, v, a) - eom.inverse(x, v, a)
    assert np.allclose(found, needed, atol=1e-12)


@pytest.mark.parametrize("make", [arm, floating])
@pytest.mark.parametrize("kind", ["passivity", "computed torque"])
def test_assisted_laws_track_as_if_nothing_were_unknown(make, kind):
    machine = make()
    laws = {
        "passivity": lambda: PassivityControl(machine, **GAINS),
        "computed torque": lambda: ComputedTorque(machine, 16.0, 8.0),
    }
    reference = swing(machine)
    x, v = start_of(reference)
    errors = {}
    for name, law in {"plain": laws[kind](), "assisted": Assisted(laws[kind](), TRUE)}.items():
        run = simulate(in_fluid(machine), law, reference, x, v, duration=1.0, dt=2e-3)
        errors[name] = np.abs(run.v - run.reference["v"]).max()
    assert errors["assisted"] < 1e-6
    assert errors["plain"] > 1e-3


def test_an_assisted_port_law():
    machine = chain(3)
    plant = in_fluid(machine)
    still = np.zeros(machine.nv)
    law = VelocityControl(machine)
    x = machine.integrate(machine.neutral(), 0.1 * np.arange(machine.nv))
    found = {}
    for name, one in {"plain": law, "assisted": Assisted(law, TRUE)}.items():
        reference = BodyVelocities({body.name: lambda t: [0] * 6 for body in machine.bodies})
        run = simulate(plant, one, reference, x, still, duration=1.0, dt=2e-3)
        found[name] = np.abs(run.v).max()
    assert found["assisted"] < 1e-8 < 1e-3 < found["plain"]


def test_damping_about_thin_axes_has_a_floor():
    machine = chain(3)
    reference = BodyVelocities({body.name: lambda t: [0] * 6 for body in machine.bodies})
    rng = np.random.default_rng(0)
    x, v = machine.neutral(), rng.normal(size=machine.nv)
    spins = {}
    for floor in (0.0, 0.3):
        law = VelocityControl(machine, floor=floor)
        run = simulate(machine, law, reference, x, v, duration=0.1, dt=1e-4)
        assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6
        eom = equations(machine)
        spins[floor] = np.abs(eom.body_velocity(run.x[-1], run.v[-1])[:, 3:]).max(axis=0)
    assert spins[0.3].min() < 0.1 * spins[0.0].min()  # about the thin axis
    with pytest.raises(ControlError, match="`floor` must lie between 0 and 1"):
        VelocityControl(machine, floor=2.0)


# ------------------------------------------------------------------ adaptation


@pytest.mark.parametrize("make", [arm, floating])
@pytest.mark.parametrize("prediction", [0.0, 0.5])
@pytest.mark.parametrize("cubic", [0.0, 0.3])
def test_V_falls_as_stated(make, prediction, cubic):
    """Outside the span and in numbers that are not linear too: what is left is counted."""
    machine = make()
    truth = replace(TRUE, cubic=cubic)
    gain = {"drag": 0.3, "lift.weight": 2.0, "current": 0.1}
    law = Adaptive(
        PassivityControl(machine, **GAINS), WRONG, gain, truth=truth, prediction=prediction
    )
    loop = ClosedLoop(law, in_fluid(machine, truth))
    rng = np.random.default_rng(4)
    assert loop.worst(lambda _, first: first + 0.1 * rng.normal(size=len(first)), 5) < 1e-9
    still = Adaptive(PassivityControl(machine, **GAINS), WRONG, gain, truth=WRONG)
    assert ClosedLoop(still, in_fluid(machine, truth)).worst(lambda _, first: first, 5) > 1e-4


def test_adaptation_tracks_and_differences_of_V_are_as_stated():
    machine, plant = arm(), in_fluid(arm())
    reference = swing(machine)
    x, v = start_of(reference)
    first = replace(WRONG, coefficients=TRUE.coefficients * [1, 1, 0, 1, 1, 1])
    law = PassivityControl(machine, **GAINS)
    laws = {
        "fixed": Assisted(law, first),
        "gradient": Adaptive(law, first, {"lift": 100.0}, truth=TRUE),
        "composite": Adaptive(law, first, {"lift": 20.0}, truth=TRUE, prediction=2.0),
    }
    error = {}
    for name, one in laws.items():
        run = simulate(plant, one, reference, x, v, duration=4.0, dt=5e-4)
        error[name] = np.abs((run.v - run.reference["v"])[run.t > 3]).max()
        if name != "fixed":
            assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6
            still = np.delete(run["coefficients"], 2, axis=1)
            assert np.ptp(still, axis=0).max() == 0.0  # what has no gain does not move
    assert error["gradient"] < 0.8 * error["fixed"]
    assert error["composite"] < error["fixed"] / 50


def test_composite_adaptation_finds_the_numbers():
    machine = arm()
    reference = swing(machine, pace=2.5)
    x, v = start_of(reference)
    first = replace(WRONG, coefficients=TRUE.coefficients * [0.2, 3.0, 0.2, 1, 1, 1])
    law = PassivityControl(machine, **GAINS)
    gain = {"drag": 2.0, "lift": 2.0}
    found = {}
    for prediction in (0.0, 5.0):
        one = Adaptive(law, first, gain, truth=TRUE, prediction=prediction)
        run = simulate(in_fluid(machine), one, reference, x, v, duration=6.0, dt=2e-3)
        found[prediction] = np.abs(run["coefficients"][-1] - TRUE.coefficients)
    assert (found[5.0] < 0.5 * found[0.0])[:3].all()
    assert found[5.0][2] < 0.05


@pytest.mark.parametrize("control_dt", [None, 4e-3])
def test_coefficients_stay_within_bounds(control_dt):
    machine = arm()
    reference = swing(machine)
    x, v = start_of(reference)
    law = Adaptive(PassivityControl(machine, **GAINS), WRONG, {"lift": 40.0},
                   bounds={"lift.weight": (0.9, 1.1)}, truth=TRUE)  # fmt: skip
    run = simulate(in_fluid(machine), law, reference, x, v, duration=1.0, dt=2e-3,
                   control_dt=control_dt)  # fmt: skip
    c = run["coefficients"][:, 2]
    assert c.min() >= 0.9 - 1e-3
    assert c.max() <= 1.1 + 1e-3
    assert c.max() > 1.09


def test_refused():
    machine = arm()
    law = PassivityControl(machine, **GAINS)
    with pytest.raises(ControlError, match="`gain`: coefficient `drga` is unknown"):
        Adaptive(law, TRUE, {"drga": 1.0})
    with pytest.raises(ControlError, match="within their `bounds`"):
        Adaptive(law, TRUE, 1.0, bounds={"lift": (3.0, 4.0)})
    with pytest.raises(ControlError, match="no Lyapunov function"):
        Adaptive(OpenLoop(machine, lambda t: [0, 0, 0]), TRUE, 1.0)
    with pytest.raises(ControlError, match="has a learned model on body"):
        Assisted(Assisted(law, TRUE), TRUE)
    with pytest.raises(ControlError, match="takes 2 commands"):
        Assisted(law, replace(TRUE, inputs=2))
    with pytest.raises(ControlError, match="`first`"):
        Adaptive(law, TRUE, 1.0, first={"lifted": 1.0})
    assert LearnedAdaptation(TRUE).gains.tolist() == [0.0] * 6
