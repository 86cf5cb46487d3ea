"""Imports stand at the top of a file; the few inside functions have a reason that is listed here.

The direction of imports between packages is checked by `lint-imports`, see pyproject.toml.
"""

import ast
from pathlib import Path

import framefree

ROOT = Path(framefree.__file__).parent

EXTRAS = {
    "clarabel": "extra `identify`",
    "fmpy": "extra `fmu`",
    "jax": "extra `learn`",
    "mujoco": "extra `models`",
    "pinocchio": "extra `peers`",
    "proxsuite": "extra `qp`",
    "pythonfmu3": "extra `fmu`",
    "yaml": "extra `models`",
    "trimesh": "reads meshes if it is installed",
    "viser": "extra `view`",
    "playwright": "drives a browser for `bench view`",
}
START_UP = {
    "concurrent.futures": "for several threads only",
    "difflib": "for questions after mistyped names only",
    "importlib.metadata": "versions of packages, for records only",
    "pyarrow": "0.2 s, for records only",
    "rich": "0.1 s, for progress on a terminal only",
    "subprocess": "0.003 s, for other processes only",
    "scipy": "parts of SciPy take up to 0.3 s each",
    "webbrowser": "for `--open` only",
}
OWN = {
    ("simulate/run.py", "framefree.look.report"): "run.report() leads to the looking side",
    ("simulate/run.py", "framefree.look.view"): "run.view() likewise",
    ("machine/machine.py", "framefree.look.view"): "machine.show() likewise",
    ("machine/machine.py", "framefree.machine"): "tunable numbers, which most machines lack",
    ("machine/machine.py", "framefree.motion.forward_kinematics"): "a convenience of machines",
    ("machine/machine.py", "framefree.machine.formats.write_mjcf"): "0.05 s, for writing only",
    ("machine/machine.py", "framefree.machine.formats.write_urdf"): "0.05 s, for writing only",
    ("motion/equations.py", "framefree.solve.linearise"): "a convenience of equations",
    ("motion/formulate.py", "framefree.motion.loops.long_trees"): "for long machines only",
    ("motion/given_machine.py", "framefree.motion.redundant"): "loaded when asked for",
    ("simulate/making.py", "framefree.simulate.runners.mujoco"): "needs `mujoco`",
    ("kernel/build.py", "framefree.kernel.emission"): "cached code needs no emitter: 0.04 s",
    ("kernel/kernel.py", "framefree.kernel.c_source"): "for C only",
    ("kernel/kernel.py", "framefree.kernel.reading"): "for graphs only",
    ("kernel/kernel.py", "framefree.kernel.jax_target"): "needs `jax`",
    ("benchmarks/peers.py", "framefree.simulate.runners.mujoco"): "needs `mujoco`",
    ("benchmarks/contact.py", "framefree.simulate.runners.mujoco_contacts"): "needs `mujoco`",
    (
        "gallery/scenarios/learned/flight_nano.py",
        "framefree.learn.flight.fitting",
    ): "needs `jax`",
    (
        "gallery/scenarios/learned/flight_nano.py",
        "framefree.learn.flight.model",
    ): "needs `jax`",
    (
        "gallery/scenarios/learned/flight_nano.py",
        "framefree.learn.flight.prediction",
    ): "needs `jax`",
    (
        "gallery/scenarios/classics/double_pendulum.py",
        "framefree.simulate.runners.mujoco",
    ): "needs `mujoco`",
}
COMMANDS = "cli/"
"""A command imports what it needs, so that `--help` answers at once."""


def inner_imports(path):
    """Names of modules that are imported inside functions."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                yield from names & START_UP.keys() or {node.module}


def reason(file, module):
    if file.startswith(COMMANDS):
        return COMMANDS
    if (file, module) in OWN:
        return OWN[file, module]
    listed = EXTRAS | START_UP
    parents = [".".join(module.split(".")[: k + 1]) for k in range(module.count(".") + 1)]
    return next((listed[name] for name in parents if name in listed), None)


def test_imports_inside_functions_have_a_reason():
    inner = {
        (path.relative_to(ROOT).as_posix(), module)
        for path in ROOT.rglob("*.py")
        for module in inner_imports(path)
    }
    assert sorted(place for place in inner if reason(*place) is None) == []
    assert sorted(OWN.keys() - inner) == []
