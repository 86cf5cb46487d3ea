"""Every law of a scenario in C, and its figures.

`python tests/export/gallery_laws.py NAME ...` writes them as rows of a table, law by law.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from framefree.control.errors import ControlError
from framefree.export import ExportedPart, ExportError
from framefree.export.compiler import STRICT
from framefree.export.precision import PrecisionReport, precision_report
from framefree.export.project import project_files
from framefree.export.recording import STEPS
from framefree.export.struct_c import BlockInC
from framefree.gallery.scenarios import SCENARIOS
from framefree.simulate import Run

SANITIZED = "-fsanitize=address,undefined"
NUMBER = re.compile(r"-?\d[\w.]*(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class LawFigures:
    """What became of a law.

    Attributes
    ----------
    run, law, machine : str
    refused : str
        Why it is not exported.
    steps, code : int
        That were replayed, and bytes of C of one step.
    difference : float
        Largest relative difference to the kernel, with sanitizers.
    single : PrecisionReport or str
        What single precision loses, or why it is refused.
    """

    run: str
    law: str
    machine: str
    refused: str = ""
    steps: int = 0
    code: int = 0
    difference: float = 0.0
    single: PrecisionReport | str = ""

    def row(self) -> str:
        """Return a row of the table."""
        if self.refused:
            return f"| {self.run} | {self.law} | refused: {self.refused} | | | | |"
        loss = self.single if isinstance(self.single, str) else f"{self.single.step:.1e}"
        lost = None if isinstance(self.single, str) else self.single.loop
        loop = "" if lost is None else f"{lost.apart:.1e}, kept"
        if lost is not None and not lost.kept:
            loop = f"{lost.apart:.1e}, NOT KEPT; {lost.rounded:.1e} if inputs alone are rounded"
        return (
            f"| {self.run} | {self.law} | {self.steps} | {self.code // 1024} | "
            f"{self.difference:.1e} | {loss} | {loop} |"
        )


def replayed(folder: Path, *flags: str) -> tuple[dict[str, float], int]:
    """Build the test-bench and return what it prints by name, and its exit code."""
    sources = [*map(str, folder.glob("*.c"))]
    bench = folder / "bench"
    subprocess.run(["gcc", *STRICT, *flags, *sources, "-lm", "-o", str(bench)], check=True)
    done = subprocess.run([str(bench)], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    printed = dict(line.split()[:2] for line in done.stdout.splitlines())
    return {name: float(value) for name, value in printed.items()}, done.returncode


def law_figures(name: str) -> Iterator[LawFigures]:
    """Run a scenario and export each of its laws; of those that differ in numbers, the first."""
    seen: set[str] = set()
    for key, run in SCENARIOS[name]().run(progress=False).runs.items():
        if run.setup is not None and run.setup.scene.law is not None:
            yield from _figures_of(key, run, seen)


def _figures_of(key: str, run: Run, seen: set[str]) -> Iterator[LawFigures]:
    scene = run.setup.scene  # pyright: ignore[reportOptionalMemberAccess]
    names = key, scene.law.name, scene.machine.name
    try:
        part = ExportedPart(run, "law", steps=STEPS)
    except (ControlError, ExportError) as error:
        yield LawFigures(*names, str(error))
        return
    parts = BlockInC(part.block)
    code = parts.sources["core"].source
    text = NUMBER.sub("0", code)
    if text in seen:
        return
    seen.add(text)
    with tempfile.TemporaryDirectory() as place:
        for own, text in project_files(parts, part.steps).items():
            Path(place, own).write_text(text)
        told, _ = replayed(Path(place), SANITIZED)
    try:
        single: PrecisionReport | str = precision_report(part)
    except ExportError as error:
        single = str(error)
    steps, difference = int(told["steps"]), told["largest_difference"]
    yield LawFigures(*names, "", steps, len(code), difference, single)


if __name__ == "__main__":
    for scenario in sys.argv[1:] or SCENARIOS:
        for figures in law_figures(scenario):
            print(f"| {scenario} {figures.row()}", flush=True)
