"""What can go wrong in a campaign."""

from framefree.errors import FramefreeError


class CampaignError(FramefreeError):
    """A campaign that cannot start, or that cannot go on."""
