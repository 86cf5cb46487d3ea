"""C source: compiles without a warning, and gives the numbers of the native kernel."""

import ctypes
import itertools
import re
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest

from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.kernel import compile
from framefree.kernel.c_source import c_source
from framefree.kernel.elementary_c import NAMES
from framefree.kernel.expression import ExpressionProgram
from framefree.kernel.target import host
from framefree.motion.tree import Tree

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wshadow", "-Wconversion")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

NAN, INF = np.nan, np.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.3, -2.7, 3.0, 17.25, 1e-9, -1e9, INF, -INF, NAN]
UNARY = [
    *("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "floor", "ceil", "fabs", "sign", "erf", "erfinv", "log1p"),
    *("expm1", "logic_not"),
]
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "neg": lambda a, b: -(a + b) * b,
    "select": lambda a, b: ca.if_else(a < b, ca.sqrt(a), ca.log(b)),
    "select_number": lambda a, b: ca.if_else(a, 1 / a, b),
    "truth_in_arithmetic": lambda a, b: (a < b) / (b < a) - (a == 1),
    "fma": lambda a, b: (a + 1) * b + ca.sin(a),  # a product of its own, or it is not fused
    "fms": lambda a, b: (a + 2) * b - ca.sin(a),
    "fnma": lambda a, b: ca.sin(a) - (a + 3) * b,
    "constants": lambda a, b: ca.vertcat(a * -2.5 + 1e-300, INF * b, b - 1e22, -0.0, NAN),
    **{
        name: getattr(ca, name)
        for name in (
            *("fmin", "fmax", "atan2", "hypot", "copysign", "fmod", "remainder", "power"),
            *("logic_and", "logic_or"),
        )
    },
}


class Library:
    """A function in C, called as the kernel is."""

    def __init__(self, kernel, folder, *flags, name=None):
        self.kernel = kernel
        self.text = kernel.c_source(name)
        source, _ = self.text.write(folder)
        library = folder / f"{self.text.name}.so"
        command = ["gcc", *STRICT, "-O0", *flags, "-shared", "-fPIC", source, "-o", library, "-lm"]
        subprocess.run(command, check=True)
        self.function = ctypes.CDLL(str(library))[self.text.name]
        self.function.restype = None

    def __call__(self, *arguments, results=None):
        inputs = [np.array(one, dtype=float, ndmin=1, order="C") for one in arguments]
        results = results or [np.full(port.shape, 7e77) for port in self.kernel.outputs]
        arrays = (*inputs, *results)
        self.function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        return results[0] if len(results) == 1 else tuple(results)


def assert_same(got, wanted, name=""):
    """The same bits, where the kernel fuses products and sums as the C does."""
    if host().fma:
        np.testing.assert_array_equal(got, wanted, name)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-300, err_msg=name)
    zero = np.asarray(wanted) == 0
    np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(wanted)[zero], name)


@needs_gcc
def test_every_operation_equals_the_native_kernel_also_for_special_values(tmp_path):
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    names, results = zip(*BINARY.items(), strict=True)
    results = [function(a, b) for function in results]
    results += [getattr(ca, name)(a) for name in UNARY]
    names = [f"r_{name}" for name in (*names, *UNARY)]
    kernel = compile(ca.Function("operations", [a, b], results, ["a", "b"], names), cache=False)
    library = Library(kernel, tmp_path)
    rng = np.random.default_rng(1)
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL), *rng.normal(scale=2, size=(200, 2))])
    pairs = np.vstack([pairs, *(rng.normal(size=(100, 2)) * 10.0**k for k in (-6, -1, 2, 4, 7))])
    rows = [library(*pair) for pair in pairs]
    wanted = kernel(pairs[:, :1], pairs[:, 1:])
    for name, got, one in zip(names, zip(*rows, strict=True), wanted, strict=True):
        assert_same(np.array(got), one, name)


@needs_gcc
def test_an_elementary_function_alone_compiles_without_a_warning(tmp_path):
    """What several of them need is written where it is used, and only there."""
    symbols = {name: ca.SX.sym(name) for name in ("y", "x")}
    sources = []
    for name in NAMES:
        given = [*symbols.values()] if name == "atan2" else [symbols["x"]]
        function = ca.Function(name, given, [getattr(ca, name)(*given)])
        text = ExpressionProgram(function).c_source(f"alone_{name}")
        sources.append(str(text.write(tmp_path)[0]))
    for flag in ("-DFUSED", "-DUNFUSED"):
        subprocess.run(["gcc", *STRICT, "-O0", flag, "-c", *sources], check=True, cwd=tmp_path)


@needs_gcc
@pytest.mark.parametrize(
    "machine", [iiwa(), pytest.param(revolute_chain(30), marks=pytest.mark.slow)]
)
def test_dynamics(machine, tmp_path):
    kernel = compile(Tree(machine).functions["forward"])
    library = Library(kernel, tmp_path)
    rng = np.random.default_rng(2)
    for _ in range(20):
        state = [rng.normal(size=port.shape) for port in kernel.inputs]
        assert_same(library(*state), kernel(*state))


def arithmetic(pieces: int) -> ca.Function:
    """Many sums, products, quotients, roots and selections, in which every value matters."""
    rng = np.random.default_rng(3)
    x, y = ca.SX.sym("x", 5), ca.SX.sym("y", 2, 3)
    values = [*ca.vertsplit(x), *ca.vertsplit(ca.vec(y))]
    for k in range(pieces):
        a, b, c = (values[i] for i in rng.integers(max(0, len(values) - 40), len(values), 3))
        new = [a * b - c, a + b * c, a / (1 + b * b), ca.if_else(a < b, c, ca.sqrt(a * a + 1))]
        values.append(ca.tanh(new[k % 4]) if k % 100 == 0 else new[k % 4])
        if k % 50 == 49:
            values.append(values[-1] / (1 + sum(v * v for v in values[-30:])))
    last = ca.vertcat(*values[-12:])
    outputs = [last, ca.reshape(last[:6], 2, 3), ca.vertcat(x[4], 0, y[1, 2], 2.5)]
    return ca.Function("arithmetic", [x, y], outputs, ["x", "y"], ["p", "q", "r"])


@needs_gcc
@pytest.mark.parametrize("pieces", [100, 1500])
def test_whole_and_split_functions_agree(pieces, tmp_path):
    kernel = compile(arithmetic(pieces), cache=False)
    library = Library(kernel, tmp_path)
    assert ("static void" in library.text.source) == (pieces > 1000)
    rng = np.random.default_rng(4)
    for _ in range(20):
        state = rng.normal(size=5), rng.normal(size=(2, 3))
        for got, wanted in zip(library(*state), kernel(*state), strict=True):
            assert_same(got, wanted)


@needs_gcc
@pytest.mark.skipif(not host().fma, reason="no fused multiply-add here")
def test_without_elementary_functions_the_bits_are_those_of_the_native_kernel(tmp_path):
    x, v = ca.SX.sym("x", 4), ca.SX.sym("v", 4)
    a = x * v + ca.sqrt(ca.sumsqr(x)) / (1 + v * v) - ca.if_else(x < v, x, v * x)
    step = ca.Function("step", [x, v], [x + 0.1 * v - a * x, a], ["x", "v"], ["x_next", "a"])
    kernel = compile(step, cache=False)
    library = Library(kernel, tmp_path, "-march=native", "-O3")
    rng = np.random.default_rng(5)
    for _ in range(300):
        state = rng.normal(size=4), rng.normal(size=4)
        for got, wanted in zip(library(*state), kernel(*state), strict=True):
            np.testing.assert_array_equal(got, wanted)


@needs_gcc
@pytest.mark.parametrize("pieces", [100, 1500])
def test_outputs_may_replace_inputs(pieces, tmp_path):
    kernel = compile(arithmetic(pieces), cache=False)
    library = Library(kernel, tmp_path)
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=12), rng.normal(size=(2, 3))
    wanted = library(x[:5], y)
    both = [x, y, np.empty(4)]
    addresses = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, *both)]
    library.function(*addresses)
    for got, one in zip(both, wanted, strict=True):
        np.testing.assert_array_equal(got, one)


@needs_gcc
@pytest.mark.parametrize(
    ("function", "inputs", "outputs"),
    [
        ("double", ["int", "class"], ["for", "new"]),
        ("sin", ["cos", "sin_"], ["fabs", "y1"]),
        ("exit", ["n0", "n1"], ["work", "place"]),
        ("f", ["x", "X"], ["FMA", "minimum"]),
        ("f_0", ["f_0_0", "f_0_1"], ["f_0_2", "NAN"]),
    ],
)
@pytest.mark.parametrize("pieces", [3, 1500])
@pytest.mark.first_cases(1)
def test_names_that_c_cannot_have(function, inputs, outputs, pieces, tmp_path):
    long = arithmetic(pieces)
    a, b = ca.SX.sym("a", 5), ca.SX.sym("b", 2, 3)
    p, q, _ = long(a, b)
    results = [ca.fmin(ca.cos(p), p[::-1]), ca.sin(q)]
    kernel = compile(ca.Function(function, [a, b], results, inputs, outputs), cache=False)
    library = Library(kernel, tmp_path)
    state = np.linspace(-1, 1, 5), np.linspace(0, 2, 6).reshape(2, 3)
    for got, wanted in zip(library(*state), kernel(*state), strict=True):
        assert_same(got, wanted)
    macros = re.findall(r"#define (\w+) ", library.text.header)
    assert len(macros) == len(set(macros)) == 4


@needs_gcc
def test_unused_and_empty_ports(tmp_path):
    x, unused, empty = ca.SX.sym("x", 2), ca.SX.sym("u", 3), ca.SX.sym("e", 0)
    outputs = [ca.SX(2, 2), ca.SX(0, 1), ca.vertcat(1.5, x[1]), ca.SX(ca.Sparsity.upper(2), x[0])]
    function = ca.Function("f", [x, unused, empty], outputs)
    kernel = compile(function, cache=False)
    library = Library(kernel, tmp_path)
    state = np.array([3.0, 4.0]), np.zeros(3), np.zeros(0)
    for got, wanted in zip(library(*state), kernel(*state), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_header_serves_c_plus_plus_and_names_the_sizes(tmp_path):
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2, 3)
    graph = compile(ca.Function("law", [x, p], [p @ x], ["x", "p"], ["u"])).graph
    c_source(graph, "law").write(tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "law.h"\n#include "law.h"\n'
        "int main() { double x[LAW_X_SIZE] = {1, 2, 3}, p[LAW_P_SIZE] = {1, 0, 0, 0, 1, 1};\n"
        "double u[LAW_U_SIZE]; law(x, p, u); return !(u[0] == 1 && u[1] == 5); }\n"
    )
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["gcc", *STRICT, "-c", "law.c"], cwd=tmp_path, check=True)
    command = ["g++", *strict, "main.cpp", "law.o", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "main"], check=True)


def test_is_plain_ascii_and_always_the_same():
    graph = compile(arithmetic(50), cache=False).graph
    one, other = c_source(graph, "größe"), c_source(graph, "größe")
    assert one == other
    assert one.name == "gr__e"
    assert (one.source + one.header).isascii()
    assert "malloc" not in one.source
