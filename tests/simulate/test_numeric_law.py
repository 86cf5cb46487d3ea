"""A law in numbers, evaluated in Python, gives the run of the same law as an expression."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import Command, Law, NumericCommand, NumericLaw
from framefree.control.references.base import Reference
from framefree.gallery.machines.arms import revolute_chain
from framefree.machine import Machine
from framefree.machine.actuators import motors
from framefree.simulate import SimulationError, simulate
from framefree.simulate.events import Change
from framefree.simulate.noise import Noise

KP, KD, KI = 2.0, 0.1, 5.0


@dataclass(frozen=True)
class Expression(Law):
    """PID of the joints, with the integral as memory."""

    machine: Machine
    needs = ("x",)

    @property
    def memory(self):
        return np.zeros(self.machine.nx)

    def control(self, t, x, v, reference, memory):
        e = reference["x"] - x
        following = memory + 0.01 * e
        signals = {"e": e, "table": ca.horzcat(e, v), "power": ca.dot(e, v)}
        return Command(KP * e - KD * v + KI * memory + ca.sin(t), signals, following)


@dataclass(frozen=True)
class Numbers(NumericLaw):
    """The same in NumPy."""

    machine: Machine
    needs = ("x",)

    @property
    def memory(self):
        return np.zeros(self.machine.nx)

    @property
    def signals(self) -> Mapping[str, tuple[int, ...]]:
        n = self.machine.nx
        return {"e": (n,), "table": (n, 2), "power": ()}

    def command(self, t, x, v, reference, memory):
        e = reference["x"] - x
        signals = {"e": e, "table": np.column_stack([e, v]), "power": e @ v}
        return NumericCommand(KP * e - KD * v + KI * memory + np.sin(t), signals, memory + 0.01 * e)


@dataclass(frozen=True)
class Wave(Reference):
    """Joints that swing."""

    def at(self, t):
        return {"x": 0.3 * ca.sin(t + ca.DM(range(2))), "matrix": ca.diag(ca.vertcat(t, 2 * t))}


CHAIN = revolute_chain(2)
ARM = CHAIN.attach(*motors(CHAIN.joints))
OPTIONS = {
    "each step": {"control_dt": 0.002},
    "slower": {"control_dt": 0.01},
    "rows between periods": {"control_dt": 0.01, "every": 1},
    "delay, noise": {
        "control_dt": 0.01,
        "delay": 2,
        "predict": True,
        "noise": Noise(1e-3, 1e-2),
        "lag": 0.02,
    },
    "adaptive": {"control_dt": 0.01, "integrator": "adaptive"},
    "mujoco": {"control_dt": 0.01, "plant": "mujoco", "integrator": "euler"},
}


def both(**options):
    given = {"duration": 0.2, "dt": 0.002, "v0": np.full(2, 0.1), **options}
    return [simulate(ARM, law(ARM), Wave(), **given) for law in (Expression, Numbers)]


@pytest.mark.parametrize("case", OPTIONS)
def test_same_run(case):
    one, other = both(**OPTIONS[case])
    for name in ("t", "x", "v", "u"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=1e-11)
    # Between periods an expression is recorded as of now, a law in numbers as of its last word.
    rows = slice(None, None, 5 if case == "rows between periods" else 1)
    for name in one.signals:
        np.testing.assert_allclose(other[name][rows], one[name][rows], atol=1e-9, err_msg=name)


def test_batch():
    rng = np.random.default_rng(0)
    one, other = both(control_dt=0.01, x0=rng.normal(size=(3, 2)), v0=np.zeros((3, 2)))
    np.testing.assert_allclose(other.x, one.x, atol=1e-11)
    np.testing.assert_allclose(other["table"], one["table"], atol=1e-9)


def test_limits_act():
    arm = ARM.replace("joint:joint1", effort_limit=0.1)
    run = simulate(arm, Numbers(arm), Wave(), duration=0.05, dt=0.005, control_dt=0.005)
    free = simulate(ARM, Numbers(ARM), Wave(), duration=0.05, dt=0.005, control_dt=0.005)
    assert np.abs(free.x[-1] - run.x[-1]).max() > 1e-4


def test_change_of_law():
    event = Change(0.1, law=Expression(ARM))
    given = {"duration": 0.2, "dt": 0.002, "control_dt": 0.01}
    mixed = simulate(ARM, Numbers(ARM), Wave(), events=[event], **given)
    whole = simulate(ARM, Expression(ARM), Wave(), events=[event], **given)
    np.testing.assert_allclose(mixed.x, whole.x, atol=1e-11)


def test_needs_a_control_period():
    with pytest.raises(SimulationError, match=r"Numbers is evaluated in Python.*`control_dt`"):
        simulate(ARM, Numbers(ARM), Wave(), duration=0.1, dt=0.01)


def test_refuses_tunable_numbers():
    arm = ARM.tunable("link0.mass")
    with pytest.raises(SimulationError, match="tunable"):
        simulate(ARM, Numbers(arm), Wave(), duration=0.1, dt=0.01, control_dt=0.01)


class Forgetful(Numbers):
    """Does not give what it promised."""

    def command(self, t, x, v, reference, memory):
        return NumericCommand(np.zeros(2), {"e": x})


class Short(Numbers):
    """Gives too few inputs."""

    def command(self, t, x, v, reference, memory):
        return super().command(t, x, v, reference, memory)._replace(u=np.zeros(1))


class Broken(Numbers):
    """Gives no number after a while."""

    def command(self, t, x, v, reference, memory):
        made = super().command(t, x, v, reference, memory)
        return made if t < 0.05 else made._replace(u=np.full(2, np.nan))


@pytest.mark.parametrize(("law", "words"), [(Forgetful, "must give the signals"), (Short, "sizes")])
def test_wrong_answers(law, words):
    with pytest.raises(SimulationError, match=words):
        simulate(ARM, law(ARM), Wave(), duration=0.1, dt=0.01, control_dt=0.01)


def test_not_finite_is_reported():
    with pytest.raises(SimulationError, match="not finite") as caught:
        simulate(ARM, Broken(ARM), Wave(), duration=0.2, dt=0.01, control_dt=0.01)
    assert caught.value.time == pytest.approx(0.05)
    assert len(caught.value.run) == 5
