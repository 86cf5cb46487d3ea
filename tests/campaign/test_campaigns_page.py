"""The page on campaigns runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "campaigns.md"


def test_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(block, names)
    assert "The search broke" in capsys.readouterr().out
    result = names["result"]
    assert result.complete
    share, low, high = result.success()
    assert low <= share <= high
    assert result.metrics["largest_turn"].max() > result.metrics["largest_turn"].min()
