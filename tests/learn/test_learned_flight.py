"""The scenario `learned-flight`: its air, files of our own simulation, and the recorded ones."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra `learn`")

from flight_files import GOOD, SPOILED, write_flights

from framefree.errors import FramefreeError
from framefree.gallery.scenarios.learned import flight_quad as quad
from framefree.gallery.scenarios.learned.learned_flight import BOUNDS, LearnedFlight
from framefree.gallery.shared import nano_records
from framefree.geometry import batch
from framefree.learn import C4, PolynomialLibrary, TrimmedLibrary, Trivial, load, save

FACTS = Path(__file__).parents[3] / "shared" / "facts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("flights")
    write_flights(made)
    return made


def test_flights_are_aligned_and_others_named(folder):
    for part in ("train", "test"):
        flights, left_out = nano_records.flights(folder, f"{part}_*.npz")
        assert [one.name for one in flights] == [name for name in GOOD if name.startswith(part)]
        assert set(left_out) == {name for name in SPOILED if name.startswith(part)}
        for name, why in left_out.items():
            assert SPOILED[name] in why
    # The clocks differ by 0 to 3 rows; once aligned, rates of attitude and gyroscope agree.
    for flight in nano_records.flights(folder, "train_*.npz")[0]:
        R = batch.rotation(flight.wxyz)
        w = batch.rotation_log(R[:-2].swapaxes(1, 2) @ R[2:]) / (2 * nano_records.PERIOD)
        assert np.sqrt(np.mean((w - flight.rate[1:-1]) ** 2)) < 0.03


def test_files_that_are_none_are_refused(tmp_path, folder):
    with pytest.raises(FramefreeError, match="no folder"):
        LearnedFlight(data="nowhere").run(progress=False)
    with pytest.raises(FramefreeError, match="holds no file train_"):
        LearnedFlight(data=str(tmp_path)).run(progress=False)
    path = tmp_path / "train_a.npz"
    path.write_bytes(b"no flight")
    with pytest.raises(FramefreeError, match=r"`train_a.npz` is not a recorded flight"):
        nano_records.aligned_flight(path)
    with np.load(folder / "train_a.npz") as stored:
        entries = dict(stored)
    np.savez(path, **{k: v for k, v in entries.items() if k != "battery"})
    with pytest.raises(FramefreeError, match=r"`train_a.npz` has no battery"):
        nano_records.aligned_flight(path)
    np.savez(path, **(entries | {"gyro": entries["gyro"][:-1]}))
    with pytest.raises(FramefreeError, match=r"`gyro` of `train_a.npz` must have shape"):
        nano_records.aligned_flight(path)


@pytest.mark.slow
def test_the_whole_way_with_files_of_our_own(folder):
    outcome = LearnedFlight(data=str(folder), steps=50, simulated=False).run(progress=False)
    m = outcome.metrics
    assert m["skipped"] is False
    assert m["files_left_out"] == len(SPOILED)
    assert set(m["files_left_out_names"].split(", ")) == set(SPOILED)
    assert (m["train_files_used"], m["test_files_used"]) == (4, 2)
    assert m["rotation_factor"] - 1 < 1e-9
    assert m["rotation_factor_world"] > 1.01
    for unit in BOUNDS:
        assert m[f"h50_{unit}"] < 0.7 * m[f"constant_velocity_h50_{unit}"]
    for name in SPOILED:
        assert any(name in note for note in outcome.notes)


def test_constants_of_a_symmetry_are_not_added_twice():
    bare = PolynomialLibrary(C4(), 0.1, features=("velocity", "rate"))
    added = TrimmedLibrary(bare).names[len(bare) :]
    # Thrust along the axis is what the fourfold symmetry leaves of a constant wrench.
    assert added == ("trim.force.x", "trim.force.y", "trim.moment.x", "trim.moment.y",
                     "trim.moment.z")  # fmt: skip
    every = PolynomialLibrary(Trivial(), 0.1, features=("velocity",))
    assert len(TrimmedLibrary(every)) == len(every)


@pytest.mark.slow
def test_the_air_is_read_from_one_flight(tmp_path):
    lessons = quad.AirLessons(0, progress=False)
    model = lessons.basis(symmetric=True)
    terms = {model.library.formulas[model.names.index(name)]: value
             for name, value in model.terms.items()}  # fmt: skip
    assert terms["force: (vx, vy, 0)"] == pytest.approx(-4 * quad.ROTOR, rel=0.05)
    assert terms["force: (0, 0, vz)"] == pytest.approx(-quad.ALONG, rel=0.15)
    assert model.value("trim.force.x") == pytest.approx(quad.BIAS[0], rel=0.03)
    assert model.value("trim.moment.y") == pytest.approx(quad.BIAS[4], rel=0.05)
    again = load(save(model, tmp_path / "air.npz"))
    twist = np.array([1.0, -0.5, 0.2, 0.3, 0.1, -0.2])
    assert np.array_equal(again(twist, np.eye(3), [0, 0, -1]), model(twist, np.eye(3), [0, 0, -1]))
    # Sideways, where it never flew: the symmetry tells what no data told.
    side = [0.0, 1.2, 0, 0, 0, 0]
    true = quad.TrueAir()(side, np.eye(3), [0, 0, -1.0])
    without = lessons.basis(symmetric=False)
    gaps = [np.abs(one(side, np.eye(3), [0, 0, -1.0]) - true).max() for one in (model, without)]
    assert gaps[0] < 0.05 < 0.3 < gaps[1]


def test_without_records_they_are_skipped():
    outcome = LearnedFlight(simulated=False).run(progress=False)
    assert outcome.ok
    assert outcome.metrics == {"skipped": True}


@pytest.mark.slow
def test_the_quadcopter_tracks_better_at_every_heading():
    outcome = LearnedFlight().run(progress=False)
    assert [one.text for one in outcome.promises if not one.holds] == []
    m = outcome.metrics
    assert m["tracking_gain"] >= 50
    assert m["tracking_gain_no_symmetry_90_deg"] < 5
    assert m["tracking_gain_world_90_deg"] < 5


@pytest.mark.slow
def test_recorded_flights_are_predicted():
    if not (FACTS / "nanobench").is_dir():
        pytest.skip("the recorded flights are not at hand")
    outcome = LearnedFlight(data=str(FACTS), simulated=False).run(progress=False)
    assert [one.text for one in outcome.promises if not one.holds] == []
    m = outcome.metrics
    assert m["rotation_factor_world"] > 2
    assert m["files_left_out"] == 9
    for unit in BOUNDS:
        assert m[f"h50_{unit}"] < m[f"physics_h50_{unit}"]
        assert m[f"h50_{unit}"] < m[f"world_h50_{unit}"]
