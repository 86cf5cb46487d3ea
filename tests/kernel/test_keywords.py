"""Calls by name, with `threads=1` and with `out=` stay in native code and mean what they say."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile
from framefree.kernel.call import Caller

X, Y = np.arange(3.0), np.array([5.0, 7.0])


@pytest.fixture(scope="module")
def kernel():
    x, y, t = ca.SX.sym("x", 3), ca.SX.sym("y", 2), ca.SX.sym("t")
    function = ca.Function("affine", [x, y, t], [x * t + y[0], y - t], ["x", "y", "t"], ["a", "b"])
    return compile(function, shapes={"t": ()})


CALLS = {
    "last by name": lambda kernel: kernel(X, Y, t=2.0),
    "all by name": lambda kernel: kernel(x=X, y=Y, t=2.0),
    "in another order": lambda kernel: kernel(t=2.0, y=Y, x=X),
    "one thread": lambda kernel: kernel(X, Y, 2.0, threads=1),
    "results given": lambda kernel: kernel(X, t=2.0, out=(np.empty(3), np.empty(2)), y=Y),
    "everything": lambda kernel: kernel(
        threads=1, out=(np.empty(3), np.empty(2)), y=Y, t=np.array(2.0), x=X
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_named_arguments_do_not_leave_native_code(kernel, call, monkeypatch):
    def left(*_, **__):
        raise AssertionError("the call left native code")

    monkeypatch.setattr(Caller, "__call__", left)
    a, b = call(kernel)
    assert np.array_equal(a, 2 * X + 5)
    assert np.array_equal(b, Y - 2)


def test_batches_by_name(kernel):
    many = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(kernel(x=many, y=Y, t=2.0)[0], 2 * many + 5)
    threaded = kernel(x=many, y=Y, t=2.0, threads=2)
    assert np.array_equal(threaded[0], 2 * many + 5)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {"x": X, "y": Y}, "misses `t`"),
        ((X,), {"x": X, "y": Y, "t": 1.0}, "`x` twice"),
        ((), {"x": X, "y": Y, "t": 1.0, "z": 1.0}, "no argument `z`"),
        ((X, Y, 1.0, 2.0), {}, "takes 3 arrays"),
        ((X, Y, 1.0), {"threads": 0}, "`threads`"),
        ((X,), {"y": X, "t": 1.0}, "`y` must have shape"),
    ],
)
def test_wrong_names_are_refused(kernel, arguments, named, message):
    with pytest.raises(ValueError, match=message):
        kernel(*arguments, **named)
