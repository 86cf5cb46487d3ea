"""Speed, measured as ratios against a peer library in the same run; never as a test."""

from collections.abc import Callable

from framefree.benchmarks import (
    board,
    calls,
    campaign,
    chain,
    compiling,
    contact,
    dual_arm,
    dynamics,
    exchange,
    falsify,
    fmu,
    kernel,
    learn,
    loops,
    mujoco_plant,
    prototype,
    rollout,
    single,
    start,
    tasks,
    view,
)

BENCHMARKS: dict[str, Callable[[], dict[str, object]]] = {
    "kernel": kernel.run,
    "dynamics": dynamics.run,
    "rollout": rollout.run,
    "loops": loops.run,
    "chain": chain.run,
    "dual-arm": dual_arm.run,
    "tasks": tasks.run,
    "prototype": prototype.run,
    "exchange": exchange.run,
    "learn": learn.run,
    "contact": contact.run,
    "falsify": falsify.run,
    "fmu": fmu.run,
    "view": view.run,
    "campaign": campaign.run,
    "board": board.run,
    "start": start.run,
    "call": calls.run,
    "compile": compiling.run,
    "mujoco-plant": mujoco_plant.run,
    "single": single.run,
}
"""Benchmark name to the function that measures it and gives its figures."""
