"""Contacts and their schedules that cannot be are refused with what would be right."""

import numpy as np
import pytest
from standing_machines import MACHINE, body_law, feet, posture

from framefree.control import ControlError
from framefree.control.references import ContactSchedule
from framefree.control.tasks import (
    ContactFrame,
    LimitedTaskControl,
    unloaded_contacts,
)
from framefree.gallery.machines.quadruped import quadruped


def test_schedule_gives_loads_and_refuses_nonsense():
    """1 while it stands, 0 in the interval, smooth between."""
    schedule = ContactSchedule({"a": [(1.0, 2.0), (3.0, 4.0)], "b": []}, ramp=0.2)
    shares = [
        float(schedule.at(t)["a.load"]) for t in (0.5, 0.8, 0.9, 1.0, 1.5, 2.0, 2.1, 2.5, 3.5)
    ]
    assert shares == pytest.approx([1, 1, 0.5, 0, 0, 0, 0.5, 1, 0])
    assert float(schedule.at(1.5)["b.load"]) == 1.0
    with pytest.raises(ControlError, match="`a` must be pairs of times"):
        ContactSchedule({"a": [(2.0, 1.0)]})
    with pytest.raises(ControlError, match=r"lifted again at 2\.1 s, less than two ramps"):
        ContactSchedule({"a": [(1.0, 2.0), (2.1, 3.0)]})
    with pytest.raises(ControlError, match="`ramp`"):
        ContactSchedule({"a": []}, ramp=0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"friction": 0.0}, "`friction` of contact `foot` must be positive"),
        ({"friction": (0.5, 0.6)}, "must be one number"),
        ({"points": [(0, 0)]}, "rows of 3 finite numbers"),
        ({"points": [(0, 0, 0), (1, 0, 0), (2, 0, 0)]}, "do not lie on a line"),
        ({"normal": (0, 0, 0)}, "not all zero"),
        ({"sides": 2}, "an integer from 3 on"),
        ({"least": 5.0, "most": 5.0}, "0 <= `least` < `most`"),
        ({"switched": True}, "give a finite `most`"),
        ({"points": np.eye(3), "radius": 0.1}, "is flat, and cannot have a `radius`"),
        ({"Kd": -1.0}, "`Kd` of contact `foot` must be positive"),
    ],
)
def test_refusals(settings, message):
    """A contact that cannot be is refused with what would be right."""
    with pytest.raises(ControlError, match=message):
        ContactFrame("foot", **settings)


def test_refusals_of_laws():
    """Contacts that do not fit a machine or a law."""
    levels = [[posture()]]
    soft = quadruped()
    with pytest.raises(ControlError, match=r"give it machine\.detach\('front_left'\) and so on"):
        LimitedTaskControl(soft, [], contacts=feet())
    with pytest.raises(ControlError, match="`front_left` names two contacts"):
        LimitedTaskControl(MACHINE, levels, contacts=feet()[:1] * 2)
    with pytest.raises(ControlError, match="both are on `trunk`"):
        LimitedTaskControl(MACHINE, levels, contacts=[ContactFrame("trunk", ground="trunk")])
    with pytest.raises(ControlError, match="must hold ContactFrame"):
        LimitedTaskControl(MACHINE, levels, contacts=["front_left"])
    law = body_law()
    with pytest.raises(ControlError, match="a row for every time"):
        unloaded_contacts(law, [0.0, 1.0], np.zeros((1, 4)))
