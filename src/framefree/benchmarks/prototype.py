"""Speed of the prototype law: one call against NumPy, and noisy roll-outs against MuJoCo.

The law is that of the quadcopter's flights, the particle approach. In roll-outs every loop has its
own noise, drawn as part of the time that counts, the flights' reference, a delay, and the drives;
MuJoCo steps the free body alone, without law, drives, drag or noise.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.peers import MujocoRollout, mujoco_model
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.gallery.scenarios.prototypes.flights import (
    QUADCOPTER_GAINS,
    Craft,
    quadcopter_craft,
    transitions,
)
from framefree.kernel import Kernel, compile
from framefree.kernel.measure import peak_share
from framefree.simulate.first_states import first_states
from framefree.simulate.integrators import SemiImplicitEuler
from framefree.simulate.loop import ControlLoop
from framefree.simulate.plants import native_plant

LOOPS, PERIODS, DT, RATIO = 4096, 40, 1e-3, 5


def run() -> dict[str, object]:
    """Return the figures of `framefree bench prototype`."""
    craft = quadcopter_craft(transitions, 13.5)
    return {**single(craft), **rollout(craft), **circumstances("mujoco", "numpy")}


# ---------------------------------------------------------------------- one call


def single(craft: Craft) -> dict[str, object]:
    """Return how many times as fast the compiled law is as the same law in NumPy."""
    kernel = law_kernel(craft)
    plain = NumpyLaw(craft)
    rng = np.random.default_rng(0)
    machine = craft.machine
    state = [machine.random(rng), rng.normal(size=6), machine.random(rng)]
    state += [rng.normal(size=6), rng.normal(size=6)]
    difference = np.abs(kernel(*state) - plain(*state)).max() / np.abs(plain(*state)).max()
    ratio = speedup(lambda: kernel(*state), lambda: plain(*state), repeats=15, loops=300)
    return {
        "single_speedup": ratio,
        "single_microseconds": 1e6 * best_seconds(lambda: kernel(*state), loops=1000),
        "single_difference": float(difference),
    }


def law_kernel(craft: Craft) -> Kernel:
    """Return the law as a kernel of state and reference: x, v, x_R, v_R, a_R."""
    n = craft.machine
    sizes = {"x": n.nx, "v": n.nv, "x_R": n.nx, "v_R": n.nv, "a_R": n.nv}
    symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    x, v, x_R, v_R, a_R = symbols
    reference = {"x": x_R, "v": v_R, "a": a_R}
    u = craft.law("particle").control(ca.SX(0), x, v, reference, ca.SX(0, 1)).u
    return compile(ca.Function("law", symbols, [u], list(sizes), ["u"]))


class NumpyLaw:
    """The particle law of one free body, as one would write it in NumPy."""

    def __init__(self, craft: Craft) -> None:
        machine = craft.machine
        gains = [QUADCOPTER_GAINS[k]["body"] for k in ("inertia", "damping", "stiffness")]
        self.M4, self.D4, self.K4 = (np.asarray(g.matrix4) for g in gains)
        self.Mbar = np.asarray(gains[0].matrix6)
        self.M = np.asarray(machine.bodies[0].moments.matrix6)
        self.D = np.asarray(machine.dampers[0].matrix)
        self.B = _input_matrix(craft)
        self.N = np.linalg.solve(self.M, self.B)
        self.H = self.N.T @ self.Mbar @ self.N
        self.gravity = np.asarray(machine.gravity)

    def __call__(
        self, x: np.ndarray, v: np.ndarray, x_R: np.ndarray, v_R: np.ndarray, a_R: np.ndarray
    ) -> np.ndarray:
        """Return the thrusts."""
        G, G_R = _pose(x), _pose(x_R)
        E = np.linalg.inv(G) @ G_R
        V, V_R = _wed(v), _wed(v_R)
        drift = V @ V - E @ (_wed(a_R) + V_R @ V_R)
        pulls = drift @ self.M4 + (V - E @ V_R) @ self.D4 + (np.eye(4) - E) @ self.K4
        bbar = np.array([pulls[0, 3], pulls[1, 3], pulls[2, 3], pulls[2, 1] - pulls[1, 2],
                         pulls[0, 2] - pulls[2, 0], pulls[1, 0] - pulls[0, 1]])  # fmt: skip
        weight = self.M @ np.concatenate([G[:3, :3].T @ self.gravity, np.zeros(3)])
        b = -_ad(v).T @ (self.M @ v) + self.D @ v - weight
        return np.linalg.solve(self.H, self.N.T @ (self.Mbar @ np.linalg.solve(self.M, b) - bbar))


def _pose(x: np.ndarray) -> np.ndarray:
    w, i, j, k = x[3:]
    return np.array([
        [1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j), x[0]],
        [2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i), x[1]],
        [2 * (i * k - w * j), 2 * (j * k + w * i), 1 - 2 * (i * i + j * j), x[2]],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


def _wed(xi: np.ndarray) -> np.ndarray:
    a, b, c, p, q, r = xi
    return np.array([[0, -r, q, a], [r, 0, -p, b], [-q, p, 0, c], [0, 0, 0, 0.0]])


def _ad(xi: np.ndarray) -> np.ndarray:
    ad = np.zeros((6, 6))
    ad[:3, :3] = ad[3:, 3:] = _wed(np.concatenate([np.zeros(3), xi[3:]]))[:3, :3]
    ad[:3, 3:] = _wed(np.concatenate([np.zeros(3), xi[:3]]))[:3, :3]
    return ad


def _input_matrix(craft: Craft) -> np.ndarray:
    x, v = ca.SX.sym("x", 7), ca.SX.sym("v", 6)
    B = craft.law("particle").kinetics(x, v).B
    return np.array(ca.Function("B", [x], [ca.densify(B)])(craft.machine.neutral()))


# ---------------------------------------------------------------------- roll-outs


def rollout(craft: Craft) -> dict[str, object]:
    """Return how many times as many steps a second our noisy loops make on one thread."""
    machine = craft.machine
    loop = ControlLoop(
        native_plant(machine, None),
        craft.law("particle"),
        craft.reference,
        drive=craft.drive,
        ratio=RATIO,
        delay=1,
        noisy=True,
    )
    kernel = compile(loop.step(SemiImplicitEuler()), shapes={"time": (), "h": ()})
    first = first_states(loop, *craft.start(), {})
    state: dict[str, Any] = {name: np.tile(value, (LOOPS, 1)) for name, value in first.items()}
    scale, rng = craft.noise.scale(machine), np.random.default_rng(0)
    noise = np.zeros((LOOPS, PERIODS, len(scale)))
    time = RATIO * DT * np.arange(PERIODS)

    def ours() -> Any:
        rng.standard_normal(out=noise)
        np.multiply(noise, scale, out=noise)
        sequences = {"time": time, "noise": noise}
        return kernel.rollout(**state, h=DT, steps=PERIODS, every=PERIODS, sequences=sequences)

    steps = PERIODS * RATIO
    theirs = _mujoco(craft, steps)
    spread = ours().final["x"][:, :3].std(axis=0).max()
    ratio, seconds = speedup(ours, theirs, repeats=5), best_seconds(ours, repeats=3)
    return {
        "rollout_speedup": ratio,
        "rollout_flops_share": peak_share(kernel, LOOPS * PERIODS, seconds),
        "rollout_loops": LOOPS,
        "rollout_steps_per_second": LOOPS * steps / seconds,
        "rollout_spread_m": float(spread),
    }


def _mujoco(craft: Craft, steps: int) -> Any:
    """Return a function that rolls out the free body in MuJoCo, as often and as far."""
    machine = craft.machine
    bare = machine.detach("drag", *(actuator.name for actuator in machine.actuators))
    x = np.tile(craft.start()[0], (LOOPS, 1))
    model = mujoco_model(bare, DT, "euler")
    return MujocoRollout(model, x, np.zeros((LOOPS, 6)), np.zeros(0), steps).roll
