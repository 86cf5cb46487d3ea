"""Compiled code kept on disk, so that a second start loads it instead of compiling.

What is kept is machine code, so it is guarded: the folder belongs to the user and nobody else may
enter it, links are not followed, and an entry is used only if its checksum holds and it names the
key it was stored under. Whatever is damaged, foreign or unreachable counts as absent. Entries
appear complete or not at all, so any number of processes may share the folder. A user without a
home gets a warning and no cache.

Environment: ``FRAMEFREE_CACHE=off`` turns it off; ``FRAMEFREE_CACHE_DIR`` names another place;
``FRAMEFREE_CACHE_MB`` sets its size limit, by default 256.
"""

import hashlib
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framefree.errors import FramefreeWarning
from framefree.files import write_in

MAGIC = b"framefree kernel 1\n"
FOLDER = "kernels"
SUFFIX = ".kernel"
LIMIT_MB = 256
_DIGEST = hashlib.sha256().digest_size
_DIR_FD = os.open in os.supports_dir_fd  # elsewhere paths have to do
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for a writer
_STALE = 3600.0  # seconds after which an unfinished file is an orphan


def enabled() -> bool:
    """Tell whether the environment allows the cache."""
    return os.environ.get("FRAMEFREE_CACHE", "on").lower() not in ("off", "0", "no", "false")


def place(chosen: str | os.PathLike | None = None) -> Path | None:
    """Return the folder of the cache, which need not exist; None where the user has no home."""
    if chosen is not None:
        return Path(chosen) / FOLDER
    if chosen := os.environ.get("FRAMEFREE_CACHE_DIR"):
        return Path(chosen) / FOLDER
    base = _user_folder()
    return None if base is None else base / "framefree" / FOLDER


def _user_folder() -> Path | None:
    named = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    usual = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    given = Path(os.environ.get(named, "")) if named else Path()
    if given.is_absolute():
        return given
    try:
        home = Path.home()
    except (RuntimeError, KeyError):  # neither HOME nor an entry in the list of users
        home = Path()
    if home.is_absolute():
        return home / usual
    warnings.warn(
        "this user has no home folder: compiled code is not kept for the next start; name a folder "
        "for it in FRAMEFREE_CACHE_DIR, or set FRAMEFREE_CACHE=off",
        FramefreeWarning,
        stacklevel=1,
    )
    return None


def load(key: bytes, path: Path | None = None) -> bytes | None:
    """Return what was stored under a key, or None."""
    path = path or place()
    if path is None:
        return None
    try:
        with _folder(path, create=False) as folder:
            descriptor = _open(folder, _name(key))
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or not _private(status):
                    return None
                if status.st_size > _limit_bytes():
                    return None
                content = _unpack(key, file.read())
                if content is not None and os.utime in os.supports_fd:
                    os.utime(descriptor)  # used now: the last to be thrown away
                return content
    except (OSError, RuntimeError):
        return None


def store(key: bytes, content: bytes, path: Path | None = None) -> None:
    """Keep data under a key; a failure to store it is silent."""
    path = path or place()
    if path is None:
        return
    try:
        with _folder(path, create=True) as folder:
            write_in(folder, _name(key), _pack(key, content), 0o600)
            _limit(folder)
    except (OSError, RuntimeError):
        return


def _pack(key: bytes, content: bytes) -> bytes:
    body = key + content
    return MAGIC + hashlib.sha256(MAGIC + body).digest() + body


def _unpack(key: bytes, data: bytes) -> bytes | None:
    start = len(MAGIC) + _DIGEST
    body = data[start:]
    expected = MAGIC + hashlib.sha256(MAGIC + body).digest()
    if data[:start] != expected or body[: len(key)] != key:
        return None
    return body[len(key) :]


def _name(key: bytes) -> str:
    return key.hex() + SUFFIX


class _Unsafe(OSError):
    """The folder is not this user's alone."""


@contextmanager
def _folder(path: Path, *, create: bool) -> Iterator[int | Path]:
    """Open the folder and check, on what was opened, that it is private."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    if not _DIR_FD:
        yield path
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW)
    try:
        if not _private(os.fstat(descriptor)):
            raise _Unsafe(f"{path} is open to other users")
        yield descriptor
    finally:
        os.close(descriptor)


def _private(status: os.stat_result) -> bool:
    """Tell whether this user owns it and nobody else may do anything with it."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _open(folder: int | Path, name: str) -> int:
    flags = os.O_RDONLY | _NOFOLLOW | _BINARY | _NONBLOCK
    if isinstance(folder, int):
        return os.open(name, flags, dir_fd=folder)
    return os.open(folder / name, flags)


def _remove(folder: int | Path, name: str) -> None:
    try:
        if isinstance(folder, int):
            os.unlink(name, dir_fd=folder)
        else:
            (folder / name).unlink()
    except OSError:
        return


def _limit(folder: int | Path) -> None:
    """Remove the entries not used for longest until all fit, and orphans of broken-off writes."""
    limit, entries = _limit_bytes(), []
    with os.scandir(folder) as files:
        for entry in files:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.name.endswith(SUFFIX):
                entries.append((status.st_mtime, status.st_size, entry.name))
            elif time.time() - status.st_mtime > _STALE:
                _remove(folder, entry.name)
    total = sum(size for _, size, _ in entries)
    for _, size, name in sorted(entries):
        if total <= limit:
            break
        _remove(folder, name)
        total -= size


def _limit_bytes() -> float:
    try:
        return float(os.environ.get("FRAMEFREE_CACHE_MB", LIMIT_MB)) * 1e6
    except ValueError:
        return LIMIT_MB * 1e6
