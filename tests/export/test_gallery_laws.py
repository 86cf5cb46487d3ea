"""Every law of the gallery in C: within 1e-12 of its kernel, with sanitizers; or refused."""

import shutil

import pytest
from gallery_laws import law_figures

from framefree.gallery.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]
NAMES = [name for name, kind in SCENARIOS.items() if not kind.missing()]
FLIGHTS = ("quad-loop", "quad-flip", "quad-transitions")


@pytest.mark.parametrize("name", NAMES)
def test_the_laws_of_a_scenario(name):
    for law in law_figures(name):
        if law.refused:
            assert "is evaluated in Python and cannot be compiled" in law.refused
            continue
        assert law.difference <= 1e-12, law
        if isinstance(law.single, str):
            assert "`--single` is refused" in law.single
            continue
        assert law.single.step <= 1e-4, law
        if (name in FLIGHTS or "iiwa" in law.machine) and law.single.loop is not None:
            assert law.single.loop.kept, law
