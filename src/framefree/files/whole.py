"""Writing files so that each is complete or absent, whatever happens meanwhile.

Everything that framefree writes goes through here. The content goes to a temporary file in the same
folder, is made durable, and gets its name in one step: a full disk, Ctrl-C or a process that is
killed leaves the file that was there before, or none.
"""

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from framefree.errors import FramefreeError

Content = str | bytes | Callable[[BinaryIO], object]
"""Text, bytes, or a function that writes to a file that is open."""
MADE_BY = "made by framefree"
"""What pages, pictures and C sources say near their beginning."""
PREFIX, SUFFIX = ".framefree-", ".part"
ORPHAN = 3600.0
"""Seconds after which an unfinished file belongs to a process that was killed."""
_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def write_file(path: str | os.PathLike, content: Content, *, guard: bool = False) -> Path:
    """Write one file; return its path. See `write_files`."""
    return write_files({Path(path): content}, guard=guard)[0]


def write_files(contents: Mapping[Path, Content], *, guard: bool = False) -> list[Path]:
    """Write files, of which none appears before all are complete; return their paths.

    Folders are made where they are missing. A link stays, and what it points to is replaced. Pipes
    and devices are written to directly.

    Parameters
    ----------
    contents : mapping of path to content
    guard : bool
        Replace only files that framefree has made: those that say so near their beginning, and
        empty ones.
    """
    targets = {path: _target(path, guard) for path in contents}
    staged: list[tuple[Path, str]] = []
    try:
        for path, content in contents.items():
            if not _is_stream(path):
                target = targets[path]
                _make_folder(target.parent)
                _remove_orphans(target.parent)
                with _naming(path):
                    staged.append((target, _stage_beside(target, content)))
        while staged:
            target, temporary = staged[0]
            os.replace(target.parent / temporary, target)
            staged.pop(0)
    finally:
        for target, temporary in staged:
            _remove(target.parent, temporary)
    for folder in {target.parent for target in targets.values()}:
        _sync_folder(folder)
    for path, content in contents.items():
        if _is_stream(path):
            with _naming(path), open(path, "wb") as file:
                _write(file, content)
    return list(contents)


def write_in(folder: int | Path, name: str, content: Content, mode: int = 0o666) -> None:
    """Write a file in a folder, given by its path or as a descriptor that is open.

    It is complete or absent as long as the system runs; when the power fails it may be damaged, so
    that whoever reads it must be able to tell.
    """
    temporary = _stage(folder, content, mode)
    try:
        if isinstance(folder, int):
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.replace(folder / temporary, folder / name)
    except BaseException:
        _remove(folder, temporary)
        raise


def check_place(path: str | os.PathLike, *, guard: bool = False) -> None:
    """Refuse a file that cannot be written, before anything is computed for it."""
    path = Path(path)
    target = _target(path, guard)
    above = (place for place in target.absolute().parents if os.path.lexists(place))
    nearest = next(above, target.parent)
    if not nearest.is_dir():
        raise FramefreeError(f"`{path}` cannot be written: `{nearest}` is not a folder")
    if not _is_stream(path) and not os.access(nearest, os.W_OK | os.X_OK):
        raise FramefreeError(f"`{path}` cannot be written: `{nearest}` is read-only")


def is_unfinished(name: str) -> bool:
    """Tell whether a name is that of a temporary file of this module."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


# ---------------------------------------------------------------------- parts


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of the operating system."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FramefreeError(
            f"the folder `{folder}` cannot be made: {error.strerror or error}"
        ) from error


def _target(path: Path, guard: bool) -> Path:
    """Return the file behind links, if it may be replaced."""
    if path.is_dir():
        raise FramefreeError(f"`{path}` cannot be written: it is a folder")
    if _is_stream(path):
        return path
    if path.exists():
        if not os.access(path, os.W_OK):
            raise FramefreeError(f"`{path}` cannot be written: it is read-only")
        if guard and not _made_by_us(path):
            raise FramefreeError(
                f"`{path}` exists and was not made by framefree: choose another name, or remove it"
            )
    return Path(os.path.realpath(path))


def _made_by_us(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(4096)
    return not start or MADE_BY.encode() in start


def _is_stream(path: Path) -> bool:
    """Tell whether a path is a pipe or a device, which is written to and not replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _stage_beside(target: Path, content: Content) -> str:
    """Write content to a temporary file that can take a file's place, permissions included."""

    def write(file: BinaryIO) -> None:
        if hasattr(os, "fchmod"):
            with suppress(OSError):
                old = target.stat()
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
        _write(file, content)
        file.flush()
        os.fsync(file.fileno())

    return _stage(target.parent, write, 0o666)


def _stage(folder: int | Path, content: Content, mode: int) -> str:
    """Write content to a temporary file in a folder; return its name."""
    name = f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW
    if isinstance(folder, int):
        descriptor = os.open(name, flags, mode, dir_fd=folder)
    else:
        descriptor = os.open(folder / name, flags, mode)
    try:
        with open(descriptor, "wb") as file:
            _write(file, content)
    except BaseException:
        _remove(folder, name)
        raise
    return name


def _write(file: BinaryIO, content: Content) -> None:
    if isinstance(content, str):
        file.write(content.encode("utf-8"))
    elif isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def _remove(folder: int | Path, name: str) -> None:
    with suppress(OSError):
        if isinstance(folder, int):
            os.unlink(name, dir_fd=folder)
        else:
            (folder / name).unlink()


def _remove_orphans(folder: Path) -> None:
    """Remove temporary files that processes left when they were killed."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_unfinished(entry.name):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > ORPHAN:
                        os.unlink(entry.path)


def _sync_folder(folder: Path) -> None:
    """Make names durable, where folders can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
