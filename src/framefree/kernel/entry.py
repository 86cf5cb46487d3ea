"""The function that the interpreter calls: a builtin written in LLVM assembly.

``entry(self, arguments, keywords)`` takes the tuple and the dictionary, or null, in which CPython
brings arguments to an object that is called. Where each of them, by position or by name, is
exactly what the kernel works on (a NumPy array of doubles, contiguous, of the single shape or a
batch of it) it allocates the results or takes those of ``out=``, runs on as many threads as asked
for, and returns. Anything else, large results and the first call with threads among it, it hands
to `self`, a Python callable that converts, checks and complains: no error is raised here except
for lack of memory.

The layout of NumPy's array object that is used here is checked once per process (`interpreter.py`).
"""

from framefree.kernel.agreed import (
    CONTIGUOUS_ALIGNED,
    DATA,
    DESCR,
    DIMENSIONS,
    FLAGS,
    MOST_THREADS,
    NDIM,
    PORT,
    WRITEABLE,
)
from framefree.kernel.code import Code, Module
from framefree.kernel.graph import Port
from framefree.kernel.program import KernelProgram
from framefree.kernel.room import LARGE

ITEMS = tuple.__basicsize__  # where the items of a tuple begin; its length follows the header
FLOAT64 = 12  # NumPy's type number
RELEASE = 100_000  # weight of work above which other Python threads may run meanwhile


def define_entry(module: Module, program: KernelProgram, header: int) -> None:
    """Define ``entry``; `header` is the size of an object's header."""
    code = Code(module)
    inputs, outputs = program.graph.inputs, program.graph.outputs
    records = code.put(f"alloca [{PORT * (len(inputs) + len(outputs))} x i8], align 16")
    module.space("names", len(inputs))
    values, out, threads = _order_arguments(code, len(inputs), header)
    batch = _check_arguments(code, inputs, values, records, header)
    single = code.put(f"icmp eq i64 {batch}, -1")
    rows = code.put(f"select i1 {single}, i64 1, i64 {batch}")
    no_results = code.put(f"icmp eq ptr {out}, null")
    code.do(f"br i1 {no_results}, label %fresh, label %given")

    code.label("fresh")
    # Memory of large results is kept from call to call, which is done in Python.
    most = LARGE // max(8 * max((port.size for port in outputs), default=0), 1)
    _require(code, code.put(f"icmp sle i64 {rows}, {most}"))
    arrays: list[str] = []
    for index, port in enumerate(outputs, len(inputs)):
        array = _allocate(code, port, batch, single, arrays)
        arrays.append(array)
        data = code.load("ptr", code.offset(array, header + DATA))
        _record(code, records, index, data, str(port.size))
    _run(code, program, records, (rows, threads), arrays)
    _return(code, arrays)

    code.label("given")
    answer = _take_results(code, program, out, records, (batch, rows), header)
    _run(code, program, records, (rows, threads), [])
    code.do(f"call void {code.external('Py_IncRef')}(ptr {answer})")
    code.do(f"ret ptr {answer}")

    code.label("slow")
    passed = "ptr %self, ptr %arguments, ptr %keywords"
    code.do(f"%answer = call ptr {code.external('PyObject_Call')}({passed})")
    code.do("ret ptr %answer")
    module.define("entry", f"ptr @entry({passed})", code)


def _require(code: Code, condition: str) -> None:
    """Leave for the slow path unless the condition holds."""
    held = code.fresh("held")
    code.do(f"br i1 {condition}, label %{held}, label %slow")
    code.label(held)


def _order_arguments(code: Code, size: int, header: int) -> tuple[str, str, str]:
    """Return where the values of all inputs stand in order, ``out`` or null, and ``threads``."""
    threads = code.put("alloca i64, align 8")
    code.store("i64", "1", threads)
    count = code.load("i64", code.offset("%arguments", header))
    given = code.offset("%arguments", ITEMS)
    ordered = code.put(f"alloca [{size + 1} x ptr], align 8")
    last = code.offset(ordered, size, 8)
    plain, named, ready = (code.fresh(p) for p in ("plain", "named", "ready"))
    none = code.put("icmp eq ptr %keywords, null")
    code.do(f"br i1 {none}, label %{plain}, label %{named}")

    code.label(plain)
    _require(code, code.put(f"icmp eq i64 {count}, {size}"))
    plain_block = code.block
    code.jump(ready)

    code.label(named)
    _require(code, code.put(f"icmp ule i64 {count}, {size}"))
    for index in range(size + 1):
        code.store("ptr", "null", code.offset(ordered, index, 8))
    with code.loop(0, count) as k:
        code.store("ptr", code.load("ptr", code.offset(given, k, 8)), code.offset(ordered, k, 8))
    _place_keywords(code, ordered, size, threads, header)
    for index in range(size):
        value = code.load("ptr", code.offset(ordered, index, 8))
        _require(code, code.put(f"icmp ne ptr {value}, null"))
    out = code.load("ptr", last)
    named_block = code.block
    code.jump(ready)

    code.label(ready)
    return (
        code.put(f"phi ptr [ {given}, %{plain_block} ], [ {ordered}, %{named_block} ]"),
        code.put(f"phi ptr [ null, %{plain_block} ], [ {out}, %{named_block} ]"),
        code.load("i64", threads),
    )


def _place_keywords(code: Code, ordered: str, size: int, number: str, header: int) -> None:
    """Put every named value where it belongs; ``out`` comes last, ``threads`` goes to `number`."""
    position, key, item = (code.put("alloca i64, align 8") for _ in range(3))
    code.store("i64", "0", position)
    head, body, done = (code.fresh(p) for p in ("head", "body", "done"))
    code.jump(head)
    code.label(head)
    following = code.external("PyDict_Next")
    more = code.put(f"call i32 {following}(ptr %keywords, ptr {position}, ptr {key}, ptr {item})")
    code.do(f"br i1 {code.put(f'icmp ne i32 {more}, 0')}, label %{body}, label %{done}")
    code.label(body)
    name, value = code.load("ptr", key), code.load("ptr", item)
    for index in range(size + 1):
        known = (
            code.external("out")
            if index == size
            else code.load("ptr", f"getelementptr (ptr, ptr @names, i64 {index})")
        )
        this, other = code.fresh("this"), code.fresh("other")
        same = code.put(f"icmp eq ptr {name}, {known}")
        code.do(f"br i1 {same}, label %{this}, label %{other}")
        code.label(this)
        place = code.offset(ordered, index, 8)
        _require(code, code.put(f"icmp eq ptr {code.load('ptr', place)}, null"))
        code.store("ptr", value, place)
        code.jump(head)
        code.label(other)
    _require(code, code.put(f"icmp eq ptr {name}, {code.external('threads')}"))
    code.store("i64", _number_of_threads(code, value, header), number)
    code.jump(head)
    code.label(done)


def _number_of_threads(code: Code, value: str, header: int) -> str:
    """Take a Python integer from one to the most that native code shares rows among.

    More than one only if the code that shares is there: the first call that asks for it leaves.
    """
    kind = code.load("ptr", code.offset(value, header - 8))
    _require(code, code.put(f"icmp eq ptr {kind}, {code.external('PyLong_Type')}"))
    threads = code.put(f"call i64 {code.external('PyLong_AsSsize_t')}(ptr {value})")
    code.do(f"call void {code.external('PyErr_Clear')}()")  # it may be beyond all machine numbers
    _require(code, code.put(f"icmp sge i64 {threads}, 1"))
    _require(code, code.put(f"icmp sle i64 {threads}, {MOST_THREADS}"))
    share = code.load("i64", code.external("sharing"))
    ready = code.put(f"icmp ne i64 {share}, 0")
    one = code.put(f"icmp eq i64 {threads}, 1")
    _require(code, code.put(f"or i1 {ready}, {one}"))
    return threads


def _check_arguments(
    code: Code, inputs: tuple[Port, ...], values: str, records: str, header: int
) -> str:
    """Check all arguments, fill their records, and return the batch size, -1 for a single state."""
    batch = "-1"
    for index, port in enumerate(inputs):
        argument = code.load("ptr", code.offset(values, index, 8))
        check = _check_number if port.shape in ((), (1,)) else _check_array
        data, step, batch = check(code, port, argument, batch, header)
        _record(code, records, index, data, step)
    return batch


def _check_number(
    code: Code, port: Port, argument: str, batch: str, header: int
) -> tuple[str, str, str]:
    """Take a Python float, or an array."""
    kind = code.load("ptr", code.offset(argument, header - 8))
    is_float = code.put(f"icmp eq ptr {kind}, {code.external('PyFloat_Type')}")
    content, before = code.offset(argument, header), code.block
    array, checked = code.fresh("array"), code.fresh("checked")
    code.do(f"br i1 {is_float}, label %{checked}, label %{array}")
    code.label(array)
    data, step, new_batch = _check_array(code, port, argument, batch, header)
    after = code.block
    code.jump(checked)
    code.label(checked)
    return (
        code.put(f"phi ptr [ {content}, %{before} ], [ {data}, %{after} ]"),
        code.put(f"phi i64 [ 0, %{before} ], [ {step}, %{after} ]"),
        code.put(f"phi i64 [ {batch}, %{before} ], [ {new_batch}, %{after} ]"),
    )


def _check_array(
    code: Code, port: Port, argument: str, batch: str, header: int, extra: int = 0
) -> tuple[str, str, str]:
    """Take an array; return its data, doubles from row to row, and the batch size so far."""
    kind = code.load("ptr", code.offset(argument, header - 8))
    _require(code, code.put(f"icmp eq ptr {kind}, {code.external('PyArray_Type')}"))
    descr = code.load("ptr", code.offset(argument, header + DESCR))
    _require(code, code.put(f"icmp eq ptr {descr}, {code.external('float64')}"))
    flags = code.load("i32", code.offset(argument, header + FLAGS), 4)
    flags = code.put(f"and i32 {flags}, {CONTIGUOUS_ALIGNED | extra}")
    _require(code, code.put(f"icmp eq i32 {flags}, {CONTIGUOUS_ALIGNED | extra}"))
    data = code.load("ptr", code.offset(argument, header + DATA))
    batch, step = _check_shape(code, port, argument, batch, header)
    return data, step, batch


def _check_shape(code: Code, port: Port, argument: str, batch: str, header: int) -> tuple[str, str]:
    ndim = code.load("i32", code.offset(argument, header + NDIM), 4)
    dimensions = code.load("ptr", code.offset(argument, header + DIMENSIONS))
    is_single = code.put(f"icmp eq i32 {ndim}, {len(port.shape)}")
    one, not_one, many, shaped = (code.fresh(p) for p in ("one", "not_one", "many", "shaped"))
    code.do(f"br i1 {is_single}, label %{one}, label %{not_one}")

    code.label(not_one)
    _require(code, code.put(f"icmp eq i32 {ndim}, {len(port.shape) + 1}"))
    count = code.load("i64", dimensions)
    rest = code.offset(dimensions, 8)
    if batch != "-1":
        unset = code.put(f"icmp eq i64 {batch}, -1")
        equal = code.put(f"icmp eq i64 {batch}, {count}")
        _require(code, code.put(f"or i1 {unset}, {equal}"))
    code.jump(many)
    code.label(many)
    _require_dimensions(code, port, rest)
    many_block = code.block
    code.jump(shaped)

    code.label(one)
    _require_dimensions(code, port, dimensions)
    one_block = code.block
    code.jump(shaped)

    code.label(shaped)
    batch = code.put(f"phi i64 [ {count}, %{many_block} ], [ {batch}, %{one_block} ]")
    step = code.put(f"phi i64 [ {port.size}, %{many_block} ], [ 0, %{one_block} ]")
    return batch, step


def _require_dimensions(code: Code, port: Port, dimensions: str) -> None:
    for axis, length in enumerate(port.shape):
        extent = code.load("i64", code.offset(dimensions, axis, 8))
        _require(code, code.put(f"icmp eq i64 {extent}, {length}"))


def _record(code: Code, records: str, index: int, data: str, step: str) -> None:
    record = code.offset(records, index, PORT)
    code.store("ptr", data, record)
    code.store("i64", step, code.offset(record, 8))


def _take_results(
    code: Code,
    program: KernelProgram,
    answer: str,
    records: str,
    sizes: tuple[str, str],
    header: int,
) -> str:
    """Check ``out=``: arrays of the right shape that share no memory with anything else."""
    inputs, outputs = program.graph.inputs, program.graph.outputs
    batch, rows = sizes
    arrays = [answer]
    if len(outputs) != 1:
        kind = code.load("ptr", code.offset(answer, header - 8))
        _require(code, code.put(f"icmp eq ptr {kind}, {code.external('PyTuple_Type')}"))
        count = code.load("i64", code.offset(answer, header))
        _require(code, code.put(f"icmp eq i64 {count}, {len(outputs)}"))
        arrays = [code.load("ptr", code.offset(answer, ITEMS + 8 * k)) for k in range(len(outputs))]
    taken = [_extent(code, port, records, k, rows) for k, port in enumerate(inputs)]
    for index, (port, array) in enumerate(zip(outputs, arrays, strict=True), len(inputs)):
        data, _, own_batch = _check_array(code, port, array, "-1", header, WRITEABLE)
        _require(code, code.put(f"icmp eq i64 {own_batch}, {batch}"))
        _record(code, records, index, data, str(port.size))
        mine = _extent(code, port, records, index, rows)
        for other in taken:
            before = code.put(f"icmp ule i64 {mine[1]}, {other[0]}")
            after = code.put(f"icmp ule i64 {other[1]}, {mine[0]}")
            _require(code, code.put(f"or i1 {before}, {after}"))
        taken.append(mine)
    return answer


def _extent(code: Code, port: Port, records: str, index: int, rows: str) -> tuple[str, str]:
    """Return the addresses where a port's memory begins and ends."""
    record = code.offset(records, index, PORT)
    first = code.load("i64", record)
    step = code.load("i64", code.offset(record, 8))
    none = code.put(f"icmp eq i64 {step}, 0")
    length = code.put(f"mul i64 {rows}, {port.size * 8}")
    length = code.put(f"select i1 {none}, i64 {port.size * 8}, i64 {length}")
    return first, code.put(f"add i64 {first}, {length}")


def _allocate(code: Code, port: Port, batch: str, single: str, before: list[str]) -> str:
    """Make a new array of the port's shape, or a batch of it."""
    axes = len(port.shape) + 1
    shape = code.put(f"alloca [{axes} x i64], align 8")
    for axis, length in enumerate((batch, *port.shape)):
        code.store("i64", str(length), code.offset(shape, axis, 8))
    start = code.put(f"select i1 {single}, ptr {code.offset(shape, 8)}, ptr {shape}")
    ndim = code.put(f"select i1 {single}, i32 {axes - 1}, i32 {axes}")
    array = code.put(
        f"call ptr {code.external('PyArray_New')}(ptr {code.external('PyArray_Type')}, "
        f"i32 {ndim}, ptr {start}, i32 {FLOAT64}, ptr null, ptr null, i32 0, i32 0, ptr null)"
    )
    failed, made = code.fresh("failed"), code.fresh("made")
    missing = code.put(f"icmp eq ptr {array}, null")
    code.do(f"br i1 {missing}, label %{failed}, label %{made}")
    code.label(failed)
    _release(code, before)
    code.do("ret ptr null")
    code.label(made)
    return array


def _release(code: Code, arrays: list[str]) -> None:
    for array in arrays:
        code.do(f"call void {code.external('Py_DecRef')}(ptr {array})")


def _run(
    code: Code,
    program: KernelProgram,
    records: str,
    sizes: tuple[str, str],
    arrays: list[str],
) -> None:
    """Run so many rows on so many threads; let other Python threads work if that takes long.

    If there is no memory for the workspace, release the arrays and leave with the error.
    """
    rows, threads = sizes
    limit = max(RELEASE * code.lanes // max(program.weight, 1), 1)
    several, alone, long, brief, joined = (
        code.fresh(p) for p in ("several", "alone", "long", "brief", "joined")
    )
    run = f"call i32 @run(ptr {records}, i64 0, i64 {rows})"
    more = code.put(f"icmp sgt i64 {threads}, 1")
    code.do(f"br i1 {more}, label %{several}, label %{alone}")
    code.label(several)
    desk = code.external("sharing")
    grain = program.groups(code.module.target.width) * code.lanes
    shared_state = _unlocked(
        code,
        f"call i32 {code.load('ptr', desk)}(ptr {desk}, ptr @run, ptr {records}, ptr null, "
        f"i64 {rows}, i64 {grain}, i64 {threads})",
    )
    several_block = code.block
    code.jump(joined)
    code.label(alone)
    code.do(f"br i1 {code.put(f'icmp sgt i64 {rows}, {limit}')}, label %{long}, label %{brief}")
    code.label(long)
    slow_state = _unlocked(code, run)
    code.jump(joined)
    code.label(brief)
    state = code.put(run)
    code.jump(joined)
    code.label(joined)
    state = code.put(
        f"phi i32 [ {shared_state}, %{several_block} ], [ {slow_state}, %{long} ], "
        f"[ {state}, %{brief} ]"
    )
    failed, done = code.fresh("failed"), code.fresh("done")
    bad = code.put(f"icmp ne i32 {state}, 0")
    code.do(f"br i1 {bad}, label %{failed}, label %{done}")
    code.label(failed)
    _release(code, arrays)
    code.put(f"call ptr {code.external('PyErr_NoMemory')}()")
    code.do("ret ptr null")
    code.label(done)


def _unlocked(code: Code, call: str) -> str:
    """Call a function while other Python threads may run."""
    thread = code.put(f"call ptr {code.external('PyEval_SaveThread')}()")
    state = code.put(call)
    code.do(f"call void {code.external('PyEval_RestoreThread')}(ptr {thread})")
    return state


def _return(code: Code, arrays: list[str]) -> None:
    if len(arrays) == 1:
        code.do(f"ret ptr {arrays[0]}")
        return
    answer = code.put(f"call ptr {code.external('PyTuple_New')}(i64 {len(arrays)})")
    failed, made = code.fresh("failed"), code.fresh("made")
    missing = code.put(f"icmp eq ptr {answer}, null")
    code.do(f"br i1 {missing}, label %{failed}, label %{made}")
    code.label(failed)
    _release(code, arrays)
    code.do("ret ptr null")
    code.label(made)
    for index, array in enumerate(arrays):
        set_item = code.external("PyTuple_SetItem")
        code.put(f"call i32 {set_item}(ptr {answer}, i64 {index}, ptr {array})")
    code.do(f"ret ptr {answer}")
