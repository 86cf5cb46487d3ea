"""Properties of a machine, measured and bounded: what `framefree check` prints."""

from framefree.certify.examine import check
from framefree.certify.report import CheckReport, Finding, Verdict

__all__ = ["CheckReport", "Finding", "Verdict", "check"]
