"""Mutated, truncated and binary model files: only FramefreeError comes out, and nothing crashes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from model_fuzz import mutant
from test_urdf import ARM

from framefree.errors import FramefreeError
from framefree.machine.read import read

HERE = Path(__file__).parent


def outcome(data):
    try:
        read(data)
    except FramefreeError:
        return "refused"
    return "read"


@pytest.mark.slow
def test_mutants_of_urdf():
    seen = [outcome(mutant(ARM, seed)) for seed in range(1500)]
    assert 50 < seen.count("read") < 1450


def test_every_prefix_of_urdf():
    data = ARM.encode()
    assert {outcome(data[:n]) for n in range(len(data))} == {"refused"}


def test_random_bytes():
    rng = np.random.default_rng(0)
    for size in rng.integers(1, 2000, 200):
        assert outcome(rng.bytes(size)) == "refused"
        assert outcome(b"<robot name='r'>" + rng.bytes(size)) == "refused"


def mutants(format, first, count):
    """Read mutants in another process: a crash of a library fails the test, not the run."""
    if format == "mjcf":
        pytest.importorskip("mujoco")
    command = [sys.executable, str(HERE / "model_fuzz.py"), format, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr.strip().splitlines()[-5:]
    read_well, refused, longest = map(float, done.stdout.split())
    assert read_well + refused == count
    assert read_well > count / 50
    assert refused > count / 50
    assert longest < SECONDS


SECONDS = 20.0
"""Processor time that no mutant takes; a fraction of a second is usual."""


@pytest.mark.parametrize("format", ["mjcf", "sdf"])
@pytest.mark.first_cases(1)
def test_mutants(format):
    mutants(format, 0, 400)


@pytest.mark.slow
@pytest.mark.parametrize(("format", "count"), [("urdf", 34_000), ("sdf", 33_000), ("mjcf", 33_000)])
def test_many_mutants(format, count):
    for first in range(0, count, 1000):
        mutants(format, 100_000 + first, 1000)
