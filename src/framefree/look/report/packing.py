"""Arrays and text in the forms that the page's script takes."""

import base64
import gzip
import json
from typing import Any

import numpy as np

LARGEST_SINGLE = float(np.finfo(np.float32).max)


def packed(values: Any, dtype: str = "f4") -> dict[str, str]:
    """Return an array as base64 text of little-endian numbers, the way Plotly takes it."""
    values = np.asarray(values)
    if dtype == "f4" and np.abs(values[np.isfinite(values)]).max(initial=0.0) > LARGEST_SINGLE:
        dtype = "f8"  # of a run that exploded
    data = np.ascontiguousarray(values, dtype=f"<{dtype}").tobytes()
    return {"dtype": dtype, "bdata": base64.b64encode(data).decode("ascii")}


def compressed(text: str) -> str:
    """Return text as base64 of its gzip form, the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")


def plain(text: str) -> str:
    """Return text for Plotly, which would otherwise read tags in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def script_json(data: Any) -> str:
    """Return JSON that may stand inside a script element, whatever texts it holds."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
