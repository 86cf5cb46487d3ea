"""What identification refuses."""

from framefree.errors import FramefreeError


class IdentifyError(FramefreeError):
    """Data, or unknown numbers, from which nothing can be identified as asked."""
