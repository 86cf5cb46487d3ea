"""Every operation that CasADi can put into a graph, against NumPy: ordinary, tiny, huge and special
arguments. Elementary functions are held to 2 units in the last place of an 80-bit reference."""

import math

import casadi as ca
import mpmath
import numpy as np
import pytest
import scipy.special

from framefree.kernel import compile

SPECIAL = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.7, 3.0, -7.5, np.inf, -np.inf, np.nan),
        *(5e-324, -5e-324, 1e-310, 2.3e-308, 1e300, -1e300, 1.7e308, 1e5, -1e5, 1e6, 1e22),
        *(710.0, -746.0),
    ]
)
RNG = np.random.default_rng(3)
GENERAL = np.concatenate(
    [
        SPECIAL,
        RNG.normal(size=3000),
        RNG.normal(size=2000) * 10.0 ** RNG.uniform(-300, 300, size=2000),
        RNG.uniform(-1, 1, size=3000),
    ]
)


def kernel_of(operation, count=1):
    symbols = [ca.SX.sym(f"x{k}") for k in range(count)]
    function = ca.Function("f", symbols, [operation(*symbols)])
    shapes = dict.fromkeys([*function.name_in(), *function.name_out()], ())
    return compile(function, shapes=shapes, cache=False)


def assert_equal(got, expected, ulps=0.0, zeros=True):
    """Compare, in units in the last place of the reference; NaN, inf and signed zeros exactly."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(expected).astype(float)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    finite = np.isfinite(rounded)
    special = ~finite & ~np.isnan(rounded)
    np.testing.assert_array_equal(got[special], rounded[special])
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.longdouble) - expected)[finite]
    error = error / np.spacing(np.maximum(np.abs(rounded[finite]), 5e-324))
    assert error.max() <= ulps, (error.max(), np.flatnonzero(finite)[np.argmax(error)])
    if zeros:
        zero = finite & (rounded == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))


EXACT_UNARY = {
    "neg": (lambda x: -x, lambda x: -x),
    "abs": (ca.fabs, np.abs),
    "sqrt": (ca.sqrt, np.sqrt),
    "floor": (ca.floor, np.floor),
    "ceil": (ca.ceil, np.ceil),
    "sign": (ca.sign, np.sign),
    "square": (lambda x: x**2, lambda x: x * x),
    "twice": (lambda x: x + x, lambda x: x + x),
    "inverse": (lambda x: 1 / x, lambda x: 1 / x),
    "not": (ca.logic_not, lambda x: (x == 0).astype(float)),
    "root of the power": (lambda x: x**0.5, lambda x: x**0.5),
    "same": (lambda x: x, lambda x: x),
    "printed": (lambda x: x.printme(0), lambda x: x),
}
EXACT_BINARY = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "div": (lambda x, y: x / y, np.divide),
    "lt": (lambda x, y: x < y, np.less),
    "le": (lambda x, y: x <= y, np.less_equal),
    "eq": (lambda x, y: x == y, np.equal),
    "ne": (lambda x, y: x != y, np.not_equal),
    "gt": (lambda x, y: x > y, np.greater),
    "and": (ca.logic_and, np.logical_and),
    "or": (ca.logic_or, np.logical_or),
    "fmod": (ca.fmod, np.fmod),
    "copysign": (ca.copysign, np.copysign),
    "if_else_zero": (lambda x, y: ca.if_else(x, y, 0), lambda x, y: np.where(x != 0, y, 0.0)),
    "remainder": (ca.remainder, np.vectorize(lambda x, y: remainder(x, y), otypes=[float])),
}
# name -> (of CasADi, reference, largest error, where it is sampled besides)
ELEMENTARY = {
    "sin": (ca.sin, np.sin, 2, (-1e5, 1e5)),
    "cos": (ca.cos, np.cos, 2, (-1e5, 1e5)),
    "tan": (ca.tan, np.tan, 2, (-50, 50)),
    "asin": (ca.asin, np.arcsin, 2, (-1, 1)),
    "acos": (ca.acos, np.arccos, 2, (-1, 1)),
    "atan": (ca.atan, np.arctan, 2, (-4, 4)),
    "exp": (ca.exp, np.exp, 2, (-745, 710)),
    "log": (ca.log, np.log, 2, (0, 4)),
    "sinh": (ca.sinh, np.sinh, 3, (-4, 4)),
    "cosh": (ca.cosh, np.cosh, 3, (-4, 4)),
    "tanh": (ca.tanh, np.tanh, 2, (-4, 4)),
    "asinh": (ca.asinh, np.arcsinh, 3, (-4, 4)),
    "acosh": (ca.acosh, np.arccosh, 3, (1, 4)),
    "atanh": (ca.atanh, np.arctanh, 3, (-1, 1)),
    "log1p": (ca.log1p, np.log1p, 2, (-1, 4)),
    "expm1": (ca.expm1, np.expm1, 2, (-4, 4)),
}


def remainder(x: float, y: float) -> float:
    try:
        return math.remainder(x, y)
    except ValueError:
        return math.nan


@pytest.mark.parametrize("name", EXACT_UNARY)
def test_exact_unary(name):
    operation, reference = EXACT_UNARY[name]
    with np.errstate(all="ignore"):
        assert_equal(kernel_of(operation)(GENERAL), reference(GENERAL))


@pytest.mark.parametrize("name", EXACT_BINARY)
def test_exact_binary(name):
    operation, reference = EXACT_BINARY[name]
    x, y = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.append(x, GENERAL), np.append(y, RNG.permutation(GENERAL))
    with np.errstate(all="ignore"):
        assert_equal(kernel_of(operation, 2)(x, y), reference(x, y).astype(float))


@pytest.mark.parametrize(
    ("operation", "reference"), [(ca.fmin, np.fmin), (ca.fmax, np.fmax)], ids=["min", "max"]
)
def test_extrema_prefer_numbers_to_nan(operation, reference):
    x, y = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))
    assert_equal(kernel_of(operation, 2)(x, y), reference(x, y), zeros=False)


@pytest.mark.parametrize("name", ELEMENTARY)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider reference at hand")
def test_elementary(name):
    operation, reference, ulps, (low, high) = ELEMENTARY[name]
    x = np.concatenate([GENERAL, RNG.uniform(low, high, size=20000)])
    multiples = RNG.integers(-60000, 60000, size=5000) * (np.pi / 2)
    if name in ("sin", "cos"):
        x = np.concatenate([x, multiples, np.nextafter(multiples, 0)])
    if name in ("log", "asin", "acos"):
        x = np.concatenate([x, 1 - 10.0 ** RNG.uniform(-16, 0, size=5000)])
    with np.errstate(all="ignore"):
        wide = reference(x.astype(np.longdouble))
    if name in ("sin", "cos", "tan"):  # the wide C functions are no reference for huge arguments
        wide = np.where(np.abs(x) > 1e18, np.nan_to_num(reference_mp(name, x)), wide)
        wide[~np.isfinite(x)] = np.nan
    assert_equal(kernel_of(operation)(x), wide, ulps)


def reference_mp(name, x):
    with mpmath.workprec(1200):
        return np.array(
            [
                float(getattr(mpmath, name)(mpmath.mpf(float(v)))) if 1e18 < abs(v) < 1.8e308 else 0
                for v in x
            ]
        )


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "log", "atan", "asin", "acos", "tanh"])
def test_elementary_against_mpmath(name):
    """The same bound from an independent source, on fewer points."""
    x = {
        "sin": RNG.uniform(-1e5, 1e5, 400),
        "cos": RNG.uniform(-1e5, 1e5, 400),
        "exp": RNG.uniform(-700, 700, 400),
        "log": 10.0 ** RNG.uniform(-300, 300, 400),
    }.get(name, RNG.uniform(-1, 1, 400))
    got = kernel_of(getattr(ca, name))(x)
    with mpmath.workprec(200):
        for argument, value in zip(x, got, strict=True):
            exact = getattr(mpmath, name)(mpmath.mpf(float(argument)))
            error = abs(mpmath.mpf(float(value)) - exact) / float(np.spacing(abs(float(exact))))
            assert error <= 2, (argument, float(error))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no wider reference at hand")
def test_tanh_at_every_switch_of_its_reduction():
    """Where |x| passes from one multiple of ln(2)/2 to the next, and up to where it becomes 1."""
    switches = (np.arange(56) + 0.5) * np.log(2) / 2
    near = (
        switches[:, None] + RNG.normal(size=(56, 3000)) * 10.0 ** RNG.uniform(-9, -1, 3000)
    ).ravel()
    x = np.concatenate([near, RNG.uniform(0, 20, 100_000), RNG.uniform(0, 0.6, 100_000)])
    tanh = kernel_of(ca.tanh)
    got = tanh(x)
    assert_equal(got, np.tanh(x.astype(np.longdouble)), 2)
    np.testing.assert_array_equal(tanh(-x), -got)
    assert (np.abs(got) <= 1).all()
    np.testing.assert_array_equal(tanh(np.array([19.1, 22.0, 1e3])), 1.0)


def test_atan2():
    x, y = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.append(x, RNG.normal(size=20000)), np.append(y, RNG.normal(size=20000))
    assert_equal(kernel_of(ca.atan2, 2)(y, x), np.arctan2(y.astype(np.longdouble), x), 2)


def test_pow_and_hypot():
    x, y = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.append(x, RNG.uniform(0, 9, 3000)), np.append(y, RNG.normal(size=3000))
    with np.errstate(all="ignore"):
        assert_equal(kernel_of(lambda a, b: a**b, 2)(x, y), np.power(x, y), 1)
        assert_equal(kernel_of(ca.hypot, 2)(x, y), np.hypot(x, y), 1)


@pytest.mark.parametrize("exponent", [2, 3, 7, -1, -3, 0.5, 1.5, -0.5, -2.5, 0.3, 2.7, 101, 0])
def test_constant_powers(exponent):
    x = np.concatenate([RNG.uniform(0.1, 9, 3000), [0.0, np.inf, np.nan]])
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), exponent)
    assert_equal(kernel_of(lambda a: a**exponent)(x), expected, 5)


def test_erf_and_its_inverse():
    x = np.concatenate([RNG.uniform(-3, 3, 3000), SPECIAL])
    assert_equal(kernel_of(ca.erf)(x), scipy.special.erf(x), 2)
    y = np.concatenate([RNG.uniform(-1, 1, 3000), 1 - 10.0 ** RNG.uniform(-16, 0, 3000)])
    y = np.concatenate([y, 10.0 ** RNG.uniform(-300, 0, 1000), [0.0, 1.0, -1.0, 1.5, np.nan]])
    assert_equal(kernel_of(ca.erfinv)(y), scipy.special.erfinv(y), 4)


def test_conditionals_keep_the_other_branch_out():
    """A NaN, an infinity or a signed zero of the branch not taken does not come through."""
    kernel = kernel_of(lambda c, a, b: ca.if_else(c, a, b), 3)
    condition, a, b = (axis.ravel() for axis in np.meshgrid(SPECIAL, SPECIAL, SPECIAL))
    assert_equal(kernel(condition, a, b), np.where(condition != 0, a, b))
    one_sided = kernel_of(lambda x: ca.if_else(x > 0, ca.log(x), ca.sqrt(-x)))
    with np.errstate(all="ignore"):
        expected = np.where(GENERAL > 0, np.log(GENERAL), np.sqrt(-GENERAL))
    assert_equal(one_sided(GENERAL), expected, 2)


def test_nested_conditionals_and_logic():
    def operation(x, y):
        inside = ca.logic_and(x > 0, ca.logic_not(y >= x))
        return ca.if_else(inside, ca.if_else(ca.logic_or(x > 1, y < -1), x, y), x + y)

    x, y = RNG.normal(size=(2, 4000)) * 2
    inside = (x > 0) & ~(y >= x)
    expected = np.where(inside, np.where((x > 1) | (y < -1), x, y), x + y)
    assert_equal(kernel_of(operation, 2)(x, y), expected)
