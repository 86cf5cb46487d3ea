"""Where a run lies on disk, and who may write there.

A run is a table NAME.parquet with a header NAME.json beside it, and pieces of a table while it goes
on. The table carries the header too, so that what one loads is one run, complete and never of two.
A run that replaces another is collected under NAME.unfinished and takes the name when it is done.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framefree.files import Lock, PlaceTaken, is_taken, take
from framefree.simulate.errors import SimulationError

KEY = "framefree_run"
UNFINISHED = ".unfinished"
MANIFEST = "manifest.json"
"""What says of a folder that it holds the results of a scenario."""


@dataclass(frozen=True)
class RunPlace:
    """The files of one run.

    Attributes
    ----------
    folder : Path
    stem : str
        What the names of its files begin with.
    alone : bool
        Whether the folder is to hold this run and no other.
    """

    folder: Path
    stem: str
    alone: bool = False

    @classmethod
    def at(cls, path: Any) -> "RunPlace":
        """Return the place that a user means: a folder, or NAME.parquet."""
        try:
            empty, path = not os.fspath(path), Path(path)
        except TypeError:
            empty = True
        if empty:
            raise SimulationError(
                f"a run is written to a folder or to a file NAME.parquet, got {path!r}"
            )
        if path.suffix == ".parquet":
            return cls(path.parent, path.stem)
        return cls(path, "run", alone=True)

    def __str__(self) -> str:
        return str(self.folder if self.alone else self.table)

    @property
    def table(self) -> Path:
        """The rows."""
        return self.folder / f"{self.stem}.parquet"

    @property
    def header(self) -> Path:
        """What is needed to repeat the run."""
        return self.folder / f"{self.stem}.json"

    @property
    def lock(self) -> Path:
        """The claim of the process that writes here, or what is to come here."""
        return self.folder / f".{self.stem.removesuffix(UNFINISHED)}.lock"

    @property
    def unfinished(self) -> "RunPlace":
        """Where a run is collected that is to replace the one here."""
        return RunPlace(self.folder, f"{self.stem}{UNFINISHED}")

    def part(self, index: int) -> Path:
        """Return the path of a piece of the table."""
        return self.folder / f"{self.stem}-part-{index:05d}.parquet"

    def parts(self) -> list[Path]:
        """Return the pieces of the table that are there, in order."""
        pattern = re.compile(re.escape(self.stem) + r"-part-(\d{5,})\.parquet")
        with suppress(OSError):
            found = ((pattern.fullmatch(file.name), file) for file in self.folder.iterdir())
            return [file for _, file in sorted((int(m[1]), file) for m, file in found if m)]
        return []

    def files(self) -> list[Path]:
        """Return all files of the run that are there."""
        both = (file for file in (self.table, self.header) if os.path.lexists(file))
        return [*both, *self.parts()]

    @property
    def writing(self) -> bool:
        """Whether a process that lives is writing here."""
        return is_taken(self.lock)

    # ------------------------------------------------------------------ taking

    def check(self, replace: bool) -> None:
        """Refuse a place that may not be taken; this changes nothing."""
        above = (place for place in (self.folder, *self.folder.absolute().parents))
        nearest = next(place for place in above if os.path.lexists(place))
        if not nearest.is_dir():
            raise SimulationError(f"a run cannot be written to `{self}`: `{nearest}` is no folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise SimulationError(f"a run cannot be written to `{self}`: `{nearest}` is read-only")
        for place in (self, self.unfinished):
            for file in place.files():
                if not _is_ours(file, place.header):
                    raise SimulationError(
                        f"a run cannot be written to `{self}`: `{file}` exists and belongs to no "
                        "run; choose another name"
                    )
        self._check_free(replace)

    def _check_free(self, replace: bool) -> None:
        remedy = "choose another place, or replace it with `replace=True`"
        if self.files() and not replace:
            raise SimulationError(f"there is a run in `{self}` already: {remedy}")
        if not self.alone or not self.folder.is_dir():
            return
        if (self.folder / MANIFEST).exists():
            raise SimulationError(
                f"`{self.folder}` holds the results of a scenario: choose another folder"
            )
        others = [file for file in self.folder.glob("*.parquet") if not self._own(file.name)]
        if others:
            raise SimulationError(
                f"`{self.folder}` has `{others[0].name}`: choose a folder without other runs, or "
                "name a file NAME.parquet"
            )

    def _own(self, name: str) -> bool:
        """Tell whether a file is of this run, or of one that was to replace it."""
        return re.match(re.escape(self.stem) + r"(\.|-part-)", name) is not None

    def take(self, replace: bool) -> Lock:
        """Make the folder and claim the place.

        Raises
        ------
        SimulationError
            If a run is there that is not to be replaced, or is being written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            claim = take(self.lock, self)
        except PlaceTaken as error:
            raise SimulationError(str(error)) from None
        except OSError as error:
            words = error.strerror or error
            raise SimulationError(f"a run cannot be written to `{self}`: {words}") from None
        try:
            self.check(replace)
        except BaseException:
            claim.release()
            raise
        return claim

    def rename(self, stem: str) -> None:
        """Give a run that is complete another name in its folder, the table first."""
        other = RunPlace(self.folder, stem)
        os.replace(self.table, other.table)
        os.replace(self.header, other.header)

    def clear(self) -> None:
        """Remove the files of the run, the header last: it says what they are."""
        for file in (*self.parts(), self.table, self.header):
            file.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; None if it is none, or cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def is_header(path: Path) -> bool:
    """Tell whether a file is the header of a run."""
    data = read_json(path) if path.is_file() else None
    return isinstance(data, dict) and KEY in data


def table_metadata(path: Path) -> dict[str, str]:
    """Return what a Parquet file says of itself; nothing if it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            found = pq.read_metadata(file).metadata or {}
    except (OSError, pa.ArrowException):
        return {}
    return {key.decode(): value.decode("utf-8", "replace") for key, value in found.items()}


def _is_ours(file: Path, header: Path) -> bool:
    if file == header:
        return is_header(file)
    if not file.is_file():
        return False
    return is_header(header) or any(key.startswith(KEY) for key in table_metadata(file))
