"""Matrices of long trees as native loops: mass and Coriolis matrix; see `tree_slopes` for slopes.

Straight-line code of such a matrix grows with the number of pairs of joints of which one carries
the other: the square of the length of a chain. The steps here are the formulas of
`framefree.motion.tree.recursion` and `coriolis` for one link, or for one pair; their code is the
same for all links that are alike.
"""

from typing import Any, NamedTuple

import casadi as ca

from framefree.geometry import se3
from framefree.kernel.loops import Block, Calls
from framefree.machine import Machine
from framefree.motion import forces
from framefree.motion.loops.bodies import BodyMath
from framefree.motion.loops.tape import LoopTape, inwards
from framefree.motion.spatial import Inertia, Matrix, SpatialWrench, Step, Twist, symmetric
from framefree.motion.tree import Tree
from framefree.motion.tree.coriolis import CoriolisFactor


def supports_tree_loops(machine: Machine) -> bool:
    """Tell whether matrices of a machine can be native loops."""
    if machine.closed or machine.tendons or machine.timed or len(machine.parameters):
        return False
    return all(added is None for added in forces.added_masses(machine))


# ------------------------------------------------------------------ steps


class CarriedColumns(NamedTuple):
    """Momenta or wrenches (6 x nv) of a joint's columns, seen from one of its carriers.

    Without a Coriolis matrix there is `inertial` alone.
    """

    inertial: SpatialWrench
    column: SpatialWrench | None
    turned: SpatialWrench | None


def place(body: BodyMath, x: Matrix) -> tuple[Step, Matrix]:
    """Return a link's pose on its parent, and its joint's subspace S."""
    return body.step(x), body.subspace(x)


def move(
    body: BodyMath, x: Matrix, v: Matrix, above: Twist | None
) -> tuple[Step, Matrix, Matrix, Twist]:
    """Return the same, the rate of S seen from the world, and the twist; for that of the parent."""
    link = body.link
    step, S = place(body, x)
    twist = Twist.of(S @ v)
    twist = twist if above is None else step.twist_into(above).plus(twist)
    rate = se3.little_adjoint(ca.vertcat(*twist)) @ S
    if not link.constant_subspace:
        rate = rate + link.subspace_rate(body.unit(x), v)
    return step, S, rate, twist


def collect_mass(body: BodyMath, step: Step, S: Matrix, carried: Matrix | None) -> tuple[Any, ...]:
    """Return the joint's momenta, what its parent carries, and the rows of its block of M."""
    M = body.inertia if carried is None else body.inertia.plus(Inertia.of(carried))
    momenta = M.times(Twist.of(S))
    block = symmetric(S.T @ ca.vertcat(*momenta) + body.link.armature)
    passed = None if body.grounded else step.inertia_out(M).matrix
    return CarriedColumns(momenta, None, None), passed, *ca.vertsplit(block)


def collect_coriolis(
    body: BodyMath,
    moving: tuple[Step, Matrix, Matrix, Twist],
    carried: Matrix | None,
    turning: Matrix | None,
) -> tuple[Any, ...]:
    """Return the joint's columns, what its parent carries of both factors, rows of its block."""
    step, S, rate, twist = moving
    M, B = body.inertia, CoriolisFactor.of(body.inertia, twist)
    M = M if carried is None else M.plus(Inertia.of(carried))
    B = B if turning is None else B.plus(CoriolisFactor(turning[:, 0], turning[:, 1:]))
    column = B.plus_times(M.times(Twist.of(rate)), Twist.of(S))
    columns = CarriedColumns(M.times(Twist.of(S)), column, B.transposed_times(Twist.of(S)))
    rows = ca.vertsplit(S.T @ ca.vertcat(*column))
    if body.grounded:
        return columns, None, None, *rows
    return columns, step.inertia_out(M).matrix, ca.horzcat(*B.out(step)), *rows


def climb(step: Step, columns: CarriedColumns, S: Matrix, rate: Matrix | None) -> tuple[Any, ...]:
    """Carry columns to the parent of a link; return also their blocks with the parent's joint.

    Blocks come row by row: first those of the parent's rows, then those of the columns' own rows.
    """
    inertial = step.wrench_out(columns.inertial)
    seen = CarriedColumns(
        inertial, *(None if w is None else step.wrench_out(w) for w in columns[1:])
    )
    if rate is None or seen.column is None or seen.turned is None:
        across = S.T @ ca.vertcat(*seen.inertial)
        return seen, *ca.vertsplit(across), *ca.vertsplit(across.T)
    across = S.T @ ca.vertcat(*seen.column)
    along = rate.T @ ca.vertcat(*seen.inertial) + S.T @ ca.vertcat(*seen.turned)
    return seen, *ca.vertsplit(across), *ca.vertsplit(along.T)


# ------------------------------------------------------------------ programs


def matrix_program(model: Tree, name: str) -> Calls:
    """Return the program of the matrix `mass` or `coriolis`."""
    nv, tape = model.machine.nv, LoopTape(name, model)
    x = tape.input("x", (model.machine.nx,))
    v = tape.input("v", (nv,)) if name == "coriolis" else None
    write_matrix(tape, x, v, tape.output(name, (nv, nv)))
    return tape.calls


def write_matrix(tape: LoopTape, x: Block, v: Block | None, result: Block) -> None:
    """Write the mass matrix, or with v the Coriolis matrix, to a block of nv * nv."""
    links, nv = tape.model.links, tape.model.machine.nv
    at: list[tuple[Any, ...]] = []
    for i, link in enumerate(links):
        own = tape.value(x[link.x])
        if v is None:
            at.append(tape.call(place, i, own))
        else:
            above = at[link.parent][3] if link.parent >= 0 else None
            at.append(tape.call(move, i, own, tape.value(v[link.v]), above))

    def rows(i: int, j: int) -> list[Block]:
        """Return the rows of the block of joints i and j."""
        columns = links[j].v
        return [
            result[k * nv + columns.start : k * nv + columns.stop]
            for k in range(links[i].v.start, links[i].v.stop)
        ]

    def visit(i: int, *carried: Any) -> Any:
        if v is None:
            columns, *passed = tape.call_into(rows(i, i), collect_mass, i, *at[i], *carried)
        else:
            columns, *passed = tape.call_into(rows(i, i), collect_coriolis, i, at[i], *carried)
        j = i
        while links[j].parent >= 0:
            step, parent = at[j][0], links[j].parent
            rate = None if v is None else at[parent][2]
            blocks = [*rows(parent, i), *rows(i, parent)]
            seen, *_ = tape.shared_into(blocks, "climb", climb, step, columns, at[parent][1], rate)
            tape.forget(columns)
            columns, j = seen, parent
        tape.forget(columns)
        return passed[: len(carried)]

    inwards(tape, visit, channels=1 if v is None else 2)
    fill_rest(tape, result)


def fill_rest(tape: LoopTape, result: Block) -> None:
    """Write zeros where joints are on different branches."""
    links, nv = tape.model.links, tape.model.machine.nv
    way: list[set[int]] = []
    for i, link in enumerate(links):
        way.append({i} | (way[link.parent] if link.parent >= 0 else set()))
    for i, link in enumerate(links):
        for j, other in enumerate(links):
            if j in way[i] or i in way[j] or not other.kind.nv:
                continue
            zeros = tape.value(tape.calls.zeros(other.kind.nv))
            for k in range(link.v.start, link.v.stop):
                tape.write_into(result[k * nv + other.v.start : k * nv + other.v.stop], [zeros])
