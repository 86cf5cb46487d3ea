"""What a call of a kernel costs from Python: by name, with `threads=1` and with `out=`."""

import numpy as np

from framefree.benchmarks.timing import circumstances, in_turns
from framefree.gallery.machines.arms import iiwa
from framefree.kernel.measure import peak_share
from framefree.motion import equations


def run() -> dict[str, object]:
    """Return the figures of `framefree bench call`.

    Forward dynamics of an arm of seven joints, one state: each ratio is over a call with all
    arguments by position. `call.keywords_ratio` names all of them.
    """
    arm = iiwa()
    kernel, rng = equations(arm, "tree").kernel("forward"), np.random.default_rng(0)
    x, v, force = arm.random(rng), *rng.normal(size=(2, arm.nv))
    room = np.empty(arm.nv)
    timings = in_turns(
        {
            "positional": lambda: kernel(x, v, force),
            "keywords": lambda: kernel(x=x, v=v, force=force),
            "threads": lambda: kernel(x, v, force, threads=1),
            "out": lambda: kernel(x, v, force, out=room),
        },
        repeats=25,
        loops=2000,
    )
    plain = timings["positional"].best
    figures: dict[str, object] = {"call.positional_microseconds": 1e6 * plain}
    figures["call.flops_share"] = peak_share(kernel, 1, plain)
    for name, timing in timings.items():
        if name != "positional":
            figures[f"call.{name}_ratio"] = timing.best / plain
        figures[f"call.{name}_spread"] = timing.spread
    figures["call.peer"] = "the same call by position"
    return figures | circumstances("numpy")
