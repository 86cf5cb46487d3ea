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

Loops and couplings are rows ``R a + C y = r`` beside: they add a small dense system, solved with
its rank found and multipliers of least norm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from framefree.motion.maximal.joints import Directions
from framefree.motion.spatial import (
    Inertia,
    Matrix,
    Rigid,
    Step,
    Twist,
    Wrench,
    solve_symmetric,
    symmetric,
    wed,
)

RANK = 1e-12
"""A row of loops or couplings is redundant if no more than this share of its mobility is new."""

ROUNDING = 1e-24
"""A row whose mobility is below this share of the largest one does not move at all: what is left of
it is the square of rounding errors."""

HELD = 1e-13
"""Nor does one whose bodies, without their joints, would move more easily by the inverse of this:
it runs between bodies that joints hold together already."""


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


class Solution(NamedTuple):
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
    """The system with its bodies eliminated; `solve` gives the unknowns for any right side."""

    def __init__(self, connections: Sequence[Connection], border: Border) -> None:
        self.connections, self.border = connections, border
        self._factors: list[Factor] = []
        inertias = [connection.inertia for connection in connections]
        for i in reversed(range(len(connections))):
            connection = connections[i]
            M = inertias[i].matrix
            factor = Factor.of(connection.directions, connection.armature, M)
            self._factors.insert(0, factor)
            if connection.parent >= 0:
                shown = connection.step.inertia_out(Inertia.of(factor.shown))
                inertias[connection.parent] = inertias[connection.parent].plus(shown)
        self._responses = self._border_responses()

    def solve(
        self, loads: Sequence[Matrix], drive: Matrix, biases: Sequence[Matrix] | None
    ) -> Solution:
        """Solve for wrenches on the links (6 x k each) and joint forces (nv x k).

        With `biases` (6 each) joints and border have their right sides, without them zero.
        """
        free = self._solve_tree(loads, drive, biases)
        if not self.border.rows:
            return free
        gap = self._border_of(free)
        if biases is not None:
            gap = gap - self.border.right
        multipliers = least_norm(self._responses, gap, self._held)[0]
        held = list(loads)
        for i, block in self.border.bodies.items():
            held[i] = held[i] - block.T @ multipliers
        bound = self._solve_tree(held, drive - self.border.joints.T @ multipliers, biases)
        return bound._replace(multipliers=multipliers)

    @property
    def border_rank(self) -> Matrix:
        """Number of rows of loops and couplings that are independent."""
        return least_norm(self._responses, ca.SX(self.border.rows, 1), self._held)[1]

    def _solve_tree(
        self, loads: Sequence[Matrix], drive: Matrix, biases: Sequence[Matrix] | None
    ) -> Solution:
        columns = drive.shape[1]
        given: dict[int, Given] = {}
        totals = list(loads)
        for i in reversed(range(len(totals))):
            connection = self.connections[i]
            bias = None if biases is None else biases[i]
            given[i] = self._factors[i].inward(totals[i], drive[connection.v, :], bias)
            if connection.parent >= 0:
                out = connection.step.wrench_out(Wrench.of(given[i].passed)).vector
                totals[connection.parent] = totals[connection.parent] + out
        accelerations: list[Matrix] = []
        rates: list[Matrix] = []
        wrenches: list[Matrix] = []
        for i, connection in enumerate(self.connections):
            carried = ca.SX(6, columns)
            if connection.parent >= 0:
                parent = Twist.of(accelerations[connection.parent])
                carried = connection.step.twist_into(parent).vector
            if biases is not None:
                carried = carried + biases[i]
            tau = drive[connection.v, :]
            acceleration, rate, wrench = self._factors[i].outward(carried, given[i], tau)
            accelerations.append(acceleration)
            rates.append(rate)
            wrenches.append(wrench)
        stacked = ca.vertcat(*rates) if rates else ca.SX(0, columns)
        return Solution(accelerations, stacked, wrenches, ca.SX(0, columns))

    def _border_of(self, solution: Solution) -> Matrix:
        value = self.border.joints @ solution.rates
        for i, block in self.border.bodies.items():
            value = value + block @ solution.accelerations[i]
        return value

    def _border_responses(self) -> Matrix:
        """Return ``[R C] K^-1 [R C]^T``: motion along the rows per force along the rows."""
        rows = self.border.rows
        if not rows:
            return ca.SX(0, 0)
        loads = [ca.SX(6, rows) for _ in self.connections]
        for i, block in self.border.bodies.items():
            loads[i] = block.T
        return symmetric(self._border_of(self._solve_tree(loads, self.border.joints.T, None)))

    @cached_property
    def _held(self) -> list[Matrix]:
        """Mobility of every row up to which it counts as none."""
        held = ca.SX(self.border.rows, 1)
        for i, block in self.border.bodies.items():
            held = held + HELD * _free_mobility(self.connections[i].inertia, block)
        return ca.vertsplit(held)


def _free_mobility(inertia: Inertia, rows: Matrix) -> Matrix:
    """Return about how easily a body alone moves along rows (n x 6), that is ``row M^-1 row^T``."""
    mass, first = ca.trace(inertia.A) / 3, Rigid.of(inertia).first
    if mass.is_zero():
        return ca.SX(rows.shape[0], 1)
    center = first / mass
    force, moment = rows[:, :3], rows[:, 3:]
    turning = ca.trace(inertia.C) / 2 - ca.dot(first, center)
    about_center = moment + force @ wed(center)
    found = ca.sum2(force**2) / mass
    return found if turning.is_zero() else found + ca.sum2(about_center**2) / turning


class Given(NamedTuple):
    """What the inward sweep leaves at a body for the outward one, and `passed` for the parent."""

    offset: Matrix
    blocked: Matrix
    passed: Matrix


class Factor(NamedTuple):
    """One body and its joint eliminated. M is the body's inertia with all that it carries.

    D = S^T M S + A;   Uz = N^T M S;   Kz = D^-1 Uz^T;   Lam = N^T M N - Uz Kz;
    and what the parent feels of them, with Ky = D^-1 A and Z = A Kz where rotors turn:
    shown = N Lam N^T + W (A - A Ky) W^T + W Z N^T + N Z^T W^T.
    """

    directions: Directions
    A: Matrix
    D: Matrix
    Uz: Matrix
    Kz: Matrix
    Lam: Matrix
    shown: Matrix
    Ky: Matrix | None
    Z: Matrix | None

    @classmethod
    def of(cls, directions: Directions, A: Matrix, M: Matrix) -> "Factor":
        """Eliminate a body of inertia M (6x6) whose joint has rotors A (nv x nv)."""
        S, W, N = directions
        U = M @ S
        D = symmetric(S.T @ U) + A
        Uz = N.T @ U
        Kz = solve_symmetric(D, Uz.T)
        Lam = symmetric(N.T @ M @ N - Uz @ Kz)
        shown, Ky, Z = N @ Lam @ N.T, None, None
        if not A.is_zero():
            Ky, Z = solve_symmetric(D, A), A @ Kz
            mixed = W @ Z @ N.T
            shown = shown + W @ symmetric(A - A @ Ky) @ W.T + mixed + mixed.T
        return cls(directions, A, D, Uz, Kz, Lam, symmetric(shown), Ky, Z)

    def inward(self, load: Matrix, tau: Matrix, bias: Matrix | None) -> Given:
        """Return what the parent feels of a load on the body, a joint force and a bias."""
        S, W, N = self.directions
        u = solve_symmetric(self.D, tau + S.T @ load)
        blocked = N.T @ load - self.Uz @ u
        along = -tau if self.Ky is None else self.A @ u - tau
        passed = N @ blocked + W @ along
        if bias is not None:
            passed = passed - self.shown @ bias
        return Given(u, blocked, ca.densify(passed))

    def outward(self, carried: Matrix, given: Given, tau: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return acceleration, joint rate and joint wrench for the acceleration carried to here."""
        S, W, N = self.directions
        z, along = N.T @ carried, W.T @ carried
        total = given.offset - self.Kz @ z
        lam = self.Lam @ z - given.blocked
        drive = tau
        if self.Ky is not None and self.Z is not None:
            total = total + self.Ky @ along
            lam = lam + self.Z.T @ along
            drive = tau - self.A @ (total - along)
        acceleration = ca.densify(N @ z + S @ total)
        return acceleration, total - along, ca.densify(N @ lam + W @ drive)


def least_norm(
    matrix: Matrix, right: Matrix, held: Sequence[Matrix] | None = None
) -> tuple[Matrix, Matrix]:
    """Return the shortest least-squares solution of ``matrix @ y = right``, and the rank.

    `matrix` is positive semidefinite. It is factored as B D B^T by L D L^T with diagonal pivots on
    its correlation form, so that units do not count; then
    y = B (B^T B)^-1 D^-1 (B^T B)^-1 B^T right. Rows with a diagonal entry up to `held`
    count as zero.
    """
    n = matrix.shape[0]
    largest = ca.fmax(ca.mmax(ca.diag(matrix)), 0) if n else ca.SX(0)
    least = [ca.fmax(ROUNDING * largest, held[i] if held else 0) for i in range(n)]
    moving = [ca.if_else(matrix[i, i] > least[i], matrix[i, i], 0) for i in range(n)]
    size = [ca.sqrt(one) for one in moving]
    inverse = [_reciprocal(size[i], size[i] > 0) for i in range(n)]
    rest = [[matrix[i, j] * inverse[i] * inverse[j] for j in range(i + 1)] for i in range(n)]
    columns: list[list[Matrix]] = []
    pivots: list[Matrix] = []
    kept: list[Matrix] = []
    for _ in range(n):
        chosen = _largest([rest[i][i] for i in range(n)])
        column = [_pick(chosen, [rest[max(i, j)][min(i, j)] for j in range(n)]) for i in range(n)]
        pivot = _pick(chosen, column)
        keep = pivot > RANK
        reciprocal = _reciprocal(pivot, keep)
        scaled = [one * reciprocal for one in column]
        rest = [[rest[i][j] - scaled[i] * column[j] for j in range(i + 1)] for i in range(n)]
        columns.append([scaled[i] * size[i] for i in range(n)])
        pivots.append(reciprocal)
        kept.append(keep)
    if not n:
        return ca.SX(0, right.shape[1]), ca.SX(0)
    B = ca.horzcat(*(ca.vertcat(*column) for column in columns))
    gram = symmetric(B.T @ B) + ca.diag(ca.vertcat(*(ca.if_else(one, 0, 1) for one in kept)))
    scale = ca.diag(ca.vertcat(*pivots))

    def apply(given: Matrix) -> Matrix:
        return B @ solve_symmetric(gram, scale @ solve_symmetric(gram, B.T @ given))

    found = apply(right)
    # Rows of very different size cost digits in the squares above: correct once.
    return found + apply(right - matrix @ found), sum(kept, ca.SX(0))


def _reciprocal(value: Matrix, allowed: Matrix) -> Matrix:
    return ca.if_else(allowed, 1 / ca.if_else(allowed, value, 1), 0)


def _largest(values: list[Matrix]) -> list[Matrix]:
    """Return a truth for each value: the first of the largest."""
    best = values[0]
    for value in values[1:]:
        best = ca.fmax(best, value)
    taken, chosen = ca.SX(0), []
    for value in values:
        chosen.append(ca.logic_and(value >= best, ca.logic_not(taken)))
        taken = ca.logic_or(taken, chosen[-1])
    return chosen


def _pick(chosen: list[Matrix], values: list[Matrix]) -> Matrix:
    return sum(
        (ca.if_else(one, value, 0) for one, value in zip(chosen, values, strict=True)), ca.SX(0)
    )
