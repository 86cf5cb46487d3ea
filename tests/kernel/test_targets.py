"""Processors other than this one: without fused products, and with wider registers."""

import platform

import numpy as np
import pytest
from test_same_bits import everything, states

from framefree.kernel import interpreter, native
from framefree.kernel import kernel as kernel_module
from framefree.kernel.call import Caller
from framefree.kernel.code import EXTERNALS
from framefree.kernel.optimise import optimise
from framefree.kernel.program import lay_out
from framefree.kernel.reading import read
from framefree.kernel.target import Target, host

X86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="x86 only")
PLAIN = Target("x86-64", "+sse2", lanes=2, fma=False, rounding=False, spreads=False)
WIDE = Target(
    "skylake-avx512", "+avx512f,+avx2,+fma", lanes=8, fma=True, rounding=True, spreads=True
)


def object_for(target: Target) -> bytes:
    function = everything()
    inputs, outputs = kernel_module._ports(function, {})
    program = lay_out(optimise(read(function, inputs, outputs), fma=target.fma))
    return native.compile_object(native.assembly(program, target), target)


@X86
def test_a_processor_without_fused_products():
    function = everything()
    inputs, outputs = kernel_module._ports(function, {})
    code = native.load_object(object_for(PLAIN), PLAIN)
    caller = Caller("plain", inputs, outputs, code, native.TileLayout(16, 1000))
    x, y = states(50)
    x = np.where(np.isfinite(x) & (np.abs(x) < 1e3), x, 0.5)
    ours = kernel_module.compile(function, cache=False)
    for plain, usual in zip(caller(x, y), ours(x, y), strict=True):
        np.testing.assert_allclose(plain, usual, rtol=1e-9, atol=1e-9)


@X86
def test_wider_registers_compile():
    assert len(object_for(WIDE)) > 1000


def test_lanes_fit_this_processor():
    target = host()
    assert target.lanes in (2, 4, 8)
    assert host(1).lanes == 1
    assert host() is target


def test_the_slow_path_alone_gives_the_same(monkeypatch, same_bits):
    """Where the interpreter's objects look different, everything still works."""
    usual = kernel_module.compile(everything(), cache=False)
    monkeypatch.setattr(interpreter, "available", lambda: False)
    careful = kernel_module.compile(everything(), cache=False)
    x, y = states(20)
    assert all(same_bits(a, b) for a, b in zip(usual(x, y), careful(x, y), strict=True))
    assert all(same_bits(a, b) for a, b in zip(usual(x[0], y), careful(x[0], y), strict=True))
    with pytest.raises(ValueError, match="`x` must have shape"):
        careful(x[:, 1:], y)


def test_layout_of_objects_is_checked():
    assert interpreter.available()
    assert all(interpreter.addresses()[k] for k in range(len(EXTERNALS)))
    assert not interpreter._layout_holds(np.zeros(4, dtype=np.float32)[::2])
