"""The results of checks: one `Finding` per check, and the report that holds them all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


class Verdict(StrEnum):
    """The outcome of a check. Only FAIL makes a report not ok."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


_COLORS = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.SKIPPED: "dim",
}


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    name : str
        Key of the measured number in `CheckReport.to_dict`, the unit at its end where it has one.
    verdict : Verdict
    meaning : str
        What the number says about the machine.
    value, bar : float or None
        What was measured, and what it must not exceed (or fall below, with `at_least`).
    note : str
        Where, what, or for a skipped check why.
    remedy : str
        What to do if it fails.
    at_least : bool
        Whether the bar is a lower one.
    x : tuple of float or None
        The configuration that gave the number.
    """

    name: str
    verdict: Verdict
    meaning: str
    value: float | None = None
    bar: float | None = None
    note: str = ""
    remedy: str = ""
    at_least: bool = False
    x: tuple[float, ...] | None = None

    @classmethod
    def measured(
        cls, name: str, value: float, bar: float, meaning: str, remedy: str, **more: Any
    ) -> "Finding":
        """Return the finding of a number that must be at most `bar`; what is not finite fails."""
        verdict = Verdict.PASS if value <= bar else Verdict.FAIL
        return cls(name, verdict, meaning, float(value), bar, remedy=remedy, **more)

    @classmethod
    def skipped(cls, name: str, meaning: str, reason: str) -> "Finding":
        """Return the finding of a check that could not be made."""
        return cls(name, Verdict.SKIPPED, meaning, note=reason)


@dataclass(frozen=True)
class CheckReport:
    """All findings about one machine.

    Attributes
    ----------
    subject : dict
        What was checked: name, file, sizes, number of states.
    findings : tuple of Finding
    """

    subject: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(f for f in self.findings if f.verdict is Verdict.FAIL)

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of this name."""
        return {finding.name: finding for finding in self.findings}[name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: every number under its own key, failures with their remedy.

        Beside the number ``NAME`` stand ``NAME_verdict`` and, where there are any, ``NAME_bar``,
        ``NAME_note`` and ``NAME_x``. What is not finite becomes None.
        """
        data = {**self.subject, "ok": self.ok}
        for finding in self.findings:
            data.update(_entries(finding))
        for verdict in (Verdict.FAIL, Verdict.WARN):
            key = "failures" if verdict is Verdict.FAIL else "warnings"
            data[key] = [
                {"check": f.name, "note": f.note, "meaning": f.meaning, "remedy": f.remedy}
                for f in self.findings
                if f.verdict is verdict
            ]
        return data

    def table(self) -> Group:
        """Return the report for people: numbers in a table, and below what needs words.

        The words explain checks that did not pass, and hold notes on search and proof.
        """
        subject = self.subject
        table = Table(
            title=f"{escape(subject['machine'] or 'machine')}: {subject['bodies']} bodies, "
            f"{subject['nv']} velocities",
            title_justify="left",
        )
        table.add_column("verdict", no_wrap=True)
        table.add_column("check", no_wrap=True)
        table.add_column("measured", justify="right", no_wrap=True)
        table.add_column("bar", justify="right", no_wrap=True)
        for finding in self.findings:
            table.add_row(
                f"[{_COLORS[finding.verdict]}]{finding.verdict}[/]",
                finding.name.replace("_", " "),
                _number(finding.value),
                _bar(finding),
            )
        words = [Padding(text, (0, 0, 0, 2)) for text in map(_words, self.findings) if text]
        return Group(table, *words, Text(self._summary(), style="bold"))

    def _summary(self) -> str:
        counts = {v: sum(f.verdict is v for f in self.findings) for v in Verdict}
        words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        return f"{'ok' if self.ok else 'not ok'}: {words}"


def _entries(finding: Finding) -> Iterator[tuple[str, Any]]:
    name = finding.name
    yield name, _finite(finding.value)
    yield f"{name}_verdict", str(finding.verdict)
    if finding.bar is not None:
        yield f"{name}_bar", _finite(finding.bar)
    if finding.note:
        yield f"{name}_note", finding.note
    if finding.x is not None:
        yield f"{name}_x", [_finite(value) for value in finding.x]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3g}"


def _bar(finding: Finding) -> str:
    if finding.bar is None:
        return "-"
    return f"{'≥' if finding.at_least else '≤'} {_number(finding.bar)}"


def _words(finding: Finding) -> Text | None:
    """Return a finding in words; None for what passed and has no note."""
    if finding.verdict is Verdict.PASS and not finding.note:
        return None
    text = Text(finding.name.replace("_", " "), style=_COLORS[finding.verdict])
    text.append(": ", style="not bold")
    if finding.verdict is not Verdict.PASS:
        text.append(f"{finding.meaning}. ", style="default not bold not dim")
    text.append(finding.note, style="default italic not bold not dim")
    if finding.remedy and finding.verdict in (Verdict.FAIL, Verdict.WARN):
        text.append(f" Remedy: {finding.remedy}.", style="default not bold")
    return text
