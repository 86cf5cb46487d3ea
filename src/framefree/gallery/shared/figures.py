"""What figures of several documents need."""

from typing import Any

import numpy as np


def positive(values: Any) -> np.ndarray:
    """Return sizes for a logarithmic axis, with a gap where they are zero."""
    sizes = np.abs(np.asarray(values, float))
    return np.where(sizes > 0, sizes, np.nan)
