"""An arm with a ball at its end, a wall that its equations do not know, and motions along it.

The law believes the wall to be where `BELIEVED` says; the wall is 7 mm further and 4 degrees
turned. Motions are given in the axes of a plane: two directions along it and its normal, with the
origin where the arm's end starts.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control import Assisted, Impedance
from framefree.control.references import FramePath
from framefree.gallery.machines.arms import driven_iiwa
from framefree.geometry import so3
from framefree.identify import Recording
from framefree.learn import LearnedContact, Samples, measured_samples
from framefree.learn.symmetry import axis_frame
from framefree.machine import Contact, ContactShape, Machine
from framefree.motion import equations
from framefree.simulate import Run, simulate
from framefree.solve import inverse_kinematics

BODY, FRAME, RADIUS = "link7", "tool", 0.02
"""Where the ball is, and its radius, m; its center is the frame's origin."""
CENTER = (0.1, 0.2, 0.3)
POSTURE = (0.3, 0.6, -0.2, -1.4, 0.3, 0.9, 0.1)
"""rad, in which the ball lies at the origin of the motions."""
STIFFNESS, DAMPING, FRICTION, SLIP_SPEED = 6000.0, 8.0, 0.35, 0.01
"""Of the wall: N/m, s/m, 1 and m/s."""
BELIEVED = np.array([-0.8, 0.36, 0.48])
"""Normal of the wall as it is believed to be, in world axes."""
OFF_PLACE, OFF_TURN = -0.007, np.deg2rad(4.0)
"""By how much it is off, m and rad."""
PERIOD, ENCODER, TORQUE = 2e-3, 5e-6, 0.02
"""s from row to row; noise of joints (rad) and of recorded torques (Nm)."""
WINDOW, EVERY = 0.03, 10
"""Local polynomials, s, and rows from sample to sample."""
GAINS = {
    "stiffness": (5000.0, 100.0),
    "damping": (220.0, 6.0),
    "inertia": (2.0, 0.06),
    "null_damping": 2.0,
}


def wall_arm() -> Machine:
    """Return the arm without the wall: what the law knows."""
    return driven_iiwa(friction=False)


@dataclass(frozen=True)
class Wall:
    """A plane with matter behind it, moved by a pose from where the arm learns it.

    Parameters
    ----------
    pose : (4, 4)
    """

    pose: Any = None

    @cached_property
    def model(self) -> LearnedContact:
        """The wall as a contact, with all its true numbers."""
        axis = axis_frame(BELIEVED)[:, 0]
        n = np.array(so3.exp(OFF_TURN * axis)) @ BELIEVED
        offset = float(n @ origin()) - RADIUS + OFF_PLACE
        matter = [STIFFNESS, DAMPING, FRICTION, SLIP_SPEED]
        own = LearnedContact(BODY, CENTER, RADIUS, [*matter, *n, offset])
        return own if self.pose is None else own.moved(self.pose)

    def added_to(self, machine: Machine) -> Machine:
        """Return the plant: the arm and the wall, as a part of machines."""
        n, plane, center = self.model.normal, np.eye(4), np.eye(4)
        plane[:3, :3], plane[:3, 3] = axis_frame(n), n * self.model.coefficients[7]
        center[:3, 3] = CENTER
        return machine.attach(
            Contact(
                "wall", "world", BODY, ContactShape("half_space", pose=plane),
                ContactShape("sphere", RADIUS, center), STIFFNESS, DAMPING, FRICTION, SLIP_SPEED,
                1.0,
            )
        )  # fmt: skip


def origin() -> np.ndarray:
    """Return the place (3,) of the ball in `POSTURE`, m."""
    return tool_pose()[:3, 3]


def tool_pose() -> np.ndarray:
    """Return the pose (4, 4) of the tool in `POSTURE`."""
    return np.asarray(equations(wall_arm()).kernel(f"frame_pose:{FRAME}")(np.array(POSTURE)))


# ---------------------------------------------------------------------- motions


@dataclass(frozen=True)
class Pressing:
    """Random smooth motions along a plane, which press and let go.

    Parameters
    ----------
    seed : int
    along, lowest, deepest : float
        m: how far it goes to either side, and between which depths below the believed wall.
    """

    seed: int
    along: float = 0.05
    lowest: float = -0.004
    deepest: float = 0.02

    def reference(self) -> FramePath:
        """Return the path of the tool."""
        rng = np.random.default_rng(self.seed)
        waves = rng.uniform(0.6, 1.0, (3, 3)), rng.uniform(0.15, 0.7, (3, 3)), rng.uniform(
            0, 2 * np.pi, (3, 3)
        )  # fmt: skip

        def wave(i: int, t: Any) -> Any:
            size, pace, phase = (one[i] for one in waves)
            total = sum(
                a * ca.sin(2 * np.pi * f * t + p) for a, f, p in zip(size, pace, phase, strict=True)
            )
            return total / float(size.sum())

        def curve(t: Any) -> Any:
            rise = _rise(t / 1.0)
            middle, half = (self.deepest + self.lowest) / 2, (self.deepest - self.lowest) / 2
            depth = middle + half * wave(2, t)
            return rise * ca.vertcat(self.along * wave(0, t), self.along * wave(1, t), -depth)

        return on_plane(BELIEVED, origin(), curve)


def on_plane(normal: Any, start: Any, curve: Any, attitude: Any = None) -> FramePath:
    """Return a path of the tool at a constant attitude, by places in the axes of a plane."""
    axes = axis_frame(np.asarray(normal, float))
    R = tool_pose()[:3, :3] if attitude is None else attitude

    def path(t: Any) -> Any:
        place = ca.DM(start) + ca.DM(axes) @ curve(t)
        return ca.vertcat(ca.horzcat(ca.DM(R), place), ca.DM([[0, 0, 0, 1]]))

    return FramePath(FRAME, path, times=(1.0,))


@dataclass(frozen=True)
class Polishing:
    """A figure of eight along a wall, pressed on with a force that is wanted.

    Parameters
    ----------
    contact : LearnedContact
        What the wall is taken to be: the depth that gives the force, and the plane.
    middle : (3,)
        Where the ball's center is above the figure's middle, m.
    attitude : (3, 3)
        Of the tool, in the world.
    force, change : float
        N, and by how much it goes up and down.
    wide, high, lap : float
        m, m and s.
    """

    contact: LearnedContact
    middle: Any
    attitude: Any
    force: float = 20.0
    change: float = 5.0
    wide: float = 0.06
    high: float = 0.03
    lap: float = 4.0

    def wanted(self, t: Any) -> Any:
        """Return the normal force (N) that is wanted at times t."""
        return self.force + self.change * np.sin(4 * np.pi * np.asarray(t) / self.lap)

    def reference(self) -> FramePath:
        """Return the path of the tool: down to the wall in a second, then round."""
        k, n = float(self.contact.coefficients[0]), self.contact.normal
        above = float(np.asarray(self.middle) @ n - self.contact.coefficients[7]) - RADIUS
        start = np.asarray(self.middle) - above * n

        def curve(t: Any) -> Any:
            come = _rise(t / 1.0)
            angle = 2 * np.pi * t / self.lap
            force = self.force + self.change * ca.sin(2 * angle)
            depth = (force / k) ** (1 / self.contact.exponent)
            round_ = come * ca.vertcat(self.wide * ca.sin(angle), self.high * ca.sin(2 * angle))
            return ca.vertcat(round_, above - come * (above + depth))

        return on_plane(n, start, curve, self.attitude)


def _rise(s: Any) -> Any:
    """Return 0 to 1, with zero slope and curvature at both ends."""
    s = ca.fmin(s, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


def pressed(
    wall: Wall,
    reference: FramePath,
    known: LearnedContact | None,
    duration: float,
    progress: bool | None,
) -> Run:
    """Simulate the arm at the wall, by a law that knows a contact or none, at 500 Hz."""
    machine = wall_arm()
    start = np.array(reference.function(0.0)[0])
    x0 = inverse_kinematics(machine, {FRAME: start}, np.array(POSTURE)).x
    law = Impedance(machine, FRAME, **GAINS)
    return simulate(
        wall.added_to(machine), law if known is None else Assisted(law, known), reference, x0,
        duration=duration, dt=PERIOD / 2, control_dt=PERIOD / 2, every=2, integrator="rk4",
        progress=progress,
    )  # fmt: skip


# ---------------------------------------------------------------------- samples


def recorded_samples(runs: list[Run], seed: int) -> Samples:
    """Return what the equations lack, from joint angles and torques with noise."""
    machine, rng = wall_arm(), np.random.default_rng(seed)
    recordings = [
        Recording(
            run.t,
            run.x + ENCODER * rng.normal(size=run.x.shape),
            u=run.u + TORQUE * rng.normal(size=run.u.shape),
        )
        for run in runs
    ]
    return measured_samples(machine, recordings, window=WINDOW, every=EVERY, bodies=[BODY])


def true_samples(runs: list[Run], wall: Wall) -> Samples:
    """Return states of runs, with what the wall does there."""
    machine = wall_arm()
    x = np.vstack([run.x[::EVERY] for run in runs])
    v = np.vstack([run.v[::EVERY] for run in runs])
    still = np.zeros_like(v)
    plant = wall.added_to(machine)
    y = equations(machine).inverse(x, v, still) - equations(plant).inverse(x, v, still)
    return Samples.of_states(machine, x, v, y, bodies=[BODY])


def moved_samples(samples: Samples, pose: np.ndarray) -> Samples:
    """Return the same experiment in a world that is moved by a pose, arm, gravity and all."""
    machine = samples.machine
    joints = [
        replace(one, parent_pose=pose @ np.asarray(one.parent_pose, float))
        if one.parent == "world"
        else one
        for one in machine.joints
    ]
    gravity = pose[:3, :3] @ np.asarray(machine.gravity, float)
    there = replace(machine, joints=tuple(joints), gravity=gravity)
    return Samples.of_states(there, samples.x, samples.v, samples.labels, bodies=[BODY])
