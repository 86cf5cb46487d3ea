"""What can go wrong when a machine is shown."""

from framefree.errors import FramefreeError


class ViewError(FramefreeError):
    """A machine or a run that cannot be shown as it was asked for."""
