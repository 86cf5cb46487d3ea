"""Slopes of the acceleration of long trees as native loops: `forward_derivatives`.

The steps are the formulas of `framefree.motion.tree.slopes` for one link, all links being seen from
the root of their tree; `slope_routines` has what is done for pairs of joints.
"""

from typing import Any

import casadi as ca

from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine
from framefree.motion.loops.bodies import BodyMath
from framefree.motion.loops.slope_routines import PER_VELOCITY, inversion, multiplication
from framefree.motion.loops.tape import LoopTape
from framefree.motion.loops.trees import write_matrix
from framefree.motion.spatial import Matrix, Rigid, SpatialWrench, Twist
from framefree.motion.tree import Tree
from framefree.motion.tree.slopes import (
    CarriedLink,
    Gyroscope,
    carried_columns,
    carried_link,
    cross_wrench,
    dot,
)


def slopes_in_loops(machine: Machine) -> bool:
    """Tell whether the slopes of a machine can be native loops: nothing acts but at its joints."""
    constant = all(joint.kind.constant_jacobian for joint in machine.joints)
    between = machine.springs or machine.dampers or machine.interactions or machine.fluid
    return constant and not between


# ------------------------------------------------------------------ steps


def carry(body: BodyMath, x: Matrix, v: Matrix, above: CarriedLink | None) -> CarriedLink:
    """Return a link seen from its tree's root."""
    return carried_link(body.link, body.unit(x), v, above)


def accelerate(
    body: BodyMath, x: Matrix, here: CarriedLink, above: Twist | None, a: Matrix | None
) -> tuple[Twist, Twist]:
    """Return the accelerations of a link's parent and of itself; gravity lifts the world."""
    if above is None:
        above = Twist(-body.step(x).into(body.gravity), ca.SX(3, 1))
    total = above.plus(here.bias)
    if a is not None:
        total = total.plus(Twist(here.S.linear @ a, here.S.angular @ a))
    return above, total


def needed(body: BodyMath, here: CarriedLink, acceleration: Twist) -> Matrix:
    """Return the wrench (6) that moves a link."""
    gyroscope = Gyroscope.of(here.inertia, here.V)
    return gyroscope.plus_times(here.inertia.times(acceleration), here.V).vector


def resisted(body: BodyMath, x: Matrix, v: Matrix, here: CarriedLink, passed: Matrix) -> Matrix:
    """Return the force (nv) at a joint that passes a wrench, its own resistance included."""
    return dot(here.S, SpatialWrench.of(passed)) + body.resistance(x, v)


INERTIA = 9
"""Columns, of three rows each, of an inertia and a gyroscope."""


def own_inertia(body: BodyMath, here: CarriedLink) -> Matrix:
    """Return inertia and gyroscope of a link as columns that can be added up."""
    gyroscope, (mass, first, moment) = Gyroscope.of(here.inertia, here.V), here.inertia
    return ca.horzcat(ca.vertcat(mass, 0, 0), first, moment, gyroscope.p, gyroscope.Q)


def joint_columns(
    body: BodyMath,
    here: CarriedLink,
    state: tuple[Matrix, Matrix, Matrix],
    A_parent: Twist,
    passed: Matrix,
    carried: Matrix,
) -> tuple[Matrix, ...]:
    """Return what pairs with this joint need, in the order of `PER_VELOCITY`, and its own slopes.

    `state` are x, v and a of the joint, `passed` is the wrench at it, `carried` the sum of
    `own_inertia` of all that the link carries.
    """
    link, (x, v, a), wrench = body.link, state, SpatialWrench.of(passed)
    M = Rigid(carried[0, 0], carried[:, 1], carried[:, 2:5])
    B = Gyroscope(carried[:, 5], carried[:, 6:9])
    S, (U, Z, Z_v) = here.S, carried_columns(link, here, A_parent, x, v, a)
    push, push_v = (
        B.plus_times(M.times(Z), U.plus(U)),
        B.plus_times(M.times(Z_v), S.plus(S)),
    )
    resistance = body.resistance(x, v)
    own_x = dot(S, push) + ca.jacobian(resistance, x) @ ca.SX(link.kind.rate(x))
    own_v = dot(S, push_v) + ca.jacobian(resistance, v)
    push = push.plus(cross_wrench(S, wrench))
    columns = (S, U, Z, Z_v, push, push_v, M.times(S))
    return *(one.vector for one in columns), 2 * B.transposed_times(S), own_x, own_v


# ------------------------------------------------------------------ the program


def forward_derivatives(model: Tree) -> Calls:
    """Return the program ``da_dx, da_dv, da_dforce = forward_derivatives(x, v, force)``."""
    machine, tape = model.machine, LoopTape("forward_derivatives", model)
    nv = machine.nv
    x, v, force = (tape.input(n, (s,)) for n, s in (("x", machine.nx), ("v", nv), ("force", nv)))
    outputs = [tape.output(f"da_d{name}", (nv, nv)) for name in ("x", "v", "force")]
    sweeps = _SlopeSweeps(tape, x, v)
    mass, L, scale, bias, a = (tape.calls.block(n) for n in (nv * nv, nv * nv, nv, nv, nv))
    write_matrix(tape, x, None, mass)
    _, passed = sweeps.wrenches(None)
    for i, link in enumerate(model.links):
        tape.call_into(bias[link.v], resisted, i, *sweeps.state(i), sweeps.here[i], passed[i])
    tree = [link.kind.nv for link in model.links], [link.parent for link in model.links]
    tape.calls.call(inversion(*tree), [mass, bias, force], [L, scale, outputs[2], a])
    arrays = sweeps.columns(a)
    tape.calls.call(multiplication(*tree), [*arrays, L, scale], outputs[:2])
    return tape.calls


class _SlopeSweeps:
    """The sweeps over links; every link is seen from the root of its tree."""

    def __init__(self, tape: LoopTape, x: Block, v: Block) -> None:
        self.tape, self.x, self.v, self.links = tape, x, v, tape.model.links
        self.here: list[Any] = []
        for i, link in enumerate(self.links):
            above = self.here[link.parent] if link.parent >= 0 else None
            self.here.append(tape.call(carry, i, *self.state(i), above))

    def state(self, i: int) -> tuple[Any, Any]:
        """Return x and v of joint i."""
        link = self.links[i]
        return self.tape.value(self.x[link.x]), self.tape.value(self.v[link.v])

    def wrenches(self, a: Block | None) -> tuple[list[Any], list[Any]]:
        """Return accelerations of the links' parents, and wrenches that the joints pass on."""
        parents, accelerations, own = [], [], []
        for i, link in enumerate(self.links):
            above = accelerations[link.parent] if link.parent >= 0 else None
            rate = None if a is None else self.tape.value(a[link.v])
            at = self.state(i)[0], self.here[i], above, rate
            parent, acceleration = self.tape.call(accelerate, i, *at)
            parents.append(parent)
            accelerations.append(acceleration)
            into = self.tape.calls.block(6)
            own.append(self.tape.call_into(into, needed, i, self.here[i], acceleration))
        return parents, self._summed(own)

    def columns(self, a: Block) -> list[Block]:
        """Return the blocks of `PER_VELOCITY` and of the joints' own slopes."""
        nv, squares = self.tape.model.machine.nv, [link.kind.nv**2 for link in self.links]
        widths = list(PER_VELOCITY.values())
        arrays = [self.tape.calls.block(width * nv) for width in widths]
        own = [self.tape.calls.block(sum(squares)) for _ in range(2)]
        parents, passed = self.wrenches(a)
        # As plain blocks: sums of masses are constant, and would make every link another case.
        own_of, size = self.tape.calls.block, 3 * INERTIA
        links = [
            self.tape.call_into(own_of(size), own_inertia, i, here)
            for i, here in enumerate(self.here)
        ]
        carried = [self.tape.value(one.block, 3, INERTIA) for one in self._summed(links)]
        start = 0
        for i, link in enumerate(self.links):
            parts = [
                array[width * link.v.start : width * link.v.stop]
                for array, width in zip(arrays, widths, strict=True)
            ]
            parts += [array[start : start + squares[i]] for array in own]
            start += squares[i]
            state = *self.state(i), self.tape.value(a[link.v])
            values = (self.here[i], state, parents[i], passed[i], carried[i])
            self.tape.call_into(parts, joint_columns, i, *values)
        return [*arrays, *own]

    def _summed(self, own: list[Any]) -> list[Any]:
        """Add up over all that a link carries: seen from the root nothing changes on the way."""
        totals = list(own)
        for i in reversed(range(len(totals))):
            parent = self.links[i].parent
            if parent >= 0:
                into = self.tape.calls.block(totals[i].block.size)
                pair = totals[parent], totals[i]
                totals[parent] = self.tape.shared_into(into, "sum", _sum, *pair)
        return totals


def _sum(a: Matrix, b: Matrix) -> Matrix:
    return a + b
