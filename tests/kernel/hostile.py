"""Throws all kinds of arguments at kernels; run as a script, so that a crash is seen as one.

Every call must either return arrays of the right shape or raise one of the exceptions below.
"""

import ctypes
import mmap
import sys

import casadi as ca
import numpy as np

from framefree.kernel import compile

ALLOWED = (ValueError, TypeError, MemoryError)


def kernels():
    x, y, s = ca.SX.sym("x", 5), ca.SX.sym("y", 2, 3), ca.SX.sym("s")
    empty = ca.SX.sym("e", 0, 3)
    total = ca.sum1(x) * s + ca.sum1(ca.sum2(y))
    yield compile(ca.Function("f", [x, y, s], [x * s, y * total]), shapes={"i2": ()})
    yield compile(ca.Function("g", [x], [ca.sin(x)]))
    yield compile(ca.Function("h", [empty, s], [empty, s]))
    big = ca.SX.sym("b", 13, 13)
    yield compile(ca.Function("k", [big, x], [big @ big, x]))
    following = ca.Function("r", [x, s], [x * s, ca.sin(x)], ["x", "p"], ["x_next", "y"])
    yield compile(following)


class Odd:
    """An object that pretends to be an array and fails in various ways."""

    def __init__(self, mood):
        self.mood = mood

    def __array__(self, dtype=None, copy=None):
        if self.mood == 0:
            raise RuntimeError("no")
        if self.mood == 1:
            return np.array([[object()]], dtype=object)
        return [1.0]  # not an array, against the rules

    def __len__(self):
        return 2**62

    def __getitem__(self, index):
        raise IndexError(index)


def argument(rng, shape):
    """A value for an argument of the given shape: often right, often not."""
    batch = int(rng.choice([0, 1, 2, 3, 4, 7, 8, 33]))
    full = shape if rng.random() < 0.3 else (batch, *shape)
    if rng.random() < 0.1:
        full = tuple(int(n) for n in rng.integers(0, 4, size=rng.integers(0, 5)))
    kinds = [float, float, float, np.float32, int, bool, complex, ">f8", "U3", object, "M8[s]"]
    kind = kinds[rng.integers(len(kinds))]
    array = np.zeros(full, dtype=kind) if rng.random() < 0.2 else None
    if array is None:
        array = rng.normal(size=full) if kind is float else np.ones(full, dtype=kind)
    choice = rng.integers(16)
    if choice == 0 and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    elif choice == 1:
        array = np.asfortranarray(array)
    elif choice == 2:
        array.flags.writeable = False
    elif choice == 3 and array.ndim:
        array = array[::-1]
    elif choice == 4 and array.ndim:
        array = np.broadcast_to(array[:1], (3 * len(array), *array.shape[1:]))
    elif choice == 5:
        array = array.view(np.matrix) if array.ndim == 2 else np.ma.masked_array(array)
    elif choice == 6 and array.dtype == float:
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
        array = raw.view(float).reshape(array.shape)
    elif choice == 7 and rng.random() < 0.3:
        return np.broadcast_to(np.float64(1), (2**40, *shape))
    elif choice == 8:
        strange = [None, "text", b"x", {}, object(), Odd(0), Odd(1), Odd(2), ..., 1e400, 2**70]
        return strange[rng.integers(len(strange))]
    elif choice == 9:
        return array.tolist()
    return array


def call(rng, kernel) -> bool:
    """Make one call; tell whether it was accepted."""
    arguments = [argument(rng, port.shape) for port in kernel.inputs]
    named = {}
    if rng.random() < 0.1 and arguments:
        named[kernel.inputs[-1].name] = arguments.pop()
    if rng.random() < 0.05:
        arguments = arguments[:-1] if rng.random() < 0.5 else [*arguments, 1.0]
    if rng.random() < 0.1:
        named["threads"] = [1, 2, 5, 0, -3, None, "2", 2**70][rng.integers(8)]
    if rng.random() < 0.15:
        outs = [argument(rng, port.shape) for port in kernel.outputs]
        outs = [arguments[0] if rng.random() < 0.2 and arguments else one for one in outs]
        named["out"] = outs[0] if len(outs) == 1 else tuple(outs)
    try:
        if rng.random() < 0.1 and kernel.name == "r":
            steps = [0, 1, 5, -1, 2.5, None, "3", 2**63][rng.integers(8)]
            every = [0, 1, 2, 2**63, 2**64, -1][rng.integers(6)]
            if steps == 2**63:
                arguments = arguments[:1]  # or it would take a while
            kernel.rollout(*arguments, steps=steps, every=every, **named)
            return True
        results = kernel(*arguments, **named)
    except ALLOWED:
        return False
    results = results if isinstance(results, tuple) else (results,)
    for port, result in zip(kernel.outputs, results, strict=True):
        assert isinstance(result, np.ndarray), type(result)
        assert result.shape[result.ndim - len(port.shape) :] == port.shape, result.shape
        float(np.nansum(result))
    return True


def fenced(shape: tuple[int, ...], at_end: bool) -> np.ndarray:
    """An array that ends, or begins, at memory that must not be touched."""
    page = mmap.PAGESIZE
    size = int(np.prod(shape)) * 8
    pages = -(-size // page)
    whole = mmap.mmap(-1, (pages + 2) * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start in (address, address + (pages + 1) * page):
        if libc.mprotect(start, page, 0):
            raise OSError("mprotect")
    first = (pages + 1) * page - size if at_end else page
    return np.frombuffer(whole, float, int(np.prod(shape)), first).reshape(shape)


def fences() -> None:
    """Call kernels of many sizes with arrays that have forbidden memory on either side."""
    for size in (1, 2, 3, 4, 5, 7, 8, 9, 13):
        x, y = ca.SX.sym("x", size), ca.SX.sym("y", size)
        step = [ca.sin(x) + y, x * y]
        function = ca.Function("f", [x, y], step, ["x", "y"], ["x_next", "z"])
        for lanes in (None, 1, 2, 4, 8):
            kernel = compile(function, lanes=lanes, cache=False)
            for batch in (1, 2, 3, 5, 9, 33):
                for at_end in (False, True):
                    a, b = fenced((batch, size), at_end), fenced((size,), at_end)
                    outs = tuple(fenced((batch, size), at_end) for _ in range(2))
                    a[:], b[:] = 0.5, 0.25
                    kernel(a, b)
                    kernel(a, b, out=outs)
                    assert np.all(outs[1] == 0.125)
                    kernel.rollout(a, sequences={"y": np.tile(b, (3, 1))}, steps=3)
    print("survived the fences")


def main(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    every = list(kernels())
    accepted = sum(call(rng, every[rng.integers(len(every))]) for _ in range(count))
    assert accepted > count // 20, accepted
    print("survived", count, "calls;", accepted, "were in order")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        if sys.argv[1] == "fences":
            fences()
        else:
            main(int(sys.argv[1]), int(sys.argv[2]))
