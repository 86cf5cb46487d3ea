"""What compiled code and Python agree on: the layout of objects and records, addresses, names.

Here, apart from the code that is emitted, so that a start with cached code need not load the
emitter.
"""

from dataclasses import dataclass

from framefree.kernel.graph import Port

# What compiled code calls, in the order in which the addresses stand in its table.
INTERPRETER = (
    "PyArray_Type",
    "PyFloat_Type",
    "PyLong_Type",
    "PyTuple_Type",
    "float64",
    "out",
    "threads",
    "sharing",
    "PyArray_New",
    "PyObject_Call",
    "PyDict_Next",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_NoMemory",
    "PyErr_Clear",
    "PyLong_AsSsize_t",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyMem_RawMalloc",
    "PyMem_RawFree",
)
LIBM = {
    name: 1
    for name in (
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("exp", "log", "log1p", "expm1", "erf", "erfc", "floor", "ceil"),
    )
} | {name: 2 for name in ("pow", "atan2", "hypot", "fmod", "remainder")}
EXTERNALS = (*INTERPRETER, *LIBM)

# Offsets in NumPy's array object, after the object header.
DATA, NDIM, DIMENSIONS, DESCR, FLAGS = 0, 8, 16, 40, 48
CONTIGUOUS_ALIGNED, WRITEABLE = 0x0001 | 0x0100, 0x0400
# A port's record: the address of its first row, doubles from row to row, doubles from step to step.
PORT = 24
# Threads that work on one batch at most.
MOST_THREADS = 64
# Fields of the plan of a roll-out: four integers, then two doubles.
PLAN = {name: 8 * k for k, name in enumerate(("begin", "end", "every", "records", "t0", "dt"))}
SUFFIX = "_next"
TIME = "t"


@dataclass(frozen=True)
class Feedback:
    """Which outputs become which inputs.

    Attributes
    ----------
    states : dict of int to int
        From the index of an input to that of the output that follows it in time.
    time : int or None
        Index of the input that receives the time.
    """

    states: dict[int, int]
    time: int | None


def find_feedback(inputs: tuple[Port, ...], outputs: tuple[Port, ...]) -> Feedback:
    """Find by name what is fed back."""
    following = {port.name: index for index, port in enumerate(outputs)}
    states, time = {}, None
    for index, port in enumerate(inputs):
        output = following.get(port.name + SUFFIX)
        if output is not None and outputs[output].shape == port.shape:
            states[index] = output
        elif port.name == TIME and port.size == 1:
            time = index
    return Feedback(states, time)
