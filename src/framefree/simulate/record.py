"""Collecting rows while a run goes on, in memory and, if asked for, on disk."""

import dataclasses
import secrets
import warnings
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import numpy as np

from framefree.errors import FramefreeWarning
from framefree.files import Lock
from framefree.machine import Machine
from framefree.simulate import storage
from framefree.simulate.columns import Channel
from framefree.simulate.describe import described
from framefree.simulate.errors import SimulationError
from framefree.simulate.place import RunPlace
from framefree.simulate.run import Run, RunSetup, assembled, next_place, tell
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
    replace : bool
        Whether a run that is there already may be replaced, once this one is finished.
    """

    def __init__(
        self,
        meta: dict[str, Any],
        batch: int | None,
        out: Any,
        expected: int,
        replace: bool = False,
    ) -> None:
        self.meta, self.batch, self._expected = meta, batch, expected
        self.meta["id"] = secrets.token_hex(8)
        self.channels: list[Channel] = []
        self.ended = np.zeros(batch or 0, dtype=bool)
        """Which of many trajectories have ended early."""
        self._arrays: Arrays = {TIME.key: np.empty(0)}
        self._entries: dict[tuple[str, str], Any] = {}
        self._rows = self._capacity = 0
        self._parts, self._flushed, self._latest = 0, 0, monotonic()
        self._place, self._replace = next_place() if out is None else RunPlace.at(out), replace
        self._lock: Lock | None = None
        if self._place is not None:
            folder = self._place.folder.absolute()  # whoever changes folders meanwhile
            self._place = RunPlace(folder, self._place.stem, self._place.alone)
            self._place.check(replace)
        self._work = self._place

    def begin(self, channels: Sequence[Channel]) -> None:
        """Take note of the channels that the next rows have.

        One that has other entries than before is widened; what was not there is NaN. The first time
        the place on disk is taken.
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
        if self._lock is None:
            self._open()
        else:
            self._on_disk(self._write_header)

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

    def ends(self, trajectory: int, failure: SimulationError) -> None:
        """Take note that one of many trajectories has ended early."""
        self.ended[trajectory] = True
        told = {"trajectory": trajectory, "time": failure.time, "quantity": failure.quantity}
        told |= {"cause": failure.cause, "message": str(failure)}
        self.meta.setdefault("failures", []).append(told)

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

    def close(self, status: str, machine: Machine, setup: RunSetup | None = None) -> Run:
        """Return the run, and finish what is on disk.

        `setup` holds the objects that it was made of. Whoever is watching is told this very run.

        Raises
        ------
        SimulationError
            If it cannot be written; the error has the run.
        """
        self.meta["status"] = status
        t, arrays = self._between(0)
        run = assembled(t, arrays, self.meta, tuple(self.channels), machine)
        run = dataclasses.replace(run, setup=setup)
        try:
            table = self._finish(run)
        except OSError as error:
            raise SimulationError(
                f"the run has come to its end, but cannot be written to `{self._place}`: "
                f"{error.strerror or error}; all of it is in the `run` of this error, and what was "
                "written until then can be loaded",
                run=run,
            ) from error
        finally:
            self.release()
        tell(run, table)
        return run

    def break_off(self, error: BaseException, machine: Machine) -> None:
        """Keep what was recorded before an error; a `SimulationError` gets it as its `run`."""
        try:
            if self.channels:
                self.meta["failure"] = str(error) or type(error).__name__
                status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                run = self.close(status, machine)
                if isinstance(error, SimulationError):
                    error.run = run
        except SimulationError as full:
            if isinstance(error, SimulationError):
                error.run = full.run
        finally:
            self.release()

    def release(self) -> None:
        """Give up the place on disk."""
        if self._lock is not None:
            self._lock.release()

    # ------------------------------------------------------------------ on disk

    def _open(self) -> None:
        """Take the place; what a run there has is left alone until this one is finished."""
        if self._place is None:
            return
        self._lock = self._place.take(self._replace)
        if self._place.files():
            self._work = self._place.unfinished
            self._work.clear()
        try:
            self._write_header()
        except OSError as error:
            self.release()
            words = error.strerror or error
            raise SimulationError(f"a run cannot be written to `{self._place}`: {words}") from None

    def _finish(self, run: Run) -> RunPlace | None:
        """Write the run as a whole, and remove its pieces; return where it is."""
        if self._place is None or self._work is None or self._lock is None:
            return None
        final = self._place if run.status == "finished" else self._work
        storage.write_run(final, run.arrays(), run.meta, run.channels, run.batch)
        if final is not self._work:
            self._work.clear()
        elif final is not self._place:
            warnings.warn(
                f"the run in `{self._place}` is not replaced, since the new one is {run.status}: "
                f"that is in `{final}`",
                FramefreeWarning,
                stacklevel=5,
            )
        return final

    def _write_header(self) -> None:
        if self._work is not None:
            storage.write_header(self._work, self.meta, self.channels, self.batch)

    def _write_rows(self) -> None:
        if self._work is not None:
            t, arrays = self._between(self._flushed)
            arrays = {TIME.key: t, **arrays}
            storage.write_part(
                self._work, self._parts, arrays, self.meta["id"], self.channels, self.batch
            )
            self._parts, self._flushed = self._parts + 1, self._rows

    def _flush(self) -> None:
        """Write the rows that are not yet on disk."""
        if self._lock is not None and self._flushed < self._rows:
            self._on_disk(self._write_rows)
            self._latest = monotonic()

    def _on_disk(self, write: Callable[[], None]) -> None:
        """Write; where that fails go on in memory, and try again later."""
        try:
            write()
        except OSError as error:
            warnings.warn(
                f"rows cannot be written to `{self._place}` ({error.strerror or error}): the run "
                "goes on in memory, and is written again later",
                FramefreeWarning,
                stacklevel=2,
            )

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
