"""What a kernel says when it is called wrongly."""

from framefree.errors import FramefreeError


class ArgumentError(FramefreeError, ValueError):
    """A compiled function was given arguments that it cannot take; the message names which."""
