"""The Python of the page on the live view runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "view.md"


def test_python_of_the_page_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
