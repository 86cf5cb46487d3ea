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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.port.bodies import BodyMath, add
from framefree.control.port.tape import Inline, Looped
from framefree.motion.spatial import Matrix, Step, Twist, Wrench

SINGULAR = 1e-12
"""Pivots of the task's mobility, in its correlation form, are not taken as smaller than this."""


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

        `mobility` (6x6) is that of the link. The pivot is of the correlation form, 0 to 1: where it
        is small, the machine can hardly move the frame in all directions.
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
    tape : Inline or Looped
    parents : sequence of int
        Index of every body's parent, -1 for the world.
    x, v : sequences
        Coordinates and velocities of every joint.
    """

    def __init__(
        self, tape: Inline | Looped, parents: Sequence[int], x: Sequence[Any], v: Sequence[Any]
    ) -> None:
        self.tape, self.parents, self.x, self.v = tape, parents, x, v
        self.placed: list[Any] = []
        for i, parent in enumerate(parents):
            above = None if parent < 0 else self.placed[parent]
            self.placed.append(tape.call(BodyMath.place, i, x[i], v[i], above))
        self.factors: list[Any] = [None] * len(parents)

    @property
    def count(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    def inwards(self, visit: Any) -> None:
        """Call ``visit(i, carried)`` from the tips in; what it gives is added up for the parent."""
        carried: list[Any] = [None] * self.count
        for i in reversed(range(self.count)):
            given, parent = visit(i, carried[i]), self.parents[i]
            carried[i] = None
            if parent < 0 or given is None:
                continue
            known = carried[parent]
            carried[parent] = given if known is None else self.tape.call(add, i, known, given)

    def eliminate(self) -> None:
        """Factor the system."""

        def visit(i: int, carried: Any) -> Any:
            factor, shown = self.tape.call(BodyMath.factor, i, self.x[i], self.placed[i], carried)
            self.factors[i] = factor
            return shown

        self.inwards(visit)

    def solve(
        self,
        loads: Sequence[Any],
        drives: Sequence[Any],
        biases: Sequence[Any] | None,
        only_twists: bool = False,
    ) -> "Solution":
        """Solve for loads (6) on the bodies, drives (nv) and biases (6); None stands for zero."""
        given: list[Any] = [None] * self.count
        drive = drives
        bias = biases or [None] * self.count

        def visit(i: int, carried: Any) -> Any:
            given[i], passed = self.tape.call(
                BodyMath.inward,
                i, self.placed[i], self.factors[i], loads[i], carried, drive[i], bias[i],
            )  # fmt: skip
            return passed

        self.inwards(visit)
        found = Solution([], [], [])
        for i, parent in enumerate(self.parents):
            above = None if parent < 0 else found.twists[parent]
            values = (self.placed[i], self.factors[i], given[i], above, drive[i], bias[i])
            if only_twists:
                found.twists.append(self.tape.call(BodyMath.outward_twist, i, *values))
                continue
            parts = self.tape.call(BodyMath.outward, i, *values)
            for part, where in zip(parts, found, strict=True):
                where.append(part)
        return found

    def mobility(self, body: int) -> Any:
        """Return the velocity of a body per wrench on it (6x6)."""
        way, i = [], body
        while i >= 0:
            way.append(i)
            i = self.parents[i]
        value = None
        for i in reversed(way):
            value = self.tape.call(BodyMath.mobility, i, self.placed[i], self.factors[i], value)
        return value


class Reference(NamedTuple):
    """The reference velocity at every body, its rate, and the least pivot of the task or None."""

    velocity: Solution
    rate: Solution
    pivot: Any


def reference(
    chain: Chain, loads: Sequence[Load | None], drives: Sequence[Load | None], task: Task | None
) -> Reference:
    """Return the velocity nearest to what loads, drives and task ask for, and its rate.

    `loads` are h, `drives` further forces on the joints (nv): momenta of rotors.
    """
    chain.eliminate()
    h = [None if load is None else load.value for load in loads]
    u = [None if drive is None else drive.value for drive in drives]
    mobility = None if task is None else chain.mobility(task.body)
    found, pivot = _with_task(chain, h, u, None, task, mobility, False)
    biases, dh, du = _differentiated(chain, loads, drives, found)
    rate, _ = _with_task(chain, dh, du, biases, task, mobility, True)
    return Reference(found, rate, pivot)


def _differentiated(
    chain: Chain, loads: Sequence[Any], drives: Sequence[Any], found: Solution
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return biases, loads and drives of the system for the rates."""
    tape = chain.tape
    dh = [None if load is None else load.rate for load in loads]
    du = [None if drive is None else drive.rate for drive in drives]
    biases: list[Any] = []
    for i, parent in enumerate(chain.parents):
        above = None if parent < 0 else found.twists[parent]
        bias, extra, drive = tape.call(
            BodyMath.turning,
            i, chain.x[i], chain.v[i], chain.placed[i], found.rates[i], found.wrenches[i], above,
        )  # fmt: skip
        biases.append(bias)
        if parent >= 0:
            dh[parent] = extra if dh[parent] is None else tape.call(add, parent, dh[parent], extra)
        if drive is not None:
            du[i] = drive if du[i] is None else tape.call(add, i, du[i], drive)
    return biases, dh, du


def _with_task(
    chain: Chain, loads: list[Any], drives: Any, biases: Any, task: Any, mobility: Any, rate: bool
) -> tuple[Solution, Any]:
    """Solve, then once more with the wrench on the task's frame that makes it do as wished."""
    found = chain.solve(loads, drives, biases, only_twists=task is not None)
    if task is None:
        return found, None
    tape, i = chain.tape, task.body
    now = tape.call(task.frame.twist, i, found.twists[i])
    gap = tape.call(_minus, i, task.rate if rate else task.twist, now)
    wrench, pivot = tape.call(task.frame.solved, i, mobility, gap)
    pushed = list(loads)
    pushed[i] = tape.call(task.frame.wrench, i, wrench, loads[i])
    return chain.solve(pushed, drives, biases), pivot


def solve_with_pivot(matrix: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Solve a symmetric positive definite system, and return the least pivot too.

    By L D L^T of the correlation form, whose pivots lie between 0 and 1; they count as `SINGULAR`
    at least, so that the result is finite.
    """
    n = matrix.shape[0]
    scale = [1 / ca.sqrt(ca.fmax(matrix[i, i], 1e-300)) for i in range(n)]
    L = [[ca.SX(0)] * n for _ in range(n)]
    LD = [[ca.SX(0)] * n for _ in range(n)]
    reciprocal, least = [ca.SX(0)] * n, ca.SX(1)
    for j in range(n):
        pivot = ca.SX(1)
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
