"""Speeds that joints without limits of their own do not exceed, and how a law keeps to them.

Near singular positions, out of reach, or among tasks that conflict, rows ask for accelerations
without bound. A joint whose speed has no limit may then have accelerations only with which it stays
below the speed `fastest`,

    -k (fastest + v) <= a <= k (fastest - v),    k = AT_ONCE, at most once in a control period

which is no bound at all in ordinary use: at rest, and with the default of 50 rad/s, 25,000 rad/s^2.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.held_resistance import driven_velocities
from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.solvers.base import Level
from framefree.machine import Machine
from framefree.motion.state import State

Matrix = Any
FASTEST = 50.0
"""Speed, rad/s or m/s, of joints that have no limit of their own."""
AT_ONCE = 500.0
"""Rate k, 1/s, at which they approach it at most."""
UNBOUNDED = 1e9
"""The same as long as the control period is not known."""
THRESHOLD = 0.02
"""Least singular value of the rows of a step, relative to them, below which it may be damped."""
SWING = 50.0
"""Frequency, rad/s, of swings about a singular position, at most, where joints move fast."""
FREE = 6
"""Number of velocities of a free body, which has no speed that it must keep."""
AMPLE = 5.0
"""Rate, 1/s, at which a joint may reach its speed from rest before damping is thought of."""
BRAKING = 20.0
"""Rate, 1/s, at which joints come to rest where a task is damped."""


@dataclass(frozen=True)
class SpeedCeiling:
    """Accelerations J a + j of joints that must stay within bounds, and where motion comes to rest.

    Attributes
    ----------
    joints : Level
        J (m x n) and j (m).
    least, most : (m)
    rest : (n)
        Acceleration with which joints come to rest.
    ample : (m)
        Accelerations that no damping is thought of for.
    v : (n)
    hurry : scalar
        How far joints move too fast for comfort, 0 to 1.
    period : float or None
        Control period, s.
    """

    joints: Level
    least: Matrix
    most: Matrix
    rest: Matrix
    ample: Matrix
    v: Matrix
    hurry: Matrix
    period: float | None

    @classmethod
    def of(
        cls, parts: Assembly, machine: Machine, fastest: float, period: float | None
    ) -> "SpeedCeiling":
        """Return that of a law's machine at a state."""
        tree = parts.state.tree
        places, speeds = watched_joints(machine, tree, fastest, limited=False)
        rows, v = parts.joints, tree.v[places]
        k, top = approach(period), ca.DM(speeds)
        return cls(
            Level(ca.SX(rows.A)[places, :], ca.SX(rows.b)[places, :]),
            -k * (top + v),
            k * (top - v),
            -BRAKING * parts.state.v,
            AMPLE * top,
            parts.state.v,
            hurry(v, top),
            period,
        )

    def containing(self, a: Matrix) -> "SpeedCeiling":
        """Return bounds that an acceleration is within: where motion is left to itself, it is."""
        now = self.joints.A @ a + self.joints.b
        least, most = ca.fmin(self.least, now), ca.fmax(self.most, now)
        return replace(self, least=least, most=most, rest=a)

    def excess(self, a: Matrix) -> Matrix:
        """Return how many times more than ample an acceleration is; at least 1."""
        now = self.joints.A @ a + self.joints.b
        return ca.fmax(1, ca.mmax(ca.vertcat(0, ca.fabs(now) / self.ample)))

    def threshold(self, asked: Matrix) -> Matrix:
        """Return the threshold of damping of a step by what it asks for."""
        return widened(asked, self.hurry)

    def braking(self, stiffness: Matrix) -> Matrix:
        """Return the rate, 1/s beyond that of rest, that damps swings with a stiffness, 1/s^2."""
        return ca.fmax(ca.fmin(2 * ca.sqrt(stiffness), approach(self.period)) - BRAKING, 0)

    def share(self, a: Matrix, step: Matrix) -> Matrix:
        """Return how much of a step from an acceleration within the bounds stays there: 0 to 1."""
        now, change = self.joints.A @ a + self.joints.b, self.joints.A @ step
        room = ca.fmax(ca.if_else(change > 0, self.most - now, now - self.least), 0)
        size = ca.fabs(change)
        held = ca.if_else(size > room, room / ca.fmax(size, 1e-300), 1)
        return ca.fmin(1, ca.mmin(ca.vertcat(1, held)))


def hurry(v: Matrix, fastest: Matrix) -> Matrix:
    """Return 0 where all joints move slower than 0.4 of their ceilings, 1 from 0.8 on."""
    most = ca.mmax(ca.vertcat(0, ca.fabs(v) / fastest))
    return ca.fmin(ca.fmax(2.5 * most - 1, 0), 1)


def widened(asked: Matrix, hurry: Matrix) -> Matrix:
    """Return the threshold of damping of a step by what it asks for, 1/s^2, and by hurry.

    About a singular position joints swing with the frequency sqrt(asked) / threshold; where they
    move fast, it is kept below SWING.
    """
    swing = ca.sqrt(hurry * asked) / SWING
    return ca.fmin(ca.fmax(THRESHOLD, swing), 1)


def check_fastest(fastest: float) -> None:
    """Refuse a speed that is not positive."""
    if not (isinstance(fastest, Real) and fastest > 0):
        raise ControlError(f"`fastest` must be positive, or infinite for none, got {fastest}")


def approach(period: float | None) -> float:
    """Return the rate k, 1/s, for a control period, s; 0 where a law is evaluated all the time.

    As long as it is not known, any acceleration will do.
    """
    if period is None:
        return UNBOUNDED
    return AT_ONCE if period <= 0 else min(AT_ONCE, 1 / period)


def watched_joints(
    machine: Machine, tree: State, fastest: float, *, limited: bool
) -> tuple[list[int], np.ndarray]:
    """Return velocities that are kept below a speed, and the speed of each.

    Those of joints that move with a drive: with one of their own, or as parts of loops and
    couplings, but for free bodies. Where joints are `limited` by what else a law does, those with
    a limit of their own are left out.
    """
    driven = driven_velocities(machine, tree)
    places, speeds = [], []
    for joint in machine.joints:
        for k in range(joint.nv if joint.nv < FREE else 0):
            at = machine.v_slice[joint.name].start + k
            limit = float(np.broadcast_to(joint.velocity_limit, joint.nv)[k])
            known = np.isfinite(limit)
            if at in driven and not (known and limited):
                places.append(at)
                speeds.append(max(fastest, limit) if known else fastest)
    return places, np.array(speeds)
