"""Nothing that a caller passes brings the interpreter down."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile


def run_hostile(*arguments: object) -> None:
    script = Path(__file__).with_name("hostile.py")
    command = [sys.executable, "-X", "faulthandler", str(script), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "survived" in result.stdout


@pytest.mark.parametrize("seed", [0, 1])
def test_random_arguments(seed):
    run_hostile(seed, 3000)


@pytest.mark.skipif(sys.platform != "linux", reason="fences memory as Linux does")
@pytest.mark.slow
def test_no_memory_beside_the_arrays_is_touched():
    run_hostile("fences")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_arguments(seed):
    run_hostile(seed, 30000)


def test_a_kernel_may_die_while_its_call_lives_on():
    x = ca.SX.sym("x", 3)
    call = type(compile(ca.Function("f", [x], [2 * x]))).__call__
    gc.collect()
    np.testing.assert_array_equal(call(np.ones(3)), [2, 2, 2])
    np.testing.assert_array_equal(call([1, 2, 3]), [2, 4, 6])


def test_kernels_are_freed():
    x = ca.SX.sym("x", 3)
    before = len([one for one in gc.get_objects() if type(one).__name__ == "Caller"])
    for _ in range(5):
        compile(ca.Function("f", [x], [2 * x]))
    gc.collect()
    after = len([one for one in gc.get_objects() if type(one).__name__ == "Caller"])
    assert after <= before


def test_references_are_counted_right():
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 3)
    kernel = compile(ca.Function("f", [x, y], [x + y, x - y]))
    a, b = np.ones((50, 3)), np.ones(3)
    kernel(a, b)
    watched = (a, b, np.dtype(float), np.ndarray)
    counts = [sys.getrefcount(one) for one in watched]
    for _ in range(1000):
        p, q = kernel(a, b)
    assert [sys.getrefcount(p), sys.getrefcount(q)] == [2, 2]
    del p, q
    assert [sys.getrefcount(one) for one in watched] == counts
    for _ in range(1000):
        kernel(a.tolist(), b)
        with pytest.raises(ValueError, match="`i0`"):
            kernel(a[:, :2], b)
    gc.collect()  # tracebacks of the errors hold on to the arguments; the last one still does
    assert sys.getrefcount(a) <= counts[0] + 2
    assert sys.getrefcount(b) <= counts[1] + 2
    assert sys.getrefcount(np.ndarray) <= counts[3] + 2


def test_many_python_threads_share_a_kernel(same_bits):
    x = ca.SX.sym("x", 8)
    kernel = compile(ca.Function("f", [x], [ca.sin(x) @ ca.cos(x).T]))
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(batch, 8)) for batch in (1, 7, 500, 4000)]
    expected = [kernel(one) for one in batches]
    wrong = []

    def work():
        for _ in range(20):
            for one, right in zip(batches, expected, strict=True):
                if not same_bits(kernel(one), right):
                    wrong.append(len(one))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_during_a_long_batch():
    x = ca.SX.sym("x", 4)
    y = x
    for _ in range(15):
        y = ca.sin(y) + x
    kernel = compile(ca.Function("f", [x], [y]))
    batch, ticks, done = np.ones((300_000, 4)), [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    kernel(batch)
    done.set()
    thread.join()
    assert len(ticks) > 3
