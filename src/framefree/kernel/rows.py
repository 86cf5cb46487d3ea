"""Moving rows of a (batch, n) array into slots and back.

``gather(slots, stride, data, step, n, row, last, groups)`` fills, for each group, slot k with
element k of the rows row, row + 1, ...; ``scatter`` is its inverse. Blocks of lanes x lanes
elements are transposed in registers. In the last group rows beyond the last are copies of the last
and are not written back.
"""

from framefree.kernel.code import Code, Module

PARAMETERS = (
    "ptr %slots, i64 %stride, ptr %data, i64 %step, i64 %n, i64 %row, i64 %last, i64 %groups"
)


def define_gather(module: Module) -> None:
    """Define ``gather``."""
    code = Code(module)
    lanes, final = code.lanes, code.put("sub i64 %last, 1")
    with code.loop(0, "%groups") as group:
        slots, row = _group(code, group)
        rows = [_row(code, code.minimum(code.put(f"add i64 {row}, {k}"), final))
                for k in range(lanes)]  # fmt: skip

        def block(column: str) -> None:
            places = [code.offset(one, column, 8) for one in rows]
            vectors = _transposed(code, [code.load(code.vector, place) for place in places])
            target = code.offset(slots, column, lanes * 8)
            for k, vector in enumerate(vectors):
                code.store(code.vector, vector, code.offset(target, k, lanes * 8), lanes * 8)

        def element(column: str) -> None:
            vector = "undef"
            for k, one in enumerate(rows):
                scalar = code.load("double", code.offset(one, column, 8))
                vector = code.put(f"insertelement {code.vector} {vector}, double {scalar}, i64 {k}")
            code.store(code.vector, vector, code.offset(slots, column, lanes * 8), lanes * 8)

        _over_columns(code, block, element)
    code.do("ret void")
    module.define("gather", f"internal void @gather({PARAMETERS})", code, "noinline nounwind")


def define_scatter(module: Module) -> None:
    """Define ``scatter``."""
    code = Code(module)
    lanes = code.lanes
    with code.loop(0, "%groups") as group:
        slots, row = _group(code, group)
        count = code.minimum(code.put(f"sub i64 %last, {row}"), str(lanes))
        whole = code.put(f"icmp eq i64 {count}, {lanes}")
        rows = [_row(code, code.put(f"add i64 {row}, {k}")) for k in range(lanes)]

        def block(column: str) -> None:
            source = code.offset(slots, column, lanes * 8)
            vectors = [
                code.load(code.vector, code.offset(source, k, lanes * 8), lanes * 8)
                for k in range(lanes)
            ]
            for one, vector in zip(rows, _transposed(code, vectors), strict=True):
                code.store(code.vector, vector, code.offset(one, column, 8))

        def element(column: str) -> None:
            source = code.offset(slots, column, lanes * 8)
            with code.loop(0, count) as lane:
                scalar = code.load("double", code.offset(source, lane, 8))
                target = _row(code, code.put(f"add i64 {row}, {lane}"))
                code.store("double", scalar, code.offset(target, column, 8))

        _over_columns(code, block, element, whole)
    code.do("ret void")
    module.define("scatter", f"internal void @scatter({PARAMETERS})", code, "noinline nounwind")


def _group(code: Code, group: str) -> tuple[str, str]:
    offset = code.put(f"mul i64 {group}, %stride")
    row = code.put(f"mul i64 {group}, {code.lanes}")
    return code.offset("%slots", offset), code.put(f"add i64 %row, {row}")


def _row(code: Code, row: str) -> str:
    return code.offset("%data", code.put(f"mul i64 {row}, %step"), 8)


def _over_columns(code: Code, block, element, blocks_allowed: str = "true") -> None:
    """Cover columns 0..n-1 by blocks, the last of which may overlap another, or one by one."""
    wide = code.put(f"icmp sge i64 %n, {code.lanes}")
    wide = code.put(f"and i1 {wide}, {blocks_allowed}")
    final = code.put(f"sub i64 %n, {code.lanes}")
    blocks, singles, done = (code.fresh(p) for p in ("blocks", "singles", "covered"))
    code.do(f"br i1 {wide}, label %{blocks}, label %{singles}")
    code.label(blocks)
    with code.loop(0, "%n", code.lanes) as column:
        block(code.minimum(column, final))
    code.jump(done)
    code.label(singles)
    with code.loop(0, "%n") as column:
        element(column)
    code.jump(done)
    code.label(done)


def _transposed(code: Code, vectors: list[str]) -> list[str]:
    """Transpose a square of lanes x lanes elements held in as many vectors."""
    lanes, width = code.lanes, 1
    while width < lanes:
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
