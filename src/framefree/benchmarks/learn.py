"""What a learned network costs in a law, and networks in batches beside JAX."""

import itertools
import json
import os
import subprocess
import sys
from time import perf_counter
from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.chain import STATES
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.control import Assisted
from framefree.control.law import Law
from framefree.control.port import PoseControl
from framefree.errors import FramefreeError
from framefree.gallery.machines.chains import chain
from framefree.kernel import Kernel, compile
from framefree.kernel.layers import layers
from framefree.kernel.measure import peak_share
from framefree.learn.learned import LearnedModel
from framefree.learn.network import SymmetricNetwork
from framefree.learn.symmetry import O2
from framefree.learn.training import double_precision

BODIES, WIDTH = 5, 32
ROWS, INPUTS, OUTPUTS = 8192, 12, 8
"""Of the plain networks that run beside JAX."""
WIDE = 64
"""Width of the hidden layers of the larger of them."""


def run() -> dict[str, object]:
    """Return the figures of `framefree bench learn`.

    `law_cost_ratio` is the cost of the law of `learned-chain` for five bodies with a network of two
    layers of 32 on every body over that of the law without, in batches of 1024; `single_cost_ratio`
    the same of one call from Python.

    Plain networks of two layers run beside JAX (jitted, double precision) in batches of 8192:
    `batch_over_jax` is how many times as fast a kernel is with two layers of 32, both on all
    processors; `batch_over_jax_one_core` the same in a process of its own that has one processor;
    `network.batch_speedup` there with two layers of 64. `jax_difference` is the largest difference
    of outputs in all three.
    """
    law = PoseControl(chain(BODIES))
    start = perf_counter()
    plain, assisted = kernel_of(law), kernel_of(Assisted(law, network()))
    compiled = perf_counter() - start
    figures: dict[str, object] = {"compile_s": compiled}
    for name, count in (("law_cost_ratio", STATES), ("single_cost_ratio", 1)):
        arguments = _arguments(law, count)
        calls = [lambda k=k, a=arguments: k(*a) for k in (plain, assisted)]
        figures[name] = speedup(*calls, repeats=15, loops=1 if count > 1 else 200)
    cores = os.cpu_count() or 1
    everywhere = beside_jax(WIDTH, cores)
    small, large = _on_one_core(WIDTH, WIDE)
    return figures | {
        "cores": cores,
        "batch_over_jax": everywhere["speedup"],
        "batch_over_jax_one_core": small["speedup"],
        "network.batch_speedup": large["speedup"],
        "network.flops_share": large["share"],
        "jax_difference": max(one["difference"] for one in (everywhere, small, large)),
        **circumstances("jax"),
    }


def network() -> LearnedModel:
    """Return a network of two layers of 32 for rods, with weights of a seed."""
    bare = SymmetricNetwork(O2(), ("velocity", "rate", "down"), 0.3, 1.0, 1.0)
    count, outputs = bare.shape
    weights = _weights(count, WIDTH, outputs, np.random.default_rng(0))
    whole = SymmetricNetwork(
        O2(), bare.features, 0.3, 1.0, 1.0, tuple(weights), np.zeros(count), np.ones(count)
    )
    return LearnedModel(None, [1.0, 0.1, 0.0, 0.0], whole)


def _weights(
    count: int, width: int, outputs: int, rng: np.random.Generator
) -> list[tuple[Any, Any]]:
    """Return random layers: none is zero, so that nothing of the work falls away."""
    sizes = (count, width, width, outputs)
    return [
        (rng.normal(size=(rows, columns)) / np.sqrt(columns), 0.3 * rng.normal(size=rows))
        for columns, rows in itertools.pairwise(sizes)
    ]


def kernel_of(law: Law) -> Kernel:
    """Return a law from x, v and the bodies' reference to inputs, compiled."""
    machine = law.machine
    inputs = {"x": ca.SX.sym("x", machine.nx), "v": ca.SX.sym("v", machine.nv)}
    reference = {}
    for name in law.needs:
        key, shape = name.replace(".", "_"), _shape(name)
        inputs[key] = ca.SX.sym(key, shape[0] * shape[1])
        reference[name] = ca.reshape(inputs[key], *shape)
    command = law.control(ca.SX(0), inputs["x"], inputs["v"], reference, ca.SX(0, 1))
    return compile(ca.Function("law", list(inputs.values()), [command.u], list(inputs), ["u"]))


def _shape(signal: str) -> tuple[int, int]:
    """Return the shape of a body's reference signal."""
    return (4, 4) if signal.endswith(".pose") else (6, 1)


def _arguments(law: Law, count: int) -> list[np.ndarray]:
    rng, machine = np.random.default_rng(0), law.machine
    x, v = machine.random(rng, count), rng.normal(size=(count, machine.nv))
    poses = np.tile(np.eye(4).ravel(), (count, 1))
    rest = [poses if _shape(name) == (4, 4) else rng.normal(size=(count, 6)) for name in law.needs]
    arguments = [x, v, *rest]
    return arguments if count > 1 else [one[0].copy() for one in arguments]


# ---------------------------------------------------------------------- beside JAX


def beside_jax(width: int, threads: int) -> dict[str, float]:
    """Return our speed over that of JAX on one network, and how far the two are apart.

    JAX takes as many threads as the process has processors.
    """
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    weights = _weights(INPUTS, width, OUTPUTS, rng)
    x = ca.SX.sym("x", INPUTS)
    kernel = compile(ca.Function("network", [x], [layers(x, weights)], ["x"], ["y"]))
    batch = rng.normal(size=(ROWS, INPUTS))
    named = {"threads": threads} if threads > 1 else {}
    with double_precision(jax):
        arrays = [(jnp.asarray(W), jnp.asarray(b)) for W, b in weights]

        def forward(h):
            for W, b in arrays[:-1]:
                h = jnp.tanh(h @ W.T + b)
            return h @ arrays[-1][0].T + arrays[-1][1]

        compiled, given = jax.jit(forward), jnp.asarray(batch)

        def ours() -> np.ndarray:
            return kernel(batch, **named)

        def theirs() -> Any:
            return compiled(given).block_until_ready()

        gap = np.abs(np.asarray(theirs()) - ours())
        ratio = speedup(ours, theirs, repeats=60)
        share = peak_share(kernel, ROWS, best_seconds(ours, repeats=60)) / threads
    return {"speedup": ratio, "difference": float(gap.max()), "share": share}


def _on_one_core(*widths: int) -> list[dict[str, float]]:
    """Return `beside_jax` of each width in a process that has one processor (Linux).

    Both are bound to it; JAX told to use one thread by its own flags would take slower products.
    """
    program = (
        "import json, os\n"
        "os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n"
        "from framefree.benchmarks.learn import beside_jax\n"
        f"print(json.dumps([beside_jax(width, 1) for width in {list(widths)}]))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise FramefreeError(f"the benchmark on one processor failed: {last}")
    return json.loads(result.stdout)
