"""A folder of results, runs and what was made of them: new, or replaced as a whole at the end.

A manifest says what the folder holds. Its `status` is "running" from the start on, and "finished",
"interrupted" or "failed" from the moment at which all files are there: it is written last. What has
a manifest that is running and no process that lives was broken off by force.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from framefree.errors import FramefreeError
from framefree.files import Lock, PlaceTaken, exchange, is_unfinished, take, write_file
from framefree.simulate.place import MANIFEST, RunPlace, is_header, read_json, table_metadata

KEY = "framefree_results"
FORMAT = 1
PAGES = ("report.html", "metrics.json")


class ResultFolder:
    """A folder that belongs to one process until its results are complete.

    Parameters
    ----------
    folder : Path
        Where the results are to be: a folder that is new or empty.
    replace : bool
        Whether results that are there may be replaced.
    about : mapping
        What the manifest says besides, as data that JSON can hold.

    Attributes
    ----------
    work : Path
        Where to write: the folder itself, or one beside it as long as the old results stay.
    """

    def __init__(self, folder: Path, replace: bool, about: Mapping[str, Any]) -> None:
        self.folder, self.about = folder, about
        self._target = Path(os.path.realpath(folder))  # behind links, wherever one goes meanwhile
        self._restore()
        check(folder, replace)
        self._made = [p for p in (self._target, *self._target.parents) if not p.exists()]
        self._lock = self._take(replace)
        self.work = self._target
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            if _entries(self._target):
                self.work = _beside(self._target, "unfinished")
                shutil.rmtree(self.work, ignore_errors=True)
                self.work.mkdir()
            self._write_manifest("running", [])
        except BaseException:
            self._abandon()
            raise

    def _restore(self) -> None:
        """Bring back results that a process was about to replace when it was killed."""
        spare = _beside(self._target, "replaced")
        if not self._target.exists() and (spare / MANIFEST).exists():
            with suppress(OSError):
                spare.rename(self._target)

    def _take(self, replace: bool) -> Lock:
        try:
            self._target.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:
            raise FramefreeError(f"`{self.folder}` cannot be made: {error.strerror}") from None
        try:
            lock = take(RunPlace.at(self._target).lock, self.folder)
        except FileNotFoundError:
            raise PlaceTaken(f"`{self.folder}` is being written by another process") from None
        try:
            check(self.folder, replace)
        except BaseException:
            lock.release()
            raise
        return lock

    def finish(self, status: str) -> Path:
        """Write the manifest, let the results take their place; return where they are.

        Results that replace others do so if they are finished; else they stay beside them.
        """
        self._write_manifest(status, sorted(file.name for file in _entries(self.work)))
        if self.work != self._target and status == "finished":
            exchange(self._target, self.work, _beside(self._target, "replaced"))
            shutil.rmtree(self.work, ignore_errors=True)
            self.work = self._target
        self._lock.release()
        return self.folder if self.work == self._target else self.work

    def give_up(self) -> None:
        """End without results, where it was not finished: runs that were recorded stay."""
        if self._lock.held and any(file.name != MANIFEST for file in _entries(self.work)):
            with suppress(OSError):
                self.finish("failed")
            self._lock.release()
        elif self._lock.held:
            self._abandon()

    def _abandon(self) -> None:
        """Remove all traces of results that never began."""
        with suppress(OSError):
            (self.work / MANIFEST).unlink()
        self._lock.release()
        for place in (self.work, *self._made):
            with suppress(OSError):
                place.rmdir()  # an empty one only

    def _write_manifest(self, status: str, files: list[str]) -> None:
        data = {KEY: FORMAT, **self.about, "status": status, "started": self._started}
        text = json.dumps({**data, "files": files}, indent=2, allow_nan=False)
        write_file(self.work / MANIFEST, text + "\n")


def new_folder(folder: Path, about: Mapping[str, Any]) -> ResultFolder:
    """Return the folder, or where it has results or is being written the next: NAME-2, NAME-3."""
    number = 1
    while True:
        place = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with suppress(PlaceTaken, Occupied):
            return ResultFolder(place, False, about)
        number += 1


class Occupied(FramefreeError):
    """There is something in the folder."""


def check(folder: Path, replace: bool) -> None:
    """Refuse a folder that may not be taken; this changes nothing."""
    _check_writable(folder)
    if not folder.is_dir() or not _entries(folder):
        return
    if not replace:
        raise Occupied(
            f"`{folder}` is not empty: choose another folder, or replace the results in it with "
            "`--replace`"
        )
    if os.path.ismount(folder) or os.path.samefile(folder, os.curdir):
        raise FramefreeError(
            f"`{folder}` cannot be replaced, since it is a mount point or the working folder: "
            "choose a folder below it"
        )
    strange = _strange(folder)
    if strange:
        raise FramefreeError(
            f"`{folder}` cannot be replaced: it has `{strange[0]}`, which does not belong to the "
            "results of a scenario; move that elsewhere, or choose another folder"
        )


def status_of(folder: Path) -> str:
    """Return the status of the results in a folder: "" if no scenario has written them."""
    data = read_json(folder / MANIFEST)
    if not isinstance(data, dict) or KEY not in data:
        return ""
    status = str(data.get("status", ""))
    if status == "running" and not RunPlace.at(folder).writing:
        return "interrupted"
    return status


def _check_writable(folder: Path) -> None:
    places = (folder, *Path(os.path.realpath(folder)).parents)
    there = next(place for place in places if place.exists())
    if not there.is_dir():
        kind = Occupied if there == folder else FramefreeError
        raise kind(f"results cannot be written to `{folder}`: `{there}` is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FramefreeError(f"results cannot be written to `{folder}`: `{there}` is read-only")


def _beside(folder: Path, word: str) -> Path:
    return folder.with_name(f"{folder.name}.{word}")


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, without claims and unfinished files."""
    return [
        file
        for file in folder.iterdir()
        if not is_unfinished(file.name)
        and not (file.name.startswith(".") and file.name.endswith(".lock"))
    ]


def _strange(folder: Path) -> list[str]:
    """Return the names of what no scenario has written, of results or of what is left of some."""
    data = read_json(folder / MANIFEST)
    if not isinstance(data, dict) or KEY not in data:
        return sorted(file.name for file in _entries(folder))
    known = {MANIFEST, *map(str, data.get("files", ()))}
    if data.get("status") == "running":
        known |= {*PAGES, *(file.name for file in _entries(folder) if _is_record(file))}
    return sorted(file.name for file in _entries(folder) if file.name not in known)


def _is_record(file: Path) -> bool:
    """Tell whether a file is part of a run."""
    if not file.is_file():
        return False
    if file.suffix == ".json":
        return is_header(file)
    return file.suffix == ".parquet" and any(
        key.startswith("framefree_run") for key in table_metadata(file)
    )
