"""Programs made of calls as C: without a warning, without allocation, and the kernel's numbers."""

import re

import casadi as ca
import numpy as np
import pytest
from test_c_source import Library, needs_gcc
from test_native_loops import filtered

from framefree.control import LimitedTaskControl
from framefree.control.references import FramePath
from framefree.control.tasks import FrameControl, JointControl
from framefree.gallery.machines.arms import revolute_chain
from framefree.geometry import se3
from framefree.kernel import CompileError
from framefree.kernel.loops import Calls
from framefree.kernel.target import host
from framefree.machine.actuators import motors

X0 = np.array([0.4, 0.5, 0.6])
TARGET = FramePath("target", lambda t: se3.exp(ca.vertcat(0.3, 0.1 * t, 0.2, 0.1, 0.5 * t, 0.3)))


def program(tunable=False):
    """The limited law of an arm whose motors are too weak."""
    chain = revolute_chain(3)
    arm = chain.attach(*motors(chain.joints))
    for joint in arm.joints:
        arm = arm.replace(f"joint:{joint.name}", effort_limit=2.0, velocity_limit=0.8)
    arm = arm.tunable("link2.mass") if tunable else arm
    tip = arm.bodies[-1].name
    levels = [[FrameControl(tip, "target", 100.0)], [JointControl(arm, X0, Kp=20.0)]]
    law = LimitedTaskControl(arm, levels)
    return law, law.program(TARGET, signals=False).made


@needs_gcc
@pytest.mark.parametrize("n", [1, 40, 4000])
def test_a_chain_of_calls(n, tmp_path):
    kernel = filtered(n).compile(use_cache=False)
    library = Library(kernel, tmp_path)
    rng = np.random.default_rng(n)
    x, gain = rng.normal(size=n), rng.normal(size=2)
    for got, wanted in zip(library(x, gain), kernel(x, gain), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15)


def test_code_does_not_grow_with_the_list():
    """But for one row of the table a call."""
    short, long = (filtered(n).c_source().source for n in (10, 1000))
    rows = re.compile(r"^    \{[\d, ]+\},\n", re.MULTILINE)
    assert len(rows.findall(long)) == 2001
    assert abs(len(rows.sub("", long)) - len(rows.sub("", short))) < 200


@needs_gcc
def test_names_that_the_text_uses_itself(tmp_path):
    calls = Calls("calls")
    names = "work", "row", "call", "copy", "numbers", "calls_0", "long", "größe"
    blocks = [calls.input(name, (1,)) for name in names]
    total, symbols = calls.output("desk", (1,)), [ca.SX.sym("work") for _ in names]
    weighted = sum((k + 1) * one for k, one in enumerate(symbols))
    calls.call(ca.Function("sum", symbols, [weighted]), blocks, [total])
    library = Library(calls.compile(use_cache=False), tmp_path)
    assert library(*range(8)) == sum((k + 1) * k for k in range(8))


@needs_gcc
def test_calls_that_a_flag_leaves_out(tmp_path):
    calls = Calls("flagged")
    x, flag = calls.input("x", (1,)), calls.input("flag", (1,))
    y, s = calls.output("y", (1,)), ca.SX.sym("s")
    calls.call(ca.Function("first", [s], [s + 1]), [x], [y])
    calls.call(ca.Function("second", [s], [10 * s]), [x], [y], unless=flag)
    library = Library(calls.compile(use_cache=False), tmp_path)
    assert library(3.0, 0.0) == 30.0
    assert library(3.0, 1.0) == 4.0


def test_an_output_that_nobody_writes():
    calls = Calls("empty")
    calls.input("x", (1,))
    calls.output("y", (1,))
    with pytest.raises(CompileError, match="no call writes all of the output `y`"):
        calls.c_source()


@needs_gcc
@pytest.mark.parametrize("tunable", [False, True])
@pytest.mark.first_cases(1)
def test_the_limited_law(tunable, tmp_path):
    """With limits active, warm start after warm start, the memory advanced in place."""
    law, calls = program(tunable)
    kernel = calls.compile()
    flags = ("-O2", "-mfma") if host().fma else ("-O2",)
    library = Library(kernel, tmp_path, *flags)
    text = library.text.source
    assert not re.search(r"alloc|^static (?!const)[^(\n]*[;=]", text, re.MULTILINE)
    assert re.search(r"for \(at\d+_ = ", text), "loops must stay loops"
    rng = np.random.default_rng(3)
    memory, own = law.memory.copy(), law.memory.copy()
    parameters = [[2.0]] if tunable else []
    for k in range(40):
        x, v = X0 + 0.2 * rng.normal(size=3), rng.normal(size=3)
        wanted, memory = kernel(0.1 * k, x, v, memory, *parameters)
        u = np.zeros(3)
        library(0.1 * k, x, v, own, *parameters, results=[u, own])
        np.testing.assert_allclose(u, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
        np.testing.assert_array_equal(own[3:], memory[3:])  # which rows are at their bounds
        own = memory.copy()
    assert np.abs(memory[3:]).max() > 0, "limits must act"
