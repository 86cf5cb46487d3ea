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
from framefree.simulate.run import Run, assembled
from framefree.simulate.storage import Arrays

SECONDS = 2.0
"""How often, of wall time, what has been recorded goes to disk."""


class Recorder:
    """Rows of a run.

    Parameters
    ----------
    meta : dict
        Header of the run; `status` is kept here.
    batch : int or None
    out : path or None
        Where to write as the run goes on.
    """

    def __init__(self, meta: dict[str, Any], batch: int | None, out: Any) -> None:
        self.meta, self.batch = meta, batch
        self.channels: list[Channel] = []
        self._pieces: list[Arrays] = []
        self._table: Path | None = None if out is None else storage.places(out)[0]
        self._header: Path | None = None if out is None else storage.places(out)[1]
        self._unwritten: list[Arrays] = []
        self._written, self._latest = 0, monotonic()
        if self._table is not None:
            for old in (self._table, *storage.parts(self._table)):
                old.unlink(missing_ok=True)

    def begin(self, channels: Sequence[Channel]) -> None:
        """Take note of the channels that the next rows have."""
        known = {(c.group, c.name) for c in self.channels}
        self.channels += [c for c in channels if (c.group, c.name) not in known]
        self._flush()
        self.write_header()

    def happened(self, event: Any, time: float) -> None:
        """Take note of an event."""
        self.meta["events"].append({"at": time, **described(event)})

    def add(self, t: np.ndarray, arrays: Arrays) -> None:
        """Add rows."""
        if not len(t):
            return
        piece = {("", "t"): t, **arrays}
        self._pieces.append(piece)
        if self._table is not None:
            self._unwritten.append(piece)
            if monotonic() - self._latest > SECONDS:
                self._flush()

    def close(self, status: str, machine: Machine) -> Run:
        """Return the run, and finish what is on disk."""
        self.meta["status"] = status
        t, arrays = self._joined(self._pieces)
        run = assembled(t, arrays, self.meta, tuple(self.channels), machine)
        if self._table is not None:
            run.save(self._table)
            for part in storage.parts(self._table):
                part.unlink()
        return run

    def write_header(self) -> None:
        """Write the header as it is now."""
        if self._header is not None:
            storage.write_header(self._header, self.meta, self.channels, self.batch)

    def _flush(self) -> None:
        if self._table is None or not self._unwritten:
            return
        t, arrays = self._joined(self._unwritten)
        path = storage.part_path(self._table, self._written)
        storage.write_table(path, {("", "t"): t, **arrays}, self.channels, self.batch)
        self._written, self._unwritten, self._latest = self._written + 1, [], monotonic()

    def _joined(self, pieces: list[Arrays]) -> tuple[np.ndarray, Arrays]:
        """Join pieces; channels that some of them do not have are filled with NaN."""
        axis = 0 if self.batch is None else 1
        times = [piece["", "t"] for piece in pieces]
        found: Arrays = {}
        for channel in self.channels:
            key = channel.group, channel.name
            arrays = [
                piece[key] if key in piece else storage.values(channel, len(t), self.batch)
                for piece, t in zip(pieces, times, strict=True)
            ]
            empty = storage.values(channel, 0, self.batch)
            found[key] = np.concatenate([empty, *arrays], axis=axis)
        return np.concatenate([np.zeros(0), *times]), found
