"""Maps of actuators: monotone, inverted exactly within limits, learned, and undone in a law."""

import ctypes
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from rough_actuators import RoughActuators

from framefree import compile, simulate
from framefree.control import ComputedTorque, ControlError, Mapped
from framefree.control.law import Timing
from framefree.control.references import JointPath
from framefree.gallery.machines.arms import driven_iiwa
from framefree.learn import ActuatorMap, LearnError, PortSamples, fit_actuators, load, save

TRUE = ActuatorMap(
    forwards=[1.2, 0.7, 1.0], backwards=[0.9, 0.8, 1.1], dead_forwards=[0.3, 0.0, 0.1],
    dead_backwards=[0.2, 0.0, 0.25], coupling=[[1, 0.15, 0], [-0.1, 1, 0], [0, 0.05, 1]],
    time_constants=[0.03, 0.0, 0.05], lower=-2.0, upper=[2.0, 3.0, 1.5],
)  # fmt: skip


def numbers(expression, *values):
    symbols = [ca.SX.sym(f"s{i}", len(value)) for i, value in enumerate(values)]
    outputs = expression(*symbols)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    function = ca.Function("f", symbols, [ca.densify(ca.SX(one)) for one in outputs])
    return [np.array(one).ravel() for one in function.call([ca.DM(value) for value in values])]


def test_a_port_within_reach_is_given_exactly():
    rng = np.random.default_rng(0)
    for _ in range(200):
        c = rng.uniform(TRUE.lower, TRUE.upper)
        (w,) = numbers(TRUE.port, c)
        back, missed = numbers(TRUE.command, w)
        assert np.allclose(back, c, atol=1e-10)  # 1e-3 slope of a dead zone: three digits less
        assert np.allclose(missed, 0, atol=1e-13)
        again = numbers(TRUE.outputs, back)[0]
        assert np.allclose(TRUE.coupling @ again, w, atol=1e-13)


def test_beyond_reach_the_inverse_says_what_is_missed():
    reach = numbers(TRUE.outputs, TRUE.upper)[0]
    share = reach + np.array([0.5, -0.2, 1.0])
    c, missed = numbers(TRUE.command, TRUE.coupling @ share)
    assert np.allclose(c[[0, 2]], TRUE.upper[[0, 2]])
    assert c[1] < TRUE.upper[1]
    assert np.allclose(missed, TRUE.coupling @ [0.5, 0.0, 1.0], atol=1e-12)


def test_maps_grow_everywhere():
    rng = np.random.default_rng(1)
    for _ in range(50):
        gains, dead = rng.uniform(0.01, 10, (2, 3)), rng.uniform(0, 2, (2, 3))
        one = ActuatorMap(gains[0], gains[1], dead[0], dead[1])
        c = np.sort(rng.normal(size=(40, 3)), axis=0)
        a = np.array([numbers(one.outputs, row)[0] for row in c])
        assert (np.diff(a, axis=0) > 0).all()


def recorded(actuators, rows=3000, period=2e-3, noise=0.0, seed=0, shift=0.0):
    """Return ports of the exact flow between held commands, by an integration of its own."""
    rng = np.random.default_rng(seed)
    t = period * np.arange(rows)
    n = actuators.size
    c = sum(
        rng.uniform(0.2, 0.8) * np.sin(2 * np.pi * rng.uniform(0.2, 4, n) * t[:, None] + k)
        for k in range(4)
    )
    c = c + np.asarray(shift)
    phi = np.where(
        c > actuators.dead_forwards,
        actuators.forwards * (c - actuators.dead_forwards),
        np.where(
            c < -actuators.dead_backwards, actuators.backwards * (c + actuators.dead_backwards), 0
        ),
    )
    a, outputs = np.zeros(n), []
    T = actuators.time_constants
    for row in phi:
        outputs.append(np.where(T > 0, a, row))
        a = np.where(T > 0, row + (a - row) * np.exp(-period / np.maximum(T, 1e-9)), row)
    ports = np.array(outputs) @ np.asarray(actuators.coupling).T
    return PortSamples(period, c, ports + noise * rng.normal(size=ports.shape))


def test_numbers_are_learned_and_what_there_is_none_of_is_none():
    fit = fit_actuators(recorded(TRUE, noise=0.01), TRUE.lower, TRUE.upper)
    for name in ("forwards", "backwards"):
        assert np.allclose(getattr(fit.actuators, name), getattr(TRUE, name), rtol=0.01), name
    for name in ("dead_forwards", "dead_backwards", "coupling"):
        assert np.allclose(getattr(fit.actuators, name), getattr(TRUE, name), atol=0.01), name
    assert np.allclose(fit.actuators.time_constants, TRUE.time_constants, atol=1e-3)
    assert fit.actuators.time_constants[1] == 0.0
    assert fit.actuators.coupling[0, 2] == fit.actuators.coupling[1, 2] == 0.0
    assert fit.residual.max() < 0.03
    assert "lag 0 s" in fit.actuators.formula()


def test_a_direction_that_was_not_driven_is_named_and_taken_as_the_other():
    fit = fit_actuators(recorded(TRUE, noise=0.01, shift=(0, 4.0, 0)), TRUE.lower, TRUE.upper)
    assert fit.untold == ("2 backwards",)
    assert fit.actuators.backwards[1] == fit.actuators.forwards[1]
    assert np.allclose(fit.actuators.forwards, TRUE.forwards, rtol=0.02)


def test_slopes_are_those_of_differences():
    from framefree.learn.actuator_fit import _ActuatorProblem

    problem = _ActuatorProblem(recorded(TRUE, rows=400))
    theta = problem.start()
    J = problem.slopes(theta)
    for k in range(problem.size):
        step = 1e-6 * max(abs(theta[k]), 1e-3) * np.eye(problem.size)[k]
        sides = [(problem.residual(theta + s * step) / problem.scale).T.ravel() for s in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * step[k])
        assert np.allclose(J[:, k], slope, atol=2e-3 * (1 + np.abs(slope).max())), k


def arm_law():
    machine = driven_iiwa(friction=False)
    return machine, ComputedTorque(machine, 100.0, 20.0)


def rough(machine):
    n = machine.nu
    C = np.eye(n) + 0.1 * np.eye(n, k=1)
    return RoughActuators(np.full(n, 1.2), np.full(n, 0.9), np.full(n, 1.0), np.full(n, 0.5), C,
                          np.full(n, 0.02))  # fmt: skip


@pytest.mark.slow
def test_a_mapped_law_tracks_as_with_ideal_actuators():
    machine, law = arm_law()
    plant = rough(machine)
    reference = JointPath(
        machine, lambda t: ca.vertcat(*(0.3 * ca.sin(2 * t + k) for k in range(7)))
    )
    x, v = (np.array(one).ravel() for one in reference.function(0.0)[:2])
    errors = {}
    for name, one in {"plain": law, "mapped": Mapped(law, plant.as_map(), 2e-3)}.items():
        run = simulate(machine, one, reference, x, v, duration=1.5, dt=1e-3, control_dt=1e-3,
                       lag=plant)  # fmt: skip
        errors[name] = np.abs(run.x - run.reference["x"])[run.t > 0.5].max()
    assert errors["mapped"] < errors["plain"] / 10
    assert "port_missed" in run.signals
    assert "V_rate" not in run.signals


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_a_mapped_law_as_c(tmp_path):
    machine, law = arm_law()
    mapped = Mapped(law, rough(machine).as_map(), 2e-3).timed(Timing(1e-3))
    x, v, xd, vd, ad = (ca.SX.sym(name, 7) for name in ("x", "v", "x_ref", "v_ref", "a_ref"))
    memory = ca.SX.sym("memory", len(mapped.memory))
    made = mapped.control(ca.SX(0), x, v, {"x": xd, "v": vd, "a": ad}, memory)
    outputs = [ca.densify(made.u), ca.densify(made.memory_after(memory, 1e-3))]
    names = ["x", "v", "x_ref", "v_ref", "a_ref", "memory"]
    function = ca.Function("mapped", [x, v, xd, vd, ad, memory], outputs, names, ["u", "after"])
    compile(function).c_source().write(tmp_path)
    library = tmp_path / "mapped.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(tmp_path / "mapped.c"), "-o",
                    str(library), "-lm"], check=True)  # fmt: skip
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=one.numel()) for one in (x, v, xd, vd, ad, memory)]
    results = [np.zeros(7), np.zeros(7)]
    pointer = ctypes.POINTER(ctypes.c_double)
    arguments = [one.ctypes.data_as(pointer) for one in (*inputs, *results)]
    ctypes.CDLL(str(library)).mapped(*arguments)
    for one, exact in zip(results, function.call([ca.DM(one) for one in inputs]), strict=True):
        assert np.allclose(one, np.array(exact).ravel(), rtol=1e-10, atol=1e-10)


def test_saved_and_loaded(tmp_path):
    fit = fit_actuators(recorded(TRUE, noise=0.01), TRUE.lower, TRUE.upper)
    again = load(save(fit.actuators, tmp_path / "drives.npz"))
    assert again.formula() == fit.actuators.formula()
    assert np.array_equal(again.upper, TRUE.upper)


def test_bad_input_is_refused():
    with pytest.raises(LearnError, match="`forwards` of actuators must be positive"):
        ActuatorMap([1.0, -1.0])
    with pytest.raises(LearnError, match="`time_constants` of actuators must not be negative"):
        ActuatorMap([1.0], time_constants=[-0.1])
    with pytest.raises(LearnError, match="must be finite"):
        ActuatorMap([np.nan])
    with pytest.raises(LearnError, match="cannot be undone"):
        ActuatorMap([1.0, 1.0], coupling=[[1, 1], [1, 1]])
    with pytest.raises(LearnError, match="must lie below"):
        ActuatorMap([1.0], lower=1.0, upper=0.0)
    good = recorded(TRUE, rows=400)
    with pytest.raises(LearnError, match="too few for 3 actuators"):
        PortSamples(2e-3, good.commands[:50], good.ports[:50])
    with pytest.raises(LearnError, match="the command of input 2 never changed"):
        PortSamples(2e-3, good.commands * [1, 0, 1], good.ports)
    with pytest.raises(LearnError, match="`ports` must have shape"):
        PortSamples(2e-3, good.commands, good.ports[:-1])
    with pytest.raises(LearnError, match="input 1 acts against its command"):
        fit_actuators(PortSamples(2e-3, good.commands * [-1, 1, 1], good.ports))
    _, law = arm_law()
    with pytest.raises(ControlError, match="has 7 inputs, the map of actuators has 3"):
        Mapped(law, TRUE)
    with pytest.raises(ControlError, match="`response`"):
        Mapped(law, ActuatorMap(np.ones(7)), response=0.0)
    with pytest.raises(ControlError, match="commands that act later"):
        Mapped(law, ActuatorMap(np.ones(7), time_constants=0.1)).timed(Timing(1e-3, 1))
