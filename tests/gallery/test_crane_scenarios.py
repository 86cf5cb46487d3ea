"""The scenarios of closed chains under the robust law."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from framefree.control.robust import RobustControl
from framefree.errors import FramefreeError
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
    LARGE_GAINS,
    PATH,
    PRINTED_GAINS,
    Tracking,
    apart,
    joint_path,
)
from framefree.gallery.scenarios.series_parallel.crane_reconfigured import (
    CraneReconfigured,
    between_jumps,
    rebuilt_error,
)
from framefree.gallery.scenarios.series_parallel.crane_task import CraneTask
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
    law = RobustControl(crane_model(), **GAINS)
    task = CraneTask(closed_form(crane()), "near", 11.0, 1e-3, force, "native", False)
    return task.track(law, joint_path(law.machine), task.stated_uncertainty(law.embedded))


@pytest.fixture(scope="module")
def large():
    return Crane(start="large").run(progress=False)


def test_from_large_errors_the_table_is_met_within_the_inputs(large):
    """From the record alone: rmse, inputs, stroke."""
    assert broken(large) == []
    run, slow = large.runs["crane"], large.runs["lambda_one"]
    delta = run.x[:, run.machine.x_names.index("delta")]
    assert run.t[-1] == 15.0
    assert np.allclose(run["e"][0], (0.68, -0.41, -0.10), atol=1e-12)
    assert (np.sqrt((run["e"] ** 2).mean(axis=0)) <= (0.124, 0.074, 0.018)).all()
    assert (np.abs(run.u).max(axis=0) <= 1.5 * np.abs(slow.u).max(axis=0)).all()
    assert slow.meta["law"]["Lambda"] == [1.0, 1.0, 1.0]
    assert delta.min() >= 0
    assert delta.max() <= STROKE
    keys = [f"rmse_{name}" for name in ("phi_rad", "theta_rad", "delta_m")]
    for prefix, met in (("", True), ("lambda_one_", False), ("document_", False)):
        table = np.array([large.metrics[prefix + key] for key in keys])
        assert (table <= (0.124, 0.074, 0.018)).all() == met


@pytest.mark.slow
def test_less_kappa_is_less_from_large_errors_too():
    found = Crane(start="large", kappa=0.1, duration=0.5).run(progress=False)
    for run in ("crane", "lambda_one"):
        assert found.runs[run].meta["law"]["kappa"] == pytest.approx([23.0, 82.0, 90.0])
    assert found.metrics["stated_over_kappa"] > 1
    assert any("kappa exceeds" in words for words in broken(found))


def test_what_the_bound_allows_is_neither_exceeded_nor_used_up(large, outcome):
    for found in (large, outcome):
        assert -1 < found.metrics["error_over_envelope"] < 0.9
        assert 0.5 < found.metrics["uncertainty_over_stated"] < 1


def test_a_push_beyond_the_stated_one_breaks_the_bound():
    """Three times the push that was stated: V leaves its level, errors their bound."""
    law = RobustControl(crane_model(), **GAINS)
    task = CraneTask(closed_form(crane()), "near", 12.0, 1e-3, 75.0, "native", False)
    stated = CraneTask(task.form, "near", 12.0, 1e-3, 25.0, "native", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = task.track(law, joint_path(law.machine), stated.stated_uncertainty(law.embedded))
    assert (found.robustness.dbar > found.robustness.stated).any()
    assert found.robustness.V_left > 1
    assert found.robustness.e_left > 1


def test_a_law_without_kappa_is_refused():
    with pytest.raises(FramefreeError, match="`kappa` of `crane` must be positive, got 0"):
        Crane(kappa=0.0).run(progress=False)


def test_an_unknown_start_is_refused():
    with pytest.raises(FramefreeError, match="one of near, large, got far"):
        Crane(start="far").run(progress=False)


def test_mujoco_moves_the_crane_alike():
    """The first second, from large errors."""
    pytest.importorskip("mujoco", reason="needs the extra `models`")
    law, form = RobustControl(crane_model(), **LARGE_GAINS), closed_form(crane())
    path = joint_path(law.machine)
    native, mujoco = (
        CraneTask(form, "large", 1.0, 5e-4, 25.0, plant, False).track(law, path)
        for plant in ("native", "mujoco")
    )
    assert mujoco.run.meta["options"]["plant"] == "mujoco"
    assert 1e-9 < apart(native.run, mujoco.run) < 2e-4
    # V, which MuJoCo's motion gives, changes as our equations say at its states.
    assert mujoco.balance() < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("start", ["near", "large"])
def test_crane_keeps_its_promises_on_mujoco(start):
    pytest.importorskip("mujoco", reason="needs the extra `models`")
    found = Crane(start=start, plant="mujoco").run(progress=False)
    assert broken(found) == []
    assert found.metrics["plant_difference"] < 1e-3


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


@pytest.fixture(scope="module")
def moved():
    return CraneReconfigured(change="mount", duration=16.0).run(progress=False)


def test_the_loop_of_the_crane_changes_while_it_runs(moved):
    """The elbow jumps to where the law of cosines puts it; the driven joints do not."""
    assert broken(moved) == []
    run = moved.runs["told"]
    names = run.machine.x_names
    k = int(np.argmin(np.abs(run.t - 8.0)))
    x = dict(zip(names, run.x.T, strict=True))
    for q in COORDINATES:
        assert abs(x[q][k] - x[q][k - 1]) < 1e-3
    length, sides = 0.425 + x["delta"], np.where(run.t < 8.0 - 1e-9, 0.35, 0.40)
    cosine = (length**2 - 0.35**2 - sides**2) / (2 * 0.35 * sides)
    assert np.abs(np.cos(x["zeta"]) - cosine).max() < 1e-9
    assert 0.1 < abs(x["zeta"][k] - x["zeta"][k - 1]) < 0.3
    assert moved.metrics["untold_kappa_exceeded"] == "delta"


def test_jumps_above_the_level_are_seen(moved):
    """V rises above its level at the exchange; a level that is never regained is infinite."""
    tracking = Tracking(moved.runs["told"], None, FakeBound(np.inf))
    assert between_jumps(tracking, 8.0)[1] == 0.0
    assert between_jumps(Tracking(moved.runs["told"], None, FakeBound(1e-30)), 8.0)[0] == np.inf
    assert moved.metrics["level_regained_s"] > 0


class FakeBound:
    """A level and nothing else."""

    def __init__(self, level):
        self.bound = SimpleNamespace(V=level)


def test_the_pin_of_the_crane_is_moved_on_mujoco():
    """Around the exchange alone: a run of one second, moved at half time."""
    pytest.importorskip("mujoco", reason="needs the extra `models`")
    scenario = CraneReconfigured(change="mount", duration=1.0)
    plant = crane().tunable(*scenario.new.plant)
    law = RobustControl(crane_model().tunable(*scenario.new.law), **GAINS)
    form = closed_form(plant)
    native, mujoco = (
        replace(scenario, plant=name)._tracked(law, form, False, informed=True)
        for name in ("native", "mujoco")
    )
    assert native.run.meta["events"][0]["jump_x"] > 0.1
    assert 1e-9 < apart(native.run, mujoco.run) < 1e-3


def test_an_unknown_change_is_refused():
    with pytest.raises(FramefreeError, match="one of arm, mount, got leg"):
        CraneReconfigured(change="leg").run(progress=False)


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
