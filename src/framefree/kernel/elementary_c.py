"""Elementary functions in C, with the bits that they have in compiled kernels.

What `circular.py` and `exponential.py` say is written in C instead of LLVM's assembly, for one
number instead of vectors of them. So a function in C gives what the kernel gives, to the last
place, where the kernel's processor fuses products and sums.
"""

import re

from framefree.kernel.circular import sin_cos
from framefree.kernel.elementary import VECTOR
from framefree.kernel.scalar_c import PREFIX, ScalarC

NAMES = {name: f"{PREFIX}{name}" for name in ("sin", "cos", *VECTOR)}
"""Their names in C, by those of the C library."""
BEGIN = "\n/* Elementary functions as on the desk. */\n#include <stdint.h>\n#include <string.h>\n\n"
END = "/* End of elementary functions. */\n"
CONVERSIONS = {
    f"{PREFIX}bits": f"""\
static uint64_t {PREFIX}bits(double value)
{{
    uint64_t found;
    memcpy(&found, &value, sizeof found);
    return found;
}}
""",
    f"{PREFIX}value": f"""\
static double {PREFIX}value(uint64_t whole)
{{
    double found;
    memcpy(&found, &whole, sizeof found);
    return found;
}}
""",
}
"""Between numbers and their bits, by name; not every function needs both."""


def elementary_c(used: set[str]) -> str:
    """Return definitions of the functions that are used; without fused products, the library's."""
    wanted = [name for name in NAMES if name in used]
    if not wanted:
        return ""
    plain = "".join(
        f"#define {NAMES[name]}({_listed(name)}) {name}({_listed(name)})\n" for name in wanted
    )
    functions = "\n".join(map(_function, wanted))
    needed = [text for name, text in CONVERSIONS.items() if f"{name}(" in functions]
    bodies = "\n".join([*needed, functions])
    return f"{BEGIN}#ifdef UNFUSED\n{plain}#else\n{bodies}#endif\n{END}"


def without_elementary(text: str) -> str:
    """Return C with the functions of the C library in the place of these."""
    text = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", "", text, flags=re.DOTALL)
    return re.sub(rf"\b{PREFIX}(?=\w+\()", "", text)


def _arguments(name: str) -> tuple[str, ...]:
    return ("y", "x") if name == "atan2" else ("x",)


def _listed(name: str) -> str:
    return ", ".join(_arguments(name))


def _function(name: str) -> str:
    code, arguments = ScalarC(), _arguments(name)
    circular = name not in VECTOR
    result = sin_cos(code, "x", (name,))[name] if circular else VECTOR[name](code, *arguments)
    body = "".join(f"    {line}\n" for line in code.used_lines(result))
    listed = ", ".join(f"double {one}" for one in arguments)
    return f"static double {NAMES[name]}({listed})\n{{\n{body}    return {result};\n}}\n"
