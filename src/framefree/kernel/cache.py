"""Compiled code kept on disk, so that a second start loads it instead of compiling.

What is kept is machine code, so it is guarded: the folder belongs to the user and nobody else may
enter it, links are not followed, and an entry is used only if its checksum holds and it names the
key it was stored under. Whatever is damaged, foreign or unreachable counts as absent. Entries
appear complete or not at all, so any number of processes may share the folder.

Environment: ``FRAMEFREE_CACHE=off`` turns it off; ``FRAMEFREE_CACHE_DIR`` names another place;
``FRAMEFREE_CACHE_MB`` sets its size limit, by default 256.
"""

import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAGIC = b"framefree kernel 1\n"
FOLDER = "kernels"
SUFFIX = ".kernel"
LIMIT_MB = 256
_DIGEST = hashlib.sha256().digest_size
_DIR_FD = os.open in os.supports_dir_fd  # elsewhere paths have to do
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_STALE = 3600.0  # seconds after which an unfinished file is an orphan


def enabled() -> bool:
    """Tell whether the environment allows the cache."""
    return os.environ.get("FRAMEFREE_CACHE", "on").lower() not in ("off", "0", "no", "false")


def place(chosen: str | os.PathLike | None = None) -> Path:
    """Return the folder of the cache; it need not exist."""
    if chosen is not None:
        return Path(chosen) / FOLDER
    if chosen := os.environ.get("FRAMEFREE_CACHE_DIR"):
        return Path(chosen) / FOLDER
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "framefree" / FOLDER


def load(key: bytes, path: Path | None = None) -> bytes | None:
    """Return what was stored under a key, or None."""
    try:
        with _folder(path or place(), create=False) as folder:
            descriptor = _open(folder, _name(key), os.O_RDONLY)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or not _private(status):
                    return None
                content = _unpack(key, file.read())
                if content is not None and os.utime in os.supports_fd:
                    os.utime(descriptor)  # used now: the last to be thrown away
                return content
    except (OSError, RuntimeError):
        return None


def store(key: bytes, content: bytes, path: Path | None = None) -> None:
    """Keep data under a key; a failure to store it is silent."""
    try:
        with _folder(path or place(), create=True) as folder:
            temporary = f"{secrets.token_hex(8)}.part"
            descriptor = _open(folder, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                with open(descriptor, "wb") as file:
                    file.write(_pack(key, content))
                _rename(folder, temporary, _name(key))
            except BaseException:
                _remove(folder, temporary)
                raise
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


def _open(folder: int | Path, name: str, flags: int) -> int:
    flags |= _NOFOLLOW | _BINARY
    if isinstance(folder, int):
        return os.open(name, flags, 0o600, dir_fd=folder)
    return os.open(folder / name, flags, 0o600)


def _rename(folder: int | Path, old: str, new: str) -> None:
    if isinstance(folder, int):
        os.replace(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.replace(folder / old, folder / new)


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
    try:
        limit = float(os.environ.get("FRAMEFREE_CACHE_MB", LIMIT_MB)) * 1e6
    except ValueError:
        limit = LIMIT_MB * 1e6
    entries = []
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
