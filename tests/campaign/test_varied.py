"""Numbers of a closed loop that vary: each has the bits of a run of its own."""

import dataclasses

import numpy as np
import pytest
from campaign_subjects import pushed_swings, swings
from simulate_machines import PD

from framefree.campaign import CampaignError, SubjectFrom, Uniform, campaign
from framefree.campaign.varied import gains_of, with_gains
from framefree.simulate import Pulse, simulate


def test_pushes_masses_and_first_errors():
    subject = pushed_swings()
    machine, joint = subject.machine, subject.machine.joints[0].name
    mass = f"{machine.bodies[0].name}.mass"
    first = machine.v_names[0]
    rows = [
        {f"push.{joint}.0": 3.0, f"push.{joint}.start": 0.01, mass: 1.3, f"e0.{first}": 0.2},
        {f"push.{joint}.0": -1.0, f"push.{joint}.start": 0.02, mass: 0.7, f"e0.{first}": -0.1},
    ]
    results = subject.run_many(rows)
    for row, result in zip(rows, results, strict=True):
        x0 = machine.neutral()
        x0[0] += row[f"e0.{first}"]
        tunable = machine.tunable(mass)
        options = {k: v for k, v in subject.options.items() if k != "disturbances"}
        run = simulate(
            tunable, subject.law, x0=x0, parameters={mass: row[mass]}, progress=False,
            disturbances=Pulse(joint, (row[f"push.{joint}.0"],), row[f"push.{joint}.start"]),
            **options,
        )  # fmt: skip
        assert run.x[-1, 0] == result.metrics["last"]
    assert subject.law.machine is machine  # the law's model keeps its numbers


def test_gains_are_compiled_anew():
    law = PD(swings().machine)
    gains = gains_of(law)
    assert gains
    name = next(iter(gains))
    other = with_gains(law, {f"gain.{name}": 2 * gains[name]})
    assert gains_of(other)[name] == 2 * gains[name]
    subject = dataclasses.replace(swings(), law=law)
    assert not subject.together((f"gain.{name}",))
    soft, stiff = subject.run_many([{f"gain.{name}": 1.0, "seed": 1},
                                    {f"gain.{name}": 9.0, "seed": 1}])  # fmt: skip
    assert soft.metrics["last"] != stiff.metrics["last"]


def test_what_does_not_exist_is_refused():
    with pytest.raises(CampaignError, match=r"nothing called `rod.mas` may vary.*`seed`"):
        swings().check(("rod.mas",))


def test_subjects_that_cannot_be_sent(tmp_path):
    vary = {f"gain.{next(iter(gains_of(swings().law)))}": Uniform(1.0, 2.0)}
    with pytest.raises(CampaignError, match=r"give `SubjectFrom\(make\)`"):
        campaign(swings(), vary, runs=2, out=tmp_path / "no", workers=2)
    made = SubjectFrom(swings)
    here = campaign(swings(), {"seed": "0:100"}, runs=3, out=tmp_path / "here")
    there = campaign(made, {"seed": "0:100"}, runs=3, out=tmp_path / "there")
    np.testing.assert_array_equal(here.metrics["last"], there.metrics["last"])


def test_steps_of_variable_length_are_made_one_by_one():
    subject = swings()
    options = {k: v for k, v in subject.options.items() if k not in ("noise", "delay")}
    adaptive = dataclasses.replace(subject, options={**options, "integrator": "adaptive"})
    first = subject.machine.x_names[0]
    assert not adaptive.together((f"x0.{first}",))
    results = adaptive.run_many([{f"x0.{first}": 0.1}, {f"x0.{first}": 0.2}])
    assert [result.cause for result in results] == ["", ""]
    assert results[0].metrics["last"] != results[1].metrics["last"]
