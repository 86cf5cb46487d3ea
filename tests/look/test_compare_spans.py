"""Runs of different time spans are compared where both have samples, and nowhere else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from framefree.cli import app


def cut(run, rows, shift=0.0):
    """Return some rows of a run; `shift` is added to the times."""
    return replace(
        run,
        t=run.t[rows] + shift,
        x=run.x[rows],
        v=run.v[rows],
        u=run.u[rows],
        signals={name: value[rows] for name, value in run.signals.items()},
    )


@pytest.fixture
def differences(tmp_path):
    """Return the largest differences that the command line finds between two runs."""

    def compare(first, second):
        paths = [tmp_path / f"{name}.parquet" for name in ("first", "second")]
        for path, run in zip(paths, (first, second), strict=True):
            path.unlink(missing_ok=True)
            run.save(path, replace=True)
        page = tmp_path / "page.html"
        result = CliRunner().invoke(
            app, ["compare", *map(str, paths), "--out", str(page), "--json"]
        )
        assert result.exit_code == 0, result.output
        return json.loads(result.output)["largest_differences"]

    return compare


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (slice(None), slice(0, 100)),  # the second ends before the first
        (slice(0, 100), slice(None)),  # the first ends before the second
        (slice(None), slice(80, None)),  # the second begins after the first
        (slice(80, None), slice(None)),  # the first begins after the second
        (slice(0, 150), slice(70, None)),  # they overlap
        (slice(70, None), slice(0, 150)),
        (slice(None), slice(60, 140)),  # the second lies within the first
    ],
)
def test_parts_of_one_run_do_not_differ(differences, swing_run, first, second):
    """Beyond its ends a run says nothing, least of all that it stands still."""
    found = differences(cut(swing_run, first), cut(swing_run, second))
    assert set(found.values()) == {0.0}
    assert {"x.j0 (rad)", "v.j1 (rad/s)", "u.j0 (Nm)"} <= set(found)


def test_what_differs_only_beyond_the_common_span_does_not_count(differences, swing_run):
    bump = np.zeros_like(swing_run.x)
    bump[150:] = 3.0
    bump[120] = 0.125
    bumped = replace(swing_run, x=swing_run.x + bump)
    short = cut(swing_run, slice(0, 140))
    for pair in ((short, bumped), (bumped, short)):
        assert differences(*pair)["x.j0 (rad)"] == pytest.approx(0.125)
    assert differences(swing_run, bumped)["x.j0 (rad)"] == pytest.approx(3.0)


def test_the_ends_of_the_common_span_count(differences, swing_run):
    bump = np.zeros_like(swing_run.x)
    bump[139] = 0.5
    short = cut(replace(swing_run, x=swing_run.x + bump), slice(0, 140))
    for pair in ((short, swing_run), (swing_run, short)):
        assert differences(*pair)["x.j0 (rad)"] == pytest.approx(0.5)


def test_spans_that_do_not_meet_have_no_difference(differences, swing_run):
    """There is none to be stated: null, not zero."""
    later = cut(swing_run, slice(None), shift=swing_run.t[-1] + 1.0)
    for pair in ((swing_run, later), (later, swing_run)):
        assert set(differences(*pair).values()) == {None}
