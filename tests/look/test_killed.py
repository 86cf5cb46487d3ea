"""Runs and scenarios that are killed at random times: nothing finished is lost or changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "kill_results.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
@pytest.mark.parametrize("kills", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_what_is_left_after_kills(tmp_path, kills):
    """Half of them at runs, half at `framefree run`; half of these would replace what is there."""
    paths = [str(SCRIPT.parents[1] / "simulate"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(kills), str(kills)],
        capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.get("finished", 0) >= kills // 4
    if kills > 8:
        assert {"interrupted", "results interrupted", "results finished"} <= found.keys()
