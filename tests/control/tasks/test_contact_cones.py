"""Forces of contacts stay inside of their cones, and contacts that cannot be held are named."""

import numpy as np
import pytest
from standing_machines import (
    MACHINE,
    MU,
    WAYS,
    at_trunk,
    body_law,
    command,
    feet,
    lifted,
    lifting_law,
    posture,
    random_states,
)

from framefree.control.tasks import (
    ContactFrame,
    FrameControl,
    LimitedTaskControl,
    unloaded_contacts,
)
from framefree.gallery.machines.quadruped import LEGS, TORQUE
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine


def test_pyramid_is_inside_the_cone_and_as_wide_as_said():
    """Edges on the cone, faces within it: the share of friction lost is 1 - cos(pi / sides)."""
    for sides in (3, 4, 8, 13):
        contact = ContactFrame("f", MU, sides=sides, normal=(0.3, -1, 2))
        angle = np.linspace(0, 2 * np.pi, 2 * 3 * 8 * 13 + 1)
        across = np.column_stack([np.cos(angle), np.sin(angle)])
        reach = (contact.pyramid[0, 2] / (-contact.pyramid[:, :2] @ across.T).max(axis=0)) / MU
        assert reach.max() <= 1.0
        assert reach.max() == pytest.approx(1.0, abs=1e-8)
        assert reach.min() == pytest.approx(np.cos(np.pi / sides), abs=1e-8)
        assert contact.axes.T @ contact.axes == pytest.approx(np.eye(3), abs=1e-14)
        assert np.linalg.det(contact.axes) == pytest.approx(1.0)


def test_cones_and_motors_hold_however_fast_the_legs_whirl():
    law, rng = body_law(), np.random.default_rng(3)
    for x, v in random_states(20, seed=3):
        v = v * np.r_[[4.0] * 6, rng.uniform(20.0, 60.0, 12)]  # beyond `fastest`, 50 rad/s
        u, signals = command(law, x, v)
        for leg in LEGS:
            fx, fy, fz = signals[f"{leg}.force"]
            assert np.hypot(fx, fy) <= MU * fz + 1e-8  # N
        assert np.abs(u).max() <= TORQUE * (1 + 1e-9)
        assert signals["missed"][: law.level_names.index("friction") + 1].max() < 1e-8


@pytest.mark.slow
def test_a_foot_that_cannot_be_loaded_is_named():
    """Motors of one leg without strength: its foot gets its least force, and the trunk sinks."""
    weak = MACHINE
    for part in ("hip", "thigh", "knee"):
        weak = weak.replace(f"actuator:hind_left_{part}", lower=-1e-3, upper=1e-3)
    levels = [[FrameControl("trunk", "trunk", Kp=100.0)], [posture()]]
    law = LimitedTaskControl(weak, levels, contacts=feet(least=5.0))
    _, s = command(law)
    named = unloaded_contacts(law, [0.0], s["unloaded"][None])
    assert [one.name for one in named] == ["hind_left"]
    assert "hind_left" in str(named[0])
    assert s["hind_left.normal"] == pytest.approx(5.0, abs=1e-8)
    assert s["missed"][law.level_names.index("level 1")] > 0.1


def test_a_contact_that_slips_is_named():
    """A block on a slope steeper than its friction: it is held as far as friction goes."""
    block = Body("block", Moments.of_body(2.0, (0, 0, 0), 0.01 * np.eye(3)))
    slope, corners = 0.6, [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    gravity = 9.81 * np.array([np.sin(slope), 0, -np.cos(slope)])
    joint = Joint("base", Free(), "world", "block")
    machine = Machine((block,), (joint,), gravity=gravity, name="slope")
    for friction, slips in ((0.5, True), (0.75, False)):
        law = LimitedTaskControl(machine, [], contacts=[ContactFrame("block", friction, corners)])
        _, s = command(law, machine.neutral())
        assert s["unloaded"] == [float(slips)]
        assert s["block.cone"] <= 1.0
        if slips:
            # A face of the eight-sided pyramid is across the slope's direction.
            inner = friction * np.cos(np.pi / 8)
            slides = 9.81 * (np.sin(slope) - inner * np.cos(slope))
            assert s["missed"][law.level_names.index("contacts across")] == pytest.approx(
                slides, rel=1e-6
            )


def test_a_foot_at_its_least_force_is_named_and_tasks_give_way():
    """Backwards faster than levers allow: hind feet keep their least force, the trunk lags."""
    law = lifting_law()
    _, s = command(law, **at_trunk(acceleration=(-12.0, 0, 0, 0, 0, 0)), **lifted(0.0))
    names = [law.contact_names[k] for k in np.flatnonzero(s["unloaded"])]
    assert names == ["hind_left", "hind_right"]
    for leg in names:
        assert s[f"{leg}.normal"] == pytest.approx(5.0, abs=1e-8)
    assert s["missed"][law.level_names.index("level 1")] > 0.1
    assert all(s["missed"][law.level_names.index(f"contacts {way}")] < 1e-9 for way in WAYS)
