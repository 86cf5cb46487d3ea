"""The page on tasks runs as it stands: two robots from files move what they hold on a circle."""

import re
from pathlib import Path

import numpy as np
import pytest

from framefree.benchmarks.dynamics import example_robot
from framefree.errors import FramefreeError

PAGE = Path(__file__).parents[3] / "docs" / "tasks.md"


def robot_text():
    """Return the URDF of an arm of six joints with a hand."""
    try:
        return Path(example_robot("ur_description/urdf/ur5_robot.urdf")).read_text()
    except FramefreeError as error:
        pytest.skip(str(error))


def test_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(block.strip().splitlines()) <= 30
    for name in ("left", "right"):
        (tmp_path / f"{name}.urdf").write_text(robot_text())
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block, names)
    words = capsys.readouterr().out.split()
    assert float(words[1]) < 1e-8
    assert float(words[3]) < 1e-4
    run = names["run"]
    poses = names["ff"].equations(names["robots"]).kernel("frame_pose:tool0")(run.x)
    path = (poses @ names["middle"])[:, :3, 3]
    away = np.linalg.norm(path - names["circle"].center, axis=1)
    assert np.abs(away - 0.05).max() < 1e-4
    assert np.ptp(path[:, 0]) > 0.09
