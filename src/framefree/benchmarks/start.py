"""How long a new process takes to its first result, over the import of three libraries alone."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from framefree.benchmarks.dynamics import example_robot
from framefree.benchmarks.timing import TurnTiming, circumstances, summary
from framefree.errors import FramefreeError

TURNS = 9
LIBRARIES = "import numpy, casadi, llvmlite"
"""What every start needs, and nothing else: the denominator of all ratios here."""
TALOS = """
import sys
import numpy as np
import framefree as ff
machine = ff.read(sys.argv[1], base="free", mimic="independent")
v, force = np.ones((2, machine.nv))
ff.equations(machine).forward(machine.neutral(), v, force)
"""


def run() -> dict[str, object]:
    """Return the figures of `framefree bench start`.

    Each is the processor's time of a whole new process over that of one that imports numpy, casadi
    and llvmlite: `start.talos_forward_ratio` reads a humanoid's URDF and gives one acceleration by
    code that an earlier process compiled, `start.import_ratio` imports framefree, and
    `start.help_ratio` prints the command's help.
    """
    robot = str(example_robot("talos_data/robots/talos_reduced.urdf"))
    programs = {
        "libraries": ("-c", LIBRARIES),
        "talos_forward": ("-c", TALOS, robot),
        "import": ("-c", "import framefree"),
        "help": ("-c", "from framefree.cli import main; main()", "--help"),
    }
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FRAMEFREE_CACHE_DIR": folder, "FRAMEFREE_CACHE": "on"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for program in programs.values():  # fills the caches of code and of bytecode
            process_seconds(program, environment)
        turns: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(TURNS):
            for name, program in programs.items():
                turns[name].append(process_seconds(program, environment))
    return start_figures({name: summary(seconds) for name, seconds in turns.items()})


def start_figures(timings: dict[str, TurnTiming]) -> dict[str, object]:
    """Return ratios over the time of `libraries`, and spreads."""
    alone = timings["libraries"].best
    figures: dict[str, object] = {"start.libraries_seconds": alone}
    for name, timing in timings.items():
        if name != "libraries":
            figures[f"start.{name}_ratio"] = timing.best / alone
        figures[f"start.{name}_spread"] = timing.spread
    figures["start.peer"] = f"a process that runs `{LIBRARIES}`"
    return figures | circumstances("numpy", "casadi", "llvmlite")


def process_seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Return the processor's time that a new Python process takes from its start to its end."""
    before = _children_seconds()
    result = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise FramefreeError(f"a process of `framefree bench start` failed: {last}")
    return _children_seconds() - before


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
