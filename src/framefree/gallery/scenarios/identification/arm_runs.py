"""Runs of the arm as a laboratory records them: noisy encoders, commands that act late."""

from dataclasses import replace
from typing import Any

import numpy as np

from framefree.control.computed_torque import ComputedTorque
from framefree.gallery.machines.arms import driven_iiwa
from framefree.identify import Recording
from framefree.identify.excitation import FourierMotion
from framefree.machine import Body, Machine
from framefree.simulate import Noise, Run, simulate
from framefree.simulate.noise import NoiseSource

PERIOD = 1e-3
"""s: encoders and commands at 1 kHz."""
RATE_NOISE = 20.0
"""Noise of the velocity that the law gets per noise of the encoder, 1/s: differences, smoothed."""


def data_sheet_arm() -> Machine:
    """Return the arm as its data sheet has it: masses 15 percent off, friction and drives guessed.

    What is not known takes these values where data do not tell.
    """
    arm = driven_iiwa(friction=False)
    rng = np.random.default_rng(7)
    bodies = [_other(body, rng) for body in arm.bodies]
    joints = [
        replace(joint, armature=0.1, damping=0.1, friction=0.1, friction_width=0.02)
        for joint in arm.joints
    ]
    return replace(arm, bodies=tuple(bodies), joints=tuple(joints))


def _other(body: Body, rng: np.random.Generator) -> Body:
    moments = body.moments
    shift = np.eye(4)
    shift[:3, 3] = rng.normal(size=3) * 0.01
    return replace(body, inertia=(moments * rng.uniform(0.85, 1.15)).moved(shift))


def run_arm(
    plant: Machine, motion: FourierMotion, noise: float, delay: int, seed: int, duration: float,
    progress: Any = None,
) -> Run:  # fmt: skip
    """Return a run in which computed torque with the data sheet's model follows a motion."""
    law = ComputedTorque(data_sheet_arm(), stiffness=15.0**2, damping=2 * 15.0)
    start = motion.sample(0.0)
    return simulate(
        plant,
        law,
        motion,
        start["x"],
        start["v"],
        duration=duration,
        dt=PERIOD,
        control_dt=PERIOD,
        noise=Noise(noise, RATE_NOISE * noise),
        delay=delay,
        seed=seed,
        record=(),
        progress=progress,
    )


def recorded(run: Run, noise: float, delay: int, seed: int) -> Recording:
    """Return what was recorded of a run: encoders, and commands `delay` periods before they act.

    Encoders show the very noise that the law saw.
    """
    machine = run.machine
    assert machine is not None
    scale = Noise(noise, RATE_NOISE * noise).scale(machine)
    drawn = NoiseSource(scale, seed, None).periods(0, len(run.t))[:, : machine.nv]
    n = len(run.t) - delay - 1
    return Recording(
        run.t[:n],
        machine.integrate(run.x, drawn)[:n],
        force=run.u[delay : n + delay],
        source="the recorded run",
    )
