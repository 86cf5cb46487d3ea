"""Bodies of functions in C, written by what writes LLVM's assembly of the same functions."""

import math
import re

from framefree.kernel.code import Code

PREFIX = "desk_"
"""Before the names of what these functions call and are, in C."""
ARITHMETIC = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
INTEGER = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>"}
COMPARE = {
    "ogt": "{} > {}",
    "oge": "{} >= {}",
    "olt": "{} < {}",
    "oeq": "{} == {}",
    "ugt": "!({} <= {})",
    "ult": "!({} >= {})",
}


class ScalarC(Code):
    """The body of one function in C, on numbers instead of vectors."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def put(self, instruction: str, kind: str = "double") -> str:
        """Append a value and name it."""
        name = self.fresh()
        self.lines.append(f"const {kind} {name} = {instruction};")
        return name

    def constant(self, value: float) -> str:
        """Return a constant, all digits of it."""
        text = "INFINITY" if math.isinf(value) else abs(value).hex()
        return f"(-{text})" if math.copysign(1.0, value) < 0 else text

    def binary(self, operation: str, a: str, b: str) -> str:
        """Append a sum, difference, product or quotient."""
        return self.put(f"{a} {ARITHMETIC[operation]} {b}")

    def neg(self, a: str) -> str:
        """Append -a."""
        return self.put(f"-{a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Append a*b + c, with one rounding."""
        return self.call("fma", a, b, c)

    def call(self, name: str, *arguments: str) -> str:
        """Call a function of the C library that has one right answer."""
        return self.put(f"{name}({', '.join(arguments)})")

    def to_bits(self, a: str) -> str:
        """Reinterpret a double as an integer."""
        return self.put(f"{PREFIX}bits({a})", "uint64_t")

    def from_bits(self, a: str) -> str:
        """Reinterpret an integer as a double."""
        return self.put(f"{PREFIX}value({a})")

    def integer(self, operation: str, a: str, b: str | int) -> str:
        """Append an operation on integers."""
        if isinstance(b, int):
            b = str(b) if operation in ("shl", "lshr") else f"UINT64_C({b % 2**64:#x})"
        return self.put(f"{a} {INTEGER[operation]} {b}", "uint64_t")

    def negative(self, a: str) -> str:
        """Tell whether the highest bit of an integer is set."""
        return self.put(f"{a} >> 63 != 0", "int")

    def compare(self, condition: str, a: str, b: str) -> str:
        """Compare doubles."""
        return self.put(COMPARE[condition].format(a, b), "int")

    def logic(self, operation: str, a: str, b: str) -> str:
        """Combine two conditions."""
        return self.put(f"{a} {INTEGER[operation]} {b}", "int")

    def select(self, mask: str, a: str, b: str) -> str:
        """Choose a where the condition holds, else b."""
        return self.put(f"{mask} ? {a} : {b}")

    def replaced(
        self, rare: str, arguments: tuple[str, ...], fast: dict[str, str]
    ) -> dict[str, str]:
        """Take what the C library gives where the condition `rare` holds."""
        given = ", ".join(arguments)
        return {name: self.put(f"{rare} ? {name}({given}) : {one}") for name, one in fast.items()}

    def used_lines(self, result: str) -> list[str]:
        """Return the statements on which a result depends."""
        needed, kept = {result}, []
        for line in reversed(self.lines):
            left, _, right = line.partition(" = ")
            if left.split()[-1] in needed:
                needed |= set(re.findall(r"\bt\d+\b", right))
                kept.append(line)
        return kept[::-1]
