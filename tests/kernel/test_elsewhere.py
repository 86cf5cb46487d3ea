"""What another process compiles has the same bits, and is not needed."""

import subprocess

import casadi as ca
import numpy as np
import pytest

from framefree.gallery.machines.arms import revolute_chain
from framefree.kernel import compile, elsewhere, native
from framefree.motion import equations
from framefree.motion.loops.trees import matrix_program


@pytest.fixture
def always(monkeypatch):
    """Share everything among processes, and note how many there were."""
    started = []
    right = elsewhere.Compilation.__init__

    def noted(self, *work):
        started.append(work)
        right(self, *work)

    monkeypatch.setattr(elsewhere, "worthwhile", lambda lines: True)
    monkeypatch.setattr(elsewhere.Compilation, "__init__", noted)
    return started


def long_function():
    """Return a function of several stages, with functions that are called from all of them."""
    x = ca.SX.sym("x", 8)
    value = x
    for k in range(60):
        value = ca.sin(value) + ca.exp(-(value**2)) * ca.vertcat(value[1:], value[0]) / (k + 2)
        value = value + ca.if_else(value > 0.3, ca.tanh(value), ca.atan(value))
    return ca.Function("long", [x], [value, ca.jacobian(value[0], x)], ["x"], ["y", "slope"])


def test_halves_have_the_same_bits(always, tmp_path):
    function, rows = long_function(), np.random.default_rng(0).normal(size=(33, 8))
    together = compile(function, cache=tmp_path)
    assert len(always) == 1, "a second process must have been started"
    again = compile(function, cache=tmp_path)
    assert len(always) == 1, "the cache must have both halves"
    elsewhere_off = pytest.MonkeyPatch()
    elsewhere_off.setattr(elsewhere, "worthwhile", lambda lines: False)
    alone = compile(function, cache=False)
    elsewhere_off.undo()
    for kernel in (together, again):
        for a, b in zip(kernel(rows), alone(rows), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_function_of_one_stage_is_not_cut(always):
    x = ca.SX.sym("x", 3)
    compile(ca.Function("short", [x], [x * ca.sin(x)]), cache=False)(np.ones(3))
    assert not always


def test_programs_of_calls(always):
    eom = equations(revolute_chain(4), "tree")
    program = matrix_program(eom, "mass")
    kernel = program.compile(use_cache=False)
    assert len(always) == 1
    x = eom.machine.random(np.random.default_rng(0), 5)
    np.testing.assert_allclose(kernel(x), [eom.numbers("mass", x=row)[0] for row in x], rtol=1e-12)
    np.testing.assert_array_equal(kernel(x[2]), kernel(x)[2])


@pytest.mark.parametrize("fault", ["fails", "cannot start"])
def test_without_the_other_process(always, monkeypatch, fault):
    """A process that fails, or does not start, costs its time and nothing else."""
    if fault == "fails":
        monkeypatch.setattr(elsewhere.Compilation, "object_file", lambda self: None)
    else:

        def refuse(*_, **__):
            raise OSError("no more processes")

        monkeypatch.setattr(subprocess, "Popen", refuse)
    rows = np.random.default_rng(0).normal(size=(5, 8))
    kernel = compile(long_function(), cache=False)
    assert len(always) == 1
    for a, b in zip(kernel(rows[2]), kernel(rows), strict=True):
        np.testing.assert_array_equal(a, b[2])


def test_short_modules_stay_here():
    assert not elsewhere.worthwhile(elsewhere.LARGE - 1)


def test_an_error_of_the_compiler_is_seen(always):
    """Text that LLVM refuses is refused here, whoever was asked."""
    from framefree.kernel.target import host

    good = "define void @f() {\nentry:\n  ret void\n}\n"
    with pytest.raises(RuntimeError):
        native.compile_both((good, host(), ""), ("nonsense", host(), ""))
