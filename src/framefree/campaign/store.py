"""Results of a campaign on disk: pieces that are complete or absent, and a manifest written last.

A folder holds ``plan.json`` (what is run: settings of all jobs follow from it), one
``piece-NNNNNN.parquet`` for each finished piece of jobs, ``records-NNNNNN.parquet`` with what is
kept of them over time, written before it, and ``manifest.json`` once all are there.
Whatever ends a campaign, the pieces that are there count, each once, and the others are run again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from framefree.campaign.errors import CampaignError
from framefree.campaign.records import METRICS, TIME, Record
from framefree.campaign.subject import Finished, Settings
from framefree.files import Lock, PlaceTaken, take, write_file

PLAN, MANIFEST, LOCK = "plan.json", "manifest.json", ".campaign.lock"
JOB, CAUSE = "job", "cause"
SHOWN, LISTED = 60, 5
"""Characters of a value that are shown where two plans differ, and places that are listed."""


@dataclass(frozen=True)
class JobPiece:
    """Jobs that are run and written together: their number and their settings."""

    index: int
    first: int
    rows: tuple[Settings, ...]


class Store:
    """The folder of a campaign; see the top of this file.

    Parameters
    ----------
    folder : path
        A new or empty folder, or that of the same campaign with `resume`.
    plan : dict
        What is run.
    resume : bool
        Go on with what is there.
    """

    def __init__(self, folder: Any, plan: dict[str, Any], *, resume: bool) -> None:
        self.folder = Path(folder)
        self.plan = json.loads(json.dumps(plan, sort_keys=True))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(
                f"the folder `{self.folder}` cannot be made: {error.strerror or error}"
            ) from None
        self._lock = self._take()
        try:
            self._check(resume)
        except BaseException:
            self.release()
            raise

    @property
    def keeps(self) -> str:
        """What is kept of each run."""
        return self.plan.get("keep", METRICS)

    def _take(self) -> Lock:
        try:
            return take(self.folder / LOCK, self.folder)
        except PlaceTaken:
            raise CampaignError(f"another campaign is running in `{self.folder}`") from None
        except OSError as error:
            raise CampaignError(
                f"the folder `{self.folder}` cannot be written to: {error.strerror or error}"
            ) from None

    def _check(self, resume: bool) -> None:
        """Write the plan, or compare it with the one that is there."""
        path = self.folder / PLAN
        begun = path.exists() and next(self.folder.glob("piece-*.parquet"), None) is not None
        if begun:
            if not resume:
                raise CampaignError(
                    f"`{self.folder}` holds a campaign: continue it with `resume` (`--resume`), "
                    "or give a new folder"
                )
            differ = differences(read_plan(self.folder), self.plan)
            if differ:
                more = f"; and {len(differ) - LISTED} more" if len(differ) > LISTED else ""
                raise CampaignError(
                    f"`{self.folder}` holds another campaign: {'; '.join(differ[:LISTED])}{more}. "
                    "Give the same arguments to continue it, or a new folder"
                )
            return
        others = [p.name for p in self.folder.iterdir() if not p.name.startswith((".", PLAN))]
        if others:
            raise CampaignError(
                f"`{self.folder}` is not empty and holds no campaign; give a new folder"
            )
        self._write(PLAN, json.dumps(self.plan, indent=2, sort_keys=True))

    def _write(self, name: str, content: Any) -> None:
        try:
            write_file(self.folder / name, content)
        except OSError as error:
            raise CampaignError(
                f"`{self.folder / name}` cannot be written: {error.strerror or error}; the pieces "
                "that were finished are there, and `resume` continues"
            ) from None

    # ------------------------------------------------------------------ pieces

    def missing(self, pieces: Sequence[JobPiece]) -> list[JobPiece]:
        """Return the pieces that are not there yet."""
        return [piece for piece in pieces if not self._whole(piece)]

    def _whole(self, piece: JobPiece) -> bool:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            rows = pq.read_metadata(self.folder / piece_name(piece.index)).num_rows
        except (OSError, pa.ArrowInvalid):
            return False
        return rows == len(piece.rows)

    def keep(self, piece: JobPiece, results: Sequence[Finished]) -> None:
        """Write a finished piece."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = sorted({name for result in results for name in result.metrics})
        columns: dict[str, Any] = {JOB: [piece.first + k for k in range(len(results))]}
        for key in piece.rows[0]:
            columns[f"set.{key}"] = [_plain(row[key]) for row in piece.rows]
        for name in names:
            columns[name] = [_number(result.metrics.get(name)) for result in results]
        columns[CAUSE] = [result.cause for result in results]
        table = pa.table(columns)
        records = _record_table(piece, results)
        if records is not None:
            self._write(records_name(piece.index), lambda file: pq.write_table(records, file))
        self._write(piece_name(piece.index), lambda file: pq.write_table(table, file))

    def read(self, piece: JobPiece) -> list[Finished] | None:
        """Return what came of a piece that is there with these very settings; None otherwise."""
        if not self._whole(piece):
            return None
        columns = _columns([self.folder / piece_name(piece.index)])
        for key in piece.rows[0]:
            if columns.get(f"set.{key}", np.zeros(0)).tolist() != [r[key] for r in piece.rows]:
                return None
        names = [n for n in columns if n not in (JOB, CAUSE) and not n.startswith("set.")]
        return [
            Finished({} if cause else {n: float(columns[n][k]) for n in names}, str(cause))
            for k, cause in enumerate(columns[CAUSE])
        ]

    def finish(self, count: int) -> None:
        """Write the manifest: the campaign is complete."""
        content = {"jobs": count, "plan": fingerprint(self.plan)}
        self._write(MANIFEST, json.dumps(content, indent=2))

    def release(self) -> None:
        """Give up the folder."""
        self._lock.release()


def piece_name(index: int) -> str:
    """Return the name of the file of a piece."""
    return f"piece-{index:06d}.parquet"


def records_name(index: int) -> str:
    """Return the name of the file of what is kept over time of a piece."""
    return f"records-{index:06d}.parquet"


def fingerprint(plan: dict[str, Any]) -> str:
    """Return a short text that differs for different plans."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Return where two plans differ, in words: "vary.mass.low was 1, is 2"."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted({*before, *now})
        found = [differences(before.get(k), now.get(k), f"{path}.{k}" if path else k) for k in keys]
        return [words for some in found for words in some]
    if before == now:
        return []
    told = [_short(value) for value in (before, now)]
    return [f"`{path}` was {told[0]}, is {told[1]}"]


def _short(value: Any) -> str:
    text = "not there" if value is None else json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def read_plan(folder: Any) -> dict[str, Any]:
    """Return the plan of a campaign in a folder."""
    path = Path(folder) / PLAN
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CampaignError(f"`{folder}` holds no campaign: there is no {PLAN}") from None
    except ValueError:
        raise CampaignError(f"`{path}` cannot be read: it is no plan of a campaign") from None


def read_table(folder: Any) -> dict[str, np.ndarray]:
    """Return all finished jobs as columns by name, in the order of their numbers."""
    return _columns(sorted(Path(folder).glob("piece-*.parquet")))


def read_records(folder: Any, names: Sequence[str] | None = None) -> dict[int, Record]:
    """Return what was kept over time of each job by its number; all columns, or those named."""
    import pyarrow.parquet as pq

    records: dict[int, Record] = {}
    for path in sorted(Path(folder).glob("records-*.parquet")):
        known = pq.read_schema(path).names
        wanted = None if names is None else [JOB, TIME, *(n for n in names if n in known)]
        table = pq.read_table(path, columns=wanted)
        columns = {n: table[n].to_numpy(zero_copy_only=False) for n in table.column_names}
        jobs = columns.pop(JOB)
        edges = [0, *(np.flatnonzero(np.diff(jobs)) + 1).tolist(), len(jobs)]
        for first, last in pairwise(edges):
            if last > first:
                records[int(jobs[first])] = {n: a[first:last] for n, a in columns.items()}
    return records


def _columns(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """Return the rows of several tables as columns by name, in the order of their jobs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(path) for path in paths]
    if not tables:
        return {JOB: np.zeros(0, dtype=int), CAUSE: np.zeros(0, dtype=object)}
    whole = pa.concat_tables(tables, promote_options="permissive").sort_by(JOB)
    return {name: whole[name].to_numpy(zero_copy_only=False) for name in whole.column_names}


def _record_table(piece: JobPiece, results: Sequence[Finished]) -> Any:
    """Return what is kept over time of a piece as one table, or None."""
    import pyarrow as pa

    kept = [(piece.first + k, one.record) for k, one in enumerate(results) if one.record]
    if not kept:
        return None
    names = list(dict.fromkeys(name for _, record in kept for name in record))
    columns: dict[str, Any] = {
        JOB: np.concatenate([np.full(len(record[TIME]), job) for job, record in kept])
    }
    for name in names:
        parts = [record.get(name, np.full(len(record[TIME]), np.nan)) for _, record in kept]
        columns[name] = np.concatenate(parts)
    return pa.table(columns)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _number(value: Any) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    return float(value)
