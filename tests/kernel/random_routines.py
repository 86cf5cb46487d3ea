"""Random routines: programs in the part of Python that is translated, with loops and branches."""

import importlib.util
from random import Random

HEAD = '''"""A routine that was made at random."""

from fractions import Fraction
from math import sqrt

from framefree.kernel.routines import Array, Desk, routine

TWO = 2.0


def fma(a, b, c):
    """With one rounding, as compiled."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@routine
def tame(x: float) -> float:
    """Return a number of about one."""
    return x / (1.0 + abs(x))


@routine
def choose(a: Array, start: int, count: int, limit: float) -> float:
    """Return a sum that ends early, from one of two places."""
    total = 0.0
    for k in range(start, start + count):
        if a[k] > limit:
            continue
        total += a[k]
        if total < -limit:
            return total - 1.0
    return total


@routine
def spread(a: Array, value: float, count: int) -> int:
    """Write and return where it stopped."""
    for k in range(count):
        if a[k] > 0.7:
            return k
        a[k] = tame(a[k] + value)
    return count


'''


class Maker:
    """Writes statements that keep numbers near one and places within arrays of eight."""

    def __init__(self, seed: int) -> None:
        self.random, self.lines, self.loops = Random(seed), [], 0

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def number(self, depth: int = 0) -> str:
        one = self.pick(
            "f0",
            "f1",
            "f2",
            "w.x[i0]",
            "w.y[i1]",
            "w.y[2]",
            f"{self.random.gauss(0, 1):.3f}",
            "TWO",
        )
        if depth > 2 or self.random.random() < 0.3:
            return one
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"({a} + {b})",
            f"({a} - {b})",
            f"{a} * {b}",
            f"-{one}",
            f"{a} / (1.0 + abs({b}))",
            f"sqrt(abs({a}))",
            f"fma({a}, {b}, {one})",
            f"min({a}, {b})",
            f"max({a}, {b})",
            f"({a} if {self.condition(depth + 1)} else {b})",
            f"float({self.whole(depth + 1)})",
            f"choose(w.x, {self.whole(depth + 1)} // 2, {self.whole(depth + 1)} // 2, abs({one}))",
        )

    def whole(self, depth: int = 0) -> str:
        """A whole number from 0 to 7."""
        if depth > 2 or self.random.random() < 0.3:
            return self.pick("i0", "i1", "3", "w.five", "w.list[1]")
        return self.pick(
            f"int(min(abs(4.0 * {self.number(depth + 1)}), 7.0))",
            f"({self.whole(depth + 1)} + {self.whole(depth + 1)}) % 8",
            f"(2 * {self.whole(depth + 1)} + 1) // 2 % 8",
            f"(i0 if {self.condition(depth + 1)} else i1)",
        )

    def condition(self, depth: int = 0) -> str:
        sign = self.pick("<", "<=", ">", ">=", "==", "!=")
        plain = self.pick(
            f"{self.number(depth + 1)} {sign} {self.number(depth + 1)}",
            f"{self.whole(depth + 1)} {sign} {self.whole(depth + 1)}",
        )
        if depth > 1 or self.random.random() < 0.5:
            return plain
        return self.pick(
            f"({plain} and {self.condition(depth + 1)})",
            f"({plain} or {self.condition(depth + 1)})",
            f"not {plain}",
        )

    def block(self, depth: int, looping: bool) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth, looping)

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int, looping: bool) -> None:
        kind = self.random.random()
        if kind < 0.3 or depth > 4:
            self.write(depth, f"{self.pick('f0', 'f1', 'f2')} = tame({self.number()})")
        elif kind < 0.4:
            self.write(depth, f"{self.pick('i0', 'i1')} = {self.whole()}")
        elif kind < 0.5:
            self.write(depth, f"w.y[{self.whole()}] = tame({self.number()})")
        elif kind < 0.55:
            self.write(depth, self.pick("f0, f1 = f1, f0", f"f0, f1 = f1, tame({self.number()})"))
        elif kind < 0.57:
            self.write(depth, f"f2 = tame(w.y[i0] + float(spread(w.y, {self.number()}, i1)))")
        elif kind < 0.6:
            self.write(depth, f"i0 = spread(w.y[{self.whole()} // 2 :], {self.number()}, i1 // 2)")
        elif kind < 0.65 and looping:
            self.write(depth, f"if {self.condition()}:")
            self.write(depth + 1, self.pick("break", "continue"))
        elif kind < 0.68 and depth > 1:
            self.write(depth, f"if {self.condition()}:")
            self.write(depth + 1, "w.y[7] = f0 + f1")
            self.write(depth + 1, "return")
        elif kind < 0.84:
            self.write(depth, f"if {self.condition()}:")
            self.block(depth + 1, looping)
            if self.random.random() < 0.5:
                self.write(depth, "else:")
                self.block(depth + 1, looping)
        else:
            self.loop(depth)

    def loop(self, depth: int) -> None:
        self.loops += 1
        counter = f"k{self.loops}"
        if self.random.random() < 0.3:
            self.write(depth, f"{counter} = 0")
            self.write(depth, f"while {counter} < 3 and {self.condition()}:")
            self.write(depth + 1, f"{counter} += 1")
        else:
            bounds = self.pick(
                "3", self.whole(), f"{self.whole()}, 7", f"i0, 8, {self.pick('1', '2', '3')}"
            )
            self.write(depth, f"for {counter} in range({bounds}):")
            self.write(depth + 1, f"w.y[{counter}] += f2 * w.x[{counter}]")
        self.block(depth + 1, True)


def random_routine(seed: int, folder):
    """A routine of a desk with arrays x and y of eight."""
    maker = Maker(seed)
    maker.write(0, "@routine")
    maker.write(0, "def main(w: Desk) -> None:")
    maker.write(1, '"""Do this and that."""')
    maker.write(1, "for k in range(8):")
    maker.write(2, "w.y[k] = 0.5 * w.x[7 - k]")
    maker.write(1, "f0, f1, f2 = w.x[0], w.x[1], 0.3")
    maker.write(1, "i0, i1 = 2, int(min(abs(8.0 * f0), 7.0))")
    for _ in range(6):
        maker.statement(1, False)
    maker.write(1, "w.y[0] += f0 + 2.0 * f1 + 3.0 * f2 + float(i0) + 0.1 * float(i1)")
    path = folder / f"routine_{seed}.py"
    path.write_text(HEAD + "\n".join(maker.lines) + "\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main, path.read_text()
