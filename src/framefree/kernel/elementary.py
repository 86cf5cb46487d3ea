"""Elementary functions on vectors of doubles.

The frequent ones are polynomials in the compiled code (`circular.py`, `exponential.py`): every lane
does the same work, and one state or many get the same bits. The minimax polynomials were computed
with Remez' exchange algorithm in 240-bit arithmetic (mpmath) for the smallest relative error of the
function, then rounded to doubles; each is within 2 units in the last place (tests measure it).
Lanes for which a polynomial does not hold are replaced, one by one, by the C library's answer, so a
lane's result depends on its own argument only. The other functions, and all where the processor
does not fuse products and sums, call the C library for each lane.
"""

from collections.abc import Callable

from framefree.kernel import circular, exponential, single
from framefree.kernel.agreed import LIBM
from framefree.kernel.code import ALIGNED, Code
from framefree.kernel.lanes import library

VECTOR: dict[str, Callable[..., str]] = {
    "exp": exponential.exp,
    "log": exponential.log,
    "tanh": exponential.tanh,
    "atan": circular.atan,
    "atan2": circular.atan2,
    "asin": circular.asin,
    "acos": circular.acos,
}


def sin_cos(code: Code, x: str, want: tuple[str, ...]) -> dict[str, str]:
    """Emit sin(x) and cos(x), or only the one that is needed.

    As a call: written out where it is needed it is no faster, but takes the compiler 5 ms each.
    """
    want = tuple(sorted(want))
    if not code.target.fma:
        return {name: library(code, name, x) for name in want}
    v, helper = code.vector, f"vector_{code.number}_" + "_".join(want)
    kind = f"{{ {', '.join([v] * len(want))} }}"
    if not code.module.has(helper):
        code.module.reserve(helper)
        inner = Code(code.module, double=not code.single)
        formula = single.sin_cos if code.single else circular.sin_cos
        values, answer = formula(inner, "%x", want), "undef"
        for k, name in enumerate(want):
            answer = inner.put(f"insertvalue {kind} {answer}, {v} {values[name]}, {k}")
        inner.do(f"ret {kind} {answer}")
        header = f"internal {kind} @{helper}({v} %x)"
        code.module.define(helper, header, inner, f"noinline {ALIGNED}")
    answer = code.put(f"call {kind} @{helper}({v} {x})")
    return {name: code.put(f"extractvalue {kind} {answer}, {k}") for k, name in enumerate(want)}


def elementary(code: Code, name: str, *arguments: str) -> str:
    """Emit an elementary function of vectors."""
    if code.single and (name in VECTOR or name == "erfinv") and code.target.fma:
        return _by_doubles(code, name, arguments)
    if name == "erfinv":
        return _call(code, name, exponential.erfinv, arguments)
    if name in VECTOR and code.target.fma:
        return _call(code, name, VECTOR[name], arguments)
    if name not in LIBM:
        raise NotImplementedError(name)
    return library(code, name, *arguments)


def _by_doubles(code: Code, name: str, arguments: tuple[str, ...]) -> str:
    """Emit a function of vectors in single precision by way of doubles, rounded once at the end."""
    passed = [code.to_double(one, code.vector) for one in arguments]
    inner = Code(code.module, double=True)
    body = exponential.erfinv if name == "erfinv" else VECTOR[name]
    helper = _defined(inner, name, body, len(arguments))
    v = code.doubles
    value = code.put(f"call {v} @{helper}({', '.join(f'{v} {one}' for one in passed)})")
    return code.from_double(value, v)


def _call(code: Code, name: str, body: Callable[..., str], arguments: tuple[str, ...]) -> str:
    """Call a function of vectors, defining it if it is the first call: its code exists once."""
    v = code.vector
    helper = _defined(Code(code.module), name, body, len(arguments))
    return code.put(f"call {v} @{helper}({', '.join(f'{v} {one}' for one in arguments)})")


def _defined(inner: Code, name: str, body: Callable[..., str], count: int) -> str:
    """Return the name of a function of `count` vectors, defined by `inner` if it is not yet."""
    v, module, helper = inner.vector, inner.module, f"vector_{name}"
    if not module.has(helper):
        parameters = [f"%x{k}" for k in range(count)]
        inner.do(f"ret {v} {body(inner, *parameters)}")
        listed = ", ".join(f"{v} {one}" for one in parameters)
        header = f"internal {v} @{helper}({listed})"
        module.define(helper, header, inner, f"noinline {ALIGNED}")
    return helper
