"""Sweeps over the bodies that all port laws share.

With loads h on the bodies and, for one frame, a desired twist nu_e, the reference velocity solves

    min 1/2 nu^T M nu - h^T nu    subject to  J nu = 0  and, with a task,  J_t nu = nu_e

that is nu_r = Phi_c h, or nu_r = Phi_c h + Jbar (nu_e - J_t Phi_c h) with Jbar = Phi_c J_t^T
(J_t Phi_c J_t^T)^-1. Its rate solves the same system, differentiated:

    M dnu_r + J^T dmu = dh + J_t^T dy - (dJ/dt)^T mu
    J dnu_r = -(dJ/dt) nu_r,     J_t dnu_r = dnu_e

so that one elimination serves both, and the rate is exact. Everything is linear in the number of
bodies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from framefree.control.port.bodies import (
    PlacedLink,
    inward_offset,
    mobility,
    outward,
    outward_twist,
    place,
    turning,
)
from framefree.control.qp.factor import SymmetricFactor
from framefree.motion.loops import BodyMath, Tape, inwards, summed
from framefree.motion.spatial import Matrix, SpatialWrench, Step, Twist


class LoadWithRate(NamedTuple):
    """A load (6) on a body in link axes, and its rate along the motion."""

    value: Any
    rate: Any


@dataclass(frozen=True)
class FrameOnLink:
    """A frame on a link: steps between twists and wrenches of both."""

    step: Any

    def to_link(self, body: BodyMath, twist: Matrix) -> Matrix:
        """Return the twist of the link, for that of the frame (6)."""
        R = self.step.rotation.T
        return Step(R, -(R @ self.step.r)).twist_into(Twist.of(twist)).vector

    def push(
        self, body: BodyMath, mobility: Matrix, twist: Matrix, desired: Matrix, load: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Return the load (6) that gives the frame its desired twist, and the least pivot.

        `mobility` (6x6) and `twist` (6) are those of the link under `load`. Where the pivot is far
        below 1, the machine can hardly move the frame in all directions.
        """
        half = self.step.twist_into(Twist.of(mobility)).vector
        mine = self.step.twist_into(Twist.of(half.T)).vector
        gap = desired - self.step.twist_into(Twist.of(twist)).vector
        factor = SymmetricFactor(mine)
        wrench, pivot = factor.solve(gap), factor.least
        on_link = self.step.wrench_out(SpatialWrench.of(wrench)).vector
        return on_link if load is None else on_link + load, pivot


class FrameTask(NamedTuple):
    """What a frame on a body is to do: twist (6) and its rate, in the frame's axes."""

    body: int
    twist: Any
    rate: Any
    frame: FrameOnLink


class VelocityRequest(NamedTuple):
    """What a law asks of the reference velocity.

    Attributes
    ----------
    load : callable
        From the index of a body to its load h, or None.
    drives : list of LoadWithRate or None
        Further forces on the joints (nv): momenta of rotors.
    task : FrameTask or None
    """

    load: Callable[[int], LoadWithRate | None]
    drives: list[LoadWithRate | None]
    task: FrameTask | None = None


class BodyRates(NamedTuple):
    """Twists (6) of the links, rates (nv) and wrenches (6) of the joints."""

    twists: list[Any]
    rates: list[Any]
    wrenches: list[Any]


class NearestVelocity(NamedTuple):
    """The reference velocity at every body, its rate, and the least pivot of the task or None."""

    velocity: BodyRates
    rate: BodyRates
    pivot: Any


class BodyChain:
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
        for i in range(self.count):
            above = self.above(i, self.placed)
            self.placed.append(PlacedLink(*tape.call(place, i, x[i], v[i], above)))

    @property
    def count(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    def above(self, i: int, values: Any) -> Any:
        """Return the value of the parent of body i, None for the world."""
        return None if self.parents[i] < 0 else values[self.parents[i]]


def reference_velocity(
    chain: BodyChain, request: VelocityRequest, last: Callable[[int, NearestVelocity], None]
) -> NearestVelocity:
    """Return the velocity nearest to what is asked for, and its rate.

    `last` is called for every body, base first, as soon as its rate is there. For long machines the
    steps of a body follow each other closely, and what is not needed any more is forgotten: their
    workspace should stay near the processor.
    """
    tape, task = chain.tape, request.task
    velocity, rate = BodyRates([], [], []), BodyRates([], [], [])
    drives = [one or LoadWithRate(None, None) for one in request.drives]
    own = _RightSide([None] * chain.count, [one.value for one in drives], [None] * chain.count)
    changed = _RightSide([None] * chain.count, [one.rate for one in drives], [None] * chain.count)

    def ask(i: int) -> None:
        load = request.load(i)
        if load is not None:
            own.loads[i], changed.loads[i] = load

    def differentiate(i: int) -> None:
        state = (chain.x[i], chain.v[i], chain.placed[i])
        solved = (velocity.rates[i], velocity.wrenches[i], chain.above(i, velocity.twists))
        changed.biases[i], extra, drive = tape.call(turning, i, *state, *solved)
        tape.forget(velocity.wrenches[i])
        parent = chain.parents[i]
        if parent >= 0:
            changed.loads[parent] = summed(tape, changed.loads[parent], extra)
        changed.drives[i] = summed(tape, changed.drives[i], drive)

    system = _ProjectedSystem(chain, task)
    for _ in system.solve(own, ask, task and task.twist, velocity):
        pass
    result = NearestVelocity(velocity, rate, system.pivot)
    for i in system.solve(changed, differentiate, task and task.rate, rate):
        last(i, result)
    return result


class _RightSide(NamedTuple):
    """Loads (6) on the bodies, drives (nv) and biases (6) of the joints; None for zero."""

    loads: list[Any]
    drives: list[Any]
    biases: list[Any]


class _ProjectedSystem:
    """The equations at the top of this file, factored when they are first solved."""

    def __init__(self, chain: BodyChain, task: FrameTask | None) -> None:
        self.chain, self.tape, self.task = chain, chain.tape, task
        self.pivot: Any = None
        self._factors: list[Any] = [None] * chain.count
        self._eliminated: list[Any] = [None] * chain.count
        self._mobility: Any = None

    def solve(
        self, right: _RightSide, prepare: Callable[[int], None], desired: Any, to: BodyRates
    ) -> Iterator[int]:
        """Append the solution to `to`; yield the bodies, base first, as they are appended.

        `prepare(i)` is called just before body i is eliminated: it completes its right side.
        """
        bodies = range(self.chain.count)

        def visit(i: int, inertia: Any, carried: Any) -> Any:
            prepare(i)
            shown = None if self._factors[i] is not None else self._factor(i, inertia)
            return shown, self._inward(i, right, carried, self.task is None)

        inwards(self.tape, visit, channels=2)
        if self.task is not None:
            free = BodyRates([], [], [])
            for i in bodies:
                self._outward(i, right, free, full=False)
            self._push(right.loads, free.twists, desired)
            self.tape.forget(*free.twists)
            inwards(self.tape, lambda i, carried: (self._inward(i, right, carried, True),))
        for i in bodies:
            self._outward(i, right, to, full=True)
            yield i

    def _factor(self, i: int, inertia: Any) -> Any:
        """Eliminate body i; return what its parent feels of its inertia."""
        values = (self.chain.x[i], self.chain.placed[i].step, inertia)
        self._factors[i], shown = self.tape.call(BodyMath.factor, i, *values)
        return shown

    def _inward(self, i: int, right: _RightSide, carried: Any, full: bool) -> Any:
        """Eliminate body i from a right side; return what its parent feels of that."""
        body = (self.chain.placed[i].step, self._factors[i])
        values = (right.loads[i], carried, right.drives[i], right.biases[i])
        step = BodyMath.inward if full else inward_offset
        self._eliminated[i], passed = self.tape.call(step, i, *body, *values)
        return passed

    def _outward(self, i: int, right: _RightSide, to: BodyRates, full: bool) -> None:
        """Append body i to a solution; in full with the rate and the wrench of its joint."""
        body = (self.chain.placed[i].step, self._factors[i], self._eliminated[i])
        values = (self.chain.above(i, to.twists), right.drives[i], right.biases[i])
        if full:
            parts = self.tape.call(outward, i, *body, *values)
        else:
            parts = (self.tape.call(outward_twist, i, *body, *values),)
        for part, where in zip(parts, to, strict=False):
            where.append(part)
        self.tape.forget(self._eliminated[i])

    def _push(self, loads: list[Any], twists: list[Any], desired: Any) -> None:
        """Add the wrench to the loads that makes the task's frame move as desired."""
        assert self.task is not None
        end = self.task.body
        if self._mobility is None:
            self._mobility = self._mobility_of(end)
        values = (self._mobility, twists[end], desired, loads[end])
        loads[end], pivot = self.tape.call(self.task.frame.push, end, *values)
        self.pivot = pivot if self.pivot is None else self.pivot

    def _mobility_of(self, body: int) -> Any:
        """Return the velocity of a link per wrench on it (6x6)."""
        way = [body]
        while self.chain.parents[way[-1]] >= 0:
            way.append(self.chain.parents[way[-1]])
        above = None
        for i in reversed(way):
            values = (self.chain.placed[i], self._factors[i], above)
            own = self.tape.call(mobility, i, *values)
            self.tape.forget(above)
            above = own
        return above
