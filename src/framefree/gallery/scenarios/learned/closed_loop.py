"""FluidTracking in the unknown fluid, with and without what was learned: the closed-loop side."""

from dataclasses import dataclass

import numpy as np

from framefree.control.port import PoseControl
from framefree.control.references.bodies import BodyPoses
from framefree.gallery.scenarios.learned.fluid_chain import Swimming, TrueFluid, swimmer
from framefree.gallery.shared.rotations import angle_between
from framefree.learn import WrenchModel
from framefree.look.report.scene import body_poses
from framefree.simulate import Run, simulate
from framefree.simulate.measures import rms

RATE, DAMPING = 3.0, 10.0
"""1/s, of the poses and of what is left of the velocities; that about thin axes as about others."""
SETTLED = 2.0
"""s, from which on errors count."""
MOTION = 777
"""Seed of the motion that is followed: not among those learned from."""


@dataclass(frozen=True)
class FluidTracking:
    """One motion, followed by the port law with different knowledge of the fluid.

    Parameters
    ----------
    style : Swimming
    duration, dt : float
        s.
    plant : str
    progress : bool or None
    motion : int
        Seed of the motion.
    every : int
        Steps from one recorded row to the next.
    """

    style: Swimming
    duration: float
    dt: float
    plant: str = "native"
    progress: bool | None = None
    motion: int = MOTION
    every: int = 5

    def run(self, model: WrenchModel | None) -> Run:
        """Simulate the law that knows a model of the fluid, or none, in the true fluid."""
        machine = swimmer()
        known = machine if model is None else model.added_to(machine)
        path = self.style.path(machine, self.motion)
        x, v = (np.array(one).ravel() for one in path.function(0.0)[:2])
        return simulate(
            TrueFluid().added_to(machine),
            PoseControl(known, DAMPING, rate=RATE, floor=1.0),
            BodyPoses(path),
            x,
            v,
            duration=self.duration,
            dt=self.dt,
            plant=self.plant,
            every=self.every,
            progress=self.progress,
        )


def tracking_errors(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (rows, bodies), m, and angles, degree, of all bodies from their poses."""
    machine = run.machine
    assert machine is not None
    there = body_poses(machine, run.x)
    wanted = np.stack([run[f"{body.name}.pose"] for body in machine.bodies], axis=1)
    gap = np.linalg.norm(there[..., :3, 3] - wanted[..., :3, 3], axis=-1)
    return gap, np.degrees(angle_between(there[..., :3, :3], wanted[..., :3, :3]))


def settled_rms(run: Run) -> float:
    """Return the root mean square distance of the bodies from their poses once settled, m."""
    return rms(tracking_errors(run)[0][run.t > SETTLED].ravel())
