"""A law as a function: `function`, `kernel` and `step` do what the law does in a run."""

import casadi as ca
import numpy as np
import pytest
from unknown_machines import arm, floating, start_of, swing

import framefree as ff
from framefree.control import (
    Adaptation,
    ComputedTorque,
    ControlError,
    FunctionLaw,
    IntegralAction,
    LawsTogether,
    LimitedTaskControl,
    MomentumObserver,
    NumericLaw,
    Observing,
    OpenLoop,
    PassivityControl,
    PDGravity,
    PrototypeControl,
    TaskControl,
)
from framefree.control.law import NumericCommand
from framefree.control.references import Named
from framefree.control.tasks import JointControl, ProxQp
from framefree.geometry import Moments

PERIOD = 2e-3
ROBOT = arm()


def limited(solver=None):
    machine = ROBOT
    for joint in machine.joints:
        machine = machine.replace(f"joint:{joint.name}", effort_limit=4.0, velocity_limit=1.0)
    levels = [[JointControl(machine, Kp=100.0, moving=True)]]
    return LimitedTaskControl(machine, levels, solver)


def prototype():
    point = Moments.of(1.0, (0, 0, 0), 0.1 * np.eye(3))
    frames = {f"link{i}": point for i in range(3)}
    return PrototypeControl(ROBOT, frames, frames, frames, approach="particle")


class Summing(NumericLaw):
    """A law in Python of somebody's own, which sums up its errors."""

    machine = ROBOT
    needs = ("x",)
    memory = np.zeros(3)
    signals = {"off": (3,)}  # noqa: RUF012

    def command(self, t, x, v, reference, memory):
        off = reference["x"] - x
        return NumericCommand(10.0 * off + memory - v, {"off": off}, memory + off)


LAWS = {
    "open loop": OpenLoop(ROBOT, lambda t: [ca.sin(t), 0.1 * t, 0.0]),
    "pd": PDGravity(ROBOT, 40.0, 8.0),
    "tunable": ComputedTorque(ROBOT.tunable("link2.mass"), 100.0, 20.0),
    "passive": PassivityControl(floating(), K=4.0, Lambda=2.0),
    "integral": PassivityControl(ROBOT, K=4.0, unknown=IntegralAction(3.0)),
    "observer": PassivityControl(ROBOT, K=4.0, unknown=MomentumObserver(20.0)),
    "adaptive": PassivityControl(ROBOT, K=4.0, unknown=Adaptation(("link2",), cost=0.5)),
    "observing": Observing(PDGravity(ROBOT, 40.0, 8.0), MomentumObserver(20.0)),
    "prototype": prototype(),
    "tasks": TaskControl(ROBOT, [[JointControl(ROBOT, Kp=100.0, moving=True)]]),
    "limited": limited(),
    "python": Summing(),
    "together": LawsTogether(ROBOT, {"all": ComputedTorque(ROBOT, 100.0, 20.0)}),
}
COMPILED = [name for name in LAWS if name != "python"]


def path_of(name):
    path = swing(LAWS[name].machine)
    return Named("all", path) if name == "together" else path if LAWS[name].needs else None


def signals_at(name, t):
    path = path_of(name)
    named = {} if path is None else path.at(ca.DM(t))
    return {key: ca.DM(named[key]).full().ravel() for key in LAWS[name].needs}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.first_cases(5)
def test_steps_are_those_of_a_run(name):
    law, path = LAWS[name], path_of(name)
    x, v = start_of(swing(law.machine))
    x = np.array(law.machine.integrate(x, 0.1 * np.ones(len(v)))).ravel()
    run = ff.simulate(
        law.machine, law, path, x, v, duration=0.04, dt=1e-3, control_dt=PERIOD, limits=False,
        progress=False, record=(),
    )  # fmt: skip
    law.reset()
    for k, t in enumerate(run.t):
        made = law.step(t, run.x[k], run.v[k], path, period=PERIOD)
        np.testing.assert_allclose(made.u, run.u[k], rtol=1e-9, atol=1e-9)
        assert set(made.signals) == set(run.signals)
        for key, value in made.signals.items():
            np.testing.assert_allclose(value, run.signals[key][k], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", COMPILED)
def test_function_kernel_and_batch_agree(name):
    """The casadi function, the compiled call and each row of a batch, references as inputs."""
    law, rng = LAWS[name], np.random.default_rng(3)
    function, kernel = law.function(period=PERIOD), law.kernel(period=PERIOD)
    assert function.name_in() == [port.name for port in kernel.inputs]
    assert function.name_out() == [port.name for port in kernel.outputs]
    machine = law.machine
    rows = []
    for t in (0.1, 0.4, 1.3):
        given = {"t": t, "x": machine.numeric.random(rng), "v": rng.normal(size=machine.nv)}
        named = signals_at(name, t)
        given |= {f"reference_{key.replace('.', '_')}": value for key, value in named.items()}
        timed = law.timed(ff.control.law.Timing(PERIOD))
        first = ca.Function("first", *_first(timed))(given["x"], given["v"]).full().ravel()
        given |= {"memory": first, "parameters": machine.parameters.defaults}
        rows.append([np.asarray(given[port.name]) for port in kernel.inputs])
    batch = all_of(kernel(*(np.stack(column) for column in zip(*rows, strict=True))))
    for k, row in enumerate(rows):
        single = all_of(kernel(*row))
        exact = function.call([ca.DM(value) for value in row])
        for one, many, other in zip(single, batch, exact, strict=True):
            np.testing.assert_array_equal(one, many[k])
            value = np.squeeze(other.full())
            np.testing.assert_allclose(np.squeeze(one), value, rtol=1e-9, atol=1e-9)


def all_of(values):
    return values if isinstance(values, tuple) else (values,)


def _first(law):
    x, v = ca.SX.sym("x", law.machine.nx), ca.SX.sym("v", law.machine.nv)
    return [x, v], [ca.densify(ca.SX(law.first_memory(x, v)))]


def test_ports_are_those_that_are_there():
    function = LAWS["integral"].function(swing(ROBOT))
    assert function.name_in() == ["t", "x", "v", "memory", "period"]
    assert function.name_out()[0] == "u"
    assert function.name_out()[-1] == "memory_next"
    assert LAWS["integral"].function(swing(ROBOT), period=1e-3).name_in()[-1] == "memory"
    short = LAWS["tunable"].function(signals=False)
    assert short.name_out() == ["u"]
    assert short.name_in() == ["t", "x", "v", *map("reference_{}".format, "xva"), "parameters"]
    assert LAWS["limited"].function(swing(ROBOT), signals=False).name_out() == ["u", "memory_next"]
    assert prototype().function(unknown_force=True).name_in()[-1] == "unknown_force"


def test_memory_moves_by_its_rate_over_the_period():
    """Over twice the period the memory moves twice as far; a fixed period is the same number."""
    law, path = LAWS["integral"], swing(ROBOT)
    x, v = np.array([0.3, -0.2, 0.5]), np.array([1.0, 0.5, -0.3])
    free, fixed = law.function(path), law.function(path, period=PERIOD)
    memory = np.array([0.1, 0.2, 0.3])
    once, twice = (free(0.3, x, v, memory, k * PERIOD)[-1].full()[:, 0] - memory for k in (1, 2))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-12)
    assert np.abs(once).max() > 1e-5
    final = fixed(0.3, x, v, memory)[-1].full()[:, 0]
    np.testing.assert_allclose(final, once + memory, rtol=1e-14)


def test_a_law_in_an_expression_of_the_user():
    """Also one with a solver in it; its slope is that of finite differences."""
    for name in ("pd", "limited"):
        law, v = LAWS[name], ca.MX.sym("v", 3)
        function = law.function(swing(ROBOT), signals=False)
        rest = [law.memory] if len(law.memory) else []
        u = function(0.2, ca.DM([0.1, 0.2, 0.3]), v, *rest)
        u = u[0] if isinstance(u, tuple) else u
        slope = ca.Function("slope", [v], [ca.jacobian(u, v)])(ca.DM.zeros(3)).full()
        near = [np.eye(3)[k] * 1e-6 for k in range(3)]
        value = ca.Function("value", [v], [u])
        wanted = [(value(one) - value(-one)).full().ravel() / 2e-6 for one in near]
        np.testing.assert_allclose(slope, np.transpose(wanted), rtol=1e-3, atol=1e-3)


def test_jax_is_the_kernel():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    law, path = LAWS["integral"], swing(ROBOT)
    given = 0.3, np.array([0.1, -0.3, 0.2]), np.array([1.0, 0.3, -0.2]), np.array([0.2, 0.1, 0.0])
    function, kernel = law.jax(path, period=PERIOD), law.kernel(path, period=PERIOD)
    for one, other in zip(function(*given), kernel(*given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    with pytest.raises(ControlError, match=r"LimitedTaskControl has a solver.*TaskControl"):
        LAWS["limited"].jax(path)


def test_kernels_in_single_precision():
    law, path = LAWS["integral"], swing(ROBOT)
    rng = np.random.default_rng(4)
    given = [rng.normal(size=shape) for shape in ((20,), (20, 3), (20, 3), (20, 3))]
    double = law.kernel(path, period=PERIOD)(*given)
    single = law.kernel(path, period=PERIOD, precision="single")(*given)
    for k in (0, -1):  # u and memory
        off = np.abs(single[k] - double[k]).max()
        assert 0 < off <= 1e-5 * np.abs(double[k]).max()
    with pytest.raises(ControlError, match=r"LimitedTaskControl has a solver.*TaskControl"):
        LAWS["limited"].kernel(path, precision="single")


def test_laws_in_python_are_refused_by_name():
    with pytest.raises(ControlError, match=r"LimitedTaskControl is evaluated in Python.*`solver`"):
        limited(ProxQp()).function()
    with pytest.raises(ControlError, match=r"Summing is evaluated in Python.*LimitedTaskControl"):
        Summing().c_source()


def test_a_function_of_somebodys_own_is_refused_by_name():
    """Its fields do not hide what laws have; `step` calls it."""
    law = FunctionLaw(ROBOT, lambda t, x, v: -x)
    for made in (law.function, law.kernel, law.c_source, law.jax):
        with pytest.raises(ControlError, match=r"<lambda> is evaluated in Python.*a `Law`, which"):
            made()
    np.testing.assert_array_equal(law.step(0.0, np.ones(3), np.zeros(3)).u, -np.ones(3))


def test_memory_is_kept_until_reset():
    law, x, v = LAWS["integral"], np.full(3, 0.2), np.zeros(3)
    law.reset()
    still = {"x": np.zeros(3), "v": np.zeros(3), "a": np.zeros(3)}
    first = law.step(0.0, x, v, still)
    second = law.step(1e-3, x, v, still)
    assert np.abs(first.u - second.u).max() > 1e-4
    law.reset()
    np.testing.assert_array_equal(law.step(5.0, x, v, still).u, first.u)
    law.reset()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda law: law.step(0.0, np.zeros(2), np.zeros(3)), r"`x` must have shape \(3,\), got"),
        (lambda law: law.step(0.0, np.zeros(3), np.zeros(3)), "needs the reference signal `x`"),
        (lambda law: law.function(swing(floating())), "`x` of the law .* must have 3 entries"),
        (lambda law: law.step(0.0, ["a"] * 3, np.zeros(3)), r"`x` must be \(3,\) numbers, got"),
        (lambda law: law.function(3), r"`reference` of the law .* must be a Reference.*got 3"),
        (lambda law: law.step("now", np.zeros(3), np.zeros(3)), "`t` must be a number, got 'now'"),
        (lambda law: law.step([0, 1], np.zeros(3), np.zeros(3)), r"`t` must have shape \(\), got"),
        (lambda law: law.kernel(period=-1.0), "`period` must be a positive time in s, got -1"),
        (lambda law: law.kernel(period="1"), "`period` must be a positive time in s, got '1'"),
        (lambda law: law.c_source(swing(ROBOT)), "must be text, and the reference comes after it"),
        (lambda law: law.kernel(unknown_force=True), "does not take an estimate of unknown forces"),
    ],
)
def test_refused(call, message):
    law = LAWS["integral"]
    law.reset()
    with pytest.raises(ControlError, match=message):
        call(law)
    law.reset()


def test_calls_must_come_in_time_where_memory_depends_on_it():
    law, still = LAWS["integral"], {name: np.zeros(3) for name in "xva"}
    law.reset()
    law.step(0.0, np.zeros(3), np.zeros(3), still)
    with pytest.raises(ControlError, match=r"periods of 0.001 s, but was called at 0 s and then"):
        law.step(0.01, np.zeros(3), np.zeros(3), still)
    law.step(0.001, np.zeros(3), np.zeros(3), still)
    law.reset()
    plain = LAWS["pd"]
    plain.step(0.0, np.zeros(3), np.zeros(3), still)
    plain.step(1.0, np.zeros(3), np.zeros(3), still)


def test_a_signal_may_be_called_like_an_input():
    class Odd(ff.control.Law):
        machine = ROBOT

        def control(self, t, x, v, reference, memory):
            told = {"x": x, "a.b": t, "a b": 2 * t, "u": v}
            return ff.control.Command(-x, told)

    function = Odd().function()
    assert function.name_out() == ["u", "x_2", "a_b", "a_b_2", "u_2"]
    assert list(Odd().step(0.0, np.zeros(3), np.zeros(3)).signals) == ["x", "a.b", "a b", "u"]
