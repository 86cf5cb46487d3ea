"""What the kernel tests share: a cache of their own, and ways to compare bits."""

import numpy as np
import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Keep the tests away from the user's cache of compiled code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FRAMEFREE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="module")
def _as_users_compile():
    """Compile as users do, not in haste as the rest of the short suite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FRAMEFREE_COMPILE", "full")
        yield


@pytest.fixture(scope="session")
def same_bits():
    """Tell whether two arrays agree bit for bit, any NaN equal to any other."""

    def compare(a, b) -> bool:
        a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        if a.shape != b.shape:
            return False
        both_nan = np.isnan(a) & np.isnan(b)
        return bool(np.all(both_nan | (a.view(np.uint64) == b.view(np.uint64))))

    return compare
