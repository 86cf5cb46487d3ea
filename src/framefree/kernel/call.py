"""The checked way to call a kernel: arguments are converted and checked before it runs.

The native entry point hands over here whenever a call is not plainly right.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from framefree.errors import near
from framefree.kernel.errors import ArgumentError
from framefree.kernel.graph import Port
from framefree.kernel.native import Native, TileLayout
from framefree.kernel.room import empty
from framefree.kernel.threads import split


class Caller:
    """Calls compiled code with arguments of any kind, or says what is wrong with them."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        native: Native,
        layout: TileLayout,
    ) -> None:
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.native, self.layout = native, layout
        self.names = native.tell_names([port.name for port in self.inputs])
        self.single: Native | None = None  # code of its own for a single row

    def __call__(self, *arguments, out=None, threads: int = 1, **named):
        """Evaluate; see `Kernel.__call__`."""
        values = self.bind(arguments, named)
        arrays = [as_argument(port, value) for port, value in zip(self.inputs, values, strict=True)]
        batch = common_batch(self.inputs, arrays)
        targets = self._targets(out, batch)
        results = [
            empty(_full(port, batch)) if target is None or _unusable(target, arrays) else target
            for port, target in zip(self.outputs, targets, strict=True)
        ]
        if _overlap(results):
            results = [empty(_full(port, batch)) for port in self.outputs]
        self.evaluate(arrays, results, 1 if batch is None else batch, threads)
        for position, target in enumerate(targets):
            if target is not None and results[position] is not target:
                np.copyto(target, results[position])
                results[position] = target
        return results[0] if len(results) == 1 else tuple(results)

    def bind(self, arguments: Sequence, named: Mapping) -> list:
        """Put positional and named arguments in order."""
        if not named and len(arguments) == len(self.inputs):
            return list(arguments)
        if len(arguments) > len(self.inputs):
            raise ArgumentError(
                f"`{self.name}` takes {_count(self.inputs)} ({_names(self.inputs)}), "
                f"but {len(arguments)} were given"
            )
        values = dict(zip((port.name for port in self.inputs), arguments, strict=False))
        for name, value in named.items():
            if name not in {port.name for port in self.inputs}:
                raise ArgumentError(
                    f"`{self.name}` has no argument `{name}`; "
                    f"{near(name, (port.name for port in self.inputs))}"
                    f"it takes {_names(self.inputs)}"
                )
            if name in values:
                raise ArgumentError(f"`{self.name}` got argument `{name}` twice")
            values[name] = value
        missing = [port for port in self.inputs if port.name not in values]
        if missing:
            raise ArgumentError(f"`{self.name}` misses {_names(missing)}")
        return [values[port.name] for port in self.inputs]

    def evaluate(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], rows: int, threads: int
    ) -> None:
        """Run the compiled code on checked arrays."""
        records = [
            (address(array), 0 if array.ndim == len(port.shape) else array.strides[0] // 8, 0)
            for ports, own in ((self.inputs, arrays), (self.outputs, results))
            for port, array in zip(ports, own, strict=True)
        ]
        arrays = (*arrays, *results)
        self.launch(self.native.run, rows, threads, (pack_records(records),), arrays)

    def launch(
        self,
        function: Callable[..., int],
        rows: int,
        threads: int,
        tables: Sequence[ctypes.Array | ctypes.Structure],
        arrays: Sequence[np.ndarray],
    ) -> None:
        """Call a compiled function on all rows, ``function(ports, first, last, ...)``.

        `arrays` are what the tables point to; here they are held until all threads are done.
        """
        if not split(function, tables, rows, self.layout.rows, threads):
            raise MemoryError(f"no memory for the workspace of `{self.name}`")
        del arrays

    def _targets(self, out, batch: int | None) -> list:
        if out is None:
            return [None] * len(self.outputs)
        targets = [out] if len(self.outputs) == 1 and not isinstance(out, (tuple, list)) else out
        if not isinstance(targets, (tuple, list)) or len(targets) != len(self.outputs):
            raise ArgumentError(
                f"`out` of `{self.name}` must hold {_count(self.outputs)} ({_names(self.outputs)})"
            )
        for port, target in zip(self.outputs, targets, strict=True):
            if target is not None:
                check_target(port, target, _full(port, batch))
        return list(targets)


def address(array: np.ndarray) -> int:
    """Return where an array's data begins."""
    return array.__array_interface__["data"][0]


def pack_records(records: Sequence[tuple[int, int, int]]) -> ctypes.Array:
    """Write the records of ports (see `batch.PORT`) as compiled code reads them."""
    return (ctypes.c_ssize_t * (3 * len(records)))(*[one for record in records for one in record])


def as_argument(port: Port, value) -> np.ndarray:
    """Convert a value to an array of doubles, single or a batch, rows contiguous; or refuse it."""
    try:
        array = np.asarray(value)
    except Exception as error:
        raise ArgumentError(f"`{port.name}` is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ArgumentError(
            f"`{port.name}` must hold real numbers, not values of type `{array.dtype}`"
        )
    if array.ndim == 0 and port.shape == (1,):
        array = array.reshape(1)
    axes = len(port.shape)
    if array.ndim not in (axes, axes + 1) or array.shape[array.ndim - axes :] != port.shape:
        raise ArgumentError(
            f"`{port.name}` must have shape {_shapes(port)}, not {_spelled(array.shape)}"
        )
    array = np.asarray(array, dtype=np.float64)
    if not array.flags.aligned or not array.dtype.isnative:
        array = np.array(array, dtype=np.float64)
    if array.ndim > axes and _rows_contiguous(array):
        return array
    return np.ascontiguousarray(array).reshape(array.shape)


def common_batch(ports: Sequence[Port], arrays: list[np.ndarray]) -> int | None:
    """Return the batch size of all arguments, None if none is a batch; repeat batches of one."""
    batches = {
        port.name: len(array)
        for port, array in zip(ports, arrays, strict=True)
        if array.ndim > len(port.shape)
    }
    sizes = set(batches.values())
    if not sizes:
        return None
    if len(sizes) == 2 and 1 in sizes:
        sizes.remove(1)
        for index, port in enumerate(ports):
            if batches.get(port.name) == 1:
                arrays[index] = arrays[index].reshape(port.shape)
    if len(sizes) > 1:
        listed = ", ".join(f"`{name}` {size}" for name, size in batches.items())
        raise ArgumentError(f"arguments differ in batch size: {listed}")
    return sizes.pop()


def check_target(port: Port, target, shape: tuple[int, ...]) -> None:
    """Refuse an `out` array that cannot take the result."""
    if not isinstance(target, np.ndarray) or target.dtype != np.float64:
        kind = f"an array of {target.dtype}" if isinstance(target, np.ndarray) else type(target)
        raise ArgumentError(f"`out` for `{port.name}` must be an array of float64, not {kind}")
    if target.shape != shape:
        raise ArgumentError(
            f"`out` for `{port.name}` must have shape {_spelled(shape)}, "
            f"not {_spelled(target.shape)}"
        )
    if not target.flags.writeable:
        raise ArgumentError(f"`out` for `{port.name}` is read-only")


def _unusable(target: np.ndarray, arrays: Sequence[np.ndarray]) -> bool:
    """Tell whether results must not be written into `target` directly."""
    direct = target.flags.c_contiguous and target.flags.aligned and target.dtype.isnative
    return not direct or any(np.may_share_memory(target, array) for array in arrays)


def _overlap(results: Sequence[np.ndarray]) -> bool:
    return any(np.may_share_memory(a, b) for k, a in enumerate(results) for b in results[k + 1 :])


def _rows_contiguous(array: np.ndarray) -> bool:
    """Tell whether each row is contiguous, whatever the distance from row to row."""
    expected = 8
    for length, stride in zip(array.shape[:0:-1], array.strides[:0:-1], strict=True):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return array.strides[0] % 8 == 0


def _full(port: Port, batch: int | None) -> tuple[int, ...]:
    return port.shape if batch is None else (batch, *port.shape)


def _spelled(shape: Sequence[int | str]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _shapes(port: Port) -> str:
    return f"{_spelled(port.shape)} or {_spelled(('batch', *port.shape))}"


def _names(ports: Sequence[Port]) -> str:
    return ", ".join(f"`{port.name}`" for port in ports) or "none"


def _count(ports: Sequence[Port]) -> str:
    return f"{len(ports)} array" + ("" if len(ports) == 1 else "s")
