"""Elementary functions on vectors of doubles.

Sine and cosine are polynomials in the compiled code: every lane does the same work, and one state
or many get the same bits. The minimax polynomials were computed with Remez' exchange algorithm in
200-bit arithmetic (mpmath) for the smallest relative error of the function, then rounded.
Lanes for which the polynomial does not hold are replaced, one by one, by the C library's answer, so
a lane's result depends on its own argument only. All other functions call the C library for each
lane.
"""

from framefree.kernel.code import LIBM, Code, Module

# pi/2 in three parts: PI_2[0] is pi/2 rounded, PI_2[1] what remains, rounded, and so on.
PI_2 = [
    float.fromhex(h)
    for h in ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")
]
TWO_PI = float.fromhex("0x1.45f306dc9c883p-1")  # 2/pi
SHIFTER = float.fromhex("0x1.8p+52")  # adding it leaves the nearest integer in the low bits

# sin(r) = r + r^3 S(r^2) and cos(r) = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4; relative errors 2^-58
# and 2^-64.
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
LARGE = 1e5  # up to here x - n*PI_2[0] is exact and n*PI_2[2] is far below the last place
SIGN = -(2**63)


def sin_cos(code: Code, x: str, want: tuple[str, ...]) -> dict[str, str]:
    """Emit sin(x) and cos(x), as far as wanted.

    With n the integer nearest to |x| 2/pi and r = |x| - n pi/2, the two are sin(r) and cos(r) up to
    sign and order, which the two low bits of n say.
    """
    size = code.call("fabs", x)
    shifted = code.fma(size, code.constant(TWO_PI), code.constant(SHIFTER))
    n = code.sub(shifted, code.constant(SHIFTER))
    minus_n = code.neg(n)
    r = code.fma(minus_n, code.constant(PI_2[0]), size)
    r = code.fma(minus_n, code.constant(PI_2[1]), r)
    r = code.fma(minus_n, code.constant(PI_2[2]), r)
    z = code.mul(r, r)
    sine = code.fma(code.mul(z, r), code.polynomial(z, SIN), r)
    cosine = code.fma(
        z, code.fma(z, code.polynomial(z, COS), code.constant(-0.5)), code.constant(1.0)
    )
    quadrant = code.to_bits(shifted)
    odd = code.put(f"icmp slt {code.integers} {code.integer('shl', quadrant, 63)}, zeroinitializer")
    fast = {}
    if "sin" in want:
        flip = code.integer("and", code.integer("shl", quadrant, 62), SIGN)
        flip = code.integer("xor", flip, code.integer("and", code.to_bits(x), SIGN))
        fast["sin"] = _signed(code, code.select(odd, cosine, sine), flip)
    if "cos" in want:
        flip = code.integer("shl", code.integer("add", quadrant, 1), 62)
        flip = code.integer("and", flip, SIGN)
        fast["cos"] = _signed(code, code.select(odd, sine, cosine), flip)
    rare = code.compare("ugt", size, code.constant(LARGE))  # or not a number
    return _replace_rare(code, rare, (x,), fast)


def library(code: Code, name: str, *arguments: str) -> str:
    """Emit a call of the C library for each lane."""
    v = code.vector
    helper = _lanes_function(code.module, name)
    return code.put(f"call {v} @{helper}({', '.join(f'{v} {one}' for one in arguments)})")


def _signed(code: Code, value: str, flip: str) -> str:
    return code.from_bits(code.integer("xor", code.to_bits(value), flip))


def _replace_rare(
    code: Code, rare: str, arguments: tuple[str, ...], fast: dict[str, str]
) -> dict[str, str]:
    """Replace the marked lanes by what the C library gives."""
    v = code.vector
    before, result = code.block, {}
    any_rare = code.any(rare)
    with code.when(any_rare, rare=True):
        marks = code.put(f"sext {code.mask} {rare} to {code.integers}")
        passed = ", ".join(f"{v} {one}" for one in arguments)
        slow = {}
        for name, value in fast.items():
            helper = _rare_function(code.module, name)
            call = f"call {v} @{helper}({code.integers} {marks}, {v} {value}, {passed})"
            slow[name] = code.put(call)
        inside = code.block
    for name, value in fast.items():
        result[name] = code.put(f"phi {v} [ {value}, %{before} ], [ {slow[name]}, %{inside} ]")
    return result


def _lanes_function(module: Module, name: str) -> str:
    """Define the function that calls the C library's `name` for every lane."""
    helper = f"lanes_{name}"
    if not module.has(helper):
        code = Code(module)
        v, arity = code.vector, LIBM[name]
        address, result = code.external(name), "undef"
        for lane in range(code.lanes):
            value = _scalar_call(code, address, arity, lane)
            result = code.put(f"insertelement {v} {result}, double {value}, i64 {lane}")
        code.do(f"ret {v} {result}")
        parameters = ", ".join(f"{v} %x{k}" for k in range(arity))
        header = f"internal {v} @{helper}({parameters})"
        module.define(helper, header, code, "noinline nounwind")
    return helper


def _rare_function(module: Module, name: str) -> str:
    """Define the function that replaces the marked lanes by what the C library gives."""
    helper = f"rare_{name}"
    if not module.has(helper):
        code = Code(module)
        v, arity = code.vector, LIBM[name]
        address, result = code.external(name), "%fast"
        for lane in range(code.lanes):
            mark = code.put(f"extractelement {code.integers} %marks, i64 {lane}")
            marked = code.put(f"icmp ne i64 {mark}, 0")
            before = code.block
            with code.when(marked):
                value = _scalar_call(code, address, arity, lane)
                new = code.put(f"insertelement {v} {result}, double {value}, i64 {lane}")
                inside = code.block
            result = code.put(f"phi {v} [ {result}, %{before} ], [ {new}, %{inside} ]")
        code.do(f"ret {v} {result}")
        parameters = ", ".join(f"{v} %x{k}" for k in range(arity))
        header = f"internal {v} @{helper}({code.integers} %marks, {v} %fast, {parameters})"
        module.define(helper, header, code, "noinline nounwind cold")
    return helper


def _scalar_call(code: Code, address: str, arity: int, lane: int) -> str:
    v = code.vector
    scalars = [code.put(f"extractelement {v} %x{k}, i64 {lane}") for k in range(arity)]
    return code.put(f"call double {address}({', '.join(f'double {one}' for one in scalars)})")
