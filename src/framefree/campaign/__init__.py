"""Campaigns: many runs with settings that vary, with nothing lost and each counted once.

The package may itself be called: ``framefree.campaign(subject, ...)`` is
``framefree.campaign.campaign(subject, ...)``.
"""

from framefree.campaign.campaigns import Campaign, campaign
from framefree.campaign.errors import CampaignError
from framefree.campaign.made import SubjectFrom
from framefree.campaign.search import Falsification, Searched, falsify
from framefree.campaign.sensitivity import SensitivityIndices, sensitivity
from framefree.campaign.simulations import Simulations
from framefree.campaign.statistics import success_rate
from framefree.campaign.subject import CampaignSubject, Finished
from framefree.campaign.variation import (
    Choice,
    Integers,
    LogUniform,
    Normal,
    Uniform,
    Variation,
    parsed,
    sampled,
)
from framefree.lazy import make_callable

__all__ = [
    "Campaign",
    "CampaignError",
    "CampaignSubject",
    "Choice",
    "Falsification",
    "Finished",
    "Integers",
    "LogUniform",
    "Normal",
    "Searched",
    "SensitivityIndices",
    "Simulations",
    "SubjectFrom",
    "Uniform",
    "Variation",
    "campaign",
    "falsify",
    "parsed",
    "sampled",
    "sensitivity",
    "success_rate",
]

make_callable(__name__, campaign)
