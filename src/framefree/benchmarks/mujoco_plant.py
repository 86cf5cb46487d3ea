"""What a step of a closed loop costs with MuJoCo as its plant, over a bare step of MuJoCo."""

from collections.abc import Callable
from typing import Any

import numpy as np

from framefree.benchmarks.peers import mujoco, mujoco_model
from framefree.benchmarks.rollout import DT, TARGET, JointPD
from framefree.benchmarks.timing import circumstances, in_turns
from framefree.gallery.machines.arms import iiwa
from framefree.machine.actuators import motors
from framefree.simulate.simulation import RepeatedSimulation

STEPS = 5000


def run() -> dict[str, object]:
    """Return the figures of `framefree bench mujoco-plant`.

    An arm of seven joints under a law that is compiled, integrated by Runge and Kutta's method:
    `mujoco_plant.overhead_ratio` is the time of a step of `simulate(..., plant="mujoco")`, with
    law, recording and all else that a run does, over that of `mj_step` called from Python.
    """
    arm = iiwa()
    arm = arm.attach(*motors(arm.joints))
    simulation = RepeatedSimulation(
        arm, JointPD(arm), plant="mujoco", duration=STEPS * DT, dt=DT, control_dt=DT
    )
    x0 = TARGET + 0.3
    calls: dict[str, Callable[[], object]] = {
        "simulate": lambda: simulation.run(x0=x0),
        "mj_step": _bare_steps(mujoco_model(arm, DT, "rk4"), x0),
    }
    for call in calls.values():
        call()
    timings = in_turns(calls, repeats=5)
    step, bare = timings["simulate"].best, timings["mj_step"].best
    return {
        "mujoco_plant.overhead_ratio": step / bare,
        "mujoco_plant.step_microseconds": 1e6 * step / STEPS,
        "mujoco_plant.mj_step_microseconds": 1e6 * bare / STEPS,
        **{f"mujoco_plant.{name}_spread": timing.spread for name, timing in timings.items()},
        "mujoco_plant.peer": "mujoco.mj_step, called from Python",
        **circumstances("mujoco"),
    }


def _bare_steps(model: Any, x0: np.ndarray) -> Callable[[], object]:
    engine = mujoco()
    data, step = engine.MjData(model), engine.mj_step

    def through() -> None:
        engine.mj_resetData(model, data)
        data.qpos[:] = x0
        for _ in range(STEPS):
            step(model, data)

    return through
