"""Scenarios as subjects of campaigns: their own loop, or the first simulation that they make."""

import numpy as np
import pytest

from framefree.campaign import CampaignError, campaign
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.shared.campaigns import ScenarioRuns
from framefree.gallery.shared.first_loop import first_loop
from framefree.simulate import simulate


@pytest.fixture(scope="module")
def pendulum():
    return ScenarioRuns(SCENARIOS["double-pendulum"](duration=0.5))


def test_the_first_simulation_varies(tmp_path, pendulum):
    result = campaign(
        pendulum, {"x0.shoulder": "1:2", "lower.mass": "1:2"}, runs=3, out=tmp_path / "out"
    )
    assert pendulum.together(("x0.shoulder", "lower.mass"))
    loop = first_loop(pendulum.scenario)
    x0 = np.array(loop.x0)
    x0[0] = result.settings["x0.shoulder"][1]
    run = simulate(
        loop.machine.tunable("lower.mass"), loop.law, loop.reference, x0, loop.v0,
        parameters={"lower.mass": result.settings["lower.mass"][1]}, progress=False, **loop.options,
    )  # fmt: skip
    largest = np.linalg.norm(run.v, axis=1).max()
    assert largest == result.metrics["largest_rate_radps"][1]
    assert result.success()[0] == 1.0  # without promises: came to its end
    again = pendulum.repeat(result.settings_of(1))
    assert again.metrics["largest_rate_radps"] == largest


def test_settings_alone_are_runs_of_the_scenario(pendulum):
    assert not pendulum.together(("duration",))
    assert pendulum.command({"duration": 0.25}).startswith("framefree run double-pendulum")
    assert pendulum.whole("duration") is False
    with pytest.raises(CampaignError, match=r"nothing called `lower.mas` may vary"):
        pendulum.check(("lower.mas",))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quad-flip", "quad-transitions", "tricopter"])
def test_flights_declare_their_loops(name):
    subject = ScenarioRuns(SCENARIOS[name](duration=0.1))
    assert subject.together(("body.mass", "seed"))
    assert subject.whole("seed")
    (result,) = subject.run_many([{"body.mass": 1.0, "seed": 3}])
    assert set(result.metrics) >= {"rms_position_m", "bound_used", "ok"}
