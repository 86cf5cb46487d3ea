"""Speed of the implicit integrator on the servos of robot files, against MuJoCo's `implicitfast`.

A seven-joint arm with rotors of 0.1 kg m^2 and a servo on every joint (kp 4500, kv 450, at most
87 Nm) takes a step of its targets; steps of 1 ms, one thread, many trajectories. What differs: ours
is of second order and solves every stage by Newton's method, limits of the servos included;
MuJoCo's is of first order and takes one Newton step with slopes by velocities alone. Both errors
are against a solution with steps of 10 us by our explicit integrator.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from framefree.benchmarks.peers import MujocoRollout, mujoco, mujoco_model
from framefree.benchmarks.timing import best_seconds
from framefree.control.law import OpenLoop
from framefree.gallery.machines.arms import iiwa
from framefree.machine.actuators import JointForce
from framefree.simulate import simulate

STIFFNESS, DAMPING, MOST = 4500.0, 450.0, 87.0  # Nm/rad, Nm s/rad, Nm
ARMATURE = 0.1  # kg m^2
DT, DURATION, TRAJECTORIES = 1e-3, 0.5, 64
TARGET = np.array([0.5, 0.3, -0.4, -1.0, 0.6, 0.8, 0.2])  # rad
SETTLED = 0.1
"""Time from which errors are looked at, s."""
ROUNDS = 3


def figures() -> dict[str, object]:
    """Return speed and errors of both."""
    arm = iiwa()
    arm = replace(arm, joints=[replace(joint, armature=ARMATURE) for joint in arm.joints])
    servos = [
        JointForce(j.name, j.name, gain=STIFFNESS, bias_terms=(0, -STIFFNESS, -DAMPING),
                   force_lower=-MOST, force_upper=MOST)
        for j in arm.joints
    ]  # fmt: skip
    machine = arm.attach(*servos)
    law = OpenLoop(machine, lambda t: TARGET.tolist())
    rng = np.random.default_rng(0)
    x = 0.3 * rng.standard_normal((TRAJECTORIES, 7))

    def ours(dt: float = DT, integrator: str = "implicit", count: int = TRAJECTORIES) -> Any:
        return simulate(
            machine, law, x0=x[:count], duration=DURATION, dt=dt, integrator=integrator,
            record=(), every=round(DT / dt), progress=False,
        )  # fmt: skip

    model = mujoco_model(machine, DT, "euler")
    model.opt.integrator = mujoco().mjtIntegrator.mjINT_IMPLICITFAST
    model.actuator_forcelimited[:] = 1
    model.actuator_forcerange[:] = (-MOST, MOST)
    peer = MujocoRollout(model, x, 0 * x, TARGET, round(DURATION / DT))
    exact = ours(1e-5, "rk4", 4).x
    after = round(SETTLED / DT)
    errors = [np.abs(ours(count=4).x - exact)[:, after:].max()]
    peer.roll()
    errors.append(np.abs(peer.x[:4, after - 1 :] - exact[:, after:]).max())
    seconds = [np.inf, np.inf]
    for _ in range(ROUNDS):
        seconds[0] = min(seconds[0], best_seconds(ours, repeats=1))
        seconds[1] = min(seconds[1], best_seconds(peer.roll, repeats=1))
    return {
        "speedup": seconds[1] / seconds[0],
        "error_rad": float(errors[0]),
        "implicitfast_error_rad": float(errors[1]),
    }
