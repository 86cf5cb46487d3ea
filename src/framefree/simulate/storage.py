"""Runs on disk: a Parquet table with a row for every time, and a JSON header.

A run that is written as it goes makes a file for every piece (run-part-00000.parquet, ...), and one
table of them all at the end; what was interrupted, even by force, can be read. Every file is
complete when it appears. The pieces bear the mark of their run, and the table carries the header of
its own. Trajectories of a batch are told apart by the column `trajectory`.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framefree.errors import FramefreeWarning
from framefree.files import write_file
from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError
from framefree.simulate.place import KEY, RunPlace, table_metadata

FORMAT = 1
TIME = "t [s]"
TRAJECTORY = "trajectory"
MARK = f"{KEY}_id"

Arrays = dict[tuple[str, str], np.ndarray]
Header = tuple[dict[str, Any], tuple[Channel, ...], int | None]
"""Meta, channels and the number of trajectories."""


def header_text(meta: Mapping[str, Any], channels: Sequence[Channel], batch: int | None) -> str:
    """Return the header as JSON."""
    data = {KEY: FORMAT, "batch": batch, **meta}
    return json.dumps({**data, "channels": [channel.to_dict() for channel in channels]}, indent=1)


def write_header(
    place: RunPlace, meta: Mapping[str, Any], channels: Sequence[Channel], batch: int | None
) -> None:
    """Write the header."""
    write_file(place.header, header_text(meta, channels, batch))


def write_run(
    place: RunPlace,
    arrays: Arrays,
    meta: Mapping[str, Any],
    channels: Sequence[Channel],
    batch: int | None,
) -> Path:
    """Write a whole run in the place of what is there; return the path of the table.

    With the table, which carries the header, the run is there; all else is in its wake.
    """
    marks = {KEY: header_text(meta, channels, batch)}
    _write_table(place.table, arrays, channels, batch, marks)
    write_header(place, meta, channels, batch)
    for part in place.parts():
        part.unlink(missing_ok=True)
    return place.table


def write_part(
    place: RunPlace,
    index: int,
    arrays: Arrays,
    mark: str,
    channels: Sequence[Channel],
    batch: int | None,
) -> None:
    """Write a piece of the table of the run that has a mark."""
    _write_table(place.part(index), arrays, channels, batch, {MARK: mark})


def read_run(path: Any) -> tuple[np.ndarray, Arrays, Header]:
    """Return times, arrays and header of a run, or of what there is of one that was interrupted."""
    place = RunPlace.at(path)
    if place.table.exists():
        text = table_metadata(place.table).get(KEY)
        header = _read_header(place) if text is None else _parsed(text, place.table)
        return (*_read_tables([place.table], *header[1:]), header)
    try:
        return _read_pieces(place)
    except (SimulationError, OSError):
        if place.table.exists():  # it has ended meanwhile
            return read_run(path)
        raise


def _read_pieces(place: RunPlace) -> tuple[np.ndarray, Arrays, Header]:
    # Asked first: a run that ends meanwhile is then still said to be running.
    writing = place.writing
    header = _read_header(place)
    files = _own_parts(place, header[0].get("id"))
    if header[0].get("status") != "running" and not files:
        raise SimulationError(f"there is no table `{place.table}`, nor pieces of it")
    header[0]["status"] = "running" if writing else "interrupted"
    return (*_read_tables(files, *header[1:]), header)


def _read_header(place: RunPlace) -> Header:
    try:
        text = place.header.read_text(encoding="utf-8")
    except OSError as error:
        there = sorted(file.name for file in place.folder.glob("*.parquet"))
        there = [name for name in there if "-part-" not in name]
        hint = f"; the folder has {', '.join(f'`{name}`' for name in there)}" if there else ""
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        reason = "" if missing else f": {error.strerror}"
        raise SimulationError(f"there is no run at `{place}`{reason}{hint}") from None
    except ValueError as error:
        raise SimulationError(f"`{place.header}` is no header of a run: {error}") from None
    return _parsed(text, place.header)


def _parsed(text: str, path: Path) -> Header:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SimulationError(f"`{path}` is no header of a run: {error}") from None
    if not isinstance(data, dict) or data.pop(KEY, None) != FORMAT:
        raise SimulationError(f"`{path}` is no header of a run of format {FORMAT}")
    try:
        channels = tuple(Channel.from_dict(item) for item in data.pop("channels"))
        return data, channels, data.pop("batch")
    except (KeyError, TypeError) as error:
        raise SimulationError(f"`{path}` is no header of a run: {error!r} is missing") from None


def _own_parts(place: RunPlace, mark: str | None) -> list[Path]:
    """Return the pieces of the run that has a mark, up to the first that is missing."""
    own = [part for part in place.parts() if table_metadata(part).get(MARK) == mark]
    expected = [place.part(index) for index in range(len(own))]
    whole = [part for part, other in zip(own, expected, strict=True) if part == other]
    if len(whole) < len(own):
        gap = next(part for part in expected if part not in own)
        warnings.warn(
            f"`{gap.name}` is missing: the run at `{place}` is read up to there",
            FramefreeWarning,
            stacklevel=2,
        )
    return whole


def _write_table(
    path: Path,
    arrays: Arrays,
    channels: Sequence[Channel],
    batch: int | None,
    marks: Mapping[str, str],
) -> None:
    # Loading pyarrow takes as long as all of framefree.
    import pyarrow as pa
    import pyarrow.parquet as pq

    t = arrays["", "t"]
    columns: dict[str, np.ndarray] = {}
    if batch is not None:
        columns[TRAJECTORY] = np.repeat(np.arange(batch, dtype=np.int32), len(t))
    columns[TIME] = t if batch is None else np.tile(t, batch)
    for channel in channels:
        flat = arrays[channel.key].reshape(len(columns[TIME]), channel.size)
        columns |= {name: flat[:, i] for i, name in enumerate(channel.columns)}
    table = pa.table({name: np.ascontiguousarray(column) for name, column in columns.items()})
    table = table.replace_schema_metadata(dict(marks))
    write_file(path, lambda file: pq.write_table(table, file))


def _read_tables(
    files: Sequence[Path], channels: Sequence[Channel], batch: int | None
) -> tuple[np.ndarray, Arrays]:
    """Return times and arrays of a table, or of the pieces of one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        tables = [pq.ParquetFile(file).read() for file in files]
        tables = [table.replace_schema_metadata(None) for table in tables]
    except (pa.ArrowException, OSError) as error:
        raise SimulationError(f"`{files[0]}` is no table of a run: {error}") from None
    empty = pa.table({TIME: pa.array([], pa.float64()), TRAJECTORY: pa.array([], pa.int32())})
    table = pa.concat_tables(tables, promote_options="default") if tables else empty
    columns = {
        name: table.column(name).to_numpy(zero_copy_only=False).astype(float)
        for name in table.column_names
    }
    if TIME not in columns or (batch is not None and TRAJECTORY not in columns):
        raise SimulationError(f"`{files[0]}` is no table of a run: it has no column `{TIME}`")
    t, order = columns[TIME], slice(None)
    if batch is not None:
        order = np.lexsort((t, columns[TRAJECTORY]))
        t = t[order][: len(t) // max(batch, 1)]
    arrays: Arrays = {}
    for channel in channels:
        missing = np.full(table.num_rows, np.nan)
        flat = [columns.get(name, missing)[order] for name in channel.columns]
        rows = np.stack(flat, axis=-1) if flat else np.zeros((table.num_rows, 0))
        lead = (len(t),) if batch is None else (batch, len(t))
        arrays[channel.key] = rows.reshape(*lead, *channel.shape)
    return t, arrays
