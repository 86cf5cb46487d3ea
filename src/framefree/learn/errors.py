"""What learning refuses."""

from framefree.errors import FramefreeError


class LearnError(FramefreeError):
    """Data, models or symmetries from which nothing can be learned as asked."""
