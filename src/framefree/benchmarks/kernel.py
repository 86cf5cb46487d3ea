"""Speed of compiled kernels: forward dynamics of serial arms against `pinocchio.aba`."""

import tempfile
from time import perf_counter

import numpy as np

from framefree.benchmarks.peers import pinocchio, to_pinocchio
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.gallery.machines.arms import iiwa, revolute_chain
from framefree.kernel import compile
from framefree.kernel.measure import peak_share
from framefree.machine import Machine
from framefree.motion import equations

STATES = 1024


def run() -> dict[str, object]:
    """Return the figures of `framefree bench kernel`."""
    small, large = _KernelCase(iiwa()), _KernelCase(revolute_chain(30))
    figures: dict[str, object] = {
        "batch_speedup_7": small.batch_speedup(),
        "batch_speedup_30": large.batch_speedup(),
        "single_speedup_7": small.single_speedup(),
        "single_speedup_30": large.single_speedup(),
        "threads_speedup": small.threads_speedup(2),
        **small.compile_seconds(),
        "max_relative_error": max(small.relative_error(), large.relative_error()),
        "batch_microseconds_7": small.batch_seconds() / STATES * 1e6,
        "batch_microseconds_30": large.batch_seconds() / STATES * 1e6,
    }
    for case, joints in ((small, 7), (large, 30)):
        figures[f"flops_share_{joints}"] = case.flops_share()
    return figures | circumstances("pin")


class _KernelCase:
    def __init__(self, machine: Machine) -> None:
        self.pin = pinocchio()
        self.model = to_pinocchio(machine)
        self.data = self.model.createData()
        self.function = equations(machine, "tree").functions["forward"]
        self.kernel = compile(self.function)
        rng = np.random.default_rng(1)
        self.x = machine.random(rng, STATES)
        self.v = rng.normal(size=(STATES, machine.nv))
        self.force = rng.normal(size=(STATES, machine.nv))
        rows = zip(self.x, self.v, self.force, strict=True)
        self.rows = [tuple(a.copy() for a in row) for row in rows]

    def _ours(self) -> np.ndarray:
        return self.kernel(self.x, self.v, self.force)

    def _theirs(self) -> list[np.ndarray]:
        aba, model, data = self.pin.aba, self.model, self.data
        return [aba(model, data, x, v, force) for x, v, force in self.rows]

    def batch_speedup(self) -> float:
        return speedup(self._ours, self._theirs, repeats=15)

    def single_speedup(self) -> float:
        kernel, aba, model, data = self.kernel, self.pin.aba, self.model, self.data
        x, v, force = self.rows[0]
        return speedup(
            lambda: kernel(x, v, force),
            lambda: aba(model, data, x, v, force),
            repeats=15,
            loops=2000,
        )

    def threads_speedup(self, threads: int) -> float:
        x, v, force = (np.tile(a, (16, 1)) for a in (self.x, self.v, self.force))
        return speedup(
            lambda: self.kernel(x, v, force, threads=threads), lambda: self.kernel(x, v, force)
        )

    def batch_seconds(self) -> float:
        return best_seconds(self._ours, repeats=30)

    def relative_error(self) -> float:
        theirs = np.array(self._theirs())
        return float((np.abs(self._ours() - theirs).max(1) / np.abs(theirs).max(1)).max())

    def flops_share(self) -> float:
        return peak_share(self.kernel, STATES, self.batch_seconds())

    def compile_seconds(self) -> dict[str, object]:
        with tempfile.TemporaryDirectory() as folder:
            seconds = []
            for _ in range(2):
                start = perf_counter()
                compile(self.function, cache=folder)
                seconds.append(perf_counter() - start)
        return {"compile_seconds_7": seconds[0], "cached_load_seconds_7": seconds[1]}
