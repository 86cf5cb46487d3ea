"""The page of `framefree check`."""

from pathlib import Path

from framefree.certify import check
from framefree.gallery.machines.arms import iiwa
from framefree.geometry import Moments
from framefree.look.report import write
from framefree.look.report.checked import check_page
from framefree.machine import Body, Free, Joint, Machine
from framefree.motion.tree import Tree


def vehicle():
    body = Body("b<i>", Moments.of_body(2.0, (0.1, 0, 0), [[0.3, 0, 0], [0, 0.4, 0], [0, 0, 0.5]]))
    return Machine([body], [Joint("base", Free(), "world", "b<i>")], name="ve<hi>cle")


def test_all_findings_and_the_way_through_pitch_90(tmp_path):
    report = check(vehicle(), samples=20, formulations={"tree": Tree})
    page = check_page(report, vehicle())
    findings = next(table for table in page.tables if table.title == "Findings")
    assert len(findings.rows) == len(report.findings)
    smallest = page.figures[0]
    group, angles = smallest.lines
    assert group.y.max() / group.y.min() < 1 + 1e-9
    assert angles.y.min() < 1e-4 * angles.y.max()
    text = Path(write(page, tmp_path / "check.html")).read_text()
    assert "ve&lt;hi&gt;cle" in text
    assert "<hi>" not in text


def test_an_arm_has_nothing_to_pitch():
    report = check(iiwa(), samples=20, formulations={"tree": Tree})
    page = check_page(report, iiwa())
    assert page.figures == ()
    assert any(table.title == "What to do" for table in page.tables)
