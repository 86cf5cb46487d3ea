"""Speed of closed chains: four-bars in a row, against Pinocchio's two solvers and MuJoCo."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import process_time
from typing import Any

import numpy as np

from framefree.benchmarks.peers import mujoco, mujoco_model, pinocchio, to_pinocchio
from framefree.benchmarks.timing import circumstances, in_turns
from framefree.gallery.machines.classics import four_bars, four_bars_at
from framefree.geometry import Moments
from framefree.kernel import Kernel, compile
from framefree.kernel.measure import peak_share
from framefree.machine import Body, Loop, Machine
from framefree.motion import equations

STATES = 1024
COUNT = 16
"""Number of four-bars at which peers are compared."""

State = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Configuration, velocity and joint forces."""

Peer = Callable[[State], np.ndarray]
"""From a state to the joint accelerations."""


def run() -> dict[str, object]:
    """Return the figures of `framefree bench loops`.

    Ratios are against the fastest of three peers, each called from Python: the loop-constrained
    articulated-body algorithm `lcaba` and `constraintDynamics` of Pinocchio, and `mj_forward` of
    MuJoCo. In a batch a peer is called state by state. All sides have one thread and take turns;
    times are those of that thread, and `spread` is the median turn over the best.
    """
    return {
        **_against_peers(COUNT),
        "loops.growth_4_to_40": _growth("constrained", 4, 40),
        "loops.maximal.growth_4_to_16": _growth("maximal", 4, 16),
        "loops.embedded.growth_4_to_40": _growth("embedded", 4, 40),
        f"loops.embedded.velocities_{COUNT}": equations(four_bars(COUNT), "embedded").sizes["v"],
        f"compile.first_result_loops_{COUNT}_seconds": first_result_seconds(COUNT),
        **circumstances("pin", "mujoco"),
    }


def _against_peers(count: int) -> dict[str, object]:
    machine, key = four_bars(count), f"loops.four_bars_{count}"
    kernel, states = equations(machine, "constrained").kernel("forward"), closed_states(machine)
    batch = tuple(np.array(part) for part in zip(*states, strict=True))
    every = peers(machine)
    single = in_turns(
        {"ours": lambda: kernel(*states[0]), **_calls(every, states[:1])}, repeats=15, loops=200
    )
    many = in_turns({"ours": lambda: kernel(*batch), **_calls(every, states)}, repeats=7)
    figures: dict[str, object] = {}
    for kind, timings in (("single", single), ("batch", many)):
        fastest = min(timings[name].best for name in every)
        figures[f"{key}.{kind}_speedup"] = fastest / timings["ours"].best
        for name in every:
            figures[f"{key}.{kind}_speedup.{name}"] = timings[name].best / timings["ours"].best
        for name, timing in timings.items():
            figures[f"{key}.{kind}_spread.{name}"] = timing.spread
    a = kernel(*states[0])
    for name, peer in every.items():
        figures[f"{key}.difference.{name}"] = float(np.abs(peer(states[0]) - a).max())
    figures[f"{key}.flops_share"] = peak_share(kernel, STATES, many["ours"].best)
    figures[f"{key}.single_microseconds"] = 1e6 * single["ours"].best
    figures[f"{key}.batch_microseconds"] = 1e6 * many["ours"].best / STATES
    return figures


def closed_states(machine: Machine, count: int = STATES) -> list[State]:
    """Return states of a row of four-bars, closed, all of them apart from the flat positions."""
    rng = np.random.default_rng(0)
    states = []
    for _ in range(count):
        x, v = four_bars_at(machine, rng.uniform(-1.2, 1.2), rng.normal())
        states.append((x, v, rng.normal(size=machine.nv)))
    return states


def _calls(every: dict[str, Peer], states: Sequence[State]) -> dict[str, Callable[[], object]]:
    """Return calls that make every peer go through states one by one."""

    def through(peer: Peer) -> Callable[[], object]:
        if len(states) == 1:
            return lambda: peer(states[0])
        return lambda: [peer(state) for state in states]

    return {name: through(peer) for name, peer in every.items()}


def _growth(formulation: str, few: int, many: int) -> float:
    """Return the cost of one state of `many` four-bars over that of `few`."""
    short, long = (_single(formulation, count) for count in (few, many))
    timings = in_turns({"short": short, "long": long}, repeats=15, loops=200)
    return timings["long"].best / timings["short"].best


def _single(formulation: str, count: int) -> Callable[[], object]:
    machine = four_bars(count)
    eom = equations(machine, formulation)
    state = *eom.start(*four_bars_at(machine, 0.7, 1.0)), np.zeros(eom.sizes["force"])
    kernel = eom.kernel("forward")
    return lambda: kernel(*state)


def first_result_seconds(count: int) -> float:
    """Return the processor's time from a machine to its first acceleration, without a cache."""
    machine = four_bars(count)
    state = *four_bars_at(machine, 0.7, 1.0), np.zeros(machine.nv)
    start = process_time()
    function = equations(machine, "constrained").functions["forward"]
    kernel: Kernel = compile(function, cache=False)
    kernel(*state)
    return process_time() - start


# ------------------------------------------------------------------ peers


def peers(machine: Machine) -> dict[str, Peer]:
    """Return all peers for a row of four-bars, by name."""
    return {
        "lcaba": pinocchio_loops(machine, "lcaba"),
        "constraintDynamics": pinocchio_loops(machine, "constraintDynamics"),
        "mujoco": mujoco_loops(machine),
    }


PROXIMAL = {"lcaba": 1e-8, "constraintDynamics": 1e-6}
"""Proximal weights: of those that give the right acceleration, the ones of fewest iterations."""


def pinocchio_loops(machine: Machine, solver: str) -> Peer:
    """Return a solver of Pinocchio, with a point that is held for every loop.

    The five rows of a hinge would be harder on it: in the plane two of the three rows suffice.
    """
    pin, model = pinocchio(), to_pinocchio(machine.tree)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in machine.loops:
        ends: list[Any] = []
        for name in (loop.frame_a, loop.frame_b):
            frame = machine.frame(name)
            pose = pin.SE3(np.asarray(frame.pose, float))
            ends += [machine.body_index[frame.body] + 1, pose]
        kind, axes = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
        models.append(pin.RigidConstraintModel(kind, model, *ends, axes))
        datas.append(models[-1].createData())
    settings, data = pin.ProximalSettings(1e-10, PROXIMAL[solver], 10), model.createData()
    if solver == "lcaba":
        pin.computeJointMinimalOrdering(model, data, models)
    else:
        pin.initConstraintDynamics(model, data, models, datas)
    solve = getattr(pin, solver)
    return lambda state: solve(model, data, *state, models, datas, settings)


def mujoco_loops(machine: Machine) -> Peer:
    """Return `mj_forward` of MuJoCo: rods get a little thickness, loops become `connect`.

    It is not quite the same: MuJoCo's constraints are soft.
    """
    engine = mujoco()
    rod = Moments.of_body(1.0, (0.5, 0, 0), np.diag([1e-4, 1 / 12, 1 / 12]))
    loops = [Loop(loop.name, "ball", loop.frame_a, loop.frame_b) for loop in machine.loops]
    machine = replace(
        machine, bodies=tuple(Body(body.name, rod) for body in machine.bodies), loops=tuple(loops)
    )
    model = mujoco_model(machine, 1e-3, "rk4")
    data = engine.MjData(model)

    def accelerate(state: State) -> np.ndarray:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = state
        engine.mj_forward(model, data)
        return data.qacc

    return accelerate
