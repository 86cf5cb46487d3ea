"""Circular functions and their inverses on vectors of doubles."""

from framefree.kernel.code import Code
from framefree.kernel.lanes import replace_rare

# pi/2 in three parts: PI_2[0] is pi/2 rounded, PI_2[1] what remains, rounded, and so on.
PI_2 = [
    float.fromhex(h)
    for h in ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")
]
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
SHIFTER = float.fromhex("0x1.8p+52")  # adding it leaves the nearest integer in the low bits
LARGE = 1e5  # up to here x - n*PI_2[0] is exact and n*PI_2[2] is far below the last place
SIGN = -(2**63)

# sin(r) = r + r^3 S(r^2), cos(r) = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4; errors 2^-58, 2^-64.
SIN = [
    float.fromhex(h)
    for h in (
        "-0x1.5555555555549p-3",
        "0x1.111111110f881p-7",
        "-0x1.a01a019c126d8p-13",
        "0x1.71de357875c33p-19",
        "-0x1.ae5e66d5979f0p-26",
        "0x1.5d932f689ba39p-33",
    )
]
COS = [
    float.fromhex(h)
    for h in (
        "0x1.555555555554bp-5",
        "-0x1.6c16c16c14f91p-10",
        "0x1.a01a019c844a6p-16",
        "-0x1.27e4f7eac154ep-22",
        "0x1.1ee9d7b2a4a2dp-29",
        "-0x1.8fa498e4a87e9p-37",
    )
]
# atan(q) = q + q^3 A(q^2) for |q| <= 7/16; error 2^-57.
ATAN = [
    float.fromhex(h)
    for h in (
        "-0x1.555555555550bp-2",
        "0x1.999999998e7d1p-3",
        "-0x1.2492491ff2fe8p-3",
        "0x1.c71c6fdb0e58dp-4",
        "-0x1.745cdba3c60bfp-4",
        "0x1.3b0f20565e546p-4",
        "-0x1.10d601738649fp-4",
        "0x1.ddddad56892f9p-5",
        "-0x1.97a086e415571p-5",
        "0x1.2b17b6aa75fa1p-5",
        "-0x1.0a7ec43549419p-6",
    )
]
# asin(s) = s + s^3 B(s^2) for |s| <= 1/2; error 2^-59.
ASIN = [
    float.fromhex(h)
    for h in (
        "0x1.5555555555577p-3",
        "0x1.333333332e100p-4",
        "0x1.6db6db7214315p-5",
        "0x1.f1c71a9463582p-6",
        "0x1.6e8bdeedfa0a6p-6",
        "0x1.1c49ef813d88bp-6",
        "0x1.ca1fa01796506p-7",
        "0x1.7584fd5c481b6p-7",
        "0x1.613f66bdebe72p-7",
        "0x1.e5cd2e2ca3a96p-9",
        "0x1.63a8026957f39p-6",
        "-0x1.580cfc17bfab7p-6",
        "0x1.0b4b59e83fb11p-5",
    )
]
# Where the argument of atan is near c, atan(a) = atan(c) + atan((a - c)/(1 + a c)):
# (from which a on, c, atan(c) in two parts).
ATAN_TABLE = [
    (7 / 16, 0.5, "0x1.dac670561bb4fp-2", "0x1.a2b7f222f65e2p-56"),
    (11 / 16, 1.0, "0x1.921fb54442d18p-1", "0x1.1a62633145c07p-55"),
    (19 / 16, 1.5, "0x1.f730bd281f69bp-1", "0x1.007887af0cbbdp-56"),
]
ATAN_FAR = 39 / 16  # from here on atan(a) = pi/2 + atan(-1/a)


def sin_cos(code: Code, x: str, want: tuple[str, ...]) -> dict[str, str]:
    """Emit sin(x) and cos(x), or only the one that is needed.

    With n the integer nearest to |x| 2/pi and r = |x| - n pi/2, the two are sin(r) and cos(r) up to
    sign and order, which the two low bits of n say.
    """
    size = code.call("fabs", x)
    shifted = code.fma(size, code.constant(TWO_OVER_PI), code.constant(SHIFTER))
    minus_n = code.neg(code.sub(shifted, code.constant(SHIFTER)))
    r = code.fma(minus_n, code.constant(PI_2[0]), size)
    r = code.fma(minus_n, code.constant(PI_2[1]), r)
    r = code.fma(minus_n, code.constant(PI_2[2]), r)
    z = code.mul(r, r)
    sine = code.fma(code.mul(z, r), code.polynomial(z, SIN), r)
    inner = code.fma(z, code.polynomial(z, COS), code.constant(-0.5))
    cosine = code.fma(z, inner, code.constant(1.0))
    quadrant = code.to_bits(shifted)
    low = code.integer("shl", quadrant, 63)  # the two low bits of n, each at the place of the sign
    high = code.integer("and", code.integer("shl", quadrant, 62), SIGN)
    odd = code.negative(low)
    fast = {}
    if "sin" in want:
        flip = code.integer("xor", high, code.integer("and", code.to_bits(x), SIGN))
        fast["sin"] = _flipped(code, code.select(odd, cosine, sine), flip)
    if "cos" in want:
        flip = code.integer("xor", high, low)
        fast["cos"] = _flipped(code, code.select(odd, sine, cosine), flip)
    rare = code.compare("ugt", size, code.constant(LARGE))  # or not a number
    return replace_rare(code, rare, (x,), fast)


def _flipped(code: Code, value: str, flip: str) -> str:
    return code.from_bits(code.integer("xor", code.to_bits(value), flip))


def _odd_series(code: Code, x: str, coefficients: list[float]) -> str:
    """Return p with x^3 P(x^2) = p, the part of an odd function beyond x."""
    z = code.mul(x, x)
    return code.mul(code.mul(z, x), code.polynomial(z, coefficients))


def atan(code: Code, x: str) -> str:
    """Emit atan(x), from the nearest point of a table."""
    size = code.call("fabs", x)
    top, bottom, one = size, code.constant(1.0), code.constant(1.0)
    base, rest = code.constant(0.0), code.constant(0.0)
    for start, c, high, low in ATAN_TABLE:
        here = code.compare("oge", size, code.constant(start))
        top = code.select(here, code.sub(size, code.constant(c)), top)
        bottom = code.select(here, code.fma(size, code.constant(c), one), bottom)
        base = code.select(here, code.constant(float.fromhex(high)), base)
        rest = code.select(here, code.constant(float.fromhex(low)), rest)
    far = code.compare("oge", size, code.constant(ATAN_FAR))
    top = code.select(far, code.constant(-1.0), top)
    bottom = code.select(far, size, bottom)
    base = code.select(far, code.constant(PI_2[0]), base)
    rest = code.select(far, code.constant(PI_2[1]), rest)
    q = code.div(top, bottom)
    small = code.add(_odd_series(code, q, ATAN), rest)
    return code.call("copysign", code.add(base, code.add(q, small)), x)


def atan2(code: Code, y: str, x: str) -> str:
    """Emit atan2(y, x): atan of the smaller over the larger, then the right octant."""
    height, width = code.call("fabs", y), code.call("fabs", x)
    steep = code.compare("ogt", height, width)
    small, large = code.select(steep, width, height), code.select(steep, height, width)
    top, bottom = small, large
    base, rest = code.constant(0.0), code.constant(0.0)
    for start, c, high, low in ATAN_TABLE[:2]:
        here = code.compare("oge", small, code.mul(large, code.constant(start)))
        top = code.select(here, code.fma(large, code.constant(-c), small), top)
        bottom = code.select(here, code.fma(small, code.constant(c), large), bottom)
        base = code.select(here, code.constant(float.fromhex(high)), base)
        rest = code.select(here, code.constant(float.fromhex(low)), rest)
    q = code.div(top, bottom)
    tail = code.add(_odd_series(code, q, ATAN), rest)
    # The angle is base + q + tail, its complement to pi/2 and then to pi, in two parts throughout.
    tail = code.add(q, tail)
    sign_x = code.integer("and", code.to_bits(x), SIGN)
    left = code.negative(sign_x)
    for flip, whole in ((steep, 1.0), (left, 2.0)):
        high, low = code.constant(whole * PI_2[0]), code.constant(whole * PI_2[1])
        base = code.select(flip, code.sub(high, base), base)
        tail = code.select(flip, code.sub(low, tail), tail)
    value = code.call("copysign", code.add(base, tail), y)
    tiny = code.compare("ult", large, code.constant(2.0**-900))  # or zero, or not a number
    huge = code.compare("ogt", large, code.constant(2.0**900))
    return replace_rare(code, code.logic("or", tiny, huge), (y, x), {"atan2": value})["atan2"]


def _arc(code: Code, x: str) -> tuple[str, str, str, str, str]:
    """Reduce asin and acos to |s| <= 1/2: s = |x|, or sqrt((1 - |x|)/2) where |x| is larger.

    Return whether |x| is larger, |x|, s, what s lacks (the root is rounded), and asin(s) - s.
    """
    size = code.call("fabs", x)
    large = code.compare("ogt", size, code.constant(0.5))
    z = code.mul(code.sub(code.constant(1.0), size), code.constant(0.5))
    root = code.call("sqrt", z)
    lacks = code.fma(code.neg(root), root, z)
    lacks = code.div(lacks, code.add(root, root))
    lacks = code.select(code.compare("ogt", root, code.constant(0.0)), lacks, code.constant(0.0))
    lacks = code.select(large, lacks, code.constant(0.0))
    s = code.select(large, root, size)
    return large, size, s, lacks, _odd_series(code, s, ASIN)


def asin(code: Code, x: str) -> str:
    """Emit asin(x) = pi/2 - 2 asin(s) where |x| > 1/2."""
    large, _, s, lacks, rest = _arc(code, x)
    tail = code.sub(code.constant(PI_2[1] / 2), code.add(lacks, rest))
    far = code.sub(code.constant(PI_2[0] / 2), s)
    far = code.add(far, tail)
    value = code.select(large, code.add(far, far), code.add(s, rest))
    return code.call("copysign", value, x)


def acos(code: Code, x: str) -> str:
    """Emit acos(x): pi/2 - asin(x), and 2 asin(s) or pi - 2 asin(s) where |x| > 1/2."""
    large, _, s, lacks, rest = _arc(code, x)
    negative = code.compare("olt", x, code.constant(0.0))
    rest = code.add(rest, lacks)
    signed_s = code.call("copysign", s, x)
    signed_rest = code.call("copysign", rest, x)
    near = code.sub(code.constant(PI_2[1]), signed_rest)
    near = code.add(code.sub(code.constant(PI_2[0]), signed_s), near)
    right = code.add(s, rest)
    left = code.add(code.sub(code.constant(PI_2[0]), s), code.sub(code.constant(PI_2[1]), rest))
    far = code.select(negative, left, right)
    return code.select(large, code.add(far, far), near)
