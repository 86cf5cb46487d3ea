"""Packages that campaigns take from the extra `cluster`."""

from importlib import import_module
from typing import Any

from framefree.campaign.errors import CampaignError


def needed(module: str, what: str) -> Any:
    """Return a module, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise CampaignError(
            f'{what} needs the package `{module}`: pip install "framefree[cluster]"'
        ) from None
