"""Moving rows of a (batch, n) array into slots and back.

``gather(slots, stride, data, step, row, last, groups)`` fills, for each group, slot k with element
k of the rows row, row + 1, ...; ``scatter`` is its inverse. There is one of each for every n.
``scatter_tabled`` brings back elements whose slots a table lists.
Square blocks of elements are transposed in registers, as large as a register, or as n allows; the
last block of a row may overlap the one before. In the last group rows beyond the last
are copies of the last and are not written back. A step of 0 means one row for all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from framefree.kernel.code import Code, Module

PARAMETERS = "ptr %slots, i64 %stride, ptr %data, i64 %step, i64 %row, i64 %last, i64 %groups"
UNROLLED = 4  # up to so many blocks are written out one after another


def define_gather(module: Module, n: int) -> str:
    """Define ``gather`` for rows of n elements, if need be, and return its name."""
    name = f"gather{n}"
    if module.has(name):
        return name
    code = Code(module)
    width, side = code.width, _side(code, n)

    def block(slots: str, rows: list[str], column: str | int) -> None:
        places = [code.offset(row, column, 8) for row in rows]
        squares = []
        with code.narrower(side):
            for first in range(0, len(places), side):
                some = places[first : first + side]
                loaded = [code.from_double(code.load(code.doubles, p), code.doubles) for p in some]
                squares.append(_transposed(code, loaded))
        vectors = [_joined(code, parts) for parts in zip(*squares, strict=True)]
        target = code.offset(slots, column, width)
        for k, vector in enumerate(vectors):
            code.store(code.vector, vector, code.offset(target, k, width), width)

    def element(slots: str, rows: list[str], column: str | int) -> None:
        vector = "undef"
        for k, row in enumerate(rows):
            scalar = code.from_double(code.load("double", code.offset(row, column, 8)))
            one = f"{code.number} {scalar}"
            vector = code.put(f"insertelement {code.vector} {vector}, {one}, i64 {k}")
        code.store(code.vector, vector, code.offset(slots, column, width), width)

    same = code.put("icmp eq i64 %step, 0")
    code.do(f"br i1 {same}, label %one, label %several")
    code.label("one")
    with code.loop(0, "%groups") as group:
        slots = code.offset("%slots", code.put(f"mul i64 {group}, %stride"))
        with code.loop(0, str(n)) as column:
            scalar = code.from_double(code.load("double", code.offset("%data", column, 8)))
            code.store(code.vector, spread(code, scalar), code.offset(slots, column, width), width)
    code.do("ret void")
    code.label("several")
    _over_groups(code, n, block, element, _define_gather_rest(module))
    code.do("ret void")
    module.define(name, f"internal void @{name}({PARAMETERS})", code, "noinline nounwind")
    return name


def define_scatter(module: Module, n: int) -> str:
    """Define ``scatter`` for rows of n elements, if need be, and return its name."""
    name = f"scatter{n}"
    if module.has(name):
        return name
    code = Code(module)
    width = code.width

    def block(slots: str, rows: list[str], column: str | int) -> None:
        first = code.offset(slots, column, width)
        places = [code.offset(first, k, width) for k in range(_side(code, n))]
        _scatter_block(code, places, rows, column)

    def element(slots: str, rows: list[str], column: str | int) -> None:
        source = code.offset(slots, column, width)
        for k, row in enumerate(rows):
            scalar = code.load(code.number, code.offset(source, k, code.target.bytes), 4)
            code.store("double", code.to_double(scalar), code.offset(row, column, 8))

    _over_groups(code, n, block, element, _define_scatter_rest(module))
    code.do("ret void")
    module.define(name, f"internal void @{name}({PARAMETERS})", code, "noinline nounwind")
    return name


def _scatter_block(code: Code, places: list[str], rows: list[str], column: str | int) -> None:
    """Bring the slots at `places`, as many as a block has columns, to the rows."""
    side = len(places)
    if side == code.lanes and side >= 4:
        vectors = _transposed(code, _halves_exchanged(code, places), side // 2)
    else:
        vectors = []
        for first in range(0, code.lanes, side):
            square = _transposed_part(code, places, first)
            with code.narrower(side):
                vectors += [code.to_double(vector, code.vector) for vector in square]
    with code.narrower(side):
        for row, vector in zip(rows, vectors, strict=True):
            code.store(code.doubles, vector, code.offset(row, column, 8))


def _transposed_part(code: Code, places: list[str], first: int) -> list[str]:
    """Load as many lanes of vectors as there are vectors, from `first` on, and transpose them."""
    side, size = len(places), code.target.bytes
    shifted = [code.offset(place, first, size) for place in places]
    with code.narrower(side):
        parts = [code.load(code.vector, place, side * size) for place in shifted]
        return _transposed(code, parts)


def _halves_exchanged(code: Code, places: list[str]) -> list[str]:
    """Load vectors with the last step of a transposition done.

    That step joins the first halves, and the second halves, of two vectors. Joined as they are
    loaded, they keep the one unit free that moves numbers across a register.
    """
    half, size = code.lanes // 2, code.target.bytes
    joined = []
    for first in (0, half):
        shifted = [code.offset(place, first, size) for place in places]
        with code.narrower(half):
            parts = [code.load(code.vector, place, half * size) for place in shifted]
        joined += [_joined(code, pair) for pair in zip(parts[:half], parts[half:], strict=True)]
    return joined


def define_scatter_tabled(module: Module) -> str:
    """Define ``scatter_tabled``, which has two more parameters: the table and its length n."""
    name = "scatter_tabled"
    if module.has(name):
        return name
    code = Code(module)

    def slot(slots: str, column: str) -> str:
        number = code.load("i64", code.offset("%table", column, 8))
        return code.offset(slots, number, code.width)

    side = _side(code)
    final = code.put(f"sub i64 %n, {side}")
    with _whole_groups(code) as (slots, rows), code.loop(0, "%n", side) as column:
        column = code.minimum(column, final)  # the last block may overlap the one before
        columns = [code.put(f"add i64 {column}, {k}") for k in range(side)]
        _scatter_block(code, [slot(slots, one) for one in columns], rows, column)
    with _incomplete_group(code) as (slots, row):
        count = code.put(f"sub i64 %last, {row}")
        with code.loop(0, count) as lane, code.loop(0, "%n") as column:
            here = code.put(f"add i64 {row}, {lane}")
            target = code.offset("%data", code.put(f"mul i64 {here}, %step"), 8)
            source = code.offset(slot(slots, column), lane, code.target.bytes)
            scalar = code.to_double(code.load(code.number, source, 4))
            code.store("double", scalar, code.offset(target, column, 8))
    code.do("ret void")
    parameters = f"{PARAMETERS}, ptr %table, i64 %n"
    module.define(name, f"internal void @{name}({parameters})", code, "noinline nounwind")
    return name


def spread(code: Code, scalar: str) -> str:
    """Return a vector with a number in all lanes."""
    first = code.put(f"insertelement {code.vector} undef, {code.number} {scalar}, i64 0")
    lanes = f"<{code.lanes} x i32> zeroinitializer"
    return code.put(f"shufflevector {code.vector} {first}, {code.vector} undef, {lanes}")


Move = Callable[[str, list[str], str | int], None]


def _over_groups(code: Code, n: int, block: Move, element: Move, rest: str) -> None:
    """Move whole groups by blocks, and what is left of the rows by the function `rest`."""
    with _whole_groups(code) as (slots, rows):
        _over_columns(code, n, slots, rows, block if n > 1 else element)
    with _incomplete_group(code) as (slots, row):
        code.do(
            f"call void @{rest}(ptr {slots}, ptr %data, i64 %step, i64 {n}, i64 {row}, i64 %last)"
        )


@contextmanager
def _whole_groups(code: Code) -> Iterator[tuple[str, list[str]]]:
    """Loop over groups all of whose rows exist; give their slots and rows."""
    with code.loop(0, _whole(code)) as group:
        slots = code.offset("%slots", code.put(f"mul i64 {group}, %stride"))
        row = code.put(f"mul i64 {group}, {code.lanes}")
        row = code.put(f"add i64 {row}, %row")
        rows = [code.offset("%data", code.put(f"mul i64 {row}, %step"), 8)]
        while len(rows) < code.lanes:
            rows.append(code.offset(rows[-1], "%step", 8))
        yield slots, rows


@contextmanager
def _incomplete_group(code: Code) -> Iterator[tuple[str, str]]:
    """Do something with the last group if rows are missing; give its slots and first row."""
    whole = _whole(code)
    with code.when(code.put(f"icmp slt i64 {whole}, %groups")):
        slots = code.offset("%slots", code.put(f"mul i64 {whole}, %stride"))
        row = code.put(f"mul i64 {whole}, {code.lanes}")
        yield slots, code.put(f"add i64 {row}, %row")


def _whole(code: Code) -> str:
    left = code.put("sub i64 %last, %row")
    return code.minimum(code.put(f"sdiv i64 {left}, {code.lanes}"), "%groups")


def _over_columns(code: Code, n: int, slots: str, rows: list[str], move: Move) -> None:
    """Cover columns 0..n-1 by blocks, the last of which may overlap another."""
    width = _side(code, n)
    final = n - width
    if n <= UNROLLED * width:
        for column in range(0, n, width):
            move(slots, rows, min(column, final))
    else:
        with code.loop(0, str(n), width) as column:
            move(slots, rows, code.minimum(column, str(final)))


REST = "ptr %slots, ptr %data, i64 %step, i64 %n, i64 %row, i64 %last"


def _define_gather_rest(module: Module) -> str:
    """Define the function that fetches the rows of an incomplete group, one number at a time."""
    name = "gather_rest"
    if not module.has(name):
        code = Code(module)
        final = code.put("sub i64 %last, 1")
        with code.loop(0, str(code.lanes)) as lane:
            row = code.minimum(code.put(f"add i64 %row, {lane}"), final)
            source = code.offset("%data", code.put(f"mul i64 {row}, %step"), 8)
            target = code.offset("%slots", lane, code.target.bytes)
            with code.loop(0, "%n") as column:
                scalar = code.from_double(code.load("double", code.offset(source, column, 8)))
                code.store(code.number, scalar, code.offset(target, column, code.width), 4)
        code.do("ret void")
        module.define(name, f"internal void @{name}({REST})", code, "noinline nounwind")
    return name


def _define_scatter_rest(module: Module) -> str:
    """Define the function that brings back the rows of an incomplete group."""
    name = "scatter_rest"
    if not module.has(name):
        code = Code(module)
        count = code.put("sub i64 %last, %row")
        with code.loop(0, count) as lane:
            row = code.put(f"add i64 %row, {lane}")
            target = code.offset("%data", code.put(f"mul i64 {row}, %step"), 8)
            source = code.offset("%slots", lane, code.target.bytes)
            with code.loop(0, "%n") as column:
                scalar = code.load(code.number, code.offset(source, column, code.width), 4)
                code.store("double", code.to_double(scalar), code.offset(target, column, 8))
        code.do("ret void")
        module.define(name, f"internal void @{name}({REST})", code, "noinline nounwind")
    return name


def _side(code: Code, n: int | None = None) -> int:
    """Return the columns of a block: as many doubles as a register holds, or at most n."""
    side = code.target.lanes // 2 if code.target.single else code.target.lanes
    while n is not None and side > max(n, 1):
        side //= 2
    return side


def _joined(code: Code, parts: Sequence[str]) -> str:
    """Return one vector of all lanes of its parts, a power of two of them."""
    parts, lanes = list(parts), code.lanes // len(parts)
    while len(parts) > 1:
        half, lanes = f"<{lanes} x {code.number}>", 2 * lanes
        mask = f"<{lanes} x i32> <{', '.join(f'i32 {k}' for k in range(lanes))}>"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [code.put(f"shufflevector {half} {a}, {half} {b}, {mask}") for a, b in pairs]
    return parts[0]


def _transposed(code: Code, vectors: list[str], end: int | None = None) -> list[str]:
    """Transpose a square of lanes x lanes elements held in as many vectors.

    With `end`, only squares of so many elements each way are, side by side.
    """
    lanes, width = code.lanes, 1
    while width < (end or lanes):
        low = [k if not k & width else k - width + lanes for k in range(lanes)]
        high = [k + width if not k & width else k + lanes for k in range(lanes)]
        following = list(vectors)
        for k in range(lanes):
            if not k & width:
                a, b = vectors[k], vectors[k + width]
                following[k] = _shuffle(code, a, b, low)
                following[k + width] = _shuffle(code, a, b, high)
        vectors, width = following, width * 2
    return vectors


def _shuffle(code: Code, a: str, b: str, indices: list[int]) -> str:
    picks = ", ".join(f"i32 {k}" for k in indices)
    v = code.vector
    return code.put(f"shufflevector {v} {a}, {v} {b}, <{code.lanes} x i32> <{picks}>")
