"""Port laws of long machines, as native loops in runs."""

import numpy as np
import pytest
from random_machines import relative_error
from test_port_laws import LAWS, Closed, law_of

import framefree as ff
from framefree.control.law import Timing
from framefree.control.port import EndEffectorControl, PoseControl, swept
from framefree.control.port.swept import SweptPortLaw
from framefree.control.references import MinimumJerk
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.machines.chains import chain
from framefree.simulate import Pulse


@pytest.mark.parametrize("port", ["full", "motors"])
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.first_cases(2)
def test_loops_give_what_the_law_gives(kind, port):
    machine = chain(4, port=port, held=port == "motors")
    law = law_of(kind, machine)
    closed = Closed(law)
    V, stated, _, s, u, missing = closed(np.random.default_rng(0))
    found = SweptPortLaw(law).command(0.0, closed.x, closed.v, closed.given, np.zeros(0))
    assert relative_error(found.u, u.ravel()) < 1e-12
    assert found.signals["V"] == pytest.approx(V, rel=1e-12)
    assert found.signals["V_rate"] == pytest.approx(stated, rel=1e-12)
    assert np.allclose(found.signals["s"], s, atol=1e-12)
    assert np.allclose(found.signals["unrealised"], missing.ravel(), atol=1e-9)


@pytest.mark.parametrize("control_dt", [None, 4e-3])
def test_a_run_in_loops_is_the_run_without(control_dt, monkeypatch):
    machine = chain(3)
    bent = machine.integrate(machine.neutral(), 0.2 * np.ones(machine.nv))
    reference = BodyPoses(MinimumJerk(machine, [machine.neutral(), bent], (0.0, 0.5)))
    options = {
        "duration": 0.2, "dt": 2e-3, "control_dt": control_dt, "every": 10,
        "disturbances": [Pulse("body2", (0, 5, 5, 0, 1, 0), 0.05, 0.05)],
    }  # fmt: skip
    runs = []
    for long in (100, 2):
        monkeypatch.setattr(swept, "LONG", long)
        runs.append(ff.simulate(machine, PoseControl(machine), reference, bent, **options))
    one, other = runs
    assert relative_error(other.x, one.x) < 1e-11
    assert relative_error(other.u, one.u) < 1e-9
    assert set(other.signals) == set(one.signals)
    for name in ("V", "V_rate", "s", "unrealised"):
        assert np.allclose(other[name], one[name], rtol=1e-9, atol=1e-9)
    assert other.meta["law"] == one.meta["law"]


def test_which_laws_become_loops():
    long, short = chain(swept.LONG), chain(3)
    native = Timing(native=True)
    assert isinstance(EndEffectorControl(long).timed(native), SweptPortLaw)
    for law, timing in (
        (EndEffectorControl(short), native),
        (EndEffectorControl(long), Timing()),
        (EndEffectorControl(long.tunable("body1.mass")), native),
    ):
        assert law.timed(timing) is law
