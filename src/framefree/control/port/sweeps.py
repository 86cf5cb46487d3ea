"""Sweeps over the bodies that all port laws share.

With loads h on the bodies and, for one frame, a wished twist nu_e, the reference velocity solves

    min 1/2 nu^T M nu - h^T nu    subject to  J nu = 0  and, with a task,  J_t nu = nu_e

that is nu_r = Phi_c h, or nu_r = Phi_c h + Jbar (nu_e - J_t Phi_c h) with Jbar = Phi_c J_t^T
(J_t Phi_c J_t^T)^-1. Its rate solves the same system, differentiated:

    M dnu_r + J^T dmu = dh + J_t^T dy - (dJ/dt)^T mu
    J dnu_r = -(dJ/dt) nu_r,     J_t dnu_r = dnu_e

so that one elimination serves both, and the rate is exact. Everything is linear in the number of
bodies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.port.bodies import (
    PlacedLink,
    inward_offset,
    mobility,
    outward,
    outward_twist,
    place,
    turning,
)
from framefree.motion.loops import BodyMath, Tape, inwards, summed
from framefree.motion.spatial import Matrix, Step, Twist, Wrench

SINGULAR = 1e-12
"""Pivots of the task's mobility, scaled, are not taken as smaller than this."""


class Load(NamedTuple):
    """A load (6) on a body in link axes, and its rate along the motion."""

    value: Any
    rate: Any


class Task(NamedTuple):
    """What the frame `frame` on a body is to do: twist (6) and its rate, in the frame's axes.

    `step` is a function from a link's twist to that of the frame, and back for wrenches.
    """

    body: int
    twist: Any
    rate: Any
    frame: "OnLink"


@dataclass(frozen=True)
class OnLink:
    """A frame on a link."""

    step: Any

    def twist(self, body: BodyMath, twist: Matrix) -> Matrix:
        """Return the twist of the frame, for a link's (6)."""
        return self.step.twist_into(Twist.of(twist)).vector

    def to_link(self, body: BodyMath, twist: Matrix) -> Matrix:
        """Return the twist of the link, for that of the frame (6)."""
        R = self.step.rotation.T
        return Step(R, -(R @ self.step.r)).twist_into(Twist.of(twist)).vector

    def wrench(self, body: BodyMath, wrench: Matrix, other: Matrix | None) -> Matrix:
        """Return a wrench on the frame in link axes, and another (6) added to it."""
        found = self.step.wrench_out(Wrench.of(wrench)).vector
        return found if other is None else found + other

    def solved(self, body: BodyMath, mobility: Matrix, gap: Matrix) -> tuple[Matrix, Matrix]:
        """Return the wrench on the frame that adds `gap` (6) to its twist, and the least pivot.

        `mobility` (6x6) is that of the link. Where the pivot is far below 1, the machine can hardly
        move the frame in all directions.
        """
        half = self.step.twist_into(Twist.of(mobility)).vector
        mine = self.step.twist_into(Twist.of(half.T)).vector
        return solve_with_pivot(mine, gap)


class Solution(NamedTuple):
    """Twists (6) of the links, rates (nv) and wrenches (6) of the joints."""

    twists: list[Any]
    rates: list[Any]
    wrenches: list[Any]


class Chain:
    """The bodies of a machine at a state, on a tape.

    Parameters
    ----------
    tape : Tape
    x, v : sequences
        Coordinates and velocities of every joint.
    """

    def __init__(self, tape: Tape, x: Sequence[Any], v: Sequence[Any]) -> None:
        self.tape, self.x, self.v = tape, x, v
        self.parents = [link.parent for link in tape.model.links]
        self.placed: list[Any] = []
        for i, parent in enumerate(self.parents):
            above = None if parent < 0 else self.placed[parent]
            self.placed.append(PlacedLink(*tape.call(place, i, x[i], v[i], above)))
        self.factors: list[Any] = [None] * self.count
        self._eliminated: list[Any] = [None] * self.count

    @property
    def count(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    def factor(self, i: int, carried: Any) -> Any:
        """Eliminate body i; return what its parent feels of its inertia."""
        self.factors[i], shown = self.tape.call(
            BodyMath.factor, i, self.x[i], self.placed[i].step, carried
        )
        return shown

    def inward(self, i: int, load: Any, carried: Any, drive: Any, bias: Any, full: bool) -> Any:
        """Eliminate body i from a right side; return what its parent feels of that."""
        step = BodyMath.inward if full else inward_offset
        values = (self.placed[i].step, self.factors[i], load, carried, drive, bias)
        self._eliminated[i], passed = self.tape.call(step, i, *values)
        return passed

    def outward(self, i: int, found: "Solution", drive: Any, bias: Any, full: bool) -> None:
        """Append body i to a solution; in full with the rate and the wrench of its joint."""
        parent = self.parents[i]
        above = None if parent < 0 else found.twists[parent]
        values = (self.placed[i].step, self.factors[i], self._eliminated[i], above, drive, bias)
        if full:
            parts = self.tape.call(outward, i, *values)
            for part, where in zip(parts, found, strict=True):
                where.append(part)
        else:
            found.twists.append(self.tape.call(outward_twist, i, *values))
        self.tape.forget(self._eliminated[i])

    def mobility(self, i: int, found: dict[int, Any]) -> None:
        """Add the mobility of body i, the velocity per wrench on it (6x6), to those found."""
        parent = self.parents[i]
        above = None if parent < 0 else found[parent]
        found[i] = self.tape.call(mobility, i, self.placed[i], self.factors[i], above)
        self.tape.forget(above)

    def way(self, body: int) -> set[int]:
        """Return the bodies that carry a body, and itself."""
        found = set()
        while body >= 0:
            found.add(body)
            body = self.parents[body]
        return found


class Reference(NamedTuple):
    """The reference velocity at every body, its rate, and the least pivot of the task or None."""

    velocity: Solution
    rate: Solution
    pivot: Any


class Ask(NamedTuple):
    """What a law asks of the reference velocity.

    Attributes
    ----------
    load : callable
        From the index of a body to its load h, or None.
    drives : list of Load or None
        Further forces on the joints (nv): momenta of rotors.
    task : Task or None
    """

    load: Callable[[int], Load | None]
    drives: list[Load | None]
    task: Task | None = None


def reference(chain: Chain, ask: Ask, last: Callable[[int, Reference], None]) -> Reference:
    """Return the velocity nearest to what is asked for, and its rate.

    `last` is called for every body, base first, as soon as its rate is there.
    """
    sweeps = _Sweeps(chain, ask)
    return sweeps.with_task(last) if ask.task is not None else sweeps.without(last)


class _Sweeps:
    """The sweeps of one reference velocity.

    For long machines the steps of a body follow each other closely, and what is not needed any more
    is forgotten: their workspace should stay near the processor.
    """

    def __init__(self, chain: Chain, ask: Ask) -> None:
        self.chain, self.tape, self.ask = chain, chain.tape, ask
        n = chain.count
        self.h: list[Any] = [None] * n
        self.dh: list[Any] = [None] * n
        self.u = [None if one is None else one.value for one in ask.drives]
        self.du = [None if one is None else one.rate for one in ask.drives]
        self.biases: list[Any] = [None] * n
        self.wished, self.rate = Solution([], [], []), Solution([], [], [])

    # ------------------------------------------------------------------ the two systems

    def without(self, last: Callable[[int, Reference], None]) -> Reference:
        """Solve without a task."""
        chain, n = self.chain, range(self.chain.count)
        self._first(full=True)
        for i in n:
            chain.outward(i, self.wished, self.u[i], None, full=True)
        self._differentiate(full=True)
        result = Reference(self.wished, self.rate, None)
        for i in n:
            chain.outward(i, self.rate, self.du[i], self.biases[i], full=True)
            last(i, result)
        return result

    def with_task(self, last: Callable[[int, Reference], None]) -> Reference:
        """Solve twice: the frame's wrench follows from how it moves without."""
        chain, n, task = self.chain, range(self.chain.count), self.ask.task
        assert task is not None
        self._first(full=False)
        free, mobility, way = Solution([], [], []), {}, chain.way(task.body)
        for i in n:
            chain.outward(i, free, self.u[i], None, full=False)
            if i in way:
                chain.mobility(i, mobility)
        spread = mobility[task.body]
        pivot = self._push(free, self.h, task.twist, spread)
        self._inward(self.h, self.u, [None] * len(n), full=True)
        for i in n:
            chain.outward(i, self.wished, self.u[i], None, full=True)
        self._differentiate(full=False)
        free = Solution([], [], [])
        for i in n:
            chain.outward(i, free, self.du[i], self.biases[i], full=False)
        self._push(free, self.dh, task.rate, spread)
        self._inward(self.dh, self.du, self.biases, full=True)
        result = Reference(self.wished, self.rate, pivot)
        for i in n:
            chain.outward(i, self.rate, self.du[i], self.biases[i], full=True)
            last(i, result)
        return result

    # ------------------------------------------------------------------ sweeps

    def _first(self, full: bool) -> None:
        """Factor, with the first right side."""
        chain = self.chain

        def visit(i: int, inertia: Any, carried: Any) -> Any:
            load = self.ask.load(i)
            if load is not None:
                self.h[i], self.dh[i] = load
            shown = chain.factor(i, inertia)
            return shown, chain.inward(i, self.h[i], carried, self.u[i], None, full)

        inwards(self.tape, visit, channels=2)

    def _inward(self, loads: list[Any], drives: Any, biases: list[Any], full: bool) -> None:
        def visit(i: int, carried: Any) -> Any:
            return (self.chain.inward(i, loads[i], carried, drives[i], biases[i], full),)

        inwards(self.tape, visit)

    def _differentiate(self, full: bool) -> None:
        """Sweep inwards through the system for the rates."""
        chain, tape, wished = self.chain, self.tape, self.wished

        def visit(i: int, carried: Any) -> Any:
            parent = chain.parents[i]
            above = None if parent < 0 else wished.twists[parent]
            state = (chain.x[i], chain.v[i], chain.placed[i])
            solved = (wished.rates[i], wished.wrenches[i], above)
            bias, extra, drive = tape.call(turning, i, *state, *solved)
            self.biases[i] = bias
            tape.forget(wished.wrenches[i])
            if parent >= 0:
                self.dh[parent] = summed(tape, self.dh[parent], extra)
            self.du[i] = summed(tape, self.du[i], drive)
            return (chain.inward(i, self.dh[i], carried, self.du[i], bias, full),)

        inwards(tape, visit)

    def _push(self, free: Solution, loads: list[Any], wish: Any, mobility: Any) -> Any:
        """Add the wrench on the task's frame that makes it move as wished to a load."""
        tape, task = self.tape, self.ask.task
        assert task is not None
        i = task.body
        now = tape.call(task.frame.twist, i, free.twists[i])
        gap = tape.call(_minus, i, wish, now)
        wrench, pivot = tape.call(task.frame.solved, i, mobility, gap)
        loads[i] = tape.call(task.frame.wrench, i, wrench, loads[i])
        tape.forget(*free.twists)
        return pivot


def solve_with_pivot(matrix: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Solve with a 6x6 mobility, and return the least pivot too.

    By L D L^T, linear and angular rows scaled so that their mean diagonal entries are 1; pivots
    count as `SINGULAR` at least, so that the result is finite.
    """
    n = 6
    means = [ca.trace(matrix[k : k + 3, k : k + 3]) / 3 for k in (0, 3)]
    scale = [1 / ca.sqrt(means[i // 3]) for i in range(n)]
    L = [[ca.SX(0)] * n for _ in range(n)]
    LD = [[ca.SX(0)] * n for _ in range(n)]
    reciprocal, least = [ca.SX(0)] * n, ca.SX(np.inf)
    for j in range(n):
        pivot = matrix[j, j] * scale[j] ** 2
        for k in range(j):
            pivot = pivot - LD[j][k] * L[j][k]
        least = ca.fmin(least, pivot)
        reciprocal[j] = 1 / ca.fmax(pivot, SINGULAR)
        for i in range(j + 1, n):
            value = matrix[i, j] * scale[i] * scale[j]
            for k in range(j):
                value = value - L[i][k] * LD[j][k]
            LD[i][j], L[i][j] = value, value * reciprocal[j]
    rows = [right[i, :] * scale[i] for i in range(n)]
    for i in range(n):
        for k in range(i):
            rows[i] = rows[i] - L[i][k] * rows[k]
    for i in reversed(range(n)):
        rows[i] = rows[i] * reciprocal[i]
        for k in range(i + 1, n):
            rows[i] = rows[i] - L[k][i] * rows[k]
    return ca.vertcat(*(rows[i] * scale[i] for i in range(n))), least


def _minus(body: BodyMath, a: Matrix, b: Matrix) -> Matrix:
    return a - b
