"""Sweeps over the bodies that all port laws share.

With loads h on the bodies, added inertias B (blocks on the diagonal) and, for some frames, desired
twists nu_e, the reference velocity solves

    min 1/2 nu^T (M + B) nu - h^T nu    subject to  J nu = 0  and, with tasks,  J_t nu = nu_e

that is nu_r = Phi_c h, or nu_r = Phi_c h + Jbar (nu_e - J_t Phi_c h) with Jbar = Phi_c J_t^T
(J_t Phi_c J_t^T)^-1. Its rate solves the same system, differentiated:

    (M + B) dnu_r + J^T dmu = dh - dB nu_r + J_t^T dy - (dJ/dt)^T mu
    J dnu_r = -(dJ/dt) nu_r,     J_t dnu_r = dnu_e

so that one elimination serves both, and the rate is exact. Everything is linear in the number of
bodies.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from framefree.control.port.bodies import (
    PlacedLink,
    factor,
    inward_offset,
    outward,
    outward_twist,
    place,
    turning,
)
from framefree.control.port.frame_tasks import Compliance, FrameTask, TaskSystem
from framefree.motion.loops import BodyMath, Tape, inwards, summed
from framefree.motion.spatial import Matrix


class LoadWithRate(NamedTuple):
    """A load (6) on a body in link axes, and its rate along the motion."""

    value: Any
    rate: Any


class VelocityRequest(NamedTuple):
    """What a law asks of the reference velocity.

    Attributes
    ----------
    load : callable
        From the index of a body to its load h, or None.
    drives : list of LoadWithRate or None
        Further forces on the joints (nv): momenta of rotors.
    tasks : tuple of FrameTask
    barriers : list of BarrierRows or None
        Of every body, or empty: inertias and loads that they add.
    give : Compliance or None
        How far the tasks give way.
    softness : tuple
        See `TaskSystem`.
    distance : scalar or None
        The least distance that a barrier saw, m; to be recorded.
    refine : callable or None
        From a first answer to the request that is meant.
    """

    load: Callable[[int], LoadWithRate | None]
    drives: list[LoadWithRate | None]
    tasks: tuple[FrameTask, ...] = ()
    barriers: Sequence[Any] = ()
    give: Compliance | None = None
    softness: tuple[Any, ...] = ()
    distance: Any = None
    refine: Any = None

    def barrier(self, i: int) -> Any:
        """Return the rows of body i, or None."""
        return self.barriers[i] if self.barriers else None


class BodyRates(NamedTuple):
    """Twists (6) of the links, rates (nv) and wrenches (6) of the joints."""

    twists: list[Any]
    rates: list[Any]
    wrenches: list[Any]


class NearestVelocity(NamedTuple):
    """The reference velocity at every body, its rate, and what it was asked for.

    `pivot` is the least of the tasks, None without.
    """

    velocity: BodyRates
    rate: BodyRates
    pivot: Any
    request: VelocityRequest


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

    def nearest(
        self, request: VelocityRequest, last: Callable[[int, NearestVelocity], None]
    ) -> NearestVelocity:
        """Return the velocity nearest to what is asked for, and its rate.

        `last` is called for every body, base first, as soon as its rate is there.
        """
        if request.refine is not None:
            first = self.nearest(request._replace(refine=None), lambda i, found: None)
            request = request.refine(first)
        return self.solve(request, last)

    def solve(
        self, request: VelocityRequest, last: Callable[[int, NearestVelocity], None]
    ) -> NearestVelocity:
        """Return the same for a request that is final."""
        return swept_velocity(self, request, last)


def swept_velocity(
    chain: BodyChain, request: VelocityRequest, last: Callable[[int, NearestVelocity], None]
) -> NearestVelocity:
    """Return the velocity nearest to what is asked for, and its rate, by sweeps over the bodies.

    For long machines the steps of a body follow each other closely, and what is not needed any more
    is forgotten: their workspace should stay near the processor.
    """
    tape = chain.tape
    velocity, rate = BodyRates([], [], []), BodyRates([], [], [])
    drives = [one or LoadWithRate(None, None) for one in request.drives]
    own = _RightSide([None] * chain.count, [one.value for one in drives], [None] * chain.count)
    changed = _RightSide([None] * chain.count, [one.rate for one in drives], [None] * chain.count)

    def ask(i: int) -> None:
        load = request.load(i)
        if load is not None:
            own.loads[i], changed.loads[i] = load
        rows = request.barrier(i)
        if rows is not None:
            push = tape.call(barrier_load, i, rows)
            own.loads[i] = summed(tape, own.loads[i], push)

    def differentiate(i: int) -> None:
        state = (chain.x[i], chain.v[i], chain.placed[i])
        solved = (velocity.rates[i], velocity.wrenches[i], chain.above(i, velocity.twists))
        changed.biases[i], extra, drive = tape.call(turning, i, *state, *solved)
        tape.forget(velocity.wrenches[i])
        parent = chain.parents[i]
        if parent >= 0:
            changed.loads[parent] = summed(tape, changed.loads[parent], extra)
        changed.drives[i] = summed(tape, changed.drives[i], drive)
        rows = request.barrier(i)
        if rows is not None:
            more = tape.call(barrier_load_rate, i, rows, velocity.twists[i])
            changed.loads[i] = summed(tape, changed.loads[i], more)

    system = _ProjectedSystem(chain, request)
    for _ in system.solve(own, ask, None, velocity):
        pass
    system.tasks.turn(changed.loads)
    result = NearestVelocity(velocity, rate, system.tasks.pivot, request)
    for i in system.solve(changed, differentiate, velocity.twists, rate):
        last(i, result)
    return result


def barrier_inertia(body: BodyMath, rows: Any) -> Matrix:
    """Return what a barrier adds to the inertia of a body (6x6)."""
    return rows.inertia


def barrier_load(body: BodyMath, rows: Any) -> Matrix:
    """Return what a barrier adds to the load on a body (6)."""
    return rows.load


def barrier_load_rate(body: BodyMath, rows: Any, twist: Matrix) -> Matrix:
    """Return the rate (6) of what a barrier adds to both sides of the equation of a body."""
    return rows.load_rate(twist)


class _RightSide(NamedTuple):
    """Loads (6) on the bodies, drives (nv) and biases (6) of the joints; None for zero."""

    loads: list[Any]
    drives: list[Any]
    biases: list[Any]


class _ProjectedSystem:
    """The equations at the top of this file, factored when they are first solved."""

    def __init__(self, chain: BodyChain, request: VelocityRequest) -> None:
        self.chain, self.tape, self.request = chain, chain.tape, request
        self.tasks = TaskSystem(chain, request.tasks, request.give, request.softness)
        self._factors: list[Any] = [None] * chain.count
        self._eliminated: list[Any] = [None] * chain.count

    def solve(
        self,
        right: _RightSide,
        prepare: Callable[[int], None],
        solved: list[Any] | None,
        to: BodyRates,
    ) -> Iterator[int]:
        """Append the solution to `to`; yield the bodies, base first, as they are appended.

        `prepare(i)` is called just before body i is eliminated: it completes its right side. With
        `solved`, the twists that were found, their rates are asked for.
        """
        bodies, alone = range(self.chain.count), not self.request.tasks

        def visit(i: int, inertia: Any, carried: Any) -> Any:
            prepare(i)
            shown = None if self._factors[i] is not None else self._factor(i, inertia)
            return shown, self._inward(i, right, carried, alone)

        inwards(self.tape, visit, channels=2)
        if not alone:
            free = BodyRates([], [], [])
            for i in bodies:
                self._outward(i, right, free, full=False)
            self.tasks.push(self._factors, free.twists, right.loads, solved)
            self.tape.forget(*free.twists)
            inwards(self.tape, lambda i, carried: (self._inward(i, right, carried, True),))
        for i in bodies:
            self._outward(i, right, to, full=True)
            yield i

    def _factor(self, i: int, inertia: Any) -> Any:
        """Eliminate body i; return what its parent feels of its inertia."""
        rows = self.request.barrier(i)
        added = None if rows is None else self.tape.call(barrier_inertia, i, rows)
        values = (self.chain.x[i], self.chain.placed[i].step, inertia, added)
        self._factors[i], shown = self.tape.call(factor, i, *values)
        self.tape.forget(added)
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
