"""Unknown forces: the observer follows them as stated, integral action keeps V's stated rate."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from closed_loop import ClosedLoop
from unknown_machines import arm, floating, start_of, swing

from framefree import simulate
from framefree.control import (
    IntegralAction,
    MomentumObserver,
    Observing,
    PassivityControl,
    PDGravity,
    PoseControl,
    UnknownForce,
)
from framefree.control.law import ControlError, Timing
from framefree.control.port import looped
from framefree.control.references import Hold
from framefree.gallery.machines.chains import chain
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.geometry import quaternion, se3
from framefree.simulate import Pulse, Push
from framefree.simulate.measures import rate_error

GAINS = {"K": 4.0, "stiffness": 8.0, "Lambda": 0.2}


def followed(machine, law, disturbances=(), duration=1.0, dt=2e-3, **options):
    reference = swing(machine)
    return simulate(
        machine, law, reference, *start_of(reference), duration=duration, dt=dt, record=(),
        disturbances=disturbances, **options,
    )  # fmt: skip


# ------------------------------------------------------------------ the observer


def test_the_observed_force_follows_its_error_equation():
    machine, d = arm(), np.array([1.0, -2.0, 0.5])
    pushes = [Pulse(joint.name, [d[i]]) for i, joint in enumerate(machine.joints)]
    gain = np.array([10.0, 20.0, 30.0])
    run = followed(
        machine, PassivityControl(machine, **GAINS, unknown=MomentumObserver(gain)), pushes
    )
    expected = d * (1 - np.exp(-np.outer(run.t, gain)))
    assert np.abs(run["unknown"] - expected).max() < 1e-7


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_without_unknown_forces_nothing_is_observed(plant):
    if plant == "mujoco":
        pytest.importorskip("mujoco")
    machine = arm()
    law = PassivityControl(machine, **GAINS, unknown=MomentumObserver(20.0))
    run = followed(machine, law, duration=0.5, dt=1e-3, plant=plant)
    assert np.abs(run["unknown"]).max() < (1e-8 if plant == "native" else 5e-3)


def test_the_bound_holds_for_a_force_that_varies():
    machine = arm()
    pushes = [Push("joint1", lambda t: 2 * ca.sin(5 * t) + 1)]
    observer = MomentumObserver(15.0)
    run = followed(machine, PassivityControl(machine, **GAINS, unknown=observer), pushes, 2.0)
    error = np.abs(run["unknown"][:, 1] - (2 * np.sin(5 * run.t) + 1))
    bound = observer.bound(run.t, [1.0], [10.0])[:, 0]
    assert (error <= bound + 1e-6).all()
    assert error[-500:].max() > 0.5 * bound[-1]  # the bound is not idle


@pytest.mark.slow
def test_a_wrench_held_in_the_world_has_no_lag_on_a_body_that_turns():
    machine = floating()
    w = np.array([2.0, -1.0, 3.0, 0.2, 0.1, -0.3])
    observers = {
        "frame": MomentumObserver(15.0, UnknownForce("hull")),
        "world": MomentumObserver(15.0),
        "own": MomentumObserver(15.0, UnknownForce(axes="own")),
    }
    late = {}
    for name, observer in observers.items():
        law = PassivityControl(machine, **GAINS, unknown=replace(observer, acts=False))
        run = followed(machine, law, [Pulse("hull", w)], duration=1.5, dt=5e-3)
        if name == "frame":
            late[name] = np.abs(run["unknown_wrench"][-50:] - w).max()
        else:
            R = np.array([rotation(x) for x in run.x])
            true = np.concatenate([np.einsum("nji,j->ni", R, part) for part in (w[:3], w[3:])], 1)
            late[name] = np.abs(run["unknown"][-50:, :6] - true[-50:]).max()
    assert late["frame"] < 1e-5
    assert late["world"] < 1e-5
    assert late["own"] > 1e-2


def rotation(x):
    return np.array(ca.DM(quaternion.to_rotation(ca.DM(x[3:7]))))


def test_delay_is_not_taken_for_a_force():
    """With the delay of the loop r shows the push; an observer without it shows the delay."""
    machine = arm()
    law = PassivityControl(machine, **GAINS, unknown=MomentumObserver(20.0, acts=False))
    options = {"control_dt": 5e-3, "delay": 4, "dt": 1e-3, "duration": 1.5}
    run = followed(machine, law, [Pulse("joint0", [1.0])], **options)
    off = np.abs(run["unknown"][100:] - [1.0, 0.0, 0.0]).max()
    assert off < 0.02

    class Wrong(MomentumObserver):
        def timed(self, timing):
            return replace(self, timing=Timing(timing.period, 0))

    law = PassivityControl(machine, **GAINS, unknown=Wrong(20.0, acts=False))
    wrong = followed(machine, law, [Pulse("joint0", [1.0])], **options)
    assert np.abs(wrong["unknown"][100:] - [1.0, 0.0, 0.0]).max() > 5 * off


def test_sampling_leaves_an_error_of_second_order():
    machine = arm()
    errors = []
    for period in (8e-3, 4e-3):
        law = PassivityControl(machine, **GAINS, unknown=MomentumObserver(20.0, acts=False))
        run = followed(machine, law, dt=1e-3, control_dt=period)
        errors.append(np.abs(run["unknown"]).max())
    assert errors[1] < errors[0] / 3


@pytest.mark.slow
def test_sampling_leaves_an_error_of_second_order_where_forces_turn():
    """A wrench constant in the world, and inputs that are held in the axes of bodies."""
    machine = floating()
    w = np.array([2.0, -1.0, 3.0, 0.2, 0.1, -0.3])
    errors = []
    for period in (8e-3, 4e-3):
        observer = MomentumObserver(15.0, UnknownForce("hull"), acts=False)
        law = PassivityControl(machine, **GAINS, unknown=observer)
        run = followed(machine, law, [Pulse("hull", w)], 1.6, dt=2e-3, control_dt=period)
        errors.append(np.abs(run["unknown_wrench"][run.t > 1.3] - w).max())
    assert errors[1] < errors[0] / 3


@pytest.mark.slow
def test_observing_a_closed_machine():
    machine = five_bar()
    law = Observing(PDGravity(machine, 40.0, 8.0), MomentumObserver(30.0))
    x = five_bar_at(machine, (0.1, 0.6))
    run = simulate(
        machine, law, Hold(machine, x), x, duration=0.6, dt=1e-3, record=(),
        disturbances=[Pulse("left", [1.5]), Pulse("right", [-0.5])],
    )  # fmt: skip
    assert np.ptp(run.x[:, 0]) > 0.005
    expected = np.outer(1 - np.exp(-30 * run.t), [1.5, -0.5])
    assert np.abs(run["unknown"] - expected).max() < 1e-6


def test_the_rank_of_what_is_seen():
    assert UnknownForce("tool").rank(arm(3)) == 3
    assert UnknownForce("tool").rank(floating()) == 6
    assert UnknownForce().rank(arm(3)) == 3


# ------------------------------------------------------------------ integral action


@pytest.mark.parametrize("machine", [arm(), floating()], ids=["arm", "floating"])
@pytest.mark.parametrize(
    "unknown", [UnknownForce(), UnknownForce(axes="own"), UnknownForce("tool")], ids=str
)
def test_V_with_integral_action_falls_as_stated(machine, unknown):
    law = PassivityControl(machine, **GAINS, unknown=IntegralAction(5.0, unknown))
    loop = ClosedLoop(law)
    assert loop.worst(lambda rng, first: rng.normal(size=len(first)), 5) < 1e-9


def test_V_by_differences_in_a_run():
    machine = arm()
    law = PassivityControl(machine, **GAINS, unknown=IntegralAction(10.0))
    reference = swing(machine)
    x, v = start_of(reference)
    run = simulate(machine, law, reference, x + 0.1, v, duration=1.0, dt=5e-4, record=())
    assert rate_error(run.t, run["V"], run["V_rate"]) < 1e-6


def test_a_constant_push_is_met_and_the_error_goes():
    machine = arm()
    push = [Pulse("link2", (2.0, -1.0, 3.0, 0, 0, 0))]
    gaps = {}
    for name, unknown in {
        "none": None,
        "joints": IntegralAction(30.0),
        "frame": IntegralAction(400.0, UnknownForce("link2")),
        "observer": MomentumObserver(20.0, UnknownForce("link2")),
    }.items():
        law = PassivityControl(machine, **GAINS, unknown=unknown)
        run = followed(machine, law, push, 20.0, 1e-2)
        gaps[name] = np.abs(run.x - run.reference["x"])[-300:].max()
    assert gaps["none"] > 0.03
    assert gaps["joints"] < gaps["none"] / 4
    assert gaps["frame"] < gaps["none"] / 20
    assert gaps["observer"] < gaps["none"] / 20  # three of six numbers are seen


def test_port_laws_with_integral_action():
    machine = chain(3, radius=0.03)
    law = PoseControl(machine, damping=4.0, rate=2.0, unknown=IntegralAction(3.0))

    class PortLoop(ClosedLoop):
        def references(self, machine):
            r, moving, rates = {}, [], []
            for body in machine.bodies:
                names = [f"{body.name}.{what}" for what in ("pose", "twist", "acceleration")]
                shapes = ((4, 4), (6, 1), (6, 1))
                G, xi, a = (ca.SX.sym(n, *shape) for n, shape in zip(names, shapes, strict=True))
                r |= dict(zip(names, (G, xi, a), strict=True))
                moving += [G, xi]
                rates += [G @ se3.wed(xi), a]
            return r, moving, rates

        def reference(self, rng):
            values = []
            for _ in self.machine.bodies:
                values += [
                    ca.DM(se3.exp(rng.normal(size=6))),
                    rng.normal(size=6),
                    rng.normal(size=6),
                ]
            return values

    loop = PortLoop(law)
    assert loop.worst(lambda rng, first: rng.normal(size=len(first)), 5) < 1e-9


# ------------------------------------------------------------------ what is refused


def test_a_loop_over_bodies_has_no_correction():
    law = PoseControl(chain(2), unknown=IntegralAction(1.0))
    with pytest.raises(ControlError, match="cannot have a correction"):
        looped(law, {})


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        (IntegralAction([1.0, 2.0]), "one positive number or 3"),
        (IntegralAction(-1.0), "one positive number or 3"),
        (MomentumObserver([1.0] * 2), "one positive number or 3"),
        (MomentumObserver(200.0, timing=Timing(0.01, 0)), "control periods shorter than 0.005 s"),
        (20.0, "must be an IntegralAction"),
    ],
)
def test_corrections_that_do_not_fit(unknown, message):
    with pytest.raises(ControlError, match=message):
        PassivityControl(arm(), **GAINS, unknown=unknown)


def test_axes_that_do_not_exist():
    with pytest.raises(ControlError, match="`axes` must be one of world, own"):
        UnknownForce("tool", axes="frame")


def test_frames_that_do_not_exist():
    with pytest.raises(Exception, match="nowhere"):
        PassivityControl(arm(), **GAINS, unknown=IntegralAction(1.0, UnknownForce("nowhere")))
