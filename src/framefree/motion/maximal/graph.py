"""The KKT system of the maximal formulation, solved along the graph of bodies and joints.

Unknown are the accelerations a_i of all bodies, the rates y_i of all joints and the wrench w_i that
each joint passes from parent p to body i. In the axes of link i, with X_i = Ad_{G_ip},

    M_i a_i = f_i + w_i - sum_children X_c^T w_c             bodies
    N_i^T (a_i - X_i a_p - b_i) = 0                          joints: what they block
    y_i = W_i^T (a_i - X_i a_p - b_i),  S_i^T w_i = tau_i - A_i y_i    and what they free

(S, W, N as in `maximal_joints`; A the rotors' inertia.) Bodies are eliminated from the tips
inwards: in this order nothing fills in, so that the cost is linear in the number of bodies
[Baraff1996]. What body i shows to its parent is an inertia whose entries along S are exactly zero
where no rotor turns: chains of hundreds of bodies keep their digits by that.

Loops and couplings are rows ``R a + C y = r`` beside. With D = C C^T of every joint, what a force
along a row does to the joints on its way inwards is ``C^-1 (tau + S^T f)``: columns Y, each with
entries for joints that carry the row's bodies alone, and Y^T Y is the mobility of the rows. Y is
factored with its rank found (`WhitenedRows`); rows that share no joint do not meet in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from framefree.motion.constrained.algebra import WhitenedRows
from framefree.motion.elimination import BodyFactor, Directions, EliminatedLoad
from framefree.motion.maximal.idle import IdleJoints, may_be_idle
from framefree.motion.maximal.least_norm import least_norm
from framefree.motion.spatial import (
    Inertia,
    Matrix,
    Rigid,
    SpatialWrench,
    Step,
    Twist,
    symmetric,
    wed,
)

RANK = 1e-6
"""A row of loops or couplings is redundant if no more than this share of it is new."""

HELD = 1e-13
"""A row does not move whose bodies, without their joints, would move more easily by the inverse of
this: it runs between bodies that joints hold together already."""


@dataclass(frozen=True)
class Connection:
    """A body with the joint that carries it, all in link axes.

    `step` is the link's pose on its parent's link, `v` the place of the joint's rates, `armature` a
    diagonal matrix.
    """

    parent: int
    v: slice
    step: Step
    directions: Directions
    inertia: Inertia
    armature: Matrix


class KktSolution(NamedTuple):
    """What the system is solved for; k right sides side by side.

    Attributes
    ----------
    accelerations : list of 6 x k
        Of the links.
    rates : nv x k
        Accelerations of the joints.
    wrenches : list of 6 x k
        That each joint passes from parent to child, in link axes.
    multipliers : rows x k
        Of loops and couplings: they act with ``-R^T mu`` on bodies and ``-C^T mu`` on joints.
    """

    accelerations: list[Matrix]
    rates: Matrix
    wrenches: list[Matrix]
    multipliers: Matrix


class Border(NamedTuple):
    """Rows ``sum_i bodies[i] a_i + joints y = right``: loops and couplings.

    `bodies` maps links to their block (rows x 6), `joints` is rows x nv, `right` rows x 1.
    """

    bodies: dict[int, Matrix]
    joints: Matrix
    right: Matrix

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.right.shape[0]


class Elimination:
    """The system with its bodies eliminated; `solve` gives the unknowns for any right side.

    Joints that only the border may hold (`idle.py`) are held in the elimination itself: `idle`
    lists them.
    """

    def __init__(self, connections: Sequence[Connection], border: Border) -> None:
        self.border = border
        self.idle = [
            i
            for i, one in enumerate(connections)
            if border.rows and may_be_idle(one.directions, one.inertia, one.armature)
        ]
        self.connections = connections
        self._held = [_held(one) if i in self.idle else one for i, one in enumerate(connections)]
        self._factors: list[BodyFactor] = []
        inertias = [connection.inertia for connection in connections]
        for i in reversed(range(len(connections))):
            connection = self._held[i]
            M = inertias[i].matrix
            factor = BodyFactor.of(connection.directions, connection.armature, M)
            self._factors.insert(0, factor)
            if connection.parent >= 0:
                shown = connection.step.inertia_out(Inertia.of(factor.shown))
                inertias[connection.parent] = inertias[connection.parent].plus(shown)

    def solve(
        self, loads: Sequence[Matrix], drive: Matrix, biases: Sequence[Matrix] | None
    ) -> KktSolution:
        """Solve for wrenches on the links (6 x k each) and joint forces (nv x k).

        With `biases` (6 each) joints and border have their right sides, without them zero.
        """
        free = self._solve_tree(loads, drive, biases)
        if not self.border.rows:
            return free
        gap = self._border_of(free)
        if biases is not None:
            gap = gap - self.border.right
        rates = None
        if self._idle_joints is None:
            multipliers = self._space.multipliers_of(self._space.weights(gap))
        else:
            force = self._idle_forces(free, drive)
            open_by = self._idle_joints.gap_of(force, gap)
            multipliers = least_norm(self._idle_joints.mobility, open_by, self._unmoved)[0]
            rates = self._idle_joints.rates(force, gap, multipliers)
        held = list(loads)
        for i, block in self.border.bodies.items():
            held[i] = held[i] - block.T @ multipliers
        drive = drive - self.border.joints.T @ multipliers
        return self._solve_tree(held, drive, biases, rates)._replace(multipliers=multipliers)

    @property
    def border_rank(self) -> Matrix:
        """Number of rows of loops and couplings that are independent."""
        if self._idle_joints is None:
            return self._space.rank
        nothing = ca.SX(self.border.rows, 1)
        return least_norm(self._idle_joints.mobility, nothing, self._unmoved)[1]

    def _solve_tree(
        self,
        loads: Sequence[Matrix],
        drive: Matrix,
        biases: Sequence[Matrix] | None,
        idle: Matrix | None = None,
    ) -> KktSolution:
        """Solve without the border, for accelerations of the idle joints (zero if None)."""
        columns = drive.shape[1]
        biases = self._moved(biases, idle, columns)
        eliminated: dict[int, EliminatedLoad] = {}
        totals = list(loads)
        for i in reversed(range(len(totals))):
            connection = self._held[i]
            bias = None if biases is None else biases[i]
            eliminated[i] = self._factors[i].inward(totals[i], drive[connection.v, :], bias)
            if connection.parent >= 0:
                out = connection.step.wrench_out(SpatialWrench.of(eliminated[i].passed)).vector
                totals[connection.parent] = totals[connection.parent] + out
        accelerations: list[Matrix] = []
        rates: list[Matrix] = []
        wrenches: list[Matrix] = []
        for i, connection in enumerate(self._held):
            carried = ca.SX(6, columns)
            if connection.parent >= 0:
                parent = Twist.of(accelerations[connection.parent])
                carried = connection.step.twist_into(parent).vector
            if biases is not None:
                carried = carried + biases[i]
            tau = drive[connection.v, :]
            acceleration, rate, wrench = self._factors[i].outward(carried, eliminated[i], tau)
            if i in self.idle:
                rate = self._idle_part(idle, i, columns)
            accelerations.append(acceleration)
            rates.append(rate)
            wrenches.append(wrench)
        stacked = ca.vertcat(*rates) if rates else ca.SX(0, columns)
        return KktSolution(accelerations, stacked, wrenches, ca.SX(0, columns))

    def _border_of(self, solution: KktSolution) -> Matrix:
        value = self.border.joints @ solution.rates
        for i, block in self.border.bodies.items():
            value = value + block @ solution.accelerations[i]
        return value

    @cached_property
    def _responses(self) -> Matrix:
        """Return ``[R C] K^-1 [R C]^T``: motion along the rows per force along the rows."""
        rows = self.border.rows
        loads = [ca.SX(6, rows) for _ in self.connections]
        for i, block in self.border.bodies.items():
            loads[i] = block.T
        return symmetric(self._border_of(self._solve_tree(loads, self.border.joints.T, None)))

    @cached_property
    def _space(self) -> WhitenedRows:
        """The rows, decomposed; those that no joint lets move count as none."""
        Y = self._whitened
        mobility = [ca.sumsqr(Y[:, r]) for r in range(self.border.rows)]
        present = [one > least for one, least in zip(mobility, self._unmoved, strict=True)]
        return WhitenedRows(Y, present, RANK)

    @cached_property
    def _whitened(self) -> Matrix:
        """Y (nv x rows): what a force along each row does to the joints, whitened."""
        rows, loads = self.border.rows, dict(self.border.bodies)
        loads = {i: ca.sparsify(block.T) for i, block in loads.items()}
        Y = ca.SX(self.border.joints.shape[1], rows)
        for i in reversed(range(len(self.connections))):
            connection, factor = self.connections[i], self._factors[i]
            tau = self.border.joints[:, connection.v].T
            load = loads.pop(i, ca.SX(6, rows))
            if not (tau.nnz() or load.nnz()):
                continue
            Y[connection.v, :] = factor.whitened(load, tau)
            if connection.parent >= 0:
                passed = factor.inward(load, tau, None).passed
                out = connection.step.wrench_out(SpatialWrench.of(passed)).vector
                before = loads.get(connection.parent, ca.SX(6, rows))
                loads[connection.parent] = ca.sparsify(before + out)
        return ca.sparsify(Y)

    @cached_property
    def _unmoved(self) -> list[Matrix]:
        """Mobility of every row up to which it counts as none."""
        return ca.vertsplit(HELD * self._free_mobility)

    @cached_property
    def _free_mobility(self) -> Matrix:
        """About how easily every row would move if there were no joints."""
        mobility = ca.SX(self.border.rows, 1)
        for i, block in self.border.bodies.items():
            mobility = mobility + _free_mobility(self.connections[i].inertia, block)
        return mobility

    # ------------------------------------------------------------------ idle joints

    @cached_property
    def _idle_joints(self) -> IdleJoints | None:
        """The system of the idle joints and the border."""
        if not self.idle:
            return None
        count = self._idle_count
        still = [ca.SX(6, count) for _ in self.connections]
        none = ca.SX(self.border.joints.shape[1], count)
        moved = self._solve_tree(still, none, None, ca.SX.eye(count))
        armature = ca.diagcat(*(self.connections[i].armature for i in self.idle))
        sizes = self._row_sizes(moved)
        return IdleJoints(
            mass=symmetric(-self._idle_forces(moved, none) + armature),
            rows=self._border_of(moved),
            responses=self._responses,
            softness=self._softness(sizes),
            mass_sizes=self._idle_sizes + ca.diag(armature),
            row_sizes=sizes,
        )

    @property
    def _idle_count(self) -> int:
        return sum(self.connections[i].directions.S.shape[1] for i in self.idle)

    def _idle_part(self, idle: Matrix | None, i: int, columns: int) -> Matrix:
        """Return the part of joint i in the accelerations of the idle joints."""
        before = self.idle[: self.idle.index(i)]
        start = sum(self.connections[k].directions.S.shape[1] for k in before)
        nv = self.connections[i].directions.S.shape[1]
        return ca.SX(nv, columns) if idle is None else idle[start : start + nv, :]

    def _moved(
        self, biases: Sequence[Matrix] | None, idle: Matrix | None, columns: int
    ) -> Sequence[Matrix] | None:
        """Return biases with the motion of idle joints added."""
        if idle is None:
            return biases
        moved = [ca.SX(6, columns) for _ in self.connections] if biases is None else list(biases)
        for i in self.idle:
            moved[i] = moved[i] + self.connections[i].directions.S @ self._idle_part(
                idle, i, columns
            )
        return moved

    def _idle_forces(self, solution: KktSolution, drive: Matrix) -> Matrix:
        """Return what the motors of idle joints have left over in a solution that moves them."""
        parts = [
            drive[self.connections[i].v, :]
            - self.connections[i].directions.S.T @ solution.wrenches[i]
            for i in self.idle
        ]
        return ca.vertcat(*parts)

    def _softness(self, sizes: Matrix) -> Matrix:
        """Return about the mobility of every row, a positive number for those without one too."""
        mass = sum((ca.trace(one.inertia.A) / 3 for one in self.connections), ca.SX(0))
        own, bodies, lengths = ca.diag(self._responses), self._free_mobility, ca.sum2(sizes**2)
        lengths = lengths / ca.if_else(mass > 0, mass, 1)
        unheld = ca.if_else(bodies > 0, bodies, ca.if_else(lengths > 0, lengths, 1))
        return ca.if_else(own > 100 * HELD * unheld, own, unheld)

    def _row_sizes(self, moved: KktSolution) -> Matrix:
        """Return what the rows would see of the idle joints if no two terms cancelled."""
        reach = sum((ca.sqrt(ca.sumsqr(one.step.r)) for one in self.connections), ca.SX(0))
        sizes = ca.fabs(self.border.joints) @ ca.fabs(moved.rates)
        for i, block in self.border.bodies.items():
            linear, angular = map(ca.fabs, Twist.of(moved.accelerations[i]))
            linear = linear + reach * ca.repmat(ca.sum1(angular), 3, 1)
            sizes = sizes + ca.fabs(block) @ ca.vertcat(linear, angular)
        return sizes

    @property
    def _idle_sizes(self) -> Matrix:
        """Inertia that idle joints would move if all joints further out were held."""
        inertias = [connection.inertia for connection in self.connections]
        for i in reversed(range(len(inertias))):
            parent = self.connections[i].parent
            if parent >= 0:
                shown = self.connections[i].step.inertia_out(inertias[i])
                inertias[parent] = inertias[parent].plus(shown)
        parts = []
        for i in self.idle:
            S = self.connections[i].directions.S
            parts.append(ca.diag(S.T @ inertias[i].matrix @ S))
        return ca.vertcat(*parts)


def _held(connection: Connection) -> Connection:
    """Return a connection whose joint does not move."""
    nothing = ca.SX(6, 0)
    return replace(
        connection,
        v=slice(connection.v.start, connection.v.start),
        directions=Directions(nothing, nothing, ca.SX.eye(6)),
        armature=ca.SX(0, 0),
    )


def _free_mobility(inertia: Inertia, rows: Matrix) -> Matrix:
    """Return about how easily a body alone moves along rows (n x 6), that is ``row M^-1 row^T``."""
    mass, first = ca.trace(inertia.A) / 3, Rigid.of(inertia).first
    if mass.is_zero():
        return ca.SX(rows.shape[0], 1)
    center = first / mass
    force, moment = rows[:, :3], rows[:, 3:]
    turning = ca.trace(inertia.C) / 2 - ca.dot(first, center)
    about_center = moment + force @ wed(center)
    moved = ca.sum2(force**2) / mass
    return moved if turning.is_zero() else moved + ca.sum2(about_center**2) / turning
