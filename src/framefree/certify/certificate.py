"""Bounds of the mass matrix that are nearly sharp, proved by a certificate of small matrices.

M >= d I for all configurations if there is a symmetric Q for every move (`moves`), such that

    (X y + S v)^T P (X y + S v) - d |v|^2 >= y^T Q y        for all y, v and all X of the move,
    P = inertia + sum over what it carries of A^T Q A,

and at the root S^T P S >= d. For then, from the tips inwards, y^T Q y is at most twice the kinetic
energy of all that hangs on the move less d |v|^2 of its velocities, whatever the configuration. All
is linear in d and the Qs: the best of them is a semidefinite program. From above likewise, with the
signs turned.

Twists y are those that the moves before can give (`reached_twists`): those of a machine whose axes
are all upright do not tilt it, and a slide without end along them then moves nothing away.

Where a turn goes all the way round, it is enough to look at Qs that do not change by turning (a Q
may be replaced by its mean over all turns), and one inequality is left. The same with balls. Over a
range the inequality is a polynomial in displacement, or in (c, s) = (cos, sin) of half the angle:

    F(c, s) = z2^T G z2 + (tau^2 c^2 - s^2) z1^T N z1,   z1 = (c, s),   z2 = (c^2, cs, s^2)

with positive semidefinite G and N; every F that is positive semidefinite on the range is of this
form.

Nothing of the solver has to be trusted: every inequality is looked at again. A certificate
holds with a margin, so that rounding cannot break it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from framefree.certify.moves import (
    BALL,
    ROOT,
    SLIDE,
    TURN,
    SingleMove,
    carried,
    reached_twists,
    sliding,
)
from framefree.certify.semidefinite import Affine, ConeRows, Gram, Variables

MARGINS = (1e-8, 1e-7, 1e-6, 1e-5)
"""Least eigenvalue, of inequalities with diagonals of about one, that is asked for; in turn."""
LIGHT = 1e-9
"""Share of the heaviest inertia below which inequalities are not brought to a diagonal of one."""
KEPT = 1e-3
"""Share of the margin that must be left when a certificate is looked at again."""


@dataclass(frozen=True)
class Certificate:
    """A bound d with its Qs (6, 6), None at roots, in the frames of the moves before them.

    `sign` is 1 for d I <= M and -1 for M <= d I; `left` is the least share of the margin that is
    left in any inequality.
    """

    bound: float
    sign: int
    Q: tuple[np.ndarray | None, ...]
    left: float


def certify_bound(moves: Sequence[SingleMove], sign: int) -> Certificate | None:
    """Return the best bound of M that the program finds and that holds when looked at again."""
    for margin in MARGINS:
        program = _BoundProgram(moves, sign, margin)
        values = program.solve()
        if values is None:
            return None
        left = program.left(values)
        if left >= KEPT:
            return Certificate(program.bound(values), sign, program.Qs(values), left)
    return None


class _BoundProgram:
    """The semidefinite program for one side of M."""

    def __init__(self, moves: Sequence[SingleMove], sign: int, margin: float) -> None:
        self.moves, self.sign, self.margin = moves, sign, margin
        self.variables = Variables()
        self.variables.take(1)  # d, in units of `unit`
        sizes = [np.einsum("ik,ij,jk->k", m.S, P, m.S) + m.armature
                 for m, P in zip(moves, self._carried, strict=True)]  # fmt: skip
        felt = np.concatenate([np.zeros(0), *sizes])
        self.unit = float(felt.min() if sign > 0 else felt.max())
        self.floor = LIGHT * max(float(np.trace(P)) for P in self._carried)
        self.reached = reached_twists(moves)
        self.bases = [_distinct(_basis(move), U)
                      for move, U in zip(moves, self.reached, strict=True)]  # fmt: skip
        self.own = [self.variables.take(len(basis)) for basis in self.bases]
        self.inequalities: list[_Inequality] = []
        for i in range(len(moves)):
            self._add(i)

    @cached_property
    def _carried(self) -> list[np.ndarray]:
        return carried(self.moves)

    def _Q(self, i: int) -> Affine:
        terms = zip(range(self.own[i].start, self.own[i].stop), self.bases[i], strict=True)
        return Affine(np.zeros((6, 6)), tuple(terms))

    def _add(self, i: int) -> None:
        """Add the inequality of one move, with a diagonal of about one."""
        move = self.moves[i]
        P = Affine(move.inertia)
        for k, other in enumerate(self.moves):
            if other.parent == i:
                P = P.plus(self._Q(k).seen(other.A))
        n = move.S.shape[1]
        T = np.hstack([self.reached[i], move.S])
        if not T.shape[1]:
            return
        minus = np.zeros((T.shape[1],) * 2)
        minus[-n or len(minus) :, -n or len(minus) :] = np.eye(n)
        rotors = minus * np.pad(move.armature, (len(minus) - n, 0))
        left = P.seen(T).plus(Affine(rotors, ((0, -self.unit * minus),)))
        size = np.diag(T.T @ self._carried[i] @ T) + np.diag(rotors)
        W = np.diag(1 / np.sqrt(np.maximum(size, self.floor)))
        before = np.hstack([self.reached[i], np.zeros((6, n))])  # y of all that F speaks of
        parts = [part.seen(W) for part in _powers(move, left, self._Q(i), before)]
        signed = [Affine(self.sign * p.constant).plus(Affine(0 * p.constant, p.terms), self.sign)
                  for p in parts]  # fmt: skip
        self.inequalities.append(_Inequality(move, signed, _tilting(before), self.variables))

    def solve(self) -> np.ndarray | None:
        """Return values of all variables; None where the solver finds none."""
        cones = ConeRows(self.variables.count)
        for inequality in self.inequalities:
            inequality.put(cones, self.margin)
        objective = np.zeros(self.variables.count)
        objective[0] = -self.sign
        return cones.minimise(objective)

    def left(self, values: np.ndarray) -> float:
        """Return what is left of the margin at these values, in any inequality."""
        return min(one.least(values) for one in self.inequalities) / self.margin

    def bound(self, values: np.ndarray) -> float:
        """Return d."""
        return float(values[0]) * self.unit

    def Qs(self, values: np.ndarray) -> tuple[np.ndarray | None, ...]:
        """Return the Qs."""
        return tuple(
            None if move.kind == ROOT else self._Q(i).at(values)
            for i, move in enumerate(self.moves)
        )


class _Inequality:
    """A polynomial F that must be positive semidefinite, with the matrices that show it.

    F is given by its coefficients: one where it is constant, three in a displacement t, five in
    (c, s). Without a range G alone shows it, with one also N.
    """

    def __init__(
        self, move: SingleMove, F: Sequence[Affine], tilting: Sequence[int], variables: Variables
    ) -> None:
        self.F, self.m = list(F), len(F[0].constant)
        blocks = (len(self.F) + 1) // 2
        self.multiplier = _multiplier(move) if blocks > 1 and move.ranged else ()
        # On t in [-1, 1], or all t; on c^2 + s^2 = 1 the squares of z2 sum up to 3/4 or more.
        self.floor = 0.75 if blocks == 3 else 1.0
        self.gram = self.weight = None
        if blocks > 1 and move.ranged:
            self.gram = Gram(_powers_of(blocks, self.m), self.m, variables)
            self.weight = Gram(_powers_of(blocks - 1, self.m), self.m, variables)
        elif blocks > 1:
            # The displacement comes with angular velocities across the axis alone.
            basis = [*_powers_of(1, self.m), *((1, k) for k in tilting)]
            self.gram = Gram(basis, self.m, variables)

    def put(self, rows: "ConeRows", margin: float) -> None:
        """Add rows that hold F, or what shows it, above the margin."""
        if self.gram is None:
            rows.definite(self.F[0], margin)
            return
        rows.definite_variables(self.gram, margin)
        if self.weight is not None:
            rows.definite_variables(self.weight, 0.0)
        for k, coefficient in enumerate(self.F):
            rows.zero(coefficient.plus(self._shown(k), -1.0))

    def _shown(self, k: int) -> Affine:
        """Return the coefficient k of z2^T G z2 + (multiplier) z1^T N z1."""
        assert self.gram is not None
        total = self.gram.coefficient(k)
        for power, factor in enumerate(self.multiplier):
            if factor and self.weight is not None:
                total = total.plus(self.weight.coefficient(k - power), factor)
        return total

    def least(self, values: np.ndarray) -> float:
        """Return a lower bound of the least eigenvalue of F over the range."""
        if self.gram is None:
            return float(np.linalg.eigvalsh(self.F[0].at(values))[0])
        least = self.floor * self.gram.least(values)
        if self.weight is not None:
            # What N lacks of being positive; its factor is at most 1 on the range.
            least += min(self.weight.least(values), 0.0)
        gaps = [
            np.linalg.norm(one.at(values) - self._shown(k).at(values), 2)
            for k, one in enumerate(self.F)
        ]
        return least - float(sum(gaps))


def _powers_of(blocks: int, m: int) -> list[tuple[int, int]]:
    return [(power, i) for power in range(blocks) for i in range(m)]


def _basis(move: SingleMove) -> list[np.ndarray]:
    """Return a basis of the Qs that are looked at."""
    if move.kind == ROOT:
        return []
    if move.kind == BALL:
        v, w = np.diag([1.0] * 3 + [0.0] * 3), np.diag([0.0] * 3 + [1.0] * 3)
        return [v, w, _pairs((0, 3), (1, 4), (2, 5))]
    if move.kind == TURN and not move.ranged:
        # Across the axis (v_x, v_y) and (w_x, w_y) count by lengths and angle between.
        return [
            _pairs((2, 2)), _pairs((5, 5)), _pairs((2, 5)), _pairs((0, 0), (1, 1)),
            _pairs((3, 3), (4, 4)), _pairs((0, 3), (1, 4)), _pairs((0, 4)) - _pairs((1, 3)),
        ]  # fmt: skip
    return [_pairs((i, j)) for j in range(6) for i in range(j + 1)]


def _distinct(basis: list[np.ndarray], U: np.ndarray) -> list[np.ndarray]:
    """Return those of a basis of Qs that differ on the twists U."""
    chosen: list[np.ndarray] = []
    seen = np.zeros((U.shape[1] ** 2, 0))
    for Q in basis:
        wider = np.column_stack([seen, (U.T @ Q @ U).ravel()])
        if U.shape[1] == 6 or np.linalg.matrix_rank(wider, tol=1e-9) > len(chosen):
            chosen.append(Q)
            seen = wider
    return chosen


def _tilting(wide: np.ndarray) -> list[int]:
    """Return the columns of twists that a slide along z takes elsewhere."""
    return [k for k, moved in enumerate((sliding() @ wide).T) if np.abs(moved).max() > 1e-9]


def _pairs(*places: tuple[int, int]) -> np.ndarray:
    Q = np.zeros((6, 6))
    for i, j in places:
        Q[i, j] = Q[j, i] = 1.0
    return Q


def _powers(move: SingleMove, left: Affine, Q: Affine, wide: np.ndarray) -> list[Affine]:
    """Return the coefficients of left - X^-T Q X^-1, which is 0 for the motions of the move.

    `wide` (6, n) are the twists y after X of what the inequality speaks of.
    """
    if move.kind == ROOT:
        return [left]
    n = len(left.constant)
    if move.kind == SLIDE and not _tilting(wide):
        return [left.plus(Q.seen(wide), -1.0)]
    if move.kind == SLIDE:
        # X^-1 = I + q E, with q = middle + half t; half 1 where the range is endless.
        middle = (move.lower + move.upper) / 2 if move.ranged else 0.0
        half = (move.upper - move.lower) / 2 if move.ranged else 1.0
        E = -sliding()  # v before = v after - w x (q z)
        X0, X1 = np.eye(6) + middle * E, half * E
        quadratic = [
            Q.seen(X0 @ wide),
            Q.seen((X0 + X1) @ wide).plus(Q.seen((X0 - X1) @ wide), -1.0),
            Q.seen(X1 @ wide),
        ]
        factors = (1.0, 0.5, 1.0)
        return [_with(left if k == 0 else None, part, factors[k], n)
                for k, part in enumerate(quadratic)]  # fmt: skip
    if not move.ranged:
        return [left.plus(Q.seen(wide), -1.0)]
    return _arc_powers(move, left, Q, wide)


def _arc_powers(move: SingleMove, left: Affine, Q: Affine, wide: np.ndarray) -> list[Affine]:
    """Return the coefficients of c^4, c^3 s, c^2 s^2, c s^3, s^4."""
    middle = (move.lower + move.upper) / 2
    R = [part @ _turned(middle) @ wide for part in _TURNING]  # X^-1 = R0 c^2 + R1 c s + R2 s^2
    n = len(left.constant)
    # Left stands before (c^2 + s^2)^2.
    coefficients = [Affine(np.zeros((n, n))) for _ in range(5)]
    for k, factor in ((0, 1.0), (2, 2.0), (4, 1.0)):
        coefficients[k] = Affine(np.zeros((n, n))).plus(left, factor)
    for i in range(3):
        for j in range(i, 3):
            if i == j:
                mixed = Q.seen(R[i])
            else:
                both = Q.seen(R[i] + R[j]).plus(Q.seen(R[i]), -1.0)
                mixed = both.plus(Q.seen(R[j]), -1.0)
            coefficients[i + j] = coefficients[i + j].plus(mixed, -1.0)
    return coefficients


def _with(left: Affine | None, part: Affine, factor: float, n: int) -> Affine:
    return (left or Affine(np.zeros((n, n)))).plus(part, -factor)


def _turned(angle: float) -> np.ndarray:
    """Return X^-1 of a turn by an angle about z."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return np.kron(np.eye(2), R)


_FLAT, _ACROSS = np.diag([1.0, 1.0, 0.0]), np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
_ALONG = np.diag([0.0, 0.0, 1.0])
_TURNING = tuple(np.kron(np.eye(2), part) for part in (_FLAT + _ALONG, 2 * _ACROSS, _ALONG - _FLAT))
"""Coefficients of c^2, c s, s^2 in a turn by the angle whose half has cosine c and sine s."""


def _multiplier(move: SingleMove) -> tuple[float, ...]:
    """Return the coefficients of a polynomial that is positive on the range alone."""
    if move.kind == SLIDE:
        return (1.0, 0.0, -1.0)
    tau = np.tan((move.upper - move.lower) / 4)
    return (min(tau, 1.0) ** 2, 0.0, -(min(1 / tau, 1.0) ** 2)) if tau > 0 else (0.0, 0.0, -1.0)
