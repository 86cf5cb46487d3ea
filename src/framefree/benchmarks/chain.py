"""Speed of end-effector control by the port (law III), and how it grows with the chain."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.peers import pinocchio, to_pinocchio
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.control.port import Avoidance, EndEffectorControl, Sphere, looped
from framefree.gallery.machines.chains import chain
from framefree.kernel import compile
from framefree.kernel.measure import peak_share

STATES = 1024
SHAPES = {"end.pose": (4, 4), "end.twist": (6, 1), "end.acceleration": (6, 1)}


def run() -> dict[str, object]:
    """Return the figures of `framefree bench chain`.

    `law3.over_aba` is the cost of one evaluation of the law for 5 bodies, in a batch, over that of
    one call of `pinocchio.aba` from Python for the same chain; `law3.growth_100_to_1000` the cost
    for 1000 bodies over that for 100.
    """
    law = law_of(5)
    kernel, arguments, theirs = straight(law), _arguments(law, STATES), _peer(5)
    rows = [theirs] * STATES

    def one_by_one() -> None:
        for call in rows:
            call()

    def ours() -> object:
        return kernel(*arguments)

    seconds = best_seconds(ours, repeats=15)
    short, long = _single(100), _single(1000)
    return {
        "law3.over_aba": 1 / speedup(ours, one_by_one, repeats=15),
        "law3.microseconds": seconds / STATES * 1e6,
        "law3.flops_share": peak_share(kernel, STATES, seconds),
        "aba.microseconds": best_seconds(one_by_one) / STATES * 1e6,
        "law3.growth_100_to_1000": speedup(short, long, repeats=100),
        **circumstances("pin"),
    }


def law_of(n: int) -> EndEffectorControl:
    """Return law III of a chain of n bodies, with an obstacle."""
    obstacle = Sphere((0.5, 0.3, 0.1), 0.1)
    return EndEffectorControl(chain(n), avoidance=Avoidance([obstacle], radius=0.03))


def straight(law: EndEffectorControl) -> Any:
    """Return the law as one straight-line kernel, from x, v and the frame's reference to inputs."""
    machine = law.machine
    sizes = {"x": machine.nx, "v": machine.nv}
    inputs = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    reference = {}
    for name, shape in SHAPES.items():
        key = name.replace(".", "_")
        inputs[key] = ca.SX.sym(key, shape[0] * shape[1])
        reference[name] = ca.reshape(inputs[key], *shape)
    command = law.control(ca.SX(0), inputs["x"], inputs["v"], reference, ca.SX(0, 1))
    outputs = [command.u, command.signals["V"], command.signals["V_rate"]]
    names = list(inputs), ["u", "V", "V_rate"]
    return compile(ca.Function("law", list(inputs.values()), outputs, *names))


def _arguments(law: EndEffectorControl, batch: int) -> tuple[np.ndarray, ...]:
    rng, machine = np.random.default_rng(0), law.machine
    x, v = machine.random(rng, batch), 0.1 * rng.normal(size=(batch, machine.nv))
    pose = np.tile(np.eye(4).ravel(), (batch, 1))
    return x, v, pose, *(0.1 * rng.normal(size=(2, batch, 6)))


def _single(n: int) -> Callable[[], object]:
    law = law_of(n)
    kernel = looped(law, SHAPES)
    arguments = tuple(array[0].copy() for array in _arguments(law, 1))
    return lambda: kernel(*arguments)


def _peer(n: int) -> Callable[[], object]:
    pin, model = pinocchio(), to_pinocchio(chain(n, spring="none"))
    data, rng = model.createData(), np.random.default_rng(0)
    q, v, tau = pin.randomConfiguration(model), *rng.normal(size=(2, model.nv))
    return lambda: pin.aba(model, data, q, v, tau)
