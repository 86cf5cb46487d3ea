"""Data that would fit far better if they were read otherwise: columns swapped or in degrees.

Where a fit leaves much of a force unexplained, every simple mistake of a table is tried: the fit is
repeated on the data as they would be without it. One reading that leaves far less than the data as
they are is evidence enough to refuse them, with the names of the columns. A mistake that no fit can
show, because the machine is alike in both columns, changes nothing of what is identified.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from framefree.identify.errors import IdentifyError
from framefree.identify.recording import Recording, column_names
from framefree.identify.regression import regress
from framefree.identify.rows import Prepared, UnknownModel
from framefree.machine import Machine

POOR = 0.05
"""Share of the variation of a force that must be unexplained before other readings are tried."""
BETTER = 0.6
"""What another reading leaves must be below this share of what the data leave as they are."""
STRETCH = 40.0
"""Length of the stretch on which readings are tried, in periods of the cut-off."""
PAIRS = 36
"""Most pairs of columns that are tried: all pairs of nine."""
ROWS = 2000
"""Most rows on which they are tried where nothing is filtered."""


class OtherReading(NamedTuple):
    """Data as they would be without a mistake, and the mistake in words."""

    mistake: str
    data: Recording


def refuse_misread(
    model: UnknownModel,
    chosen: np.ndarray,
    kept: np.ndarray,
    prepared: Sequence[Prepared],
    late: float,
) -> None:
    """Refuse recordings that fit far better when they are read otherwise.

    Parameters
    ----------
    model : UnknownModel
    chosen : (k,) of int
        Places of the unknown numbers that the data tell.
    kept : (n,)
        Unknown numbers as they are known before, those that are told being zero.
    prepared : sequence of Prepared
    late : float
        The delay, s.
    """
    machine = model.machine.numeric
    for one in prepared:
        short = _shortened(one.recording, one.cutoff)

        def left(data: Recording, cutoff: float | None = one.cutoff) -> np.ndarray:
            return _left(model, chosen, kept, Prepared(model, data, cutoff), late)

        unread = left(short)
        if unread.max() < POOR:
            continue
        best, least = None, BETTER * _pooled(unread)
        for reading in _readings(short, machine):
            share = _pooled(left(reading.data))
            if share < least:
                best, least = reading, share
        if best is not None:
            raise IdentifyError(
                f"{one.recording.source}: {best.mistake}, from row 1 on: "
                f"{100 * _pooled(unread):.0f} percent of the variation of the forces is not "
                f"explained as the data are, {100 * least:.2g} percent without that mistake"
            )


def _shortened(record: Recording, cutoff: float | None) -> Recording:
    rows = ROWS if cutoff is None else int(STRETCH / (cutoff * record.period))
    start = max(0, (len(record) - rows) // 2)
    return record.rows(slice(start, start + rows))


def _left(
    model: UnknownModel, chosen: np.ndarray, kept: np.ndarray, prepared: Prepared, late: float
) -> np.ndarray:
    """Return the share of each equation's variation that is left."""
    found = []
    # A delay that was sought in misread data may be far off: without one the data fit better then.
    for delay in {late, 0.0}:
        Y, b = prepared.rows(delay)
        b = b - Y @ kept
        spread = np.maximum(b.std(axis=0), 1e-9 * max(float(np.abs(b).max()), 1e-300))
        found.append(regress(Y[:, :, chosen], b, coloured=False).residual.std(axis=0) / spread)
    return min(found, key=_pooled)


def _pooled(left: np.ndarray) -> float:
    return float(np.sqrt((left**2).mean()))


# ------------------------------------------------------------------ other readings


def _readings(record: Recording, machine: Machine) -> Iterator[OtherReading]:
    for group in ("force", "u"):
        if getattr(record, group) is None:
            continue
        for i, j in _pairs(len(column_names(machine, group))):
            yield _swapped(record, machine, group, i, j)
    yield from _motions(record, machine)


def _pairs(count: int) -> list[tuple[int, int]]:
    """Return pairs of columns to try: neighbours first, and not more than `PAIRS`."""
    pairs = itertools.combinations(range(count), 2)
    return sorted(pairs, key=lambda pair: pair[1] - pair[0])[:PAIRS]


def _motions(record: Recording, machine: Machine) -> Iterator[OtherReading]:
    """Other readings of x, which v and a would contradict: those were compared with x before."""
    single = [
        (machine.x_slice[joint.name].start, machine.v_slice[joint.name].start)
        for joint in machine.joints
        if joint.nx == 1 and joint.nv == 1
    ]
    for first, second in _pairs(len(single)):
        (i, k), (j, l) = single[first], single[second]
        reading = _swapped(record, machine, "x", i, j)
        data = reading.data
        for group in ("v", "a"):
            if getattr(data, group) is not None:
                data = _swapped(data, machine, group, k, l).data
        yield OtherReading(reading.mistake, data)
    if record.v is not None or record.a is not None:
        return
    names = column_names(machine, "x")
    for i, _ in single:
        x = record.x.copy()
        x[:, i] *= np.pi / 180
        yield OtherReading(
            f"column `{names[i]}` looks as if it were in degrees", replace(record, x=x)
        )
    for joint in machine.joints:
        place = machine.x_slice[joint.name]
        if joint.nx == 7:
            for i, j in itertools.combinations(range(place.start, place.start + 3), 2):
                yield _swapped(record, machine, "x", i, j)
        for block in joint.kind.unit_blocks:
            columns = np.arange(place.start, place.stop)[block]
            if len(columns) == 4:
                x = record.x.copy()
                x[:, columns] = record.x[:, np.roll(columns, 1)]
                listed = ", ".join(f"`{names[i]}`" for i in columns)
                mistake = f"columns {listed} look as if the quaternion were in the order x, y, z, w"
                yield OtherReading(mistake, replace(record, x=x))


def _swapped(record: Recording, machine: Machine, group: str, i: int, j: int) -> OtherReading:
    names = column_names(machine, group)
    values = getattr(record, group).copy()
    values[:, [i, j]] = values[:, [j, i]]
    mistake = f"columns `{names[i]}` and `{names[j]}` look swapped"
    return OtherReading(mistake, replace(record, **{group: values}))
