"""The loop of learning: it goes where least is known, loses no complete round, and never learns on
with a model that is worse than none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from learn_samples import truth

from framefree.control.port import PoseControl
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.machines.chains import chain
from framefree.gallery.scenarios.learned.fluid_chain import LENGTH, Swimming
from framefree.gallery.scenarios.learned.open_loop import about
from framefree.learn import (
    LearnedModel,
    LearnError,
    RodLibrary,
    SimulatedTask,
    fit_basis,
    learn_in_rounds,
    load,
    motion_distances,
)

LIBRARY = RodLibrary(LENGTH)
MACHINE = chain(1, lengths=LENGTH)
STILL_WATER = truth(current=(0.0, 0.0, 0.0))
SLOW = Swimming(space=True, slowest=0.05, fastest=0.1, travel=0.1, swing=0.1, spin=0.1)
FAST = Swimming(space=True, slowest=0.4, fastest=0.8)


def basis(samples):
    return fit_basis(LIBRARY, samples, current=np.zeros(3)).model


TASK = SimulatedTask(
    "rod",
    MACHINE,
    STILL_WATER.added_to(MACHINE),
    lambda known: PoseControl(known, 10.0, rate=3.0, floor=1.0),
    {
        "slow": SLOW.path(MACHINE, 1),
        "slow too": SLOW.path(MACHINE, 1),
        "fast": FAST.path(MACHINE, 2),
    },
    {"judge": FAST.path(MACHINE, 3)},
    basis,
    symmetry=LIBRARY.symmetry,
    reference=BodyPoses,
    duration=3.0,
    dt=5e-3,
    every=2,
    window=0.12,
    spacing=5,
    settled=1.0,
)


class Watched(SimulatedTask):
    """A task that notes with which models motions are followed, and can be interrupted."""

    def __post_init__(self):
        super().__post_init__()
        self.__dict__["seen"] = []
        self.__dict__["stop_at"] = None

    def run(self, motion, model, progress=None):
        self.seen.append((motion, model))
        if motion == self.stop_at:
            raise KeyboardInterrupt
        return super().run(motion, model, progress)


def watched(**changes):
    fields = {name: getattr(TASK, name) for name in TASK.__dataclass_fields__}
    return Watched(**{**fields, **changes})


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rounds")
    return learn_in_rounds(TASK, folder, rounds=2, progress=False)


def test_what_is_least_known_is_chosen_and_helps(learned):
    before, first, second = learned.rounds
    assert (before.motion, first.motion, second.motion) == ("", "slow", "fast")
    assert before.error == 1.0
    assert np.isnan(first.distance)
    assert second.distance > 0.5  # in units of the deviation of all features
    assert second.error < 0.5 * first.error
    assert second.tracking_m < before.tracking_m / 10
    assert second.samples > first.samples
    figures = json.loads(json.dumps(learned.to_dict(), allow_nan=False))
    assert figures["rounds"][1]["distance"] is None
    assert figures["tracking_gain"] > 10


def test_a_motion_that_was_learned_from_is_near_and_others_are_not(learned):
    run = TASK.run("slow", None, False)
    distances = motion_distances(TASK, TASK.samples(run), None, ["slow too", "fast"])
    assert distances["slow too"] < 0.3 * distances["fast"]


def test_the_heading_of_a_motion_is_no_distance():
    turned = replace(SLOW, turn=about(2, 1.3)), replace(FAST, turn=about(2, 2.1))
    motions = {name: style.path(MACHINE, 5) for name, style in zip("ab", (SLOW, FAST), strict=True)}
    motions |= {name: style.path(MACHINE, 5) for name, style in zip("cd", turned, strict=True)}
    task = replace(TASK, motions=motions)
    samples = task.samples(task.run("a", None, False))
    distances = motion_distances(task, samples, None, list("abcd"))
    assert distances["c"] == pytest.approx(distances["a"], rel=1e-9)
    assert distances["d"] == pytest.approx(distances["b"], rel=1e-9)


def test_interrupted_rounds_are_continued_to_the_same_result(learned, tmp_path):
    task = watched()
    task.__dict__["stop_at"] = "fast"
    broken = learn_in_rounds(task, tmp_path, rounds=2, progress=False)
    assert broken.interrupted
    assert [one.number for one in broken.rounds] == [0, 1]
    assert not (tmp_path / "round-2").exists()
    task.__dict__["stop_at"], task.__dict__["seen"] = None, []
    told = []
    whole = learn_in_rounds(task, tmp_path, rounds=2, progress=False, tell=told.append)
    assert told[0] == "continuing after round 1"
    assert [motion for motion, _ in task.seen] == ["fast", "judge"]  # nothing is run again
    for ours, theirs in zip(whole.rounds[1:], learned.rounds[1:], strict=True):
        assert ours.error == pytest.approx(theirs.error, rel=1e-9)
        assert ours.tracking_m == pytest.approx(theirs.tracking_m, rel=1e-9)
    np.testing.assert_allclose(
        load(tmp_path / "model.npz").coefficients, learned.model.coefficients, rtol=1e-9
    )


def test_a_model_that_is_worse_than_none_is_not_used_to_learn_on(tmp_path):
    def wild(samples):
        return LearnedModel(LIBRARY, [-40.0, -400.0, *np.zeros(10)])  # drives instead of dragging

    task = watched(model=wild)
    history = learn_in_rounds(task, tmp_path, rounds=2, progress=False)
    assert history.rounds[1].tracking_m > history.rounds[0].tracking_m
    learned_from = [model for motion, model in task.seen if motion != "judge"]
    assert learned_from == [None, None]
    figures = json.loads(json.dumps(history.to_dict(), allow_nan=False))  # inf becomes null
    assert len(figures["rounds"]) == 3


def test_the_tracking_error_is_a_length_that_no_frame_alters():
    run = TASK.run("slow", STILL_WATER, False)
    base = TASK.tracking_error("slow", run)
    assert 0 < base < 1e-3  # the law knows all there is
    shift = np.zeros((len(run.t), MACHINE.nv))
    shift[:, :3] = [0.03, 0.0, 0.04]
    moved = replace(run, x=MACHINE.integrate(run.x, shift))
    assert TASK.tracking_error("slow", moved) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: replace(TASK, motions={}), "held out"),
        (lambda: replace(TASK, held_out=TASK.motions), "cannot be learned from and held out"),
        (lambda: replace(TASK, settled=3.0), "`settled` must lie between"),
        (lambda: TASK.run("quick", None), "has no motion `quick`; it has: slow"),
    ],
)
def test_bad_tasks_are_refused(change, words):
    with pytest.raises(LearnError, match=words):
        change()


def test_bad_folders_and_numbers_are_refused(learned, tmp_path):
    with pytest.raises(LearnError, match="positive whole number"):
        learn_in_rounds(TASK, tmp_path, rounds=0)
    with pytest.raises(LearnError, match="3 motions to learn from"):
        learn_in_rounds(TASK, tmp_path, rounds=4)
    with pytest.raises(LearnError, match=r"`duration` was 3\.0 there and is 2\.0 now"):
        learn_in_rounds(replace(TASK, duration=2.0), learned.folder, rounds=2)
    other = replace(TASK, held_out={"judge": FAST.path(MACHINE, 4)})
    with pytest.raises(LearnError, match="`motions_hash` was"):
        learn_in_rounds(other, learned.folder, rounds=2)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LearnError, match=r"other files, such as `notes.txt`"):
        learn_in_rounds(TASK, tmp_path, rounds=2)
