"""The page on learning runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def run_example(line):
    """Run the one example of the page that has these words in it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if line in block]
    exec(block, {})


def test_python_of_the_page_finds_what_it_pretends_not_to_know(capsys):
    run_example("fit_basis(library, samples)")
    rows = {
        line.split()[0]: float(line.split()[1]) for line in capsys.readouterr().out.splitlines()
    }
    assert abs(rows["across.linear"] - 2) < 1e-3
    assert abs(rows["across.quadratic"] - 30) < 1e-2
    assert abs(rows["current.x"] - 0.1) < 1e-3
    assert "lift" not in rows


def test_friction_of_the_page_is_found(capsys):
    run_example("fit_friction(Samples")
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("joint1: force = -[(14")
    numbers = [float(one) for one in re.findall(r"\(([\d.]+)(?: ±[^)]*)?\)", second)]
    assert abs(numbers[0] - 12) < 1e-3
    assert abs(numbers[1] - 4.2) < 1e-3


def test_contact_of_the_page_is_found(capsys):
    run_example("fit_contact(samples")
    rows = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines()[1:])
    assert abs(float(rows["k"].split()[0]) - 6000) < 1
    assert abs(float(rows["mu"].split()[0]) - 0.35) < 1e-3
    assert abs(float(rows["n_x"].split()[0]) + 0.8) < 1e-3


@pytest.mark.slow
def test_rounds_of_the_page_learn(capsys):
    run_example("learn_in_rounds(task")
    before, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert first[1] == "slow"
    assert second[1] == "fast"
    assert float(second[2]) < 0.02
    assert float(second[3]) < 0.1 * float(before[2])


@pytest.mark.slow
def test_flights_of_the_page_are_predicted(capsys):
    pytest.importorskip("jax", reason="needs the extra `learn`")
    run_example("fit_flights(")
    rows = [
        np.array([float(word) for word in line.strip("[] ").split()])
        for line in capsys.readouterr().out.splitlines()
    ]
    assert (rows[0] < 0.3 * rows[1]).all()
