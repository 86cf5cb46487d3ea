"""Before all tests."""

import os
import signal
from collections import Counter

import pytest

# Started in the background of a shell without job control, a process ignores Ctrl-C, and so do its
# children: tests that interrupt a run need the usual behaviour.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Compile in haste, with the same bits, where much code runs once: in the short suite."""
    if "not slow" in config.getoption("markexpr"):
        os.environ.setdefault("FRAMEFREE_COMPILE", "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Make the cases of a test beyond its first ones slow where it is marked `first_cases(n)`."""
    seen = Counter()
    for item in items:
        mark = item.get_closest_marker("first_cases")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        seen[test] += 1
        if seen[test] > mark.args[0]:
            item.add_marker(pytest.mark.slow)
