"""Runs on disk: a Parquet table with a row for every time, and a JSON header.

A run that is written as it goes makes a file for every piece (run-part-00000.parquet, ...), each
complete when it appears, and one table of them all at the end; what was interrupted, even by force,
can be read. Trajectories of a batch are told apart by the column `trajectory`.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framefree.simulate.columns import Channel
from framefree.simulate.errors import SimulationError

FORMAT = 1
TIME = "t [s]"
TRAJECTORY = "trajectory"

Arrays = dict[tuple[str, str], np.ndarray]


def places(path: Any) -> tuple[Path, Path]:
    """Return the paths of the table and of the header."""
    path = Path(path)
    if path.suffix == ".parquet":
        return path, path.with_suffix(".json")
    return path / "run.parquet", path / "run.json"


def write_header(
    path: Path, meta: dict[str, Any], channels: Sequence[Channel], batch: int | None
) -> None:
    """Write the header; it is either the old or the new one, whatever happens."""
    data = {
        "framefree_run": FORMAT,
        "batch": batch,
        **meta,
        "channels": [channel.to_dict() for channel in channels],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    _atomically(path, lambda new: new.write_text(json.dumps(data, indent=1), encoding="utf-8"))


def read_header(path: Path) -> tuple[dict[str, Any], tuple[Channel, ...], int | None]:
    """Return meta, channels and the number of trajectories."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SimulationError(f"there is no run at `{path.parent}`: {error}") from None
    except ValueError as error:
        raise SimulationError(f"`{path}` is no header of a run: {error}") from None
    if not isinstance(data, dict) or data.pop("framefree_run", None) != FORMAT:
        raise SimulationError(f"`{path}` is no header of a run of format {FORMAT}")
    channels = tuple(Channel.from_dict(item) for item in data.pop("channels"))
    return data, channels, data.pop("batch")


def write_table(path: Path, arrays: Arrays, channels: Sequence[Channel], batch: int | None) -> None:
    """Write arrays as a table."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    _atomically(path, lambda new: pq.write_table(table, new))


def read_table(
    path: Any, channels: Sequence[Channel], batch: int | None
) -> tuple[np.ndarray, Arrays]:
    """Return times and arrays of a table, or of the pieces of one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table_path, _ = places(path)
    files = [table_path] if table_path.exists() else parts(table_path)
    if not files:
        raise SimulationError(f"there is no table `{table_path}`, nor pieces of it")
    tables = [pq.read_table(file) for file in files]
    table = pa.concat_tables(tables, promote_options="default")
    columns = {
        name: table.column(name).to_numpy(zero_copy_only=False).astype(float)
        for name in table.column_names
    }
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


def part_path(table: Path, index: int) -> Path:
    """Return the path of a piece of a table."""
    return table.with_name(f"{table.stem}-part-{index:05d}.parquet")


def parts(table: Path) -> list[Path]:
    """Return the pieces of a table that are there."""
    return sorted(table.parent.glob(f"{table.stem}-part-*.parquet"))


def _atomically(path: Path, write: Any) -> None:
    new = path.with_name(path.name + ".new")
    write(new)
    os.replace(new, path)
