"""Files that are complete or absent, and places that one process has for itself."""

from framefree.files.lock import Lock, PlaceTaken, is_taken, take
from framefree.files.swap import exchange
from framefree.files.whole import (
    MADE_BY,
    check_place,
    is_unfinished,
    write_file,
    write_files,
    write_in,
)

__all__ = [
    "MADE_BY",
    "Lock",
    "PlaceTaken",
    "check_place",
    "exchange",
    "is_taken",
    "is_unfinished",
    "take",
    "write_file",
    "write_files",
    "write_in",
]
