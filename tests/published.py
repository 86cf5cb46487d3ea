"""Published numbers that tests compare with: tests/data, each file with its source."""

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"


def published(name):
    """Return the numbers of a file of tests/data."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
