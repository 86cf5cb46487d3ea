"""What frames are to do, and the wrenches on them that make the machine do it.

With the rows Z_f (m_f x 6) of every task frame f, its desired twist nu_f and the velocity nu_0 of
the machine without these tasks, the wrenches y solve

    (sum_g Z_f Phi_fg Z_g^T y_g) + C_f y_f = Z_f (nu_f - nu_0f)

where Phi_fg (6x6) is the velocity of frame f for a wrench on frame g. With C = 0 the tasks are met
exactly; with a compliance C they give way: y = C^-1 (desired - actual). Differentiated along the
motion, with the same matrix on the left,

    Z_f (dnu_f - dnu_0f) + dZ_f (nu_f - nu_rf) - dC_f y_f

stands on the right, and of dnu_0 the loads are those of the machine and dZ_f^T y_f.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.port.bodies import carried_velocity, mobility
from framefree.control.qp.factor import SymmetricFactor
from framefree.motion.loops import BodyMath
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist


@dataclass(frozen=True)
class FrameOnLink:
    """A frame on a link: steps between twists and wrenches of both."""

    step: Any

    def twist_to_link(self, body: BodyMath, twist: Matrix) -> Matrix:
        """Return the twist of the link, for that of the frame (6)."""
        R = self.step.rotation.T
        return Step(R, -(R @ self.step.r)).twist_into(Twist.of(twist)).vector

    def twist_of(self, twist: Matrix) -> Matrix:
        """Return the twists of the frame (6 x k), for those of its link."""
        return self.step.twist_into(Twist.of(twist)).vector

    def wrench_to_link(self, wrench: Matrix) -> Matrix:
        """Return the wrench on the link (6), for that on the frame."""
        return self.step.wrench_out(SpatialWrench.of(wrench)).vector


class GoalRows(NamedTuple):
    """Rows Z (m x 6) in which a frame has a task, in its own axes, and their rates."""

    Z: Any
    rate: Any


class FrameTask(NamedTuple):
    """What a frame on a body is to do: twist (6) and its rate, in the frame's axes.

    Attributes
    ----------
    body : int
    twist, rate : (6)
    frame : FrameOnLink
    size : int
        Number of rows.
    rows : GoalRows or None
        None stands for all six.
    """

    body: int
    twist: Any
    rate: Any
    frame: FrameOnLink
    size: int = 6
    rows: Any = None


class Compliance(NamedTuple):
    """How far tasks give way: a number, and its rate; C_f is that times `softness` (6)."""

    value: Any
    rate: Any


class TaskSystem:
    """The equations at the top of this file, for a machine that is factored.

    Parameters
    ----------
    chain : BodyChain
    tasks : sequence of FrameTask
    give : Compliance or None
    softness : sequence
        For every task the diagonal (m) of C for compliance 1.
    """

    def __init__(
        self, chain: Any, tasks: Sequence[FrameTask], give: Any, softness: Sequence[Any]
    ) -> None:
        self.chain, self.tasks, self.give, self.softness = chain, tasks, give, softness
        self.pivot: Any = None
        self._mobilities: Any = None
        self._wrenches: Any = None

    def push(
        self, factors: list[Any], twists: list[Any], loads: list[Any], solved: list[Any] | None
    ) -> None:
        """Add the wrenches to the loads that make the frames move as desired.

        `twists` are those of the links without the tasks. With `solved`, the twists that were
        found, their rates are asked for.
        """
        tape = self.chain.tape
        if self._mobilities is None:
            self._mobilities = self._all_mobilities(factors)
        free = tuple(twists[task.body] for task in self.tasks)
        rows = tuple(task.rows for task in self.tasks)
        inputs = (self._mobilities, free, rows, self.give)
        if solved is None:
            desired = tuple(task.twist for task in self.tasks)
            results = tape.shared("task wrenches", self._value, *inputs, desired)
            self.pivot, *self._wrenches = results
            wrenches = self._wrenches
        else:
            desired = tuple((task.twist, task.rate) for task in self.tasks)
            moving = tuple(solved[task.body] for task in self.tasks)
            found = tape.shared(
                "task wrench rates", self._rate, *inputs, desired, moving, tuple(self._wrenches)
            )
            wrenches = found if type(found) is tuple else (found,)
        for k, task in enumerate(self.tasks):
            values = (wrenches[k], task.rows, loads[task.body])
            loads[task.body] = tape.shared(("task load", k), self._onto(k), *values)

    def turn(self, loads: list[Any]) -> None:
        """Add to the rates of loads what wrenches do because their rows turn."""
        for k, task in enumerate(self.tasks):
            if task.rows is not None:
                values = (self._wrenches[k], task.rows, loads[task.body])
                step = self._onto(k, turned=True)
                loads[task.body] = self.chain.tape.shared(("turned load", k), step, *values)

    def _onto(self, k: int, turned: bool = False) -> Any:
        frame = self.tasks[k].frame

        def task_load(y: Matrix, rows: Any, load: Matrix | None) -> Matrix:
            if rows is not None:
                y = ca.densify((rows.rate if turned else rows.Z).T @ y)
            wrench = frame.wrench_to_link(y)
            return wrench if load is None else load + wrench

        return task_load

    # ------------------------------------------------------------------ equations

    def _value(self, mobilities: Any, free: Any, rows: Any, give: Any, desired: Any) -> Any:
        factor = self._factor(mobilities, rows, give)
        gaps = [
            _along(one, nu - task.frame.twist_of(twist))
            for task, one, nu, twist in zip(self.tasks, rows, desired, free, strict=True)
        ]
        y = factor.solve(ca.vertcat(*gaps))
        return (factor.least, *self._split(y))

    def _rate(
        self, mobilities: Any, free: Any, rows: Any, give: Any, desired: Any, moving: Any, y: Any
    ) -> Any:
        factor, gaps = self._factor(mobilities, rows, give), []
        for k, task in enumerate(self.tasks):
            nu, rate = desired[k]
            gap = _along(rows[k], rate - task.frame.twist_of(free[k]))
            if rows[k] is not None:
                gap = gap + rows[k].rate @ (nu - task.frame.twist_of(moving[k]))
            if give is not None:
                gap = gap - give.rate * self.softness[k] * y[k]
            gaps.append(gap)
        return tuple(self._split(factor.solve(ca.vertcat(*gaps))))

    def _factor(self, mobilities: Any, rows: Any, give: Any) -> SymmetricFactor:
        blocks: list[list[Any]] = [[None] * len(self.tasks) for _ in self.tasks]
        for (f, g), block in zip(self._pairs, mobilities, strict=True):
            one, other = self.tasks[f].frame, self.tasks[g].frame
            half = ca.SX(6, 6) if block is None else other.twist_of(one.twist_of(block).T).T
            half = _along(rows[f], _along(rows[g], half.T).T)
            blocks[f][g], blocks[g][f] = half, half.T
        matrix = ca.blockcat(blocks)
        if give is not None:
            matrix = matrix + give.value * ca.diag(ca.vertcat(*self.softness))
        return SymmetricFactor(ca.densify(matrix))

    def _split(self, y: Matrix) -> list[Matrix]:
        parts, start = [], 0
        for task in self.tasks:
            parts.append(y[start : start + task.size, :])
            start += task.size
        return parts

    # ------------------------------------------------------------------ mobilities

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(f, g) for f in range(len(self.tasks)) for g in range(f + 1)]

    def _all_mobilities(self, factors: list[Any]) -> tuple[Any, ...]:
        """Return the velocity of link f per wrench on link g (6x6), for all pairs; None for 0."""
        own = self._own_mobilities(factors)
        return tuple(
            self._between(factors, own, self.tasks[f].body, self.tasks[g].body)
            for f, g in self._pairs
        )

    def _way(self, body: int) -> list[int]:
        """Return a body and those that carry it, outwards."""
        way = [body]
        while self.chain.parents[way[-1]] >= 0:
            way.append(self.chain.parents[way[-1]])
        return way[::-1]

    def _own_mobilities(self, factors: list[Any]) -> dict[int, Any]:
        own: dict[int, Any] = {}
        for task in self.tasks:
            for i in self._way(task.body):
                if i not in own:
                    values = (self.chain.placed[i], factors[i], self.chain.above(i, own))
                    own[i] = self.chain.tape.call(mobility, i, *values)
        return own

    def _between(self, factors: list[Any], own: dict[int, Any], a: int, b: int) -> Any:
        if a == b:
            return own[a]
        shared = [i for i, k in zip(self._way(a), self._way(b), strict=False) if i == k]
        if not shared:
            return None
        block = own[shared[-1]]
        for end in (b, a):
            for i in self._way(end)[len(shared) :]:
                values = (self.chain.placed[i], factors[i], block)
                block = self.chain.tape.call(carried_velocity, i, *values)
            block = self.chain.tape.shared("transposed", _transposed, block)
        return self.chain.tape.shared("transposed", _transposed, block)


def _transposed(block: Matrix) -> Matrix:
    return block.T


def _along(rows: Any, value: Matrix) -> Matrix:
    """Return the rows' share (m x k) of something with six rows."""
    return value if rows is None else rows.Z @ value
