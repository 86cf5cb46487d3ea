"""Routines give the same bits as Python, compiled for any number of lanes, and as C."""

import numpy as np
import pytest
from random_routines import random_routine
from test_c_source import Library, needs_gcc

from framefree.kernel.loops import Calls
from framefree.kernel.routines import (
    Array,
    Desk,
    Layout,
    Procedure,
    RoutineError,
    routine,
)
from framefree.kernel.routines.liveness import Liveness
from framefree.kernel.target import host

STATES = 21

needs_fma = pytest.mark.skipif(not host().fma, reason="fused operations are compared")


def calls_of(main, label):
    layout = Layout({"x": 8, "y": 8}, {"five": 5}, {"list": (4, 2, 7)})
    one = Procedure(label, main, layout, ("x",), ("y",))
    calls = Calls(label)
    calls.call(one, [calls.input("x", (8,))], [calls.output("y", (8,))])
    return one, calls


def check(seed, folder, same_bits, lanes):
    main, text = random_routine(seed, folder)
    one, calls = calls_of(main, f"random_{seed}")
    x = np.random.default_rng(seed).normal(size=(STATES, 8))
    wanted = np.array([one(row)[0] for row in x])
    for count in lanes:
        kernel = calls.compile(use_cache=False, lanes=count)
        assert same_bits(kernel(x), wanted), (count, text)
        assert same_bits(kernel(x[3]), wanted[3]), text
    return calls, x, wanted, text


@needs_fma
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.first_cases(5)
def test_random_routines_in_lanes(seed, tmp_path, same_bits):
    check(seed, tmp_path, same_bits, [(2, 8), (4,), (8,)][seed % 3])


@needs_fma
@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_random_routines_in_lanes(first, tmp_path, same_bits):
    for seed in range(first, first + 20):
        check(seed, tmp_path, same_bits, (8, 4))


@needs_gcc
@needs_fma
@pytest.mark.parametrize("seed", range(40, 50))
def test_random_routines_as_c(seed, tmp_path, same_bits):
    calls, x, wanted, text = check(seed, tmp_path, same_bits, (1,))
    flags = "-ffp-contract=off", "-Wno-tautological-compare"
    library = Library(calls.compile(use_cache=False), tmp_path, *flags)
    for row, one in zip(x, wanted, strict=True):
        assert same_bits(library(row), one), text


def test_random_routines_do_many_things(tmp_path):
    """Otherwise the tests above would show little."""
    texts = [random_routine(seed, tmp_path)[1].split("def main")[1] for seed in range(24)]
    for word in ("while ", "for k1", "break", "continue", "return", "else:", " and ", "spread("):
        assert any(word in text for text in texts), word


@routine
def first_larger(w: Desk) -> None:
    """Ends at a place that differs from state to state, and gives way to what is no number."""
    found = -1
    for k in range(8):
        if w.x[k] > 0.5:
            found = k
            break
    w.y[0] = float(found)
    w.y[1] = min(w.x[0], w.x[1])
    w.y[2] = max(w.x[0], w.x[1])
    for k in range(3, 8):
        w.y[k] = 0.0


def test_special_values(same_bits):
    one, calls = calls_of(first_larger, "special")
    values = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0]
    x = np.array([[a, b, *[0.0] * 5, 1.0] for a in values for b in values])
    wanted = np.array([one(row)[0] for row in x])
    for lanes in (1, 4, 8):
        assert same_bits(calls.compile(use_cache=False, lanes=lanes)(x), wanted)


def test_live_variables():
    def turns(w: Desk) -> None:
        kept, lost = 0.0, 0.0
        for k in range(3):
            lost = w.x[k]
            if lost > 0.0:
                kept = lost
        w.y[0] = kept

    live = Liveness(routine(turns).tree)
    loop = next(one for one in live.head if one in live.after)
    assert live.after[loop] == {"w", "kept"}
    assert "lost" not in live.head[loop]


@routine
def listed_elsewhere(w: Desk) -> None:
    w.y[0] = float(w.list[int(w.x[0])])


@routine
def of_text(w: Desk) -> None:
    w.y[0] = "text"


@routine
def overlong(a: Array) -> None:
    a[0] = [1.0, 2.0][0]


def test_what_is_not_translated_is_refused():
    with pytest.raises(RoutineError, match="`list` is asked for a place that differs"):
        calls_of(listed_elsewhere, "listed")[1].compile(use_cache=False, lanes=4)
    with pytest.raises(RoutineError, match=r"line 3 of the routine `of_text`.*'text'"):
        calls_of(of_text, "text")[1].compile(use_cache=False)
    with pytest.raises(RoutineError, match="outside of the part"):
        calls_of(overlong, "overlong")[1].compile(use_cache=False)
