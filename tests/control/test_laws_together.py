"""Several laws in one run are the same as each of them alone, and no input is used twice."""

import numpy as np
import pytest

from framefree.control import ComputedTorque, LawsTogether, PDGravity
from framefree.control.law import ControlError, NumericLaw
from framefree.control.references import Hold, MinimumJerk, Named, Together
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


def _renamed(machine):
    """Return the machine with the names that it has in the pair."""
    empty = Machine((), ())
    return empty.merge(machine, "b_", pose=(2, 0, 0))


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

    class InNumbers(NumericLaw):
        def command(self, *arguments):
            raise NotImplementedError

    with pytest.raises(ControlError, match="that are expressions; `a` is a InNumbers"):
        LawsTogether(machine, {"a": InNumbers()})
