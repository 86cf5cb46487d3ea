"""Speed of the equations of motion against Pinocchio, on robots of example-robot-data."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from framefree.benchmarks.peers import pinocchio, to_pinocchio
from framefree.benchmarks.timing import circumstances, in_turns, speedup
from framefree.errors import FramefreeError
from framefree.gallery.machines.arms import ball_chain
from framefree.kernel import compile
from framefree.kernel.measure import peak_share
from framefree.machine import Machine
from framefree.machine.layouts import layout
from framefree.machine.read import read
from framefree.motion import equations

STATES = 1024
NATIVE = {"forward": "abaInParallel", "inverse": "rneaInParallel"}
"""Quantities that Pinocchio computes for many states in C++, and the names of its functions."""


def run() -> dict[str, object]:
    """Return the figures of `framefree bench dynamics`."""
    return {
        **_Robot("panda", "panda_description/urdf/panda.urdf", "fixed").figures(),
        **_Robot("humanoid", "talos_data/robots/talos_reduced.urdf", "free").figures(),
        **_chains(),
        **circumstances("pin", "example-robot-data"),
    }


def _chains() -> dict[str, object]:
    """Cost of the maximal formulation on long chains of ball joints, and against Pinocchio."""
    pin = pinocchio()
    calls = {n: _chain_calls(n) for n in (100, 1000)}
    one, many = ({n: call[k] for n, call in calls.items()} for k in (0, 1))
    model = to_pinocchio(ball_chain(100))
    data, rng = model.createData(), np.random.default_rng(0)
    q, v, tau = pin.neutral(model), *(0.1 * rng.normal(size=(2, model.nv)))
    return {
        "maximal.growth_100_to_1000": speedup(one[100], one[1000], repeats=15, loops=20),
        "maximal.batch_growth_100_to_1000": speedup(many[100], many[1000], repeats=5),
        "maximal.speedup_100": speedup(
            one[100], lambda: pin.aba(model, data, q, v, tau), repeats=15, loops=200
        ),
    }


def _chain_calls(n: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Forward dynamics of a chain, of one state and of many."""
    machine = ball_chain(n)
    eom = equations(machine, "maximal")
    rng = np.random.default_rng(0)
    state = eom.kernel("from_joints")(machine.random(rng), 0.1 * rng.normal(size=machine.nv))
    one = (*state, np.zeros(6 * n))
    many = tuple(np.tile(array, (STATES, 1)) for array in one)
    return lambda: eom.forward(*one), lambda: eom.forward(*many)


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
        self.columns = tuple(np.asfortranarray(part.T) for part in (q, v, a))
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
            figures |= self._batch(quantity, arguments, peer)
        figures[f"{self.name}.forward.single_speedup"] = self._single()
        figures[f"{self.name}.forward.compile_seconds"] = self._compile_seconds()
        return figures

    def _batch(
        self, quantity: str, arguments: tuple[np.ndarray, ...], peer: Callable[..., Any]
    ) -> dict[str, object]:
        """Compare a batch with a loop in Python, and with one in C++ where the peer has it."""
        kernel, key = self.eom.kernel(quantity), f"{self.name}.{quantity}"
        calls = {
            "ours": lambda: kernel(*arguments),
            "python": lambda: [peer(*row) for row in self.rows],
        }
        if quantity in NATIVE:
            calls["native"] = self._native(NATIVE[quantity])
        timings = in_turns(calls, repeats=25)
        ours = timings["ours"]
        figures: dict[str, object] = {f"{key}.batch_speedup": timings["python"].best / ours.best}
        if "native" in timings:
            figures[f"{key}.native_batch_speedup"] = timings["native"].best / ours.best
        for name, timing in timings.items():
            figures[f"{key}.batch_spread.{name}"] = timing.spread
        figures[f"{key}.flops_share"] = peak_share(kernel, STATES, ours.best)
        return figures

    def _native(self, name: str) -> Callable[[], object]:
        """Return Pinocchio's own loop over all states, with one thread, into an array."""
        pool, call = self.pin.ModelPool(self.model, 1), getattr(self.pin, name)
        result = np.zeros((self.model.nv, STATES), order="F")
        return lambda: call(1, pool, *self.columns, result)

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
