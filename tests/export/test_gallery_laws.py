"""Every law of the gallery in C: within 1e-12 of its kernel, with sanitizers; or refused."""

import shutil

import pytest
from test_c_projects import replayed

from framefree.control.errors import ControlError
from framefree.export import ExportError, export_c
from framefree.gallery.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]
NAMES = [name for name, kind in SCENARIOS.items() if not kind.missing()]


@pytest.mark.parametrize("name", NAMES)
def test_the_law_of_a_scenario(name, tmp_path):
    scenario = SCENARIOS[name]()
    outcome = scenario.run(progress=False)
    if not outcome.runs:
        pytest.skip("no run without recorded data")
    run = outcome.run_named(scenario.judged)
    if run.setup.scene.law is None:
        pytest.skip("no law")
    try:
        export_c(run, "law", tmp_path)
    except ControlError as error:
        if "is evaluated in Python and cannot be compiled" not in str(error):
            raise
        return
    for flags in ((), ("-fsanitize=address,undefined",)):
        told, code = replayed(tmp_path, *flags)
        assert code == 0
        assert told["largest_difference"] <= 1e-12
    try:
        report = export_c(run, "law", tmp_path, single=True).report
    except ExportError as error:
        if "`--single` is refused" not in str(error):
            raise
        return
    assert report.step <= 1e-4
    if name.startswith(("quad", "tricopter")) or "iiwa" in run.machine.name:
        assert report.loop.kept
