"""What a campaign costs beside its runs, and what it gains over a pool that makes them one by one.

The quadcopter's loops over 5 s with noise, delay, drives, observer and prediction, from other
places with other noise each. The bare roll-out makes the same runs in batches of the same size
and records the same rows, without metrics, records or files. The pools have as many processes as
the campaign has threads; each compiles once, before the clock starts, and makes runs one by one.
"""

import multiprocessing
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from framefree.benchmarks import falsify
from framefree.benchmarks.timing import circumstances, tell
from framefree.campaign import Simulations, campaign, sampled
from framefree.campaign.campaigns import PIECE, rows_of, variations_of
from framefree.gallery.scenarios import SCENARIOS

RUNS, DURATION, CORES = 10_000, 5.0, 2
ALONE = {"native": 200, "mujoco": 24}
"""Runs that pools make one by one."""
VARY = {
    "seed": "0:1000000",
    "e0.base.vx": "-0.05:0.05",
    "e0.base.vy": "-0.05:0.05",
    "e0.base.vz": "-0.05:0.05",
}


def run() -> dict[str, object]:
    """Return the figures of `framefree bench campaign`."""
    figures = measure()
    searched = falsify.run()
    falsified = {f"falsify_{k}": v for k, v in searched.items() if k.startswith(("crane", "quad"))}
    return {**figures, "falsify": searched["ratio"], **falsified, **circumstances("mujoco", "cma")}


def measure(
    runs: int = RUNS, alone: Mapping[str, int] = ALONE, duration: float = DURATION, turns: int = 2
) -> dict[str, object]:
    """Return overhead and speed-ups; campaign and bare roll-out take turns, the best counts."""
    loop = _loop("native", duration)
    rows = rows_of(sampled(variations_of(loop, VARY), "sobol", runs))
    loop.run_many(rows[:2], threads=CORES)  # compiled
    best = {name: (float("inf"), float("inf")) for name in ("bare", "campaign")}
    for _ in range(turns):
        for name, call in (("bare", _bare), ("campaign", _campaign)):
            tell(f"{runs} runs: {name}")
            wall, cpu = perf_counter(), process_time()
            call(loop, rows)
            spent = perf_counter() - wall, process_time() - cpu
            best[name] = min(best[name], spent)
    seconds = best["campaign"][0]
    tell("the same runs one by one")
    pools = {plant: _pool(plant, duration, rows[:count]) for plant, count in alone.items()}
    return {
        "runs": runs,
        "campaign_seconds": seconds,
        "bare_seconds": best["bare"][0],
        "overhead": seconds / best["bare"][0] - 1,
        "overhead_processor": best["campaign"][1] / best["bare"][1] - 1,
        "runs_per_second": runs / seconds,
        "mujoco_runs_per_second": pools["mujoco"],
        "native_runs_per_second": pools["native"],
        "speedup": runs / seconds / pools["mujoco"],
        "native_speedup": runs / seconds / pools["native"],
    }


def _loop(plant: str, duration: float) -> Simulations:
    scenario: Any = SCENARIOS["quad-loop"]
    loop = scenario(duration=duration, plant=plant).simulations()
    assert loop is not None
    return loop


def _bare(loop: Simulations, rows: Sequence[Any]) -> None:
    """Make the runs and nothing else."""
    for first in range(0, len(rows), PIECE):
        loop.simulated(rows[first : first + PIECE], CORES)


def _campaign(loop: Simulations, rows: Sequence[Any]) -> None:
    with TemporaryDirectory() as folder:
        campaign(loop, VARY, out=f"{folder}/out", runs=len(rows), workers=CORES, keep="metrics")


# ---------------------------------------------------------------------- one by one

_alone: dict[str, Simulations] = {}
"""In a process of a pool: the loop that it runs."""


def _prepare(plant: str, duration: float, row: Any) -> None:
    _alone["loop"] = _loop(plant, duration)
    _one(row)


def _one(row: Any) -> float:
    return _alone["loop"].run_many([row])[0].metrics["rms_position_m"]


def _pool(plant: str, duration: float, rows: Sequence[Any]) -> float:
    """Return the runs a second of a pool of processes."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(CORES, _prepare, (plant, duration, rows[0])) as pool:
        pool.map(_one, [rows[0]] * CORES, chunksize=1)  # all are ready
        begin = perf_counter()
        pool.map(_one, rows, chunksize=1)
        return len(rows) / (perf_counter() - begin)
