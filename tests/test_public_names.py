"""Names at the top: there in every order of imports, and light to load."""

import subprocess
import sys

import pytest


def python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = """
from framefree.gallery import MACHINES
run = ff.simulate(MACHINES["iiwa"](), duration=0.002, dt=1e-3)
assert isinstance(run, ff.Run) and len(run) == 3
"""


@pytest.mark.parametrize(
    "order",
    [
        "import framefree as ff\n" + RUN + "from framefree.simulate import Pulse",
        "from framefree.simulate import Pulse\nimport framefree as ff\n" + RUN,
        "import framefree.simulate\nimport framefree.simulate.run\nimport framefree as ff\n"
        + RUN
        + "from framefree.simulate.run import Run\nassert Run is ff.Run",
        "import framefree.cli, framefree.gallery.scenarios, framefree.look.report\n"
        "import framefree as ff\n" + RUN,
    ],
)
def test_simulate_is_the_function_whatever_came_first(order):
    python(order)


@pytest.mark.parametrize("first", ["", "import framefree.simulate.measures\n"])
def test_simulate_is_also_the_package(first):
    python(
        first + "import framefree as ff, framefree.simulate, framefree.simulate as package\n"
        "from framefree.simulate import Pulse, simulate\n"
        "import importlib, inspect\n"
        "assert ff.simulate is package is importlib.import_module('framefree.simulate')\n"
        "assert ff.simulate.Pulse is Pulse and ff.simulate.simulate is simulate\n"
        "assert inspect.signature(ff.simulate) == inspect.signature(simulate)\n"
        "import framefree.simulate.measures\n"
        "assert ff.simulate.measures.rms\n" + RUN
    )


def test_all_names_are_there():
    python(
        "import framefree as ff\n"
        "assert all(hasattr(ff, name) for name in ff.__all__)\n"
        "assert set(ff.__all__) < set(dir(ff))\n"
        "wanted = 'read equations compile simulate control Run solve certify look report '\n"
        "wanted += 'gallery motion Tree Maximal Embedded Constrained Redundant'\n"
        "assert set(wanted.split()) <= set(ff.__all__)\n"
        "assert ff.control.law.Law and ff.solve.trim and ff.certify.check and ff.look.draw\n"
        "assert ff.report.write is ff.look.report.write\n"
        "assert ff.gallery.SCENARIOS and ff.gallery.MACHINES"
    )


@pytest.mark.parametrize("module", ["", ".look", ".gallery", ".control"])
def test_a_missing_name_is_an_attribute_error(module):
    python(
        f"import framefree, framefree{module or '.errors'}\n"
        f"assert not hasattr(framefree{module}, 'nothing')"
    )


def test_what_is_heavy_waits_until_it_is_needed():
    loaded = python("import sys, framefree; print(*sys.modules)").split()
    heavy = {"scipy.optimize", "scipy.spatial", "plotly", "pyarrow", "mujoco", "rich", "typer"}
    heavy |= {"jax", "pinocchio", "pandas", "framefree.look", "framefree.gallery"}
    heavy |= {"framefree.solve", "framefree.certify"}
    assert not heavy & set(loaded)
