"""Machines that stand, in closed form: the law within limits where none is active."""

import casadi as ca
import numpy as np
import pytest
from standing_machines import (
    MACHINE,
    STANDING,
    at_trunk,
    body_law,
    command,
    feet,
    leaning_rod,
    random_states,
)

from framefree.control.tasks import (
    JointControl,
    StrictPriority,
    TaskControl,
    task_report,
)
from framefree.gallery.machines.quadruped import LEGS


def closed_form(friction=50.0, **reference):
    """Return the same levels in closed form: a function of x and v, and the names of its values."""
    law = TaskControl(
        MACHINE, body_law().levels, StrictPriority(), contacts=feet(friction=friction)
    )
    x, v = ca.SX.sym("x", MACHINE.nx), ca.SX.sym("v", MACHINE.nv)
    named = {**at_trunk(), **reference}
    made = law.control(0.0, x, v, {k: ca.DM(named[k]) for k in law.needs}, ca.SX(0, 1))
    values = {"u": made.u, **made.signals}
    function = ca.Function("law", [x, v], list(values.values()))

    def named_values(x, v):
        return dict(zip(values, (np.array(y).ravel() for y in function(x, v)), strict=True))

    return named_values


@pytest.mark.slow
def test_the_closed_form_is_the_law_within_limits_where_none_is_active():
    """Contacts stand, the base is carried and not driven; at rest and near it."""
    closed, states = closed_form(), [(STANDING, np.zeros(18))]
    states += [(MACHINE.integrate(STANDING, 0.004 * v), 0.004 * v) for _, v in random_states(3)]
    for x, v in states:
        found, (u, s) = closed(x, v), command(body_law(), x, v)
        assert max(s[f"{leg}.cone"].item() for leg in LEGS) < 0.9
        assert found["u"] == pytest.approx(u, abs=1e-8)
        for leg in LEGS:
            assert found[f"{leg}.force"] == pytest.approx(s[f"{leg}.force"], abs=1e-7)
        assert found["acceleration"] == pytest.approx(s["acceleration"], abs=1e-7)
        assert not found["unloaded"].any()
    # Forces that no ground gives are named: the trunk is asked to fall faster than freely.
    pulled = closed_form(**at_trunk(acceleration=(0, 0, -30.0, 0, 0, 0)))(STANDING, np.zeros(18))
    assert pulled["unloaded"].all()


def test_a_standing_machine_in_closed_form():
    """A leaning rod on a flat foot: statics by hand, and the foot's moment beyond its edge."""
    machine, contact = leaning_rod()
    law = TaskControl(machine, [[JointControl(machine, Kd=0.0, joints=["ankle"])]],
                      contacts=[contact])  # fmt: skip
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    made = law.control(0.0, x, v, {}, ca.SX(0, 1))
    names = ("acceleration", "sole.force", "unloaded")
    function = ca.Function("law", [x, v], [made.u, *(made.signals[n] for n in names)])
    for angle, holds in ((0.0, True), (0.1, True), (0.5, False)):
        at = np.array([0, 0, 0.05, 1, 0, 0, 0, angle])
        u, a, f, unloaded = (np.array(y).ravel() for y in function(at, np.zeros(7)))
        assert a == pytest.approx(np.zeros(7), abs=1e-9)
        assert u == pytest.approx([-4 * 9.81 * 0.5 * np.sin(angle)], abs=1e-9)
        f = f.reshape(4, 3)
        assert f.sum(axis=0) == pytest.approx([0, 0, 5 * 9.81], abs=1e-8)
        center = (f[:, 2:] * np.array(contact.points)).sum(axis=0) / f[:, 2].sum()
        assert center[0] == pytest.approx(4 * 0.5 * np.sin(angle) / 5, abs=1e-9)
        assert bool(unloaded[0]) == (not holds)
    report = task_report(law, at, np.zeros(7))
    assert report.levels[0].rank == 6
    assert "sole: normal" in report.levels[0].rows
    assert not report.levels[1].contradicting
