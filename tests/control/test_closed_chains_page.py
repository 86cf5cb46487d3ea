"""The page on closed chains runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "closed_chains.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_modular_law_is_the_whole_law(capsys):
    exec(blocks()[0], {})
    first, last = capsys.readouterr().out.splitlines()
    assert last == "as the whole law: True"
    assert float(first.split()[2]) > 1000
