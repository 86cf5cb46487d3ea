"""The page on learning runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_python_of_the_page_finds_what_it_pretends_not_to_know(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
    rows = {
        line.split()[0]: float(line.split()[1]) for line in capsys.readouterr().out.splitlines()
    }
    assert abs(rows["across.linear"] - 2) < 1e-3
    assert abs(rows["across.quadratic"] - 30) < 1e-2
    assert abs(rows["current.x"] - 0.1) < 1e-3
    assert "lift" not in rows
