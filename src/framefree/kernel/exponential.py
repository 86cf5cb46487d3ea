"""exp, log and what is made of them, on vectors of doubles."""

import math

from framefree.kernel.code import Code
from framefree.kernel.lanes import library, replace_rare

SHIFTER = float.fromhex("0x1.8p+52")  # adding it leaves the nearest integer in the low bits
LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN_2 = [float.fromhex(h) for h in ("0x1.62e42fefa39efp-1", "0x1.abc9e3b39803fp-56")]
# ln 2 with 40 bits, whose products with exponents are exact, and the rest.
LN_2_SHORT = [float.fromhex(h) for h in ("0x1.62e42fefa2000p-1", "0x1.9ef35793c7673p-41")]
SMALLEST_NORMAL = 2.0**-1022

# exp(r) = 1 + r + r^2 E(r) for |r| <= ln(2)/2; error 2^-62.
EXP = [
    float.fromhex(h)
    for h in (
        "0x1.0000000000000p-1",
        "0x1.5555555555559p-3",
        "0x1.555555555555ap-5",
        "0x1.111111110f6b5p-7",
        "0x1.6c16c16c14466p-10",
        "0x1.a01a01afe22f6p-13",
        "0x1.a01a01b0b0ef9p-16",
        "0x1.71ddf85ba000cp-19",
        "0x1.27e4c5ad7dc13p-22",
        "0x1.af5eb030eec9ap-26",
        "0x1.1f95500e4f925p-29",
    )
]
# r coth(r) = 1 + r^2 C(r^2) for |r| <= ln(2)/4; error 2^-60.
R_COTH_R = [
    float.fromhex(h)
    for h in (
        "0x1.555555555553ep-2",
        "-0x1.6c16c16bebca3p-6",
        "0x1.1566aaf228077p-9",
        "-0x1.bbd41bba52c3fp-13",
        "0x1.637642acd5e1dp-16",
    )
]
# log((1 + s)/(1 - s)) = 2s + s^3 L(s^2) for |s| <= (sqrt(2) - 1)^2; error 2^-59.
LOG = [
    float.fromhex(h)
    for h in (
        "0x1.5555555555592p-1",
        "0x1.999999997fdb8p-2",
        "0x1.24924941f12acp-2",
        "0x1.c71c5209551afp-3",
        "0x1.74663eea7d33fp-3",
        "0x1.39a1ba78df220p-3",
        "0x1.2f05665750d1fp-3",
    )
]


def _reduce(code: Code, x: str) -> tuple[str, str, str]:
    """Write x = k ln(2) + r; return k (in the low bits of a double), k as a double, exp(r) - 1."""
    shifted = code.fma(x, code.constant(LOG2_E), code.constant(SHIFTER))
    k = code.sub(shifted, code.constant(SHIFTER))
    minus_k = code.neg(k)
    r = code.fma(minus_k, code.constant(LN_2[0]), x)
    r = code.fma(minus_k, code.constant(LN_2[1]), r)
    return shifted, k, code.fma(code.mul(r, r), code.polynomial(r, EXP), r)


def _power_of_two(code: Code, k: str) -> str:
    """Return 2^k for whole k, given in the low bits of integers."""
    return code.from_bits(code.integer("shl", code.integer("add", k, 1023), 52))


def exp(code: Code, x: str) -> str:
    """Emit exp(x) = 2^k exp(r), in two factors since 2^k alone may overflow or be subnormal."""
    low, high = code.constant(-746.0), code.constant(710.0)
    x = code.select(code.compare("olt", x, low), low, x)
    x = code.select(code.compare("ogt", x, high), high, x)
    shifted, k, rest = _reduce(code, x)
    half = code.to_bits(code.fma(k, code.constant(0.5), code.constant(SHIFTER)))
    other = code.integer("sub", code.to_bits(shifted), half)
    value = code.add(code.constant(1.0), rest)
    return code.mul(code.mul(value, _power_of_two(code, half)), _power_of_two(code, other))


def tanh(code: Code, x: str) -> str:
    """Emit tanh(x) by its addition theorem.

    With |x| = r + k ln(2)/2 and r coth(r) = 1 + c,

    tanh(|x|) = (p + (1 + p) r + p c) / (1 + p + p (r + c) + c),       p = (2^k - 1)/2.

    For k = 0 this is r/(1 + c), as exact as r is. What rounding takes from the sum above the line
    is taken from that below too: near 1 the two are nearly equal, and the losses cancel.
    """
    size, limit = code.call("fabs", x), code.constant(19.0)  # there it has become 1
    size = code.select(code.compare("ogt", size, limit), limit, size)
    biased, half = code.constant(SHIFTER + 1022), code.constant(0.5)
    shifted = code.fma(size, code.constant(2 * LOG2_E), biased)
    minus_k = code.neg(code.sub(shifted, biased))
    power = code.from_bits(code.integer("shl", code.to_bits(shifted), 52))  # 2^k / 2
    r = code.fma(minus_k, code.constant(LN_2[0] / 2), size)
    r = code.fma(minus_k, code.constant(LN_2[1] / 2), r)
    square = code.mul(r, r)
    c = code.mul(square, code.polynomial(square, R_COTH_R))
    p, more, both = code.sub(power, half), code.add(power, half), code.add(r, c)
    small = code.fma(more, r, code.mul(p, c))
    above = code.add(p, small)
    lost = code.add(code.sub(p, above), small)
    below = code.add(more, code.sub(code.fma(p, both, c), lost))
    return code.call("copysign", code.div(above, below), x)


def log(code: Code, x: str) -> str:
    """Emit log(x) = k ln(2) + log(m) with x = 2^k m, sqrt(1/2) <= m < sqrt(2)."""
    root = int(math.sqrt(0.5).hex()[4:-3], 16) | (1022 << 52)  # bits of sqrt(1/2)
    moved = code.integer("add", code.to_bits(x), (1023 << 52) - root)
    biased = code.integer("or", code.integer("lshr", moved, 52), 0x433 << 52)
    k = code.sub(code.from_bits(biased), code.constant(2.0**52 + 1023))
    m = code.from_bits(code.integer("add", code.integer("and", moved, (1 << 52) - 1), root))
    f = code.sub(m, code.constant(1.0))
    s = code.div(f, code.add(f, code.constant(2.0)))
    z = code.mul(s, s)
    # log(1 + f) = f - f^2/2 + s (f^2/2 + z L(z)): the large terms are exact
    half = code.mul(code.mul(f, f), code.constant(0.5))
    small = code.fma(z, code.polynomial(z, LOG), half)
    tail = code.fma(s, small, code.mul(k, code.constant(LN_2_SHORT[1])))
    value = code.fma(k, code.constant(LN_2_SHORT[0]), code.sub(f, code.sub(half, tail)))
    below = code.compare("ult", x, code.constant(SMALLEST_NORMAL))  # or not a number
    beyond = code.compare("oeq", x, code.constant(math.inf))
    return replace_rare(code, code.logic("or", below, beyond), (x,), {"log": value})["log"]


def erfinv(code: Code, x: str) -> str:
    """Emit the inverse of erf: an estimate good to 0.002, and three of Halley's steps.

    The estimate is Winitzki's: with l = log(1 - x^2), a = 0.147 and b = 2/(pi a) + l/2,
    y^2 = sqrt(b^2 - l/a) - b; near zero it is the series x sqrt(pi)/2 (1 + pi x^2/12).
    """
    one, a = code.constant(1.0), 0.147
    size = code.call("fabs", x)
    rest = code.sub(one, size)
    square = code.mul(size, size)
    series = code.fma(square, code.constant(math.pi / 12), one)
    series = code.mul(code.mul(size, code.constant(math.sqrt(math.pi) / 2)), series)
    l = library(code, "log", code.mul(rest, code.add(one, size)))
    b = code.fma(l, code.constant(0.5), code.constant(2 / (math.pi * a)))
    y = code.sub(code.mul(b, b), code.mul(l, code.constant(1 / a)))
    y = code.call("sqrt", code.sub(code.call("sqrt", y), b))
    y = code.select(code.compare("olt", size, code.constant(0.1)), series, y)
    near = code.compare("olt", size, code.constant(0.5))
    for _ in range(3):
        inner = code.sub(library(code, "erf", y), size)
        outer = code.sub(rest, library(code, "erfc", y))
        density = library(code, "exp", code.neg(code.mul(y, y)))
        density = code.mul(density, code.constant(2 / math.sqrt(math.pi)))
        u = code.div(code.select(near, inner, outer), density)
        y = code.sub(y, code.div(u, code.fma(y, u, one)))
    y = code.select(code.compare("oeq", size, one), code.constant(math.inf), y)
    y = code.select(code.compare("ogt", size, one), code.constant(math.nan), y)
    return code.call("copysign", y, x)
