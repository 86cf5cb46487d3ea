"""Collecting rows while a run goes on, in memory and, if asked for, on disk."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from framefree.machine import Machine
from framefree.simulate import storage
from framefree.simulate.columns import Channel
from framefree.simulate.describe import described
from framefree.simulate.run import Run, assembled, tell
from framefree.simulate.storage import Arrays

SECONDS = 2.0
"""How often, of wall time, what has been recorded goes to disk."""
MEMORY = 1 << 30
"""Bytes that are reserved for a run at once; a longer one takes more as it goes on."""
TIME = Channel("", "t", ())


class Recorder:
    """Rows of a run.

    Parameters
    ----------
    meta : dict
        Header of the run; `status` is kept here.
    batch : int or None
    out : path or None
        Where to write as the run goes on.
    expected : int
        How many rows there will be if all goes well.
    """

    def __init__(self, meta: dict[str, Any], batch: int | None, out: Any, expected: int) -> None:
        self.meta, self.batch, self._expected = meta, batch, expected
        self.channels: list[Channel] = []
        self._arrays: Arrays = {TIME.key: np.empty(0)}
        self._entries: dict[tuple[str, str], Any] = {}
        self._rows = self._capacity = 0
        self._table: Path | None = None if out is None else storage.places(out)[0]
        self._header: Path | None = None if out is None else storage.places(out)[1]
        self._parts, self._flushed, self._latest = 0, 0, monotonic()
        if self._table is not None:
            for old in (self._table, *storage.parts(self._table)):
                old.unlink(missing_ok=True)

    def begin(self, channels: Sequence[Channel]) -> None:
        """Take note of the channels that the next rows have.

        One that has other entries than before is widened; what was not there is NaN.
        """
        self._flush()
        known = {channel.key: channel for channel in self.channels}
        for channel in channels:
            before = known.get(channel.key)
            whole = channel if before is None else before.widened(channel)
            self._entries[channel.key] = _places(channel, whole)
            if whole is not before:
                known[channel.key] = whole
                self._arrays[channel.key] = self._widened(before, whole)
        self.channels = list(known.values())
        self._write_header()

    def _widened(self, before: Channel | None, whole: Channel) -> np.ndarray:
        """Return room for a channel, with the rows it has had so far."""
        room = self._empty(whole, self._capacity)
        past = self._span(0, self._rows)
        room[past] = np.nan
        if before is not None:
            room[past][_places(before, whole)] = self._arrays[whole.key][past]
        return room

    def happened(self, event: Any, time: float, more: dict[str, float] | None = None) -> None:
        """Take note of an event, and of what else is to be known of it."""
        self.meta["events"].append({"at": time, **described(event), **(more or {})})

    def add(self, t: np.ndarray, arrays: Arrays) -> None:
        """Add rows; channels that they do not have are filled with NaN."""
        if not len(t):
            return
        first, self._rows = self._rows, self._rows + len(t)
        self._reserve(first)
        self._arrays[TIME.key][first : self._rows] = t
        for channel in self.channels:
            rows = self._arrays[channel.key][self._span(first, self._rows)]
            rows[...] = np.nan
            if channel.key in arrays:
                rows[self._entries[channel.key]] = arrays[channel.key]
        if monotonic() - self._latest > SECONDS:
            self._flush()

    def close(self, status: str, machine: Machine) -> Run:
        """Return the run, and finish what is on disk."""
        self.meta["status"] = status
        t, arrays = self._between(0)
        run = assembled(t, arrays, self.meta, tuple(self.channels), machine)
        if self._table is not None:
            run.save(self._table)
            for part in storage.parts(self._table):
                part.unlink()
        tell(run)
        return run

    def _write_header(self) -> None:
        if self._header is not None:
            storage.write_header(self._header, self.meta, self.channels, self.batch)

    def _flush(self) -> None:
        """Write the rows that are not yet on disk."""
        if self._table is None or self._flushed == self._rows:
            return
        t, arrays = self._between(self._flushed)
        path = storage.part_path(self._table, self._parts)
        storage.write_table(path, {TIME.key: t, **arrays}, self.channels, self.batch)
        self._parts, self._flushed, self._latest = self._parts + 1, self._rows, monotonic()

    def _between(self, first: int) -> tuple[np.ndarray, Arrays]:
        span = self._span(first, self._rows)
        arrays = {channel.key: self._arrays[channel.key][span] for channel in self.channels}
        return self._arrays[TIME.key][first : self._rows], arrays

    def _reserve(self, kept: int) -> None:
        """Make room for all rows: for those of the whole run, as far as that is reasonable."""
        if self._rows <= self._capacity:
            return
        width = sum(channel.size for channel in self.channels) * (self.batch or 1)
        reasonable = min(self._expected, MEMORY // (8 * max(width, 1)))
        self._capacity = max(self._rows, 2 * self._capacity, reasonable)
        for channel in (TIME, *self.channels):
            old, new = self._arrays[channel.key], self._empty(channel, self._capacity)
            span = self._span(0, kept) if channel is not TIME else slice(0, kept)
            new[span] = old[span]
            self._arrays[channel.key] = new

    def _empty(self, channel: Channel, rows: int) -> np.ndarray:
        if self.batch is None or channel is TIME:
            return np.empty((rows, *channel.shape))
        return np.empty((self.batch, rows, *channel.shape))

    def _span(self, first: int, last: int) -> Any:
        rows = slice(first, last)
        return rows if self.batch is None else (slice(None), rows)


def _places(part: Channel, whole: Channel) -> Any:
    """Return the index of the entries of a channel in the rows of a wider one."""
    if part.shape == whole.shape and part.entry_names == whole.entry_names:
        return ...
    return (..., [whole.entry_names.index(name) for name in part.entry_names])
