"""Where a run ends: as documented, and never in silence."""

import numpy as np
import pytest
from simulate_machines import PD, pendulum, slider

from framefree.errors import FramefreeWarning
from framefree.simulate import Change, simulate


@pytest.mark.parametrize(
    ("duration", "control_dt", "end", "unit"),
    [(0.0105, None, 0.011, "steps"), (0.011, 3e-3, 0.012, "control periods")],
)
def test_a_duration_that_steps_do_not_divide(duration, control_dt, end, unit):
    machine = slider()
    with pytest.warns(FramefreeWarning, match=f"not a whole number of {unit}: the run ends at"):
        run = simulate(machine, PD(machine), duration=duration, dt=1e-3, control_dt=control_dt)
    assert np.isclose(run.t[-1], end)
    assert f"{end:g} s" in run.meta["warnings"][0]


@pytest.mark.parametrize("late", [0.02, 0.5])
def test_an_event_that_does_not_happen(late):
    machine = slider()
    events = [Change(0.01, law=PD(machine)), Change(late, law=PD(machine))]
    with pytest.warns(FramefreeWarning, match="the event Change at .* does not happen") as caught:
        run = simulate(machine, PD(machine), x0=[0.1], duration=0.02, dt=1e-3, events=events)
    assert len(caught) == 1
    assert [event["at"] for event in run.meta["events"]] == [0.01]
    assert f"{late:g} s" in run.meta["warnings"][0]


@pytest.mark.parametrize("duration", [0.3, 0.1 + 0.2, 0.7, 1.1])
def test_whole_numbers_of_steps_are_told_in_spite_of_rounding(duration, recwarn):
    run = simulate(pendulum(driven=False), duration=duration, dt=1e-2, record=())
    assert np.isclose(run.t[-1], duration)
    assert not run.meta["warnings"]
    assert not [w for w in recwarn if issubclass(w.category, FramefreeWarning)]
