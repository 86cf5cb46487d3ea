"""Sine and cosine on vectors of single precision.

All other functions go by way of doubles (`elementary.py`), so that they are rounded once; these two
are in every joint. Each is within 1.5 units in the last place (tests measure it).
"""

from framefree.kernel.code import Code
from framefree.kernel.lanes import library

# pi/2 in three parts of 24 bits, each the rest that the ones before leave, rounded.
PI_2 = [float.fromhex(h) for h in ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")]
TWO_OVER_PI = float.fromhex("0x1.45f306p-1")
SHIFTER = float.fromhex("0x1.8p+23")  # adding it leaves the nearest integer in the low bits
LARGE = 1e4  # farther away doubles take over
SIGN = -(2**31)

# sin(r) = r + r^3 S(r^2), cos(r) = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4: minimax, errors 2^-28.
SIN = [-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4]
COS = [4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5]


def sin_cos(code: Code, x: str, want: tuple[str, ...]) -> dict[str, str]:
    """Emit sin(x) and cos(x), as `circular.sin_cos` does in double precision."""
    size = code.call("fabs", x)
    shifted = code.fma(size, code.constant(TWO_OVER_PI), code.constant(SHIFTER))
    minus_n = code.neg(code.sub(shifted, code.constant(SHIFTER)))
    r = size
    for part in PI_2:
        r = code.fma(minus_n, code.constant(part), r)
    z = code.mul(r, r)
    sine = code.fma(code.mul(z, r), code.polynomial(z, SIN), r)
    inner = code.fma(z, code.polynomial(z, COS), code.constant(-0.5))
    cosine = code.fma(z, inner, code.constant(1.0))
    quadrant = code.to_bits(shifted)
    low = code.integer("shl", quadrant, 31)  # the two low bits of n, each at the place of the sign
    high = code.integer("and", code.integer("shl", quadrant, 30), SIGN)
    odd = code.put(f"icmp slt {code.integers} {low}, zeroinitializer")
    fast = {}
    if "sin" in want:
        flip = code.integer("xor", high, code.integer("and", code.to_bits(x), SIGN))
        fast["sin"] = _flipped(code, code.select(odd, cosine, sine), flip)
    if "cos" in want:
        flip = code.integer("xor", high, low)
        fast["cos"] = _flipped(code, code.select(odd, sine, cosine), flip)
    rare = code.compare("ugt", size, code.constant(LARGE))  # or not a number
    return _replace_rare(code, rare, x, fast)


def _flipped(code: Code, value: str, flip: str) -> str:
    return code.from_bits(code.integer("xor", code.to_bits(value), flip))


def _replace_rare(code: Code, rare: str, x: str, fast: dict[str, str]) -> dict[str, str]:
    """Replace the lanes marked by `rare` by what the C library gives for doubles."""
    before, slow, any_rare = code.block, {}, code.any(rare)
    with code.when(any_rare, rare=True):
        for name, value in fast.items():
            slow[name] = code.select(rare, library(code, name, x), value)
        inside = code.block
    return {
        name: code.put(f"phi {code.vector} [ {value}, %{before} ], [ {slow[name]}, %{inside} ]")
        for name, value in fast.items()
    }
