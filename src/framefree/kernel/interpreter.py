"""Addresses of what compiled code needs from the interpreter, NumPy and the C library.

The addresses go into a table inside each loaded program, never into its code, so that cached code
is tied to no process. `available` checks the layout of NumPy's array object that `entry.py` reads;
where it does not hold (or the interpreter runs without its lock) calls take the Python path.
"""

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable

import numpy as np

from framefree.kernel.agreed import (
    CONTIGUOUS_ALIGNED,
    DATA,
    DESCR,
    DIMENSIONS,
    EXTERNALS,
    FLAGS,
    LIBM,
    NDIM,
)

HEADER = object.__basicsize__
_API = {"PyArray_Type": 2, "PyArray_New": 93}  # places in NumPy's table of C functions
OUT, THREADS = sys.intern("out"), sys.intern("threads")
SHARING = (ctypes.c_ssize_t * 8)()
"""What compiled code needs to share rows among threads, filled when threads are first asked for:
the address of `share_rows`, the number of helpers, how often one looks for work, a function that
sleeps and its argument, the helpers' mailboxes, and two functions for threads (`sharing.py`)."""
_METH_VARARGS_KEYWORDS = 0x0001 | 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def addresses() -> "ctypes.Array[ctypes.c_void_p]":
    """Return the table of addresses, in the order of `EXTERNALS`."""
    places = {name: _numpy_function(place) for name, place in _API.items()}
    places["float64"] = id(np.dtype(np.float64))
    places["out"], places["threads"] = id(OUT), id(THREADS)
    places["sharing"] = ctypes.addressof(SHARING)
    for name in LIBM:
        places[name] = _function_address(_math_library(), name)
    for name in EXTERNALS:
        if name not in places:
            places[name] = _function_address(ctypes.pythonapi, name)
    return (ctypes.c_void_p * len(EXTERNALS))(*[places[name] for name in EXTERNALS])


@functools.cache
def available() -> bool:
    """Tell whether array objects are laid out as the native entry point reads them."""
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sys.implementation.name != "cpython":
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or HEADER != 16:
        return False
    if ctypes.c_double.from_address(id(value := 2.5) + HEADER).value != value:
        return False
    return all(_layout_holds(np.zeros(shape)) for shape in ((3,), (2, 5), (4, 1, 3), ()))


def _layout_holds(array: np.ndarray) -> bool:
    base = id(array) + HEADER

    def read(kind, offset: int) -> int:
        return kind.from_address(base + offset).value

    ndim = read(ctypes.c_int, NDIM)
    if ndim != array.ndim or read(ctypes.c_void_p, DATA) != array.ctypes.data:
        return False
    kind = ctypes.c_void_p.from_address(id(array) + HEADER - 8).value
    if kind != id(np.ndarray) or addresses()[EXTERNALS.index("PyArray_Type")] != id(np.ndarray):
        return False
    if ndim:
        dimensions = (ctypes.c_ssize_t * ndim).from_address(read(ctypes.c_void_p, DIMENSIONS))
        if tuple(dimensions) != array.shape:
            return False
    flags = read(ctypes.c_int, FLAGS)
    return (
        read(ctypes.c_void_p, DESCR) == id(array.dtype)
        and flags == array.flags.num
        and bool(flags & CONTIGUOUS_ALIGNED == CONTIGUOUS_ALIGNED)
    )


def builtin(address: int, name: str, doc: str, owner: Callable) -> Callable:
    """Make the function at an address callable from Python.

    `owner` is the function's ``self``: it is called when the fast path does not apply, and it keeps
    the code alive as long as the builtin lives.
    """
    method = _MethodDef(name.encode(), address, _METH_VARARGS_KEYWORDS, doc.encode())
    # CPython keeps a pointer to it and looks there once more when the builtin ends. The collector
    # of cycles may take the owner apart before that, so it lives for ever: some bytes a kernel.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = kind(("PyCFunction_NewEx", ctypes.pythonapi))
    return make(ctypes.addressof(method), owner, None)


def _numpy_function(place: int) -> int:
    capsule = np._core.multiarray._ARRAY_API  # type: ignore[attr-defined]
    kind = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get = kind(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return table[place] or 0


@functools.cache
def _math_library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    library = ctypes.CDLL(None)  # what the interpreter itself is linked with
    return library if hasattr(library, "erfc") else ctypes.CDLL("libm.so.6")


def _function_address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
