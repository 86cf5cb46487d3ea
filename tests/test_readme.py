"""The README's Python runs as printed."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(block, names)
    run = names["run"]
    total = names["kinetic"] + names["potential"]
    assert run.t[-1] == 1.0
    assert abs(total - total[0]).max() < 0.1
    assert abs(names["tracked"].x[-1] - names["target"]).max() < 1e-6


def test_ci_runs_the_test_command_of_the_readme():
    marked = README.read_text(encoding="utf-8").partition("<!-- test command -->")[2]
    assert "pytest" in marked.partition("```sh\n")[2].partition("```")[0]
