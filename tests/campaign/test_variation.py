"""Samples: their values, shares and order; texts that are refused."""

import numpy as np
import pytest

from framefree.campaign import (
    CampaignError,
    Choice,
    Integers,
    LogUniform,
    Normal,
    Uniform,
    parsed,
    sampled,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gain=0.5:2", Uniform(0.5, 2.0)),
        ("gain=0.5:2:11", Uniform(0.5, 2.0, 11)),
        ("seed=0:1000", Integers(0, 1000)),
        ("gain=log:1:100", LogUniform(1.0, 100.0)),
        ("mass=normal:2:0.1", Normal(2.0, 0.1)),
        ("plant=native,mujoco", Choice(("native", "mujoco"))),
        ("bodies=4", Choice((4,))),
    ],
)
def test_texts(text, expected):
    assert parsed(text) == (text.partition("=")[0], expected)


@pytest.mark.parametrize(
    "text", ["gain", "=1:2", "gain=", "gain=a:b", "gain=2:1.0", "gain=1:2:0", "gain=log:-1:2",
             "gain=normal:0:0", "gain=nan:1", "seed=3:3", "gain=1:2:3:4"],
)  # fmt: skip
def test_texts_that_are_refused(text):
    with pytest.raises(CampaignError):
        parsed(text)


@pytest.mark.parametrize("how", ["sobol", "random"])
def test_samples_have_their_distributions(how):
    vary = {"a": Uniform(2.0, 4.0), "b": Normal(1.0, 0.5), "c": Integers(0, 4)}
    columns = sampled(vary, how, 4096, seed=3)
    assert all(len(column) == 4096 for column in columns.values())
    assert columns["a"].min() >= 2
    assert columns["a"].max() <= 4
    np.testing.assert_allclose(columns["a"].mean(), 3.0, atol=0.03)
    np.testing.assert_allclose([columns["b"].mean(), columns["b"].std()], [1.0, 0.5], atol=0.03)
    assert set(columns["c"].tolist()) == {0, 1, 2, 3}
    again = sampled(vary, how, 4096, seed=3)
    assert all(np.array_equal(columns[key], again[key]) for key in vary)
    assert not np.array_equal(columns["a"], sampled(vary, how, 4096, seed=4)["a"])


def test_a_shorter_sobol_sample_is_the_beginning_of_a_longer_one():
    vary = {"a": Uniform(0.0, 1.0), "b": Uniform(0.0, 1.0)}
    short, long = sampled(vary, "sobol", 5), sampled(vary, "sobol", 64)
    np.testing.assert_array_equal(short["a"], long["a"][:5])


def test_grids_take_all_combinations():
    vary = {"a": Uniform(0.0, 1.0, 3), "plant": Choice(("x", "y"))}
    columns = sampled(vary, "grid", None)
    pairs = list(zip(columns["a"].tolist(), columns["plant"].tolist(), strict=True))
    assert sorted(pairs) == [(a, p) for a in (0.0, 0.5, 1.0) for p in ("x", "y")]
    free = {"a": Uniform(0.0, 1.0), "b": Uniform(0.0, 1.0)}
    assert len(sampled(free, "grid", 100)["a"]) == 100


def test_counted_values_are_those_of_the_grid_however_they_are_sampled():
    vary = {"a": Uniform(0.0, 1.0, 3), "b": LogUniform(1.0, 100.0, 3)}
    for how in ("sobol", "random"):
        columns = sampled(vary, how, 64)
        assert set(columns["a"].tolist()) == {0.0, 0.5, 1.0}
        np.testing.assert_allclose(np.unique(columns["b"]), [1.0, 10.0, 100.0])


def test_whole_numbers_where_a_key_takes_them():
    assert parsed("mass=1:2", whole=False)[1] == Uniform(1.0, 2.0)
    assert parsed("bodies=2:10:5", whole=True)[1] == Choice((2, 4, 6, 8, 10))
    for text in ("bodies=2:10:4", "bodies=1.5:3.0", "bodies=normal:3:1"):
        with pytest.raises(CampaignError, match="`bodies` takes whole numbers"):
            parsed(text, whole=True)


def test_grids_count_choices_and_whole_numbers():
    assert len(sampled({"a": Uniform(0.0, 1.0), "p": Choice(("x", "y"))}, "grid", 100)["a"]) == 100
    columns = sampled({"a": Uniform(0.0, 1.0, 3), "seed": Integers(0, 50)}, "grid", None)
    assert len(columns["a"]) == 150
    assert set(columns["seed"].tolist()) == set(range(50))
    with pytest.raises(CampaignError, match="100 combinations of counted values, more than `runs`"):
        sampled({"a": Uniform(0.0, 1.0, 10), "b": Uniform(0.0, 1.0, 10)}, "grid", 50)


def test_samples_say_what_they_need():
    with pytest.raises(CampaignError, match=r"give `runs` \(`--runs N`\)"):
        sampled({"a": Uniform(0.0, 1.0)}, "sobol", None)
