"""Speed of closed-loop roll-outs against `mujoco.rollout`: the same arm, the same joint control.

Our arm has plain torque motors under a PD law; MuJoCo's has a servo on every joint with the same
gains, to which the target goes as its control. Both record every step, on one thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.benchmarks.peers import MujocoRollout, mujoco_model
from framefree.benchmarks.timing import best_seconds, circumstances
from framefree.control.law import Command, Law
from framefree.gallery.machines.arms import iiwa
from framefree.kernel import Kernel, compile
from framefree.kernel.measure import peak_share
from framefree.machine import Machine
from framefree.machine.actuators import JointForce, motors
from framefree.simulate.integrators import RungeKuttaMuntheKaas4, SemiImplicitEuler
from framefree.simulate.loop import ControlLoop
from framefree.simulate.plants import native_plant

EXPLICIT = {"euler": SemiImplicitEuler(), "rk4": RungeKuttaMuntheKaas4()}
TRAJECTORIES, STEPS, DT = 1024, 1000, 1e-3
STIFFNESS = np.array([200.0, 200, 100, 100, 50, 20, 10])  # Nm/rad
DAMPING = STIFFNESS / 10  # Nm s/rad
TARGET = np.array([0.5, 0.3, -0.4, -1.0, 0.6, 0.8, 0.2])  # rad


@dataclass(frozen=True)
class JointPD(Law):
    """u = stiffness (TARGET - x) - damping v."""

    machine: Machine

    def control(self, t: Any, x: Any, v: Any, reference: Mapping[str, Any], memory: Any) -> Command:
        """Return the torques."""
        return Command(ca.DM(STIFFNESS) * (ca.DM(TARGET) - x) - ca.DM(DAMPING) * v)


def run() -> dict[str, object]:
    """Return the figures of `framefree bench rollout`."""
    rng = np.random.default_rng(0)
    x = TARGET + 0.5 * rng.normal(size=(TRAJECTORIES, 7))
    v = rng.normal(size=(TRAJECTORIES, 7))
    figures: dict[str, object] = {"trajectories": TRAJECTORIES, "steps": STEPS}
    for name, rounds in (("euler", 6), ("rk4", 4)):
        figures |= {f"{name}_{key}": value for key, value in compare(name, x, v, rounds).items()}
    return figures | circumstances("mujoco")


def compare(
    integrator: str, x: np.ndarray, v: np.ndarray, rounds: int, steps: int = STEPS
) -> dict[str, float]:
    """Run both engines from the same states (batch, 7) and return times and differences.

    Parameters
    ----------
    integrator : "euler" or "rk4"
    x, v : (batch, 7)
    rounds : int
        How often the engines take turns; the best time of each counts.
    steps : int
    """
    kernel = _step(integrator)
    time = DT * np.arange(steps)
    peer = _mujoco(integrator, x, v, steps)

    def ours() -> Any:
        return kernel.rollout(x=x, v=v, h=DT, steps=steps, sequences={"time": time})

    record = ours()
    peer.roll()
    moved = max(
        np.abs(record["x"][:, 1:] - peer.x).max(), np.abs(record["v"][:, 1:] - peer.v).max()
    )
    ends = max(np.abs(record.final["x"] - peer.x[:, -1]).max(),
               np.abs(record.final["v"] - peer.v[:, -1]).max())  # fmt: skip
    del record  # its pages serve the next roll-out
    seconds = [np.inf, np.inf]
    for _ in range(rounds):
        # Ours is so much shorter that three of them are as likely to meet a quiet moment.
        seconds[0] = min(seconds[0], best_seconds(ours, repeats=3))
        seconds[1] = min(seconds[1], best_seconds(peer.roll, repeats=1))
    return {
        "speedup": seconds[1] / seconds[0],
        "seconds": seconds[0],
        "mujoco_seconds": seconds[1],
        "flops_share": peak_share(kernel, len(x) * steps, seconds[0]),
        "final_difference": float(ends),
        "largest_difference": float(moved),
    }


def _step(integrator: str) -> Kernel:
    arm = iiwa()
    arm = arm.attach(*motors(arm.joints))
    step = ControlLoop(native_plant(arm, None), JointPD(arm)).step(EXPLICIT[integrator])
    return compile(step, shapes={"time": (), "h": ()})


def _mujoco(integrator: str, x: np.ndarray, v: np.ndarray, steps: int) -> MujocoRollout:
    """Return the arm with servos in MuJoCo."""
    arm = iiwa()
    servos = [
        JointForce(joint.name, joint.name, gain=k, bias_terms=(0, -k, -d))
        for joint, k, d in zip(arm.joints, STIFFNESS, DAMPING, strict=True)
    ]
    model = mujoco_model(arm.attach(*servos), DT, integrator)
    return MujocoRollout(model, x, v, TARGET, steps)
