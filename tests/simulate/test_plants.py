"""The same machine moves the same way in every formulation, and stays on its constraints."""

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from simulate_machines import PD, pendulum, swinging

from framefree.machine import Free, Planar, Revolute, Spherical
from framefree.machine.coupling import Coupling, Linear
from framefree.motion.constrained import Constrained
from framefree.simulate import Adaptive, Pulse, SimulationError, simulate

PUSHES = (
    Pulse("tip", (3, 1, 0, 0.2, 0, 0.1), 0.02, 0.05),
    Pulse("rod0", (0, 2, 0, 0, 0.3, 0), 0.04, 0.1, axes="frame"),
    Pulse("j1", 0.4, 0.01),
)


def gap(machine, a, b):
    x = machine.difference(a.x, b.x)
    return max(np.abs(x).max(), np.abs(a.v - b.v).max())


@pytest.mark.parametrize("formulation", ["maximal", "redundant", "constrained"])
def test_formulations_of_a_tree_agree(formulation):
    machine = pendulum(2, kinds=[Spherical(), Revolute((1, 1, 0))])
    x, v = swinging(machine)
    options = {"x0": x, "v0": v, "duration": 0.1, "dt": 1e-3, "disturbances": PUSHES}
    tree = simulate(machine, **options)
    other = simulate(machine, formulation=formulation, **options)
    # Integrators differ by their errors only: of fourth order, in other coordinates.
    assert gap(machine, tree, other) < 1e-8
    for name in ("kinetic", "potential"):
        assert np.allclose(tree.signals[name], other.signals[name], atol=1e-7)
    if formulation != "redundant":  # which takes wrenches as joint forces
        scale = np.abs(tree.signals["joint_wrench"]).max()
        gaps = tree.signals["joint_wrench"] - other.signals["joint_wrench"]
        assert np.abs(gaps).max() < 1e-6 * scale


@pytest.mark.parametrize("formulation", ["maximal", "embedded", "constrained"])
def test_formulations_of_a_linkage_agree(formulation):
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.3, 1.0)
    run = simulate(machine, x0=x, v0=v, duration=0.3, dt=1e-3, formulation=formulation)
    # One degree of freedom: (2/3 + 1) m l^2 phi'' = (2/2 + 1) m g l sin(phi)
    y = np.array([0.3, 1.0])

    def rate(y):
        return np.array([y[1], 2 * 9.81 / (5 / 3) * np.sin(y[0])])

    for _ in range(300):
        k1 = rate(y)
        k2 = rate(y + 5e-4 * k1)
        k3 = rate(y + 5e-4 * k2)
        k4 = rate(y + 1e-3 * k3)
        y = y + 1e-3 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    x_end, v_end = four_bar_state(machine, *y)
    assert np.allclose(run.x[-1], x_end, atol=1e-9)
    assert np.allclose(run.v[-1], v_end, atol=1e-8)
    assert np.ptp(run.energy) < 1e-9


@pytest.mark.parametrize(
    ("formulation", "integrator", "order"),
    [
        ("constrained", "rk4", 4),
        ("constrained", "euler", 1),
        ("constrained", "midpoint", 2),
        ("embedded", "rk4", 4),
        ("maximal", "rk4", 4),
    ],
)
def test_projection_keeps_the_order(formulation, integrator, order):
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.3, 1.0)
    ends = []
    for steps in (16, 32, 64, 1024):
        run = simulate(
            machine, x0=x, v0=v, duration=0.4, dt=0.4 / steps, formulation=formulation,
            integrator=integrator if steps < 1000 else "rk4", record=(), every=steps,
        )  # fmt: skip
        ends.append(np.concatenate([run.x[-1], run.v[-1]]))
    errors = [np.linalg.norm(end - ends[-1]) for end in ends[:-1]]
    slope = -np.polyfit(np.log([16, 32, 64]), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.3


@pytest.mark.parametrize("formulation", ["constrained", "embedded", "maximal"])
def test_couplings(formulation):
    """A coupled pendulum with a free base: the embedded form keeps the groups of what is left."""
    machine = pendulum(3, kinds=[Spherical(), Revolute("x"), Revolute("y")], driven=False)
    coupled = machine.attach(Coupling("gear", "j2", "j1", Linear([-0.5], 0.1)))
    x, v = coupled.neutral(), np.array([1.0, -2.0, 0.5, 1.0, -0.5])
    x[-2:] = 0.4, -0.1
    run = simulate(coupled, x0=x, v0=v, duration=0.2, dt=1e-3, formulation=formulation)
    reference = simulate(coupled, x0=x, v0=v, duration=0.2, dt=5e-4, every=2)
    assert gap(coupled, run, reference) < 1e-8
    assert np.allclose(run.x[:, -1], -0.5 * run.x[:, -2] + 0.1, atol=1e-12)


def test_lagging_motors_in_every_formulation():
    machine = pendulum(2)
    options = {"x0": [0.3, 0.2], "duration": 0.1, "dt": 1e-3, "lag": 0.02, "record": ()}
    tree = simulate(machine, PD(machine), **options)
    maximal = simulate(machine, PD(machine), formulation="maximal", **options)
    assert np.allclose(tree.u, maximal.u, atol=1e-8)
    assert np.abs(tree.u).max() > 1.0


@pytest.mark.parametrize("integrator", ["rk4", "euler", "midpoint", "adaptive"])
def test_loops_stay_closed(integrator):
    """Also through the flat positions, where rows depend on each other."""
    machine = n_four_bar(1, "ball" if integrator == "rk4" else "hinge")
    x, v = four_bar_state(machine, 0.0, 3.0)
    dt = 2e-3 if integrator != "adaptive" else 0.02
    run = simulate(
        machine, x0=x, v0=v, duration=3.0, dt=dt, integrator=integrator, every=5,
        record=("constraint", "energy"),
    )  # fmt: skip
    assert np.abs(run.signals["position_error"]).max() < 1e-10
    assert np.abs(run.signals["velocity_error"]).max() < 1e-8
    # Kinetic energies reach 40 J; bounds are of the methods' own errors, not of the run's.
    bound = {"rk4": 1e-7, "euler": 5.0, "midpoint": 1e-3, "adaptive": 1e-6}[integrator]
    assert np.ptp(run.energy) < bound


def test_loops_stay_closed_in_the_maximal_form():
    """A hanging linkage with long steps: unprojected, its loop opens by far more than this."""
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, np.pi - 1.0, 0.0)
    run = simulate(
        machine, x0=x, v0=v, duration=4.0, dt=0.01, formulation="maximal", record=("constraint",)
    )
    assert np.abs(run.signals["loops_apart"]).max() < 1e-10
    assert np.abs(run.signals["joints_apart"]).max() < 1e-10
    assert np.ptp(run.x[:, 0]) > 1.0


def test_iterations_converge_through_flat_positions():
    """Middle states off the constraints would make them diverge there."""
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.0, 3.0)
    spreads = {}
    for dt in (2e-3, 1e-3):
        run = simulate(
            machine, x0=x, v0=v, duration=3.0, dt=dt, integrator="midpoint", record=("energy",)
        )
        spreads[dt] = np.ptp(run.energy)
    assert np.isclose(spreads[2e-3] / spreads[1e-3], 4.0, rtol=0.05)


def test_adaptive_steps_pass_flat_positions():
    """Two four-bars over 10 s, whose end is known [Gonzalez2006]."""
    machine = n_four_bar(2)
    x, v = four_bar_state(machine, 0.0, 1.0)
    run = simulate(
        machine, x0=x, v0=v, duration=10.0, dt=0.01, integrator=Adaptive(1e-10), every=10,
        record=("constraint",),
    )  # fmt: skip
    phi = np.pi / 2 - run.x[-1, 0]
    assert np.allclose([np.sin(phi), np.cos(phi)], [0.3284581115, 0.9445185382], atol=1e-7)
    assert np.abs(run.signals["position_error"]).max() < 1e-10


@pytest.mark.slow
def test_drift_over_a_hundred_seconds():
    machine = n_four_bar(2)
    x, v = four_bar_state(machine, 0.0, 1.0)
    run = simulate(machine, x0=x, v0=v, duration=100.0, dt=1e-3, every=100, record=("constraint",))
    assert np.abs(run.signals["position_error"]).max() < 1e-10


@pytest.mark.slow
def test_drift_of_joints_over_a_hundred_seconds():
    machine = pendulum(3, kinds=[Spherical(), Revolute("x"), Planar("z")], driven=False)
    x, v = swinging(machine)
    run = simulate(machine, x0=x, v0=v, duration=100.0, dt=1e-3, every=100, formulation="maximal")
    assert np.abs(run.signals["joints_apart"]).max() < 1e-10


def test_a_first_state_off_the_constraints_is_refused():
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.3, 1.0)
    with pytest.raises(SimulationError, match="configuration does not meet the constraints"):
        simulate(machine, x0=x + 0.01, v0=v, duration=0.01, dt=1e-3)
    with pytest.raises(SimulationError, match="velocity does not meet the constraints"):
        simulate(machine, x0=x, v0=v + 0.01, duration=0.01, dt=1e-3)


def test_equations_given_as_an_object():
    """Further constraints: a ball that may not turn about the vertical."""
    from framefree.motion.constrained.rows import Nonholonomic

    machine = pendulum(1, kinds=[Spherical()], driven=False)
    equations = Constrained(machine, [Nonholonomic("straight", lambda x, v, t: v[2])])
    x, v = machine.neutral(), np.array([1.0, 0.5, 0.0])
    run = simulate(machine, x0=x, v0=v, duration=0.2, dt=1e-3, formulation=equations)
    assert np.abs(run.v[:, 2]).max() < 1e-12
    free = simulate(machine, x0=x, v0=v, duration=0.2, dt=1e-3)
    assert np.abs(free.v[:, 2]).max() > 1e-3


def test_free_bodies_in_the_maximal_form():
    machine = pendulum(2, kinds=[Free(), Revolute("y")], driven=False)
    x, v = swinging(machine, 4)
    tree = simulate(machine, x0=x, v0=v, duration=0.1, dt=1e-3)
    maximal = simulate(machine, x0=x, v0=v, duration=0.1, dt=1e-3, formulation="maximal")
    assert gap(machine, tree, maximal) < 1e-9
