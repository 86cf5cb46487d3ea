"""From wanted forces to inputs: exactly where the actuators can, else as near as they come.

    B(x) u + bias(x, v) = force

With more inputs than needed u is the smallest, in a weight of its own. With fewer, the remainder
r = force - B u - bias is the smallest in r . G^-1 r; with G = M, the default, these are the inputs
whose accelerations come nearest to the wanted ones (Gauss). What is not realised is given beside
the inputs.

Rows of B are taken apart into blocks that share no input. Blocks of constant numbers and full row
rank are inverted beforehand and cost a product. The other rows N, if any, are solved in the metric
that those leave to them, r_N . (G_NN)^-1 r_N, since the exact rows can follow any remainder:

    r_E = G_EN (G_NN)^-1 r_N

so that a machine with unactuated joints needs no factor but that of G_NN. There, ranks are found
from the numbers: inputs that do nothing new at a state stay small.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.limits import InputLimits
from framefree.control.model import Model, ModelState
from framefree.control.qp import solve_qp
from framefree.motion.constrained.algebra import MassFactor, RowSpace
from framefree.motion.tree.state import TreeState

Matrix = Any

FULL = 1e-9
"""Share of the largest singular value above which a direction counts as actuated."""
SLACK = 1e-8
"""Weight of small inputs beside a small remainder where limits are in the way."""
ITERATIONS = 12
"""Iterations of the quadratic program of limits."""


class Allocated(NamedTuple):
    """Inputs, and what they do not give.

    Attributes
    ----------
    u : (nu)
    unrealised : (n)
        The remainder r = force - B u - bias, N and Nm; structurally zero where it always is.
    size : scalar
        Root of r . G^-1 r; with G = M, of twice Gauss's constraint, in kg^1/2 m/s^2.
    """

    u: Matrix
    unrealised: Matrix
    size: Matrix

    @property
    def signals(self) -> dict[str, Matrix]:
        """For a law's record: "unrealised" and "unrealised_norm"."""
        return {"unrealised": self.unrealised, "unrealised_norm": self.size}


UNITS = {"unrealised": "N, Nm", "unrealised_norm": "kg^1/2 m/s^2"}


@dataclass(frozen=True, eq=False)
class Allocation:
    """How the actuators of a machine give wanted forces.

    Parameters
    ----------
    model : Model
        Of the machine: ``Model(machine)``.
    weight : (nu,), optional
        Inputs are smallest in the sum of weight u^2, where there is a choice; default all 1.
    limits : bool
        Whether inputs stay within all limits of the machine, see `InputLimits`. The remainder is
        then the smallest that they allow, by a quadratic program.
    iterations : int
        Of that program, see `solve_qp`.
    """

    model: Model
    weight: Any = None
    limits: bool = False
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        nu = self.model.machine.nu
        weight = np.ones(nu) if self.weight is None else np.asarray(self.weight, float)
        if weight.shape != (nu,) or not (np.isfinite(weight).all() and (weight > 0).all()):
            raise ControlError(
                f"`weight` must be {nu} positive numbers, one an input, got {self.weight!r}"
            )
        object.__setattr__(self, "weight", weight)

    def __call__(self, state: ModelState, force: Matrix, metric: Matrix = None) -> Allocated:
        """Return inputs for a force (n) at a state of the model.

        Parameters
        ----------
        state : ModelState
        force : (n)
        metric : (n x n), optional
            G, symmetric and positive definite; default the mass matrix.
        """
        G = state.mass if metric is None else metric
        return self.nearest(state.tree, state.B, force - state.input_bias, G)

    def nearest(self, state: TreeState, B: Matrix, wanted: Matrix, metric: Matrix) -> Allocated:
        """Return inputs with B u nearest to what is wanted, whatever that is.

        Parameters
        ----------
        state : TreeState
            At which the limits are.
        B : (n x nu)
        wanted : (n)
        metric : (n x n)
            G, symmetric and positive definite: the remainder is the smallest in r . G^-1 r.
        """
        machine = self.model.machine
        parts = _Parts(B, self.weight, metric, ca.symvar(machine.parameters.symbols))
        u = parts.least(wanted)
        if not self.limits or not machine.nu:
            return parts.allocated(wanted, u)
        return parts.measured(wanted, self._limited(InputLimits.at(state), parts, u))

    def _limited(self, rows: InputLimits, parts: "_Parts", u: Matrix) -> Matrix:
        """Return the inputs within their limits that cost least more than u.

        The cost of du is that of the remainder, |B du|, and a little for du itself where inputs
        may do the same.
        """
        if not rows.C.shape[0]:
            return u
        Y = ca.densify(parts.factor.into(parts.B))
        H = Y.T @ Y
        if not parts.distinct:
            size = ca.sumsqr(Y) / self.weight.sum()
            H = H + SLACK * size * ca.diag(ca.DM(self.weight))
        found = solve_qp(
            H, -H @ u, C=rows.C, lower=rows.lower, upper=rows.upper, iterations=self.iterations
        )
        return ca.if_else(rows.within(u), u, found.z)

    def require_full(self, law: str) -> None:
        """Raise `ControlError` naming the joints without enough actuators.

        B is looked at in numbers, at a few configurations.
        """
        missing = self.unactuated
        if missing:
            raise ControlError(
                f"{law} needs an actuator for every velocity of `{self.model.machine.name}`; none "
                f"for {', '.join(f'`{name}`' for name in missing)}"
            )

    @cached_property
    def unactuated(self) -> tuple[str, ...]:
        """Names of the velocities that forces cannot be given to as wanted."""
        model, machine = self.model, self.model.machine
        x = ca.SX.sym("x", machine.nx)
        state = model.at(x, ca.SX(machine.nv, 1))
        symbols = [x, machine.parameters.symbols] if len(machine.parameters) else [x]
        function = ca.Function("B", symbols, [ca.densify(ca.SX(state.B))])
        values = [machine.parameters.values()] if len(machine.parameters) else []
        best: list[str] | None = None
        for sample in model.samples(3):
            B = function(sample, *values).full()
            if not np.isfinite(B).all():
                continue  # a singular position of loops
            found = [n for n, m in zip(model.v_names, _missing(B), strict=True) if m]
            best = found if best is None or len(found) < len(best) else best
        return tuple(best or ())


class _Parts:
    """Inputs and forces at a state, taken apart."""

    def __init__(self, B: Matrix, weight: np.ndarray, G: Matrix, parameters: list[Matrix]) -> None:
        self.weight, self.G = weight, G
        self.B = ca.sparsify(ca.SX(B), 1e-14)
        self._known = {str(symbol) for symbol in parameters}
        self.exact: list[tuple[list[int], list[int], Matrix]] = []
        rows, columns = set(range(self.B.shape[0])), set(range(self.B.shape[1]))
        for block_rows, block_columns in blocks(self.B):
            inverse = self._inverse(block_rows, block_columns)
            if inverse is not None:
                self.exact.append((block_rows, block_columns, inverse))
                rows -= set(block_rows)
                columns -= set(block_columns)
        self.rows, self.columns = sorted(rows), sorted(columns)
        self.exact_rows = [i for i in range(self.B.shape[0]) if i not in rows]

    def _inverse(self, rows: list[int], columns: list[int]) -> Matrix | None:
        """Return u of least weight per unit of force, if the block is known and of full rank."""
        block = ca.densify(self.B[rows, columns])
        if not block.is_constant():
            fixed = {str(symbol) for symbol in ca.symvar(block)} <= self._known
            return 1 / block if fixed and block.is_scalar() else None
        B = ca.DM(block).full()
        scaled = B / np.sqrt(self.weight[columns])
        values = np.linalg.svd(scaled, compute_uv=False)
        if len(values) < len(rows) or values[-1] <= FULL * values[0]:
            return None
        inverse = np.linalg.pinv(scaled) / np.sqrt(self.weight[columns])[:, None]
        return ca.sparsify(ca.DM(inverse), 1e-15 * np.abs(inverse).max())

    @cached_property
    def distinct(self) -> bool:
        """Whether it is known that no inputs do the same: B of numbers, of full column rank."""
        if not self.B.is_constant():
            return False
        values = np.linalg.svd(ca.DM(self.B).full(), compute_uv=False)
        return len(values) == self.B.shape[1] and bool(values[-1] > FULL * values[0])

    @cached_property
    def factor(self) -> MassFactor:
        """Factors of the whole metric."""
        return MassFactor(self.G)

    @cached_property
    def _rest_factor(self) -> MassFactor:
        return MassFactor(self.G[self.rows, self.rows])

    @cached_property
    def _rest(self) -> RowSpace | None:
        """Decomposition of the rows that are not exact, in their metric and the inputs' weight."""
        if not self.rows or not self.columns:
            return None
        inner = self._rest_factor.into(ca.densify(self.B[self.rows, self.columns]))
        A = inner @ ca.diag(ca.DM(self.weight[self.columns] ** -0.5))
        return RowSpace(A, ca.repmat(ca.sumsqr(A), len(self.rows), 1), None)

    def least(self, wanted: Matrix) -> Matrix:
        """Return the inputs (nu) without limits."""
        u = ca.SX(self.B.shape[1], 1)
        if self._rest is not None:
            inner = self._rest.least(self._rest_factor.into(wanted[self.rows]))
            u[self.columns] = ca.DM(self.weight[self.columns] ** -0.5) * inner
        follow = self._followed(self._rest_remainder(wanted, u))
        for rows, columns, inverse in self.exact:
            places = [self.exact_rows.index(i) for i in rows]
            u[columns] = inverse @ (wanted[rows] - follow[places])
        return u

    def _rest_remainder(self, wanted: Matrix, u: Matrix) -> Matrix:
        if not self.rows or not self.columns:
            return wanted[self.rows]
        return wanted[self.rows] - self.B[self.rows, self.columns] @ u[self.columns]

    def _followed(self, remainder: Matrix) -> Matrix:
        """Return the remainder of the exact rows that goes with one of the others."""
        if not self.rows or not self.exact_rows:
            return ca.SX(len(self.exact_rows), 1)
        factor = self._rest_factor
        return self.G[self.exact_rows, self.rows] @ factor.out(factor.into(remainder))

    def allocated(self, wanted: Matrix, u: Matrix) -> Allocated:
        """Return inputs that `least` gave with their remainder, zero where it is."""
        r = ca.SX(self.B.shape[0], 1)
        if not self.rows:
            return Allocated(u, r, ca.SX(0))
        rest = self._rest_remainder(wanted, u)
        r[self.rows], r[self.exact_rows] = rest, self._followed(rest)
        # With r_E following, r . G^-1 r is that of r_N alone.
        return Allocated(u, r, ca.norm_2(self._rest_factor.into(rest)))

    def measured(self, wanted: Matrix, u: Matrix) -> Allocated:
        """Return any inputs with their remainder."""
        r = wanted - self.B @ u
        return Allocated(u, r, ca.norm_2(self.factor.into(r)))


def blocks(B: Matrix) -> list[tuple[list[int], list[int]]]:
    """Return rows and columns of the blocks of B that share no row and no column; none is empty."""
    rows, columns = B.sparsity().get_triplet()
    label = list(range(sum(B.shape)))

    def root(k: int) -> int:
        while label[k] != k:
            k = label[k]
        return k

    for i, j in zip(rows, columns, strict=True):
        label[root(B.shape[0] + j)] = root(i)
    found: dict[int, tuple[set[int], set[int]]] = {}
    for i, j in zip(rows, columns, strict=True):
        part = found.setdefault(root(i), (set(), set()))
        part[0].add(i)
        part[1].add(j)
    return [(sorted(a), sorted(b)) for a, b in found.values()]


def _missing(B: np.ndarray) -> np.ndarray:
    """Tell for every row whether forces along it alone are out of the range of B."""
    if not B.size:
        return np.ones(B.shape[0], bool)
    U, values, _ = np.linalg.svd(B)
    rank = int((values > FULL * values[0]).sum())
    return (U[:, rank:] ** 2).sum(axis=1) > FULL
