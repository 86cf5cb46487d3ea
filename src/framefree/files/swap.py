"""Two folders that change places."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

_HERE = -100  # AT_FDCWD of Linux
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


def exchange(first: Path, second: Path, spare: Path) -> None:
    """Let two folders change places: in one step, where the system can.

    Where it cannot there is a moment in which the first one bears the name `spare`.
    """
    if _at_once(os.fsencode(first), os.fsencode(second)):
        return
    os.rename(first, spare)
    try:
        os.rename(second, first)
    except OSError:
        os.rename(spare, first)
        raise
    os.rename(spare, second)


def _at_once(first: bytes, second: bytes) -> bool:
    with suppress(OSError, AttributeError):
        if sys.platform == "linux":
            return ctypes.CDLL(None).renameat2(_HERE, first, _HERE, second, _SWAP) == 0
        if sys.platform == "darwin":
            return ctypes.CDLL(None).renamex_np(first, second, _SWAP) == 0
    return False
