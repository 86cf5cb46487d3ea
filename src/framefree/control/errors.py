"""What can be wrong with laws and references."""

from framefree.errors import FramefreeError


class ControlError(FramefreeError):
    """A law or a reference that cannot be as described."""
