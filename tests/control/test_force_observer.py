"""The force observer: its error equation, its noise, its axes, and that a delay is no force."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest

from framefree import simulate
from framefree.control.estimation import ForceObserver
from framefree.control.law import Command, ControlError, Law, OpenLoop
from framefree.gallery import MACHINES
from framefree.geometry import Moments, quaternion
from framefree.machine import Body, Free, Joint, JointForce, Machine, Revolute, Wrench
from framefree.simulate import Change, Noise, Pulse, Push, SimulationError

PERIOD = 0.01
WRENCH = np.array([0.3, -0.2, 0.1, 0.02, 0.03, -0.01])


def craft():
    """A free body of 2 kg that a wrench at its origin can push as wanted, without gravity."""
    body = Body("body", Moments.of(2.0, (0.02, 0.0, 0.01), np.diag([0.05, 0.06, 0.07])))
    return Machine(
        (body,),
        (Joint("base", Free(), "world", "body"),),
        actuators=(Wrench("thrust", "body", np.eye(6)),),
        gravity=(0, 0, 0),
        name="craft",
    )


def arm():
    """Two links with a motor each."""
    links = [Body(n, Moments.of_body(1.0, (0.2, 0, 0), np.diag([0.01] * 3))) for n in ("a", "b")]
    joints = (
        Joint("first", Revolute((0, 1, 0)), "world", "a"),
        Joint("second", Revolute((0, 1, 0)), "a", "b", (0.4, 0, 0)),
    )
    motors = tuple(JointForce(f"motor_{n}", n) for n in ("first", "second"))
    return Machine(tuple(links), joints, actuators=motors, name="arm")


def waving(machine, size):
    """Return a law that moves a machine about, whatever comes."""
    weights = np.linspace(1.0, 2.0, machine.nu)
    return OpenLoop(machine, lambda t: size * ca.sin(3 * ca.DM(weights) * t))


def observed(machine, rate=2.0, axes="own", law=None, duration=2.0, **options):
    law = waving(machine, 0.3) if law is None else law
    observer = ForceObserver(law.machine, rate, axes)
    rng = np.random.default_rng(0)
    options = {"v0": 0.2 * rng.normal(size=machine.nv), "dt": 5e-3, **options}
    return simulate(
        machine, law, duration=duration, control_dt=PERIOD, observer=observer, progress=False,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("rate", [2.0, np.array([1, 1, 1, 8, 8, 8.0])])
def test_the_error_decays_at_the_stated_rate(rate):
    """Without noise the estimate is (1 - exp(-K t)) f while the body tumbles and is pushed."""
    machine = craft()
    run = observed(machine, rate, disturbances=[Pulse("body", WRENCH, axes="frame")])
    expected = WRENCH * -np.expm1(-np.outer(run.t, np.broadcast_to(rate, 6)))
    # While the estimate misses the force the body turns under it, by some mrad in a period.
    assert np.abs(run["unknown_force"] - expected).max() < 5e-3 * np.abs(WRENCH).max()


def test_wind_is_constant_in_the_axes_of_the_world():
    machine = craft()
    wind = [Pulse("body", [*WRENCH[:3], 0, 0, 0], axes="world")]
    for axes, near in (("world", True), ("own", False)):
        run = observed(machine, 5.0, axes, disturbances=wind, duration=3.0, v0=[0, 0, 0, 1, 2, 1])
        R = np.array(machine_rotation(run.x[-1]))
        missed = np.abs(R @ run["unknown_force"][-1, :3] - WRENCH[:3]).max()
        assert (missed < 1e-3) == near


def machine_rotation(x):
    return ca.evalf(quaternion.to_rotation(ca.DM(x[3:7])))


def test_forces_at_joints_are_observed():
    """A machine whose mass matrix changes: dM/dt v counts."""
    machine = arm()
    run = observed(
        machine, 5.0, disturbances=[Pulse("second", [0.4]), Pulse("first", [-1.0])], duration=3.0
    )
    assert np.abs(run["unknown_force"][-1] - [-1.0, 0.4]).max() < 5e-3
    assert np.ptp(run.x, axis=0).min() > 0.5  # it moves


def test_a_force_that_grows_is_missed_by_its_growth_over_the_rate():
    machine = craft()
    growth, rate = np.array([0.1, 0.2, -0.1, 0.01, 0, 0.02]), 4.0
    push = Push("body", lambda t: ca.DM(growth) * t, axes="frame")
    run = observed(machine, rate, disturbances=[push], duration=4.0)
    missed = growth * run.t[-1] - run["unknown_force"][-1]
    assert np.abs(missed - growth / rate).max() < 2e-2 * np.abs(growth).max() / rate + 2e-4


@pytest.mark.parametrize("options", [{"lag": 0.03}, {"delay": 3}, {"lag": 0.03, "delay": 2}])
def test_lag_and_delay_are_no_forces(options):
    """The observer knows the inputs that acted, not those that the law made."""
    machine = craft()
    law = waving(machine, 2.0)
    run = observed(machine, 5.0, law=law, **options)
    assert np.abs(run["unknown_force"]).max() < 5e-3
    made, acted = run["command"], run.u
    assert np.abs(made - acted).max() > 0.1  # as a force this would be a hundred times as much


def test_noise_of_the_velocity_leaves_rate_times_momentum():
    machine, rate, deviation = craft(), 2.0, 0.02
    runs = observed(
        machine, rate, noise=Noise(v=[deviation] * 3 + [0] * 3), duration=20.0, v0=None,
        law=waving(machine, 0.0), record=(),
    )  # fmt: skip
    scatter = runs["unknown_force"][200:, 0].std()
    assert scatter == pytest.approx(rate * 2.0 * deviation, rel=0.15)


@dataclass(frozen=True)
class Taking(Law):
    """A law that records what it is told of unknown forces."""

    machine: Machine
    takes = ("unknown_force",)

    def control(self, t, x, v, reference, memory):
        force = reference.get("unknown_force", ca.SX(self.machine.nv, 1))
        return Command(ca.SX(self.machine.nu, 1), {"told": force})


def test_a_law_that_takes_it_is_told_and_works_without():
    machine = craft()
    pulse = [Pulse("body", WRENCH, axes="frame")]
    run = observed(machine, law=Taking(machine), disturbances=pulse)
    assert np.array_equal(run["told"], run["unknown_force"])
    plain = simulate(machine, Taking(machine), duration=0.1, dt=1e-2, progress=False)
    assert np.abs(plain["told"]).max() == 0


def test_the_prediction_counts_what_is_observed():
    """A law ahead by its delay sees the state that comes, unknown force and all."""

    @dataclass(frozen=True)
    class Seeing(Law):
        machine: Machine

        def control(self, t, x, v, reference, memory):
            return Command(ca.SX(self.machine.nu, 1), {"seen": v})

    machine = craft()
    options = {"law": Seeing(machine), "disturbances": [Pulse("body", 3 * WRENCH, axes="frame")]}
    run = observed(machine, 20.0, delay=5, predict=True, **options)
    missed = np.abs(run["seen"][150:-5] - run.v[155:]).max()
    assert missed < 2e-3
    without = simulate(
        machine, Seeing(machine), v0=run.v[0], duration=2.0, dt=5e-3, control_dt=PERIOD, delay=5,
        predict=True, disturbances=options["disturbances"], progress=False,
    )  # fmt: skip
    assert np.abs(without["seen"][150:-5] - without.v[155:]).max() > 50 * missed


def test_many_trajectories_and_one_have_the_same_estimates():
    machine = craft()
    rng = np.random.default_rng(1)
    v0 = 0.2 * rng.normal(size=(3, 6))
    options = {"disturbances": [Pulse("body", WRENCH, axes="frame")], "duration": 0.5}
    options |= {"noise": Noise(x=1e-3, v=1e-2)}
    x0 = np.tile(machine.neutral(), (3, 1))
    together = observed(machine, v0=v0, x0=x0, **options)
    one = observed(machine, v0=v0[0], **options)
    assert np.array_equal(together["unknown_force"][0], one["unknown_force"])


def test_numbers_of_the_model_may_be_tuned():
    """The observer's model has parameters: with the plant's values it finds the force, else not."""
    machine = craft()
    model = machine.tunable("body.mass")
    law, pulse = waving(model, 0.3), [Pulse("body", WRENCH, axes="frame")]
    found = []
    for mass in (2.0, 3.0):
        run = observed(
            machine, 10.0, law=law, disturbances=pulse, duration=1.0,
            law_parameters={"body.mass": mass},
        )  # fmt: skip
        found.append(run["unknown_force"][-1])
    assert np.abs(found[0] - WRENCH).max() < 1e-3
    assert np.abs(found[1] - WRENCH).max() > 0.05


def test_it_goes_on_through_events_and_under_an_adaptive_integrator():
    machine = craft()
    law, pulse = waving(machine, 0.3), [Pulse("body", WRENCH, axes="frame")]
    plain = observed(machine, law=law, disturbances=pulse, duration=1.0)
    event = Change(0.5, machine=replace(machine))
    interrupted = observed(machine, law=law, disturbances=pulse, duration=1.0, events=[event])
    assert np.allclose(interrupted["unknown_force"], plain["unknown_force"], atol=1e-12)
    adaptive = observed(
        machine, law=law, disturbances=pulse, duration=1.0, integrator="adaptive", every=2
    )
    assert np.allclose(adaptive["unknown_force"], plain["unknown_force"], atol=1e-5)


def test_on_mujoco():
    pytest.importorskip("mujoco")
    machine = craft()
    pulse = Pulse("body", WRENCH, axes="frame")
    # MuJoCo holds the wrench in the axes of the step's beginning.
    run = observed(machine, 5.0, plant="mujoco", disturbances=[pulse], dt=1e-3)
    assert np.abs(run["unknown_force"][-1] - WRENCH).max() < 1e-3


def test_refused():
    machine = craft()
    with pytest.raises(ControlError, match="`axes` must be one of world, own"):
        ForceObserver(machine, axes="hand")
    with pytest.raises(ControlError, match="`rate` must be"):
        ForceObserver(machine, rate=-1.0)
    with pytest.raises(ControlError, match="loops or couplings"):
        ForceObserver(MACHINES["five-bar"]())
    with pytest.raises(SimulationError, match="`observer` needs a control period"):
        simulate(machine, duration=0.1, dt=1e-2, observer=ForceObserver(machine))
    observer = ForceObserver(replace(machine))
    with pytest.raises(SimulationError, match="made for the law's own machine, `craft`"):
        simulate(machine, duration=0.1, dt=1e-2, control_dt=1e-2, observer=observer)
    with pytest.raises(SimulationError, match="`every` must be a multiple"):
        observed(machine, every=1)
