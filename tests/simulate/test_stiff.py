"""Stiff servos, dampers, springs: implicit steps converge or say so, and are the default there."""

import casadi as ca
import numpy as np
import pytest
from simulate_machines import PD, ROD, Sine, pendulum, slider

from framefree.control.law import OpenLoop
from framefree.errors import FramefreeWarning
from framefree.gallery.machines.chains import chain
from framefree.geometry import Moments
from framefree.machine import Body, Coupling, Joint, Linear, Machine, Prismatic, Revolute
from framefree.machine.actuators import JointForce, motors
from framefree.simulate import SimulationError, simulate, stiffness

KP, KV, MOST = 4500.0, 450.0, 87.0


def servos(machine, most=MOST):
    """The machine with servos on all joints, as robot files have them."""
    return machine.attach(
        *(
            JointForce(
                f"{joint.name}_servo",
                joint.name,
                gain=KP,
                bias_terms=(0, -KP, -KV),
                force_lower=-most,
                force_upper=most,
            )
            for joint in machine.joints
        )
    )


def arm(n=3, armature=0.1):
    """Rods in a row with rotors, light compared with what their servos can do."""
    kinds = [Revolute("z"), Revolute("y"), Revolute("y")][:n]
    bodies = [Body(f"rod{i}", ROD) for i in range(n)]
    joints = [
        Joint(
            f"j{i}",
            kind,
            f"rod{i - 1}" if i else "world",
            f"rod{i}",
            (0, 0, -0.5 if i else 0),
            armature=armature,
        )
        for i, kind in enumerate(kinds)
    ]
    return Machine(bodies, joints)


def to(machine, *targets):
    return OpenLoop(machine, lambda t: ca.DM(targets))


def test_the_midpoint_rule_converges():
    """Eight iterations without a check ended at -0.104."""
    machine = servos(arm(1), most=np.inf)
    run = simulate(machine, x0=[0.5], duration=1.0, dt=1e-3, integrator="midpoint", every=1000)
    exact = simulate(machine, x0=[0.5], duration=1.0, dt=1e-4, integrator="rk4", every=10000)
    assert abs(run.x[-1, 0] - exact.x[-1, 0]) < 1e-6


def test_limited_servos_of_robot_files():
    """After a step, within 1e-4 rad of the converged solution from 0.1 s on."""
    machine = servos(arm())
    law = to(machine, 0.7, -0.5, 0.4)
    options = {"duration": 0.5, "record": ()}
    exact = simulate(machine, law, dt=2e-5, integrator="rk4", every=50, **options)
    run = simulate(machine, law, dt=1e-3, integrator="implicit", **options)
    error = np.abs(run.x - exact.x).max(axis=1)
    assert error.max() < 1e-3
    assert error[100:].max() < 1e-4
    # It was a step that the limits cut: without them the servos follow at once.
    assert np.ptp(exact.v) > 1.0


def test_a_servo_between_its_limits_does_not_hop():
    """Slopes at a limit are zero; taken for true beyond it they throw the joint to the other."""
    machine = servos(arm(1, armature=0.0))
    run = simulate(machine, to(machine, 0.3), duration=0.5, dt=1e-3, integrator="implicit")
    speeds = run.v[:, 0]
    assert np.sum(np.abs(np.diff(np.sign(np.diff(speeds[np.abs(speeds) > 1e-3]))))) <= 4
    assert abs(speeds[-1]) < 0.1


def test_order_with_stiff_servos():
    machine = servos(arm(2), most=np.inf)
    options = {"x0": [0.3, -0.2], "duration": 0.4, "record": ()}
    exact = simulate(machine, dt=2e-5, integrator="rk4", every=20000, **options)
    errors = []
    counts = np.array([25, 50, 100])
    for count in counts.tolist():
        run = simulate(machine, dt=0.4 / count, integrator="implicit", every=count, **options)
        errors.append(np.abs(run.x[-1] - exact.x[-1]).max())
    assert -np.polyfit(np.log(counts), np.log(errors), 1)[0] > 1.8


def spring_and_damper(stiffness=1e6, damping=4e4):
    """One kilogram on a contact as stiff as later ones are."""
    body = Body("cart", Moments.of_body(1.0, (0, 0, 0), np.eye(3)))
    rail = Joint("rail", Prismatic("x"), "world", "cart", stiffness=stiffness, damping=damping)
    return Machine([body], [rail], gravity=(0, 0, 0))


def test_a_stiff_spring_with_a_stiff_damper():
    machine = spring_and_damper()
    run = simulate(machine, x0=[1e-3], duration=0.2, dt=1e-3)
    assert run.meta["integrator"] == "implicit"
    slow, fast = np.sort(np.roots([1.0, 4e4, 1e6]).real)[::-1]
    exact = 1e-3 * (fast * np.exp(slow * run.t) - slow * np.exp(fast * run.t)) / (fast - slow)
    assert np.abs(run.x[:, 0] - exact).max() < 1e-3 * 1e-4
    assert (np.diff(run.energy) < 0).all()


def test_a_blow_is_gone_after_a_step():
    """L-stable: a velocity that decays within 25 us does not come back with another sign."""
    run = simulate(spring_and_damper(), v0=[1.0], duration=0.01, dt=1e-3, integrator="implicit")
    assert np.abs(run.v[2:]).max() < 1e-2
    assert np.abs(run.v[4:]).max() < 1e-3


def test_energy_taken_from_an_oscillation():
    """As stated: about 0.0073 (w dt)^4 of it in a step, and never more energy."""
    for rate_dt, close in ((0.1, 0.02), (0.2, 0.06)):
        machine = spring_and_damper((rate_dt / 1e-2) ** 2, 0.0)
        run = simulate(machine, x0=[1.0], duration=1.0, dt=1e-2, integrator="implicit")
        lost = -np.diff(np.log(run.energy))
        assert (lost > 0).all()
        assert np.isclose(lost.mean(), 0.00735 * rate_dt**4, rtol=close)


@pytest.mark.parametrize("integrator", ["implicit", "midpoint"])
def test_many_trajectories_are_single_ones(integrator):
    """Bit for bit, though neighbours at their limits take more iterations."""
    machine = servos(arm(2))
    x = np.linspace(0, 1, 13)[:, None] * np.array([0.3, -2.0])
    options = {"duration": 0.05, "dt": 1e-3, "integrator": integrator, "record": ()}
    many = simulate(machine, x0=x, threads=2, **options)
    for k in (0, 5, 12):
        alone = simulate(machine, x0=x[k], **options)
        assert np.array_equal(many.x[k], alone.x)
        assert np.array_equal(many.v[k], alone.v)


def test_pieces_of_a_run_are_the_run():
    machine = servos(arm(2))
    options = {"x0": [0.5, -0.5], "duration": 0.04, "dt": 1e-3, "integrator": "implicit"}
    whole, thinned = simulate(machine, **options), simulate(machine, every=7, **options)
    assert np.array_equal(whole.x[:-1:7], thinned.x[:-1])


@pytest.mark.parametrize("formulation", ["constrained", "embedded", "maximal"])
def test_every_formulation(formulation):
    """With a gear between two joints, limits, a lag and a held command."""
    machine = arm(2).attach(Coupling("gear", "j1", "j0", Linear([0.5])))
    servo = JointForce("servo", "j0", gain=KP, bias_terms=(0, -KP, -KV), force_lower=-9)
    machine = machine.attach(servo)
    options = {"duration": 0.1, "dt": 1e-3, "control_dt": 2e-3, "lag": 5e-3, "record": ()}
    run = simulate(
        machine, to(machine, 0.3), integrator="implicit", formulation=formulation, **options
    )
    options["dt"] = 5e-5
    exact = simulate(machine, to(machine, 0.3), integrator="rk4", every=40, **options)
    assert np.abs(run.x - exact.x).max() < 2e-4
    assert np.abs(run.x[:, 1] - 0.5 * run.x[:, 0]).max() < 1e-12


def test_a_lag_is_integrated_with_the_rest():
    machine = pendulum(2)
    options = {"x0": [0.3, 0.2], "duration": 0.1, "lag": 0.02, "record": ()}
    exact = simulate(machine, PD(machine), dt=1e-3, **options)
    run = simulate(machine, PD(machine), dt=1e-3, integrator="implicit", **options)
    assert np.abs(run.x - exact.x).max() < 1e-5
    assert np.abs(run.u - exact.u).max() < 1e-2


# ------------------------------------------------------------------ steps that do not converge


@pytest.mark.parametrize(("every", "batch"), [(1, None), (7, None), (1, 3)])
def test_a_step_without_a_solution_names_one_that_has(every, batch):
    machine = pendulum()
    law = PD(machine, stiffness=1e6, damping=1e5)
    x = np.array([0.1, 0.1]) if batch is None else np.array([[0.0, 0.0], [0.1, 0.1], [0.0, 0.0]])
    options = {"limits": False, "integrator": "implicit", "every": every}
    if batch is None:
        with pytest.raises(SimulationError, match="has not converged; a step of") as caught:
            simulate(machine, law, None, x, duration=1.0, dt=1e-2, **options)
        assert np.array_equal(caught.value.state[0], [0.1, 0.1])
        words, time, quantity = str(caught.value), caught.value.time, caught.value.quantity
    else:
        with pytest.warns(FramefreeWarning, match="1 of 3 trajectories ended early"):
            run = simulate(machine, law, None, x, duration=1.0, dt=1e-2, **options)
        (told,) = run.failures
        words, time, quantity = told["message"], told["time"], told["quantity"]
        x = x[1]
    assert (time, quantity) == (0.01, "step")
    assert ("of trajectory 1 " in words) == (batch is not None)
    shorter = float(words.split("a step of ")[1].split(" s ")[0])
    options = {"limits": False, "integrator": "implicit"}
    simulate(machine, law, None, x, duration=shorter, dt=shorter, **options)


def test_no_step_helps_where_the_law_is_singular():
    machine = slider()
    law = OpenLoop(machine, lambda t: ca.sqrt(0.0105 - t))
    with pytest.raises(SimulationError, match="is not finite") as caught:
        simulate(machine, law, duration=0.1, dt=1e-3, integrator="implicit")
    assert abs(caught.value.time - 0.011) < 1e-9


# ------------------------------------------------------------------ the default


def test_the_default_follows_from_servos_and_step():
    machine = servos(arm(2))
    stiff = simulate(machine, duration=0.01, dt=1e-3, record=())
    assert stiff.meta["integrator"] == "implicit"
    assert "too fast for steps of 0.001 s" in stiff.meta["integrator_choice"]
    assert "`j" in stiff.meta["integrator_choice"]
    soft = simulate(machine, duration=0.001, dt=1e-5, record=())
    assert soft.meta["integrator"] == "rk4"
    asked = simulate(machine, duration=0.001, dt=1e-5, integrator="euler", record=())
    assert asked.meta["integrator_choice"] == "as asked for"


def test_machines_without_servos_stay_with_the_explicit_default():
    machine = arm(2).attach(*motors(arm(2).joints))
    run = simulate(machine, PD(machine), Sine(2), duration=0.01, dt=1e-3, record=())
    assert run.meta["integrator"] == "rk4"


def test_the_default_is_stable_where_rk4_is_not():
    machine = servos(arm(3, armature=0.0))
    run = simulate(machine, x0=[0.5, 0.3, -0.4], duration=2.0, dt=1e-3, record=())
    assert np.abs(run.x[-1]).max() < 0.01
    with pytest.raises(SimulationError):
        simulate(
            machine, x0=[0.5, 0.3, -0.4], duration=2.0, dt=1e-3, record=(), integrator="rk4",
            limits=False,
        )  # fmt: skip


@pytest.mark.parametrize(
    "machine", [chain(4, damping=0.02), chain(4, damping=5.0), servos(arm())], ids=str
)
def test_the_largest_rate_of_a_long_machine_decides_as_all_rates_do(machine):
    x = machine.random(np.random.default_rng(3))
    M, K, D = (part.full() for part in stiffness._matrices(machine)(x, np.zeros(machine.nv), []))
    n = machine.nv
    F = np.block([[np.zeros((n, n)), np.eye(n)], [np.linalg.solve(M, K), np.linalg.solve(M, D)]])
    edge = stiffness.DISC / (stiffness.MARGIN * np.abs(np.linalg.eigvals(F)).max())
    assert stiffness._all_slow(machine, np.zeros(0), [x], 0.9 * edge)
    assert not stiffness._all_slow(machine, np.zeros(0), [x], 1.02 * edge)


def test_rates_within_the_half_disc_never_grow():
    angle, size = np.meshgrid(
        np.linspace(np.pi / 2, np.pi, 500), np.linspace(1, stiffness.DISC, 500)
    )
    z = size * np.exp(1j * angle)
    assert np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))).max() <= 1
