"""Calls of the C library for the lanes of a vector, all of them or only those that need it."""

from framefree.kernel.agreed import LIBM
from framefree.kernel.code import Code, Module
from framefree.kernel.scalar_c import ScalarC


def library(code: Code, name: str, *arguments: str) -> str:
    """Emit a call of the C library for each lane."""
    v = code.doubles
    helper = _lanes_function(code.module, name)
    passed = [code.to_double(one, code.vector) for one in arguments]
    value = code.put(f"call {v} @{helper}({', '.join(f'{v} {one}' for one in passed)})")
    return code.from_double(value, v)


def replace_rare(
    code: Code, rare: str, arguments: tuple[str, ...], fast: dict[str, str]
) -> dict[str, str]:
    """Replace the lanes marked by the mask `rare` by what the C library's functions give.

    `fast` maps the name of each function to the value that the other lanes keep.
    """
    if isinstance(code, ScalarC):
        return code.replaced(rare, arguments, fast)
    v = code.vector
    before, slow = code.block, {}
    any_rare = code.any(rare)
    with code.when(any_rare, rare=True):
        marks = code.put(f"sext {code.mask} {rare} to {code.integers}")
        passed = ", ".join(f"{v} {one}" for one in arguments)
        for name, value in fast.items():
            helper = _rare_function(code.module, name)
            call = f"call {v} @{helper}({code.integers} {marks}, {v} {value}, {passed})"
            slow[name] = code.put(call)
        inside = code.block
    return {
        name: code.put(f"phi {v} [ {value}, %{before} ], [ {slow[name]}, %{inside} ]")
        for name, value in fast.items()
    }


def _lanes_function(module: Module, name: str) -> str:
    """Define the function that calls the C library's `name` for every lane."""
    helper = f"lanes_{name}"
    if not module.has(helper):
        code = Code(module, double=True)
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
        code = Code(module, double=True)
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
