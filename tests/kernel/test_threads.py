"""All rows are worked on once, whatever the threads do."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import casadi as ca
import numpy as np
import pytest

import framefree as ff
from framefree.kernel.agreed import MOST_THREADS
from framefree.kernel.call import Caller
from framefree.kernel.sharing import LEFT, LINE, PATIENCE, sharing
from framefree.kernel.threads import split

PORTS = (ctypes.c_ssize_t * 3)()
PLAN = (ctypes.c_ssize_t * 2)(7, 9)


def native(work, plan=False):
    """A Python function as what compiled code is: ``work(ports, first, last[, plan])``."""
    word, pointer = ctypes.c_ssize_t, ctypes.c_void_p
    return ctypes.CFUNCTYPE(ctypes.c_int, pointer, word, word, *[pointer] * plan)(work)


def two_threads(seen):
    """Wait until two threads have been here."""
    seen.add(threading.get_ident())
    limit = time.monotonic() + 60
    while len(seen) < 2 and time.monotonic() < limit:
        time.sleep(1e-3)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 1000, 4096])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("plan", [False, True])
def test_ranges_cover_all_rows_once(rows, count, plan):
    ranges = []

    def work(ports, first, last, *rest):
        assert ports == ctypes.addressof(PORTS)
        assert rest == ((ctypes.addressof(PLAN),) if plan else ())
        ranges.append((first, last))
        return 0

    assert split(native(work, plan), (PORTS, PLAN) if plan else (PORTS,), rows, 32, count)
    ordered = sorted(ranges)
    assert [first for first, _ in ordered] == [0, *(last for _, last in ordered[:-1])]
    assert ordered[-1][1] == rows
    assert all(first % 32 == 0 and first < last for first, last in ordered)


def test_a_thread_that_is_held_up_leaves_its_work_to_others():
    caller, done = threading.get_ident(), []

    def work(ports, first, last):
        if threading.get_ident() != caller:
            time.sleep(0.2)
        done.append(threading.get_ident() == caller)
        return 0

    split(native(work), (PORTS,), 3200, 32, 2)
    assert sum(done) >= len(done) - 1


@pytest.mark.parametrize("bad", [0, 96])
def test_a_failure_is_told(bad):
    assert not split(
        native(lambda ports, first, last: int(first <= bad < last)), (PORTS,), 100, 4, 2
    )


def test_all_threads_take_part():
    seen = set()

    def work(ports, first, last):
        two_threads(seen)
        return 0

    split(native(work), (PORTS,), 3200, 32, 2)
    assert len(seen) == 2


@pytest.fixture
def patience():
    """A function that sets for how long a helper looks for work; helpers from before have left."""

    def set_patience(seconds):
        wait_until(lambda: states_of_helpers() == {LEFT})
        sharing().set_patience(seconds)

    yield set_patience
    sharing().set_patience(PATIENCE)


def states_of_helpers():
    return set(sharing().mailboxes[::LINE])


def wait_until(true):
    limit = time.monotonic() + 60
    while not true() and time.monotonic() < limit:
        time.sleep(1e-3)
    assert true()


def test_a_thread_that_waits_takes_the_next_batch(patience):
    """Its identity would be another, had it left and another come."""
    patience(1.0)
    helpers = set()

    def batch():
        seen = set()

        def work(ports, first, last):
            two_threads(seen)
            return 0

        split(native(work), (PORTS,), 3200, 32, 2)
        return seen - {threading.get_ident()}

    for _ in range(20):
        helpers |= batch()
    assert len(helpers) == 1


@pytest.fixture(scope="module")
def kernel():
    x = ca.SX.sym("x", 3)
    y = x
    for _ in range(40):
        y = ca.sin(y) + 0.1 * x
    return ff.compile(ca.Function("f", [x], [y], ["x"], ["y"]), cache=False)


def test_helpers_serve_several_callers(kernel):
    states = np.random.default_rng(0).normal(size=(3000, 3))
    expected, wrong = kernel(states), []

    def call():
        for k in range(300):
            if not np.array_equal(kernel(states, threads=1 + k % 4), expected):
                wrong.append(k)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(120)
        assert not one.is_alive()
    assert not wrong


def test_nobody_holds_on_to_results(kernel):
    """Helpers would otherwise keep the memory of a batch from being used again."""
    states = np.random.default_rng(0).normal(size=(5000, 3))
    for _ in range(50):
        result = kernel(states, threads=2)
        assert sys.getrefcount(result) == 2


def test_a_kernel_may_go_while_its_helper_waits():
    """What the helper runs meanwhile is not the kernel's own code."""
    x = ca.SX.sym("x", 3)
    states = np.random.default_rng(0).normal(size=(3000, 3))
    for k in range(20):
        f = ca.Function("f", [x], [ca.sin(x) + k], ["x"], ["y"])
        kernel = ff.compile(f, cache=False)
        np.testing.assert_array_equal(kernel(states, threads=2), kernel(states))
        del kernel


def test_helpers_leave_when_nothing_comes(kernel):
    kernel(np.zeros((3000, 3)), threads=2)
    wait_until(lambda: states_of_helpers() == {LEFT})


def test_threads_are_shared_from_native_code(kernel, monkeypatch):
    """Once the code that shares is there, a call with threads does not come to Python."""
    states = np.random.default_rng(0).normal(size=(5000, 3))
    expected = kernel(states, threads=2)

    def left(*_, **__):
        raise AssertionError("the call left native code")

    monkeypatch.setattr(Caller, "__call__", left)
    result = np.empty_like(expected)
    for threads in (1, 2, 3, MOST_THREADS):
        np.testing.assert_array_equal(kernel(states, threads=threads), expected)
        kernel(x=states, threads=threads, out=result)
        np.testing.assert_array_equal(result, expected)
        assert kernel(states[:0], threads=threads).shape == (0, 3)
        np.testing.assert_array_equal(kernel(states[0], threads=threads), expected[0])


@pytest.mark.parametrize("threads", [0, -1, 2.0, True, "2", None, -(10**30)])
def test_what_is_no_number_of_threads_is_refused(kernel, threads):
    with pytest.raises(ValueError, match="`threads` must be a positive whole number"):
        kernel(np.zeros((100, 3)), threads=threads)


@pytest.mark.parametrize("threads", [MOST_THREADS + 1, 10**30])
def test_more_threads_than_there_can_be(kernel, threads):
    states = np.random.default_rng(0).normal(size=(50_000, 3))
    np.testing.assert_array_equal(kernel(states, threads=threads), kernel(states))


def test_what_a_helper_works_on_is_waited_for():
    """The job ends with the call: an interrupt cannot come in between, its memory is ours."""
    begun, ended = threading.Event(), []
    caller = threading.get_ident()

    def work(ports, first, last):
        if threading.get_ident() != caller:
            begun.set()
            time.sleep(0.3)
            ended.append(first)
        else:
            begun.wait(60)
        return 0

    split(native(work), (PORTS,), 64, 32, 2)
    assert ended


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupts_leave_no_thread_behind():
    """Ctrl-C at any moment of many calls: right results, no thread that keeps a processor busy."""
    code = """
import os, signal, sys, threading, time
import casadi as ca, numpy as np, framefree as ff
x = ca.SX.sym("x", 3)
y = x
for _ in range(40):
    y = ca.sin(y) + 0.1 * x
kernel = ff.compile(ca.Function("f", [x], [y], ["x"], ["y"]), cache=False)
states = np.random.default_rng(0).normal(size=(3000, 3))
expected = kernel(states)
stop = threading.Event()
def pester():
    rng = np.random.default_rng(1)
    while not stop.is_set():
        time.sleep(rng.uniform(1e-4, 2e-3))
        os.kill(os.getpid(), signal.SIGINT)
caught = 0
pest = threading.Thread(target=pester, daemon=True)
pest.start()
deadline = time.monotonic() + 3
while time.monotonic() < deadline:
    try:
        while time.monotonic() < deadline:
            assert np.array_equal(kernel(states, threads=2), expected)
    except KeyboardInterrupt:
        caught += 1
signal.signal(signal.SIGINT, signal.SIG_IGN)
stop.set()
pest.join()
time.sleep(1.0)
used = time.process_time()
time.sleep(1.0)
print(caught, time.process_time() - used)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    caught, used = result.stdout.split()
    assert int(caught) > 20
    assert float(used) < 0.3  # of one second


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # whatever else was imported
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_forks_has_helpers_of_its_own(kernel):
    states = np.random.default_rng(0).normal(size=(3000, 3))
    expected = kernel(states, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(kernel(states, threads=2), expected) else 1)
    limit = time.monotonic() + 60
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < limit:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, 9)
    assert done == (child, 0)
