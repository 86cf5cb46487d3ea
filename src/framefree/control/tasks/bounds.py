"""Limits of a machine as rows of the acceleration, and all rows of a law as levels in order.

    lower <= A a <= upper

The order is: what nature asks for (joints without actuators), inputs within those of the actuators,
grasps within what they carry, forces of contacts within their friction, contacts held still, joints
within their limits, then the tasks, the most important first. With W W^T = M^-1 and
``a = a_free + W z``, rows are Y = A W, and the shortest z is the least constraint of Gauss.

Contacts (`framefree.control.tasks.standing`) bring forces f = s p as more variables. Motors then
give ``M a + bias - J^T f``: their rows are [Y, -Y K] with K = W^T J^T s, as if the acceleration
were the one without contacts; rows on motion are [Y, 0], those on forces of contacts [0, C].
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.tasks.assembly import Assembly
from framefree.control.tasks.base import POSE_PARTS, Task
from framefree.control.tasks.ceiling import (
    AT_ONCE,
    BRAKING,
    THRESHOLD,
    approach,
    hurry,
    watched_joints,
)
from framefree.control.tasks.standing import Standing
from framefree.machine import Machine
from framefree.motion.constrained.algebra import MassFactor
from framefree.motion.state import State
from framefree.rounding import rounding

Matrix = Any
MOTION, MOTORS, CONTACTS = "motion", "motors", "contacts"
"""What rows are on: the acceleration a, a less what contacts add to it, forces p of contacts."""
NEARLY = rounding(1e-9)
"""Share of the forces of contacts that is given up, so that they are found where they depend on
each other."""
RESERVE = 5e-3
"""Share of a speed limit kept back for what the plant does within a period that no model tells."""
EDGE, NARROW = 0.2, 0.01
"""The same of positions, as a share of the way at full speed in a period, and at most of the range
of the joint."""
RECOVERY = 0.5
"""Share of an excess of speed that is taken away in a control period, at most at AT_ONCE."""


class BoundedLevel(NamedTuple):
    """Rows ``lower <= A a <= upper`` of one importance, with names of the level and its rows."""

    name: str
    labels: tuple[str, ...]
    A: Matrix
    lower: Matrix
    upper: Matrix
    on: str = MOTION


@dataclass(frozen=True)
class JointLimits:
    """How joints approach their limits.

    A joint comes near the limits of its position and velocity no faster than at a rate k,

        a >= -2 k v - k^2 (x - lower),    a <= k (velocity_limit - v)

    and likewise on the other side, so that one which is within them stays there; outside of them it
    comes back no faster than it may move. Of a velocity limit RESERVE is kept back, of the range of
    positions EDGE of what a joint moves at most in a control period. Torques are held over it,
    while the acceleration changes; so that this does not add up, a joint that is too fast slows
    down at the rate `recovery` in place of k. Velocities are limited for every kind of joint,
    positions of joints with one coordinate. Driven joints whose speed has no limit keep below a
    ceiling (`framefree.control.tasks.ceiling`).

    Parameters
    ----------
    approach : float
        k, 1/s.
    acceleration : float
        Largest acceleration of every joint, rad/s^2 or m/s^2.
    obeyed : bool
        Whether the machine's limits are; otherwise the ceiling is all there is.
    fastest : float
        The ceiling, rad/s or m/s; infinite for none.
    period : float
        Control period, s.
    """

    approach: float = 20.0
    acceleration: float = np.inf
    obeyed: bool = True
    fastest: float = np.inf
    period: float | None = None

    def rows(self, machine: Machine, tree: State) -> tuple[list[int], Matrix, Matrix]:
        """Return velocities that have limits, and their least and greatest accelerations."""
        places, least, most = self._obeyed(machine, tree.x, tree.v) if self.obeyed else ([], [], [])
        ranges = dict(zip(places, zip(least, most, strict=True), strict=True))
        for at, speed in self._ceilings(machine, tree):
            below, above = ranges.get(at, (ca.SX(-np.inf), ca.SX(np.inf)))
            v, k = tree.v[at], approach(self.period)
            ranges[at] = _within(below, above, -k * (speed + v), k * (speed - v))
        order = sorted(ranges)
        low, high = ([ranges[at][side] for at in order] for side in (0, 1))
        return order, ca.vertcat(ca.SX(0, 1), *low), ca.vertcat(ca.SX(0, 1), *high)

    def _ceilings(self, machine: Machine, tree: State) -> list[tuple[int, float]]:
        """Return velocities that have a ceiling only, and it."""
        if np.isinf(self.fastest):
            return []
        places, speeds = watched_joints(machine, tree, self.fastest, limited=self.obeyed)
        return list(zip(places, speeds.tolist(), strict=True))

    def _obeyed(
        self, machine: Machine, x: Matrix, v: Matrix
    ) -> tuple[list[int], list[Matrix], list[Matrix]]:
        """Return velocities with limits of the machine, and what these leave of accelerations."""
        places, low, high = [], [], []
        for joint in machine.joints:
            alone = joint.nx == joint.nv == 1
            for k in range(joint.nv):
                at = machine.v_slice[joint.name].start + k
                speed = float(np.broadcast_to(joint.velocity_limit, joint.nv)[k])
                ends = (joint.lower[0], joint.upper[0]) if alone else (-np.inf, np.inf)
                if not np.isfinite([speed, *ends, self.acceleration]).any():
                    continue
                q = x[machine.x_slice[joint.name].start]
                least, most = self._range(q, v[at], float(ends[0]), float(ends[1]), speed)
                places.append(at)
                low.append(least)
                high.append(most)
        return places, low, high

    def _range(
        self, q: Matrix, v: Matrix, lower: float, upper: float, speed: float
    ) -> tuple[Matrix, Matrix]:
        k, edge = self.approach, self._edge(lower, upper, speed)
        least, most = ca.SX(-np.inf), ca.SX(np.inf)
        if np.isfinite(lower):
            least = -2 * k * v - k * k * (q - lower - edge)
        if np.isfinite(upper):
            most = -2 * k * v + k * k * (upper - edge - q)
        if np.isfinite(speed):
            kept, faster = (1 - RESERVE) * speed, recovery(k, self.period)
            slowest = ca.fmax(-k * (kept + v), -faster * (kept + v))
            fastest = ca.fmin(k * (kept - v), faster * (kept - v))
            least, most = _within(least, most, slowest, fastest)
        if np.isfinite(self.acceleration):
            least, most = (
                ca.fmin(ca.fmax(a, -self.acceleration), self.acceleration) for a in (least, most)
            )
        return least, most

    def _edge(self, lower: float, upper: float, speed: float) -> float:
        """Return how far before the ends of its range a joint comes to rest."""
        if not (self.period and np.isfinite(speed)):
            return 0.0
        return min(EDGE * self.period * speed, NARROW * (upper - lower))


def recovery(k: float, period: float | None) -> float:
    """Return the rate, 1/s, at which joints that are too fast slow down; k without a period."""
    if period is None:
        return k
    return max(k, AT_ONCE if period <= 0 else min(AT_ONCE, RECOVERY / period))


def _within(least: Matrix, most: Matrix, slowest: Matrix, fastest: Matrix) -> tuple[Matrix, Matrix]:
    """Return a range of accelerations, within another that comes first."""
    return ca.fmin(ca.fmax(least, slowest), fastest), ca.fmax(ca.fmin(most, fastest), slowest)


class BoundedProblem:
    """All rows of a law at a symbolic state, as a program of levels.

    Attributes
    ----------
    levels : list of BoundedLevel
        Those that have rows.
    exact : int
        How many of them, from the first on, are laws of nature and bounds of forces, which can
        always be met together: no damping may give them up.
    """

    def __init__(
        self,
        parts: Assembly,
        machine: Machine,
        levels: tuple[tuple[Task, ...], ...],
        limits: JointLimits,
        standing: Standing | None = None,
    ) -> None:
        self.parts, self.standing = parts, standing
        self.factor = MassFactor(parts.M)
        self.free = self.factor.out(self.factor.into(-parts.bias))
        forces, contacts = [*self._inputs(machine), *self._grasps()], list(self._contacts())
        found = [*self._nature(), *forces, *contacts[:1]]  # the first of contacts are the cones
        self.exact = len([level for level in found if level.labels])
        found += [*contacts[1:], *self._joints(machine, limits)]
        self.first_task = len([level for level in found if level.labels])
        found += [self._task_level(k, level) for k, level in enumerate(levels)]
        self.levels = [level for level in found if level.labels]

    @property
    def n(self) -> int:
        """Number of variables: z of all accelerations, p of all forces of contacts."""
        return self.parts.n + (0 if self.standing is None else self.standing.size)

    @property
    def ends(self) -> tuple[int, ...]:
        """Number of rows up to the end of each level."""
        return tuple(np.cumsum([len(level.labels) for level in self.levels]).tolist())

    @cached_property
    def _carried(self) -> Matrix:
        """K (n x k): how far contacts move z, per unit of p."""
        if self.standing is None:
            return ca.SX(self.parts.n, 0)
        return self.factor.into(self.standing.reaction)

    def acceleration(self, variables: Matrix) -> Matrix:
        """Return the acceleration of variables z and p."""
        return self.free + self.factor.out(variables[: self.parts.n])

    def motor_acceleration(self, variables: Matrix) -> Matrix:
        """Return the acceleration less what contacts add to it: motors must give M a + bias."""
        if self.standing is None:
            return self.acceleration(variables)
        z, p = variables[: self.parts.n], variables[self.parts.n :]
        return self.free + self.factor.out(z - self._carried @ p)

    @property
    def asked(self) -> Matrix:
        """The most that a level of tasks asks for."""
        asked = [ca.norm_2(level.b) for level in self.parts.levels if level.b.shape[0]]
        return ca.mmax(ca.vertcat(0, *asked))

    def hurry(self, machine: Machine, fastest: float) -> Matrix:
        """Return how far joints move too fast for comfort, 0 to 1."""
        tree = self.parts.state.tree
        places, speeds = watched_joints(machine, tree, fastest, limited=False)
        return hurry(tree.v[places], ca.DM(speeds))

    def rest(self, at_most: float) -> Matrix:
        """Return the variables with which joints come to rest, contacts carrying what they must.

        They brake as it takes to damp swings about a singular position, at most at a rate.
        """
        swing = 2 * ca.sqrt(self.asked) / THRESHOLD
        return self._at(-ca.fmax(ca.fmin(swing, at_most), BRAKING) * self.parts.state.v)

    def still(self) -> Matrix:
        """Return the variables with which nothing accelerates, contacts carrying what they must."""
        return self._at(ca.SX(self.parts.n, 1))

    def _at(self, a: Matrix) -> Matrix:
        z = self.factor.into(self.parts.M @ a + self.parts.bias)
        exact = self.parts.exact()
        if self.standing is None or exact is None:
            return ca.vertcat(z, ca.SX(self.n - self.parts.n, 1))
        Y = self.factor.into(exact.A.T).T
        G, missing = Y @ self._carried, Y @ z - (exact.b - exact.A @ self.free)
        # The least forces; where contacts cannot carry it all, as on two points, nearly so.
        square = G @ G.T
        p = G.T @ ca.solve(square + NEARLY * ca.trace(square) * ca.SX.eye(square.shape[0]), missing)
        return ca.vertcat(z, p)

    def rows(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return Y (m x n) and its bounds (m)."""
        parts = [self._level_rows(level) for level in self.levels]
        empty = (ca.SX(0, self.n), ca.SX(0, 1), ca.SX(0, 1))
        Y, lower, upper = (ca.vertcat(*sides) for sides in zip(empty, *parts, strict=True))
        return Y, lower, upper

    def _level_rows(self, level: BoundedLevel) -> tuple[Matrix, Matrix, Matrix]:
        """Return the rows of a level on the variables, and their bounds."""
        count = level.A.shape[0]
        if level.on == CONTACTS:
            return ca.horzcat(ca.SX(count, self.parts.n), level.A), level.lower, level.upper
        Y, at_rest = self.factor.into(level.A.T).T, level.A @ self.free
        beside = -Y @ self._carried if level.on == MOTORS else ca.SX(count, self.n - self.parts.n)
        return ca.horzcat(Y, beside), level.lower - at_rest, level.upper - at_rest

    def _nature(self) -> list[BoundedLevel]:
        exact = self.parts.exact()
        if exact is None:
            return []
        labels = tuple(f"without actuator {k}" for k in range(exact.A.shape[0]))
        return [BoundedLevel("nature", labels, exact.A, exact.b, exact.b, MOTORS)]

    def _inputs(self, machine: Machine) -> list[BoundedLevel]:
        lower, upper = machine.input_limits
        chosen = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper)).tolist()
        if not chosen:
            return []
        rows, least, most = self.parts.input_rows()
        labels = tuple(f"input: {machine.actuators[k].name}" for k in chosen)
        A, b = rows.A[chosen, :], rows.b[chosen]
        low, high = lower[chosen] - least[chosen] - b, upper[chosen] - most[chosen] - b
        return [BoundedLevel("inputs", labels, A, low, high, MOTORS)]

    def _grasps(self) -> list[BoundedLevel]:
        rows, most = self.parts.grasp_rows()
        chosen = np.flatnonzero(np.isfinite(most)).tolist()
        if not chosen:
            return []
        labels = tuple(f"grasp {k // 6}: {POSE_PARTS[k % 6]}" for k in chosen)
        A, b = rows.A[chosen, :], rows.b[chosen]
        return [BoundedLevel("grasps", labels, A, -most[chosen] - b, most[chosen] - b, MOTORS)]

    def _contacts(self) -> list[BoundedLevel]:
        if self.standing is None:
            return []
        levels = [BoundedLevel("friction", *self.standing.cones(), CONTACTS)]
        for way, pressed in (("pressed", True), ("across", False)):
            labels, A, lower, upper = self.standing.held(pressed)
            rows, drift = self.parts.reduced(A, ca.SX(A.shape[0], 1))
            levels.append(
                BoundedLevel(f"contacts {way}", labels, rows, lower + drift, upper + drift)
            )
        return levels

    def _joints(self, machine: Machine, limits: JointLimits) -> list[BoundedLevel]:
        rows = self.parts.joints
        places, low, high = limits.rows(machine, self.parts.state.tree)
        labels = tuple(f"joint: {machine.v_names[k]}" for k in places)
        A, b = ca.SX(rows.A)[places, :], ca.SX(rows.b)[places, :]
        return [BoundedLevel("joints", labels, A, low - b, high - b)]

    def _task_level(self, k: int, tasks: tuple[Task, ...]) -> BoundedLevel:
        level = self.parts.levels[k]
        open_above = [task.barrier for task in tasks for _ in task.parts]
        upper = [np.inf if open_ else level.b[i] for i, open_ in enumerate(open_above)]
        labels = tuple(label for task in tasks for label in task.labels)
        return BoundedLevel(
            f"level {k + 1}", labels, level.A, level.b, ca.vertcat(ca.SX(0, 1), *upper)
        )
