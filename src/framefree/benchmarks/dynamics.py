"""Speed of the equations of motion against Pinocchio, on robots of example-robot-data."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from framefree.benchmarks.peers import pinocchio
from framefree.benchmarks.timing import speedup
from framefree.errors import FramefreeError
from framefree.kernel import compile
from framefree.machine import Machine
from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion import equations

STATES = 1024


def run() -> dict[str, object]:
    """Return the figures of `framefree bench dynamics`."""
    return {
        **_Robot("panda", "panda_description/urdf/panda.urdf", "fixed").figures(),
        **_Robot("humanoid", "talos_data/robots/talos_reduced.urdf", "free").figures(),
    }


class _Robot:
    """One robot, in both libraries, at the same states."""

    def __init__(self, name: str, file: str, base: str) -> None:
        self.name, self.pin = name, pinocchio()
        path = example_robot(file)
        self.model = self._model(path, base)
        self.data = self.model.createData()
        self.machine = self._machine(path, base)
        self.eom = equations(self.machine, "tree")
        names = ["base" if n == "root_joint" else n for n in self.model.names[1:]]
        order = layout(self.machine, "pinocchio", names)
        rng = np.random.default_rng(1)
        self.x = self.machine.random(rng, STATES)
        self.v, self.a = rng.normal(size=(2, STATES, self.machine.nv))
        q, v = order.x_to(self.x), order.v_to(self.x, self.v)
        a = order.v_to(self.x, self.a)
        self.rows = [tuple(part.copy() for part in row) for row in zip(q, v, a, strict=True)]

    def _model(self, path: Path, base: str) -> Any:
        pin = self.pin
        root = [pin.JointModelFreeFlyer()] if base == "free" else []
        model = pin.buildModelFromUrdf(str(path), *root)
        return model

    def _machine(self, path: Path, base: str) -> Machine:
        return read(path, base=base, mimic="independent")

    def figures(self) -> dict[str, object]:
        pin, model, data = self.pin, self.model, self.data
        x, v, a = self.x, self.v, self.a
        peers: dict[str, tuple[tuple[np.ndarray, ...], Callable[..., Any]]] = {
            "forward": ((x, v, a), lambda q, v, a: pin.aba(model, data, q, v, a)),
            "inverse": ((x, v, a), lambda q, v, a: pin.rnea(model, data, q, v, a)),
            "mass": ((x,), lambda q, v, a: pin.crba(model, data, q)),
            "coriolis": ((x, v), lambda q, v, a: pin.computeCoriolisMatrix(model, data, q, v)),
            "forward_derivatives": (
                (x, v, a),
                lambda q, v, a: pin.computeABADerivatives(model, data, q, v, a),
            ),
        }
        figures: dict[str, object] = {}
        for quantity, (arguments, peer) in peers.items():
            kernel = self.eom.kernel(quantity)
            ratio = speedup(
                lambda: kernel(*arguments), lambda: [peer(*row) for row in self.rows], repeats=9
            )
            figures[f"{self.name}.{quantity}.batch_speedup"] = ratio
        figures[f"{self.name}.forward.single_speedup"] = self._single()
        figures[f"{self.name}.forward.compile_seconds"] = self._compile_seconds()
        return figures

    def _single(self) -> float:
        kernel, pin, model, data = self.eom.forward, self.pin, self.model, self.data
        x, v, a = (array[0].copy() for array in (self.x, self.v, self.a))
        row = self.rows[0]
        return speedup(
            lambda: kernel(x, v, a), lambda: pin.aba(model, data, *row), repeats=15, loops=1000
        )

    def _compile_seconds(self) -> float:
        function = self.eom.functions["forward"]
        start = perf_counter()
        compile(function, cache=False)
        return perf_counter() - start


def example_robot(file: str) -> Path:
    """Return the path of a robot file in the package example-robot-data."""
    try:
        package = metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        raise FramefreeError(
            'this needs example robots; install them with: pip install "framefree[peers]"'
        ) from None
    for entry in package.files or ():
        if str(entry).endswith(file):
            return Path(str(package.locate_file(entry)))
    raise FramefreeError(f"the package example-robot-data has no `{file}`")
