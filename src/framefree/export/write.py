"""Writing what is exported to a folder."""

from pathlib import Path
from typing import NamedTuple

from framefree.export.exporting import ExportedPart
from framefree.export.precision import PrecisionReport, precision_report
from framefree.export.project import project_files
from framefree.export.struct_c import BlockInC
from framefree.files import check_place, write_files
from framefree.simulate import Run


class WrittenExport(NamedTuple):
    """What was written.

    Attributes
    ----------
    paths : list of Path
    report : PrecisionReport or None
        What single precision loses.
    """

    paths: list[Path]
    report: PrecisionReport | None = None


def export_c(
    run: Run,
    what: str,
    folder: str | Path,
    *,
    name: str | None = None,
    single: bool = False,
    steps: int | None = None,
) -> WrittenExport:
    """Write law, plant or loop of a run as a C project with a test-bench.

    Parameters
    ----------
    run : Run
        One that `simulate` has made in this process.
    what : "law", "plant" or "loop"
    folder : path
        Made where it is missing; files that framefree has made are replaced, others refused.
    name : str, optional
        Of functions and files in C; by default "controller", "plant" or "loop".
    single : bool
        In single precision. Every step is then measured against double precision, and a law is run
        in its loop; one that loses too much is refused with the figure.
    steps : int, optional
        Of the test-bench. Without, those of the run, at most 10,000; a run that is shorter goes on
        beyond its end.
    """
    check_place(Path(folder, "README.md"), guard=True)
    part = ExportedPart(run, what, name, steps)
    parts = BlockInC(part.block, single)
    report = precision_report(part) if single else None
    notes = () if report is None else (report.text(),)
    texts = project_files(parts, part.steps, notes)
    paths = {Path(folder, own): text for own, text in texts.items()}
    return WrittenExport(write_files(paths, guard=True), report)
