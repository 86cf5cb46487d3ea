"""What `framefree check` found, as a page: all findings, and M on the way through pitch 90."""

import numpy as np

from framefree.certify import CheckReport, Verdict
from framefree.certify.forms import eigenvalues_through_pitch_90
from framefree.look.report.content import Figure, Line, Page, Table
from framefree.machine import Machine
from framefree.machine.joints import Free, Spherical

_TEXT = """What control proofs rest on, measured.

Each line was measured at random states of the machine, or proved from its numbers. Residuals are
relative; eigenvalues of the mass matrix are in kg and kg m^2 unless a length makes them alike."""


def check_page(report: CheckReport, machine: Machine) -> Page:
    """Return the findings about a machine as a page."""
    rows = tuple(
        (
            finding.name.replace("_", " "),
            str(finding.verdict),
            "" if finding.value is None else f"{finding.value:.4g}",
            "" if finding.bar is None else f"{finding.bar:.3g}",
            " ".join(part for part in (finding.meaning + ".", finding.note) if part),
        )
        for finding in report.findings
    )
    remedies = tuple(
        (finding.name.replace("_", " "), finding.note or finding.meaning, finding.remedy)
        for finding in report.findings
        if finding.verdict in (Verdict.FAIL, Verdict.WARN) and finding.remedy
    )
    tables = [Table("Findings", ("check", "verdict", "measured", "bar", "meaning"), rows)]
    if remedies:
        tables.insert(0, Table("What to do", ("check", "what was found", "remedy"), remedies))
    return Page(
        title=f"check of {machine.name or 'a machine'}",
        text=_TEXT,
        metrics={key: report.subject[key] for key in ("bodies", "nx", "nv", "seconds")},
        tables=tuple(tables),
        figures=_through_pitch_90(machine),
        trouble="" if report.ok else "Something fails: see the findings.",
    )


def _through_pitch_90(machine: Machine) -> tuple[Figure, ...]:
    if not any(isinstance(joint.kind, Free | Spherical) for joint in machine.joints):
        return ()
    pitch, group, angles = eigenvalues_through_pitch_90(machine)
    floor = 1e-6 * group[:, 0].min()

    def lines(which: int, least: float) -> tuple[Line, ...]:
        return (
            Line("on the group", pitch, np.maximum(group[:, which], least)),
            Line("roll, pitch, yaw", pitch, np.maximum(angles[:, which], least), dashed=True),
        )

    return (
        Figure(
            "Smallest eigenvalue of M through pitch 90°",
            "pitch (deg)",
            "eigenvalue (kg, kg m²)",
            lines(0, floor),
            "In Euler angles M loses rank where the body stands upright; on the group it does not "
            "depend on the attitude.",
            logarithmic=True,
        ),
        Figure(
            "Largest eigenvalue of M through pitch 90°",
            "pitch (deg)",
            "eigenvalue (kg, kg m²)",
            lines(-1, 0.0),
        ),
    )
