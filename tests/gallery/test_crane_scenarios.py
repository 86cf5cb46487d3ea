"""The scenarios of closed chains under the robust law."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from framefree.control.robust import RobustControl
from framefree.gallery.machines.crane import (
    COORDINATES,
    STROKE,
    closed_form,
    crane,
    crane_model,
    crane_state,
)
from framefree.gallery.scenarios import SCENARIOS
from framefree.gallery.scenarios.series_parallel.crane import Crane
from framefree.gallery.scenarios.series_parallel.crane_parts import (
    GAINS,
    PATH,
    PRINTED_GAINS,
    Tracking,
    joint_path,
)
from framefree.gallery.scenarios.series_parallel.crane_reconfigured import (
    CraneReconfigured,
    rebuilt_error,
)
from framefree.gallery.scenarios.series_parallel.five_bar import FiveBar
from framefree.motion.embedded import Embedded, tunable_body
from framefree.simulate import simulate

KEYS = ("rmse_phi_rad", "rmse_theta_rad", "rmse_delta_m", "ultimate_bound", "steady_error_max")


def broken(outcome):
    return [p.text for p in outcome.promises if not p.holds]


@pytest.fixture(scope="module")
def outcome():
    return Crane().run(progress=False)


def test_crane_keeps_its_promises(outcome):
    assert broken(outcome) == []
    assert set(KEYS) <= set(outcome.metrics)
    assert outcome.metrics["rmse_phi_rad"] <= 0.124
    assert outcome.metrics["rmse_theta_rad"] <= 0.074
    assert outcome.metrics["rmse_delta_m"] <= 0.018
    assert outcome.figures
    assert outcome.animations
    assert {"crane", "document_gains", "tip_path"} == set(outcome.runs)


def test_crane_starts_off_its_path_and_keeps_to_the_stroke(outcome):
    run = outcome.runs["crane"]
    assert (np.abs(run["e"][0]) >= (0.2, 0.1, 0.03)).all()
    assert run.t[-1] == 20.0
    delta = run.x[:, run.machine.x_names.index("delta")]
    assert 0 < delta.min() < delta.max() < STROKE
    middle, size, _ = PATH[2]
    assert 0 < middle - size < middle + size < STROKE


def test_the_documents_gains_are_too_weak_for_the_push(outcome):
    m = outcome.metrics
    assert m["document_kappa_exceeded"] == "theta, delta"
    assert m["document_dbar_theta_nm"] > 100 > 50
    assert m["document_dbar_delta_n"] > 220 > 50
    assert m["document_steady_error_max"] > 20 * m["steady_error_max"]


def test_rates_of_V_are_those_measured(outcome):
    assert outcome.metrics["lyapunov_rate_error"] < 1e-4


def test_the_plants_loop_solved_gives_the_same_motion(outcome):
    """The first tenth of a second once more, with the loop as a constraint."""
    run = outcome.runs["crane"]
    law = RobustControl(crane_model(), **GAINS)
    machine = crane()
    path = joint_path(law.machine)
    again = simulate(machine, law, path, run.x[0], run.v[0], duration=0.1, dt=5e-4, every=2)
    assert again.meta["formulation"] in (None, "constrained")
    assert np.abs(again.x - run.x[: len(again.t)]).max() < 1e-8


def test_a_stronger_push_exceeds_kappa():
    with pytest.warns(UserWarning, match="kappa does not exceed"):
        strong = Tracking_of_push(120.0)
    assert strong.robustness.exceeded


def Tracking_of_push(force):
    scenario = replace(Crane(), duration=11.0, dt=1e-3, push_n=force)
    plant, law = crane(), RobustControl(crane_model(), **GAINS)
    return scenario._tracked(law, joint_path(law.machine), closed_form(plant), False)


def test_balance_of_V_tells_wrong_accelerations():
    """Uncertainty taken from another plant than the one that was run does not account for V."""
    plant = crane()
    law = RobustControl(crane_model(), **PRINTED_GAINS)
    x, v = crane_state(plant, (0.2, 0.6, 0.12))
    form = closed_form(plant)
    run = simulate(
        plant, law, joint_path(law.machine), x, v, duration=0.5, dt=5e-4, formulation=form
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = Tracking.of(run, law, form)
        wrong = Tracking.of(run, law, closed_form(crane(1.05)))
    assert right.balance() < 1e-3 < wrong.balance()


def test_reconfigured_crane_keeps_its_promises():
    found = CraneReconfigured().run(progress=False)
    assert broken(found) == []
    assert set(KEYS) <= set(found.metrics)
    assert found.metrics["updated_model_error"] <= 1e-12
    told, untold = found.runs["told"], found.runs["untold"]
    before = told.t < 10.0
    assert np.array_equal(told.x[before], untold.x[before])
    assert len(told.meta["events"]) == 1


def test_a_model_that_was_not_updated_is_not_the_new_one():
    model = tunable_body(crane_model(), "arm", ("tip",))
    assert rebuilt_error(Embedded(model)) < 1e-12
    other = tunable_body(crane_model(1.1), "boom")
    with pytest.raises(Exception, match="unknown"):
        rebuilt_error(Embedded(other))


def test_five_bar_keeps_its_promises():
    found = FiveBar(duration=4.0).run(progress=False)
    assert broken(found) == []
    assert found.figures
    assert found.animations


def test_they_run_by_name():
    for kind in (Crane, CraneReconfigured, FiveBar):
        assert SCENARIOS[kind.name] is kind
    assert len(COORDINATES) == 3
