"""Speed of kernels in single precision over the same in double precision."""

from functools import partial

import numpy as np

from framefree.benchmarks.dynamics import STATES, example_robot
from framefree.benchmarks.timing import circumstances, in_turns
from framefree.kernel import compile
from framefree.kernel.measure import peak_share
from framefree.machine.read import read
from framefree.motion import equations

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "humanoid": ("talos_data/robots/talos_reduced.urdf", "free"),
}


def run() -> dict[str, object]:
    """Return the figures of `framefree bench single`.

    `single.NAME.forward.batch_speedup` is the time of forward dynamics at 1024 states in double
    precision over that in single, both on one thread; `difference` the largest of the
    accelerations, relative to the largest acceleration of its state.
    """
    figures: dict[str, object] = {}
    for name, (file, base) in ROBOTS.items():
        machine = read(example_robot(file), base=base, mimic="independent")
        function, rng = equations(machine, "tree").functions["forward"], np.random.default_rng(1)
        double, single = compile(function), compile(function, precision="single")
        x, (v, force) = machine.random(rng, STATES), rng.normal(size=(2, STATES, machine.nv))
        kernels = {"double": double, "single": single}
        calls = {one: partial(kernel, x, v, force) for one, kernel in kernels.items()}
        timings = in_turns(calls, repeats=25)
        exact, near, key = double(x, v, force), single(x, v, force), f"single.{name}.forward"
        figures[f"{key}.batch_speedup"] = timings["double"].best / timings["single"].best
        # The peak is that of doubles: single precision has twice as many lanes.
        for one, lanes in (("double", 1), ("single", 2)):
            share = peak_share(double, STATES, timings[one].best) / lanes
            figures[f"{key}.flops_share.{one}"] = share
        apart = np.abs(near - exact).max(axis=1) / np.abs(exact).max(axis=1)
        figures[f"{key}.difference"] = float(apart.max())
        figures |= {f"{key}.batch_spread.{one}": t.spread for one, t in timings.items()}
    figures["single.peer"] = "the same kernel in double precision"
    return figures | circumstances("llvmlite", "example-robot-data")
