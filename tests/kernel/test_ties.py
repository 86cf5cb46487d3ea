"""Minimum and maximum where both arguments are equal: every path has the same slope, half each."""

import ctypes
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from graph_values import evaluate

from framefree.kernel import compile
from framefree.kernel.c_source import c_source
from framefree.kernel.derivative import adjoint, tangent

EXTREMA = {"min": ca.fmin, "max": ca.fmax}
TIES = (0.0, 1.0, -3.5, 1e-300, 1e300)


def function(name):
    """Return an extremum of two arguments, and of more complicated ones that are equal as well."""
    x = ca.SX.sym("x", 2)
    a, b = x[0], x[1]
    best = EXTREMA[name]
    y = ca.vertcat(best(a, b), best(2 * a, 2 * b), best(-a, -b), best(a * b, b * a) + best(a, a))
    return ca.Function("f", [x], [y], ["x"], ["y"])


def slopes(at):
    """Return the slopes (4 x 2) where both arguments are `at`: each has its half."""
    return np.array([[0.5, 0.5], [1.0, 1.0], [-0.5, -0.5], [at + 1.0, at]])


def jacobian(f):
    x = ca.SX.sym("x", 2)
    return ca.Function("slopes", [x], [ca.jacobian(f(x), x)], ["x"], ["J"])


@pytest.mark.parametrize("name", EXTREMA)
@pytest.mark.parametrize("at", TIES)
def test_casadi_and_native_code_give_half_to_each(name, at):
    f = jacobian(function(name))
    x = np.array([at, at])
    np.testing.assert_array_equal(f(x).full(), slopes(at))
    np.testing.assert_array_equal(compile(f, cache=False)(x), slopes(at))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", EXTREMA)
def test_c_source_gives_half_to_each(name, tmp_path):
    kernel = compile(jacobian(function(name)), cache=False)
    source, _ = c_source(kernel.graph, kernel.name).write(tmp_path)
    library = tmp_path / "slopes.so"
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    for at in TIES:
        x, J = np.array([at, at]), np.full((4, 2), np.nan)
        ctypes.CDLL(str(library)).slopes(
            ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(J.ctypes.data)
        )
        np.testing.assert_array_equal(J, slopes(at))


@pytest.mark.parametrize("name", EXTREMA)
@pytest.mark.parametrize("at", TIES)
def test_our_own_derivatives_give_half_to_each(name, at):
    graph = compile(function(name), cache=False).graph
    x = np.array([at, at])
    forward = [evaluate(tangent(graph), x, e)[0] for e in np.eye(2)]
    reverse = [evaluate(adjoint(graph), x, e)[0] for e in np.eye(4)]
    np.testing.assert_array_equal(np.column_stack(forward), slopes(at))
    np.testing.assert_array_equal(np.vstack(reverse), slopes(at))


@pytest.mark.parametrize("name", EXTREMA)
def test_jax_gives_half_to_each(name):
    jax = pytest.importorskip("jax")
    from framefree.kernel.jax_target import jax_function

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        kernel = compile(function(name), cache=False)
        f = jax_function(kernel.graph, kernel.name)
        for at in TIES:
            for mode in (jax.jacfwd, jax.jacrev):
                np.testing.assert_array_equal(mode(f)(np.array([at, at])), slopes(at))
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", EXTREMA)
def test_beside_a_number_what_is_not_one_has_no_slope(name):
    """The value ignores a NaN beside a number, and so does the slope."""
    x = ca.SX.sym("x", 2)
    graph = compile(ca.Function("f", [x], [EXTREMA[name](x[0], x[1])]), cache=False).graph
    for x, expected in (([1.0, np.nan], [1.0, 0.0]), ([np.nan, 1.0], [0.0, 1.0])):
        (got,) = evaluate(adjoint(graph), x, [1.0])
        np.testing.assert_array_equal(got, expected)
