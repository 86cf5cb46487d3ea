"""Moving rows of a (batch, n) array into slots and back.

``gather(slots, stride, data, step, row, last, groups)`` fills, for each group, slot k with element
k of the rows row, row + 1, ...; ``scatter`` is its inverse. There is one of each for every n.
``scatter_tabled`` brings back elements whose slots a table lists.
Blocks of elements are transposed in registers; what they leave of a row is covered by a smaller
one, which may overlap the one before. In the last group rows beyond the last are copies of the
last and are not written back. A step of 0 means one row for all.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from framefree.kernel.code import Code, Module

PARAMETERS = "ptr %slots, i64 %stride, ptr %data, i64 %step, i64 %row, i64 %last, i64 %groups"
UNROLLED = 4  # up to so many blocks are written out one after another
AHEAD = 16  # doubles by which lines of large results are asked for before they are written


def define_gather(module: Module, n: int) -> str:
    """Define ``gather`` for rows of n elements, if need be, and return its name."""
    name = f"gather{n}"
    if module.has(name):
        return name
    code = Code(module)
    width = code.width

    def block(slots: str, rows: list[str], column: str | int, side: int) -> None:
        vectors = _transposed(code, _gathered(code, rows, column, side))
        target = code.offset(slots, column, width)
        for k, vector in enumerate(vectors):
            code.store(code.vector, vector, code.offset(target, k, width), width)

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
    side = min(max(_doubles(code) // 2, 2), code.lanes)
    _over_groups(code, n, side, block, _define_gather_rest(module))
    code.do("ret void")
    module.define(name, f"internal void @{name}({PARAMETERS})", code, "noinline nounwind")
    return name


def _gathered(code: Code, rows: list[str], column: str | int, side: int) -> list[str]:
    """Load `side` elements of every row; return as many vectors as these.

    Vector k has those of the rows k, k + side, ..., one after another. Joined as they are loaded,
    they keep the one unit free that moves numbers across a register.
    """
    places = [code.offset(row, column, 8) for row in rows]
    pieces = []
    with code.narrower(side):
        for place in places:
            pieces.append(code.load(code.doubles, place))
    together = max(_doubles(code) // side, 1)  # pieces that fill a register
    vectors = []
    for k in range(side):
        own = pieces[k::side]
        groups = [own[first : first + together] for first in range(0, len(own), together)]
        parts = []
        for group in groups:
            with code.narrower(side * len(group)):
                parts.append(code.from_double(_joined(code, group, "double"), code.doubles))
        vectors.append(_joined(code, parts, code.number))
    return vectors


def define_scatter(module: Module, n: int) -> str:
    """Define ``scatter`` for rows of n elements, if need be, and return its name."""
    name = f"scatter{n}"
    if module.has(name):
        return name
    code = Code(module)
    width = code.width

    def block(slots: str, rows: list[str], column: str | int, side: int) -> None:
        first = code.offset(slots, column, width)
        places = [code.offset(first, k, width) for k in range(side)]
        _scatter_block(code, places, rows, column)

    _over_groups(code, n, _doubles(code), block, _define_scatter_rest(module))
    code.do("ret void")
    module.define(name, f"internal void @{name}({PARAMETERS})", code, "noinline nounwind")
    return name


def _scatter_block(code: Code, places: list[str], rows: list[str], column: str | int) -> None:
    """Bring the slots at `places`, as many as a block has columns, to the rows."""
    side = len(places)
    if side == code.lanes and side >= 4:
        vectors = _transposed(code, _halves_exchanged(code, places), side // 2)
    else:
        vectors = _transposed(code, [code.load(code.vector, p, code.width) for p in places])
    targets = [code.offset(row, column, 8) for row in rows]
    for k, vector in enumerate(vectors):
        for first in range(0, code.lanes, side):
            piece = _part(code, vector, first, side)
            with code.narrower(side):
                doubles = code.to_double(piece, code.vector)
                code.store(code.doubles, doubles, targets[first + k])


def _part(code: Code, vector: str, first: int, count: int) -> str:
    """Return `count` lanes of a vector, from `first` on."""
    if count == code.lanes:
        return vector
    picks = ", ".join(f"i32 {first + k}" for k in range(count))
    v = code.vector
    return code.put(f"shufflevector {v} {vector}, {v} poison, <{count} x i32> <{picks}>")


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
        pairs = zip(parts[:half], parts[half:], strict=True)
        joined += [_joined(code, pair, code.number) for pair in pairs]
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

    side = _doubles(code)
    final = code.put(f"sub i64 %n, {side}")
    with _whole_groups(code) as (slots, rows), code.loop(0, "%n", side) as column:
        column = code.minimum(column, final)  # the last block may overlap the one before
        columns = [code.put(f"add i64 {column}, {k}") for k in range(side)]
        # Each line is asked for before it is written: stores that wait for theirs stop all others.
        ahead = code.put(f"add i64 {column}, {AHEAD}")
        for row in rows:
            code.prefetch_to_write(code.offset(row, ahead, 8))
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


MoveBlock = Callable[[str, list[str], str | int, int], None]


def _over_groups(code: Code, n: int, side: int, move: MoveBlock, rest: str) -> None:
    """Move whole groups by blocks, and what is left of the rows by the function `rest`."""
    with _whole_groups(code) as (slots, rows):
        _over_columns(code, n, slots, rows, side, move)
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


def _over_columns(
    code: Code, n: int, slots: str, rows: list[str], side: int, move: MoveBlock
) -> None:
    """Cover columns 0..n-1 by blocks of `side` columns, or fewer, and one for what is left."""
    while side > n:
        side //= 2
    whole = n // side * side
    if n <= UNROLLED * side:
        for column in range(0, whole, side):
            move(slots, rows, column, side)
    else:
        with code.loop(0, str(whole), side) as column:
            move(slots, rows, column, side)
    if whole < n:
        while side // 2 >= n - whole:
            side //= 2
        move(slots, rows, n - side, side)


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


def _doubles(code: Code) -> int:
    """Return the number of doubles that a register holds."""
    lanes = code.target.lanes
    return max(lanes // 2, 1) if code.target.single else lanes


def _joined(code: Code, parts: Sequence[str], number: str) -> str:
    """Return one vector of all lanes of its parts, a power of two of them."""
    parts, lanes = list(parts), code.lanes // len(parts)
    while len(parts) > 1:
        half, lanes = f"<{lanes} x {number}>", 2 * lanes
        mask = f"<{lanes} x i32> <{', '.join(f'i32 {k}' for k in range(lanes))}>"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [code.put(f"shufflevector {half} {a}, {half} {b}, {mask}") for a, b in pairs]
    return parts[0]


def _transposed(code: Code, vectors: list[str], end: int | None = None) -> list[str]:
    """Transpose squares of as many elements each way as there are vectors, side by side.

    With `end`, squares of so many elements each way.
    """
    lanes, width = code.lanes, 1
    while width < (end or len(vectors)):
        low = [k if not k & width else k - width + lanes for k in range(lanes)]
        high = [k + width if not k & width else k + lanes for k in range(lanes)]
        following = list(vectors)
        for k in range(len(vectors)):
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
