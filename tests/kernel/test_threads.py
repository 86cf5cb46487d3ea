"""All rows are worked on once, whatever the threads do."""

import threading
import time

import pytest

from framefree.kernel.threads import split


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1000, 4096])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_ranges_cover_all_rows_once(rows, threads):
    ranges = []

    def work(first, last):
        ranges.append((first, last))
        return 0

    assert set(split(work, rows, 32, threads)) == {0}
    ordered = sorted(ranges)
    assert [first for first, _ in ordered] == [0, *(last for _, last in ordered[:-1])]
    assert ordered[-1][1] == rows
    assert all(first % 32 == 0 and first < last for first, last in ordered)


def test_a_thread_that_is_held_up_leaves_its_work_to_others():
    caller, done = threading.get_ident(), []

    def work(first, last):
        if threading.get_ident() != caller:
            time.sleep(0.2)
        done.append(threading.get_ident() == caller)
        return 0

    split(work, 3200, 32, 2)
    assert sum(done) >= len(done) - 1


def test_a_failure_is_told():
    assert any(split(lambda first, last: int(first == 0), 100, 4, 2))
