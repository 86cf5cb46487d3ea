"""Several laws in one run are the same as each of them alone, and no input is used twice."""

from typing import ClassVar

import numpy as np
import pytest

from framefree.control import ComputedTorque, LawsTogether, PDGravity
from framefree.control.law import ControlError, NumericCommand, NumericLaw
from framefree.control.references import Hold, MinimumJerk, Named, Together
from framefree.control.tasks import JointControl, LimitedTaskControl
from framefree.gallery.machines.arms import revolute_chain
from framefree.machine import Machine
from framefree.machine.actuators import motors
from framefree.simulate import simulate


def arm(n=2):
    chain = revolute_chain(n)
    return chain.attach(*motors(chain.joints))


def way(machine, to):
    return MinimumJerk(machine, [np.zeros(machine.nx), np.full(machine.nx, to)], [0.0, 0.5])


def test_each_robot_has_its_own_law():
    """Two robots that do not touch move as each of them does alone, bit by bit in their signals."""
    one, other = arm(2), arm(3)
    both = one.merge(other, "b_", pose=(2, 0, 0))
    laws = {
        "first": ComputedTorque(one, 40.0, 12.0),
        "second": PDGravity(_renamed(other), 30.0, 8.0),
    }
    paths = {"first": way(one, 0.6), "second": Hold(_renamed(other), np.full(3, 0.4))}
    together = simulate(
        both,
        LawsTogether(both, laws),
        Together(*(Named(name, path) for name, path in paths.items())),
        duration=0.6,
        dt=2e-3,
    )
    alone = simulate(one, laws["first"], paths["first"], duration=0.6, dt=2e-3)
    np.testing.assert_allclose(together.x[:, :2], alone.x, atol=1e-9)
    np.testing.assert_allclose(together["first.V"], alone["V"], atol=1e-9)
    alone = simulate(_renamed(other), laws["second"], paths["second"], duration=0.6, dt=2e-3)
    np.testing.assert_allclose(together.x[:, 2:], alone.x, atol=1e-9)
    np.testing.assert_allclose(together.u[:, 2:], alone.u, atol=1e-7)


def _renamed(machine, prefix="b_"):
    """Return the machine with the names that it has in the whole."""
    empty = Machine((), ())
    return empty.merge(machine, prefix, pose=(2 if prefix == "b_" else 4, 0, 0))


def test_groups_of_joints_and_memories():
    """Laws of one machine share it by `uses`; each keeps its own memory."""
    machine = arm(3)
    names = [actuator.name for actuator in machine.actuators]
    tracking = ComputedTorque(machine, 40.0, 12.0)
    holding = PDGravity(machine, 30.0, 8.0)
    law = LawsTogether(
        machine, {"a": tracking, "b": holding}, uses={"a": names[:2], "b": names[2:]}
    )
    reference = Together(Named("a", way(machine, 0.4)), Named("b", Hold(machine, np.zeros(3))))
    run = simulate(machine, law, reference, duration=0.4, dt=2e-3)
    assert np.isfinite(run.x).all()
    assert law.needs == tuple(f"a.{n}" for n in tracking.needs) + tuple(
        f"b.{n}" for n in holding.needs
    )


def test_refusals():
    machine = arm(2)
    law = PDGravity(machine, 30.0, 8.0)
    name = machine.actuators[0].name
    with pytest.raises(ControlError, match=f"`{name}` is used by the laws `a` and `b`"):
        LawsTogether(machine, {"a": law, "b": law})
    with pytest.raises(ControlError, match="`uses` names `c`"):
        LawsTogether(machine, {"a": law}, {"c": ()})
    with pytest.raises(ControlError, match="names actuator `nothing`"):
        LawsTogether(machine, {"a": law}, {"a": ("nothing",)})
    with pytest.raises(ControlError, match="needs laws"):
        LawsTogether(machine, {})
    with pytest.raises(ControlError, match="no dot"):
        LawsTogether(machine, {"a.b": law})
    with pytest.raises(ControlError, match="is not one of the plant"):
        LawsTogether(machine, {"a": PDGravity(arm(3), 30.0, 8.0)})

    with pytest.raises(ControlError, match="takes laws, `a` is a function"):
        LawsTogether(machine, {"a": lambda t, x, v: -v})


class Damping(NumericLaw):
    """A law in plain Python with a memory and signals: it counts its calls."""

    signals: ClassVar = {"count": (1,), "table": (2, 3)}

    def __init__(self, machine):
        self.machine = machine

    @property
    def memory(self):
        return np.zeros(1)

    def command(self, t, x, v, reference, memory):
        table = np.arange(6.0).reshape(2, 3) + v[0]
        return NumericCommand(-4 * v, {"count": memory, "table": table}, memory + 1)


def limited(machine, way):
    posture = JointControl(machine, np.zeros(machine.nx), Kp=30.0, moving=way)
    return LimitedTaskControl(machine, [[posture]])


@pytest.mark.parametrize("plant", ["native", "mujoco"])
def test_laws_in_numbers_beside_expressions(plant):
    """Each does what it does alone: one from Python, one with a solver, one that is compiled."""
    pytest.importorskip("mujoco")
    machines = [arm(2), _renamed(arm(2), "b_"), _renamed(arm(3), "c_")]
    whole = machines[0]
    for k, prefix in enumerate(("b_", "c_"), 1):
        whole = whole.merge(arm(2 + (k == 2)), prefix, pose=(2.0 * k, 0, 0))
    laws = {
        "python": Damping(machines[0]),
        "limited": limited(machines[1], False),
        "plain": ComputedTorque(machines[2], 40.0, 12.0),
    }
    together = LawsTogether(whole, laws)
    assert isinstance(together, NumericLaw)
    assert not together.native
    x0, path = 0.3 * np.ones(whole.nx), way(machines[2], 0.5)
    options = {"duration": 0.2, "dt": 2e-3, "control_dt": 2e-3, "plant": plant}
    run = simulate(whole, together, Named("plain", path), x0, **options)
    for name, machine, places in zip(
        laws, machines, (slice(0, 2), slice(2, 4), slice(4, 7)), strict=True
    ):
        alone = simulate(
            machine, laws[name], path if name == "plain" else None, x0[places], **options
        )
        np.testing.assert_allclose(run.x[:, places], alone.x, atol=1e-7)
        np.testing.assert_allclose(run.u[:, places], alone.u, rtol=1e-6, atol=1e-6)
        for key in ("table", "count") if name == "python" else ("V",) if name == "plain" else ():
            np.testing.assert_allclose(run[f"{name}.{key}"], alone[key], atol=1e-6)


def test_native_laws_together_are_native():
    """Without a law in Python the whole is a compiled step, the same as its calls from Python."""
    first, second = arm(2), _renamed(arm(2), "b_")
    whole = first.merge(arm(2), "b_", pose=(2.0, 0, 0))
    laws = {"limited": limited(second, False), "plain": ComputedTorque(first, 40.0, 12.0)}
    together = LawsTogether(whole, laws)
    assert together.native
    reference = Named("plain", way(first, 0.5))
    run = simulate(whole, together, reference, 0.3 * np.ones(4), duration=0.1, dt=2e-3)
    kernel, memory = together.kernel(reference, period=2e-3), together.memory
    k = 20
    named = {n.split(".", 1)[1]: 0 for n in together.needs}
    assert set(named) == set(laws["plain"].needs)
    u = kernel(run.t[k], run.x[k], run.v[k], memory)[0]
    np.testing.assert_allclose(u, run.u[k], rtol=1e-9, atol=1e-9)
    with pytest.raises(ControlError, match="is used by the laws `a` and `b`"):
        LawsTogether(first, {"a": Damping(first), "b": laws["plain"]})
