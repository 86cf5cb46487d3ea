"""A place that one process has for itself until it ends, however it ends.

The claim is a lock of the operating system on a small file, so that the claim of a process that was
killed is gone with it. The file says who has it, for messages.
"""

import json
import os
import platform
import sys
import time
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from framefree.errors import FramefreeError, FramefreeWarning

if sys.platform == "win32":
    import msvcrt
else:
    import errno
    import fcntl

_FAR = 1 << 30  # on Windows a byte that is locked cannot be read: not one of the text


class PlaceTaken(FramefreeError):
    """Another process writes there."""


class Lock:
    """A claim; `release` gives it up, and so does the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    @property
    def held(self) -> bool:
        """Whether the place is still this process's own."""
        return self._descriptor >= 0

    def release(self) -> None:
        """Give the place up."""
        if not self.held:
            return
        if sys.platform != "win32":  # there a file that is open cannot be removed
            with suppress(OSError):
                self.path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1
        if sys.platform == "win32":
            with suppress(OSError):
                self.path.unlink()


def take(path: Path, what: object) -> Lock:
    """Take a place for this process.

    Parameters
    ----------
    path : Path
        The file of the claim, in a folder that exists.
    what : object
        The place, for messages.

    Raises
    ------
    PlaceTaken
        If another process, or another run of this one, has it.
    """
    for attempt in range(4):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(descriptor, exclusive=True):
            owner = _owner(descriptor)
            os.close(descriptor)
            if attempt == 3:
                raise PlaceTaken(f"`{what}` is being written by {owner}")
            time.sleep(0.05)  # somebody may only have asked whether it is taken
        elif _same(path, descriptor):
            _sign(descriptor)
            return Lock(path, descriptor)
        else:  # its last owner has removed the file meanwhile
            os.close(descriptor)
    raise PlaceTaken(f"`{what}` is being written by another process")


def is_taken(path: Path) -> bool:
    """Tell whether a process that lives has a place."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(descriptor, exclusive=False)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, exclusive: bool) -> bool:
    """Lock a file that is open, without waiting; return whether it is ours now."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        if sys.platform != "win32" and error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            if exclusive:
                words = "this file system has no locks: see to it that only one run writes here"
                warnings.warn(words, FramefreeWarning, stacklevel=3)
            return True
        return False
    return True


def _same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _sign(descriptor: int) -> None:
    """Write who has the place; for messages only, so that a full disk is no reason to stop."""
    data = {"process": os.getpid(), "host": platform.node()}
    data["since"] = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(data).encode())


def _owner(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        data = json.loads(os.read(descriptor, 1000))
        return f"process {data['process']} on {data['host']}, since {data['since']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "another process"
