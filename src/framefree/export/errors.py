"""What can go wrong with an export."""

from framefree.errors import FramefreeError


class ExportError(FramefreeError):
    """Something cannot be exported; the message says what, and what can be done."""
