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


def test_all_names_are_there():
    python(
        "import framefree as ff\n"
        "assert all(hasattr(ff, name) for name in ff.__all__)\n"
        "assert {'read', 'equations', 'compile', 'simulate', 'control', 'Run'} <= set(ff.__all__)\n"
        "assert ff.control.law.Law"
    )


def test_what_is_heavy_waits_until_it_is_needed():
    loaded = python("import sys, framefree; print(*sys.modules)").split()
    heavy = {"scipy.optimize", "scipy.spatial", "plotly", "pyarrow", "mujoco", "rich", "typer"}
    heavy |= {"jax", "pinocchio", "pandas", "framefree.look.report", "framefree.gallery.scenarios"}
    assert not heavy & set(loaded)
