"""The inputs whose accelerations come closest to the desired ones, in the metric of the template.

    min_u 1/2 |a + Mbar^-1 bbar|^2_Mbar    subject to    M a + b = B u

Gauss's principle with the template's inertia. Where the machine is fully actuated the minimum is
zero and the template is the closed loop; elsewhere the inputs do what they can:

    H = N^T Mbar N,   N = M^-1 B,     u = H^-1 N^T (Mbar M^-1 b - bbar)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.motion.spatial import solve_symmetric

Matrix = Any

SINGULAR = 1e-9
"""Share of the largest singular value below which one counts as zero."""
REDUNDANT = 1e-12
"""Share of the trace that is added to the matrix of the constraint forces."""


@dataclass(frozen=True)
class Kinetics:
    """The machine at a state: M a + b = B u, and A a = c where loops are closed.

    With S = A M^-1 A^T the accelerations are a = N u - m,

        N = (1 - M^-1 A^T S^-1 A) M^-1 B,    m = M^-1 b - M^-1 A^T S^-1 (A M^-1 b + c)
    """

    M: Matrix
    b: Matrix
    B: Matrix
    A: Matrix | None = None
    c: Matrix | None = None

    @cached_property
    def solved(self) -> tuple[Matrix, Matrix]:
        """N (nv x nu) and m (nv)."""
        if self.A is None:
            return solve_symmetric(self.M, self.B), solve_symmetric(self.M, self.b)
        free = solve_symmetric(self.M, ca.horzcat(self.B, self.b, self.A.T))
        nu = self.B.shape[1]
        N, m, across = free[:, :nu], free[:, nu], free[:, nu + 1 :]
        S = self.A @ across
        # Rows of loops may say the same twice; a trifle on the diagonal shares the force evenly.
        S = S + REDUNDANT * ca.trace(S) * ca.SX.eye(S.shape[0])
        held = solve_symmetric(S, ca.horzcat(self.A @ N, self.A @ m + self.c))
        return N - across @ held[:, :nu], m - across @ held[:, nu]

    def accelerations(self, u: Matrix) -> Matrix:
        """Return N u - m."""
        N, m = self.solved
        return N @ u - m


@dataclass(frozen=True)
class Actuation:
    """How many directions the inputs reach: decides the form of the law.

    Attributes
    ----------
    nv, nu, rank : int
    constant : (nv, nu) or None
        B where it does not depend on the state.
    closed : bool
        Whether loops are, so that B does not tell alone.
    """

    nv: int
    nu: int
    rank: int
    constant: np.ndarray | None
    closed: bool = False

    @property
    def full(self) -> bool:
        """Whether every acceleration can be had, one by one."""
        return self.rank == self.nv and not self.closed

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """B = L Z with L (nv x rank) and Z (rank x nu) of full rank, of a constant B."""
        assert self.constant is not None
        U, s, Vt = np.linalg.svd(self.constant)
        return U[:, : self.rank] * s[: self.rank], Vt[: self.rank]


def closed_actuation(N: np.ndarray, machine_name: str) -> Actuation:
    """Return what accelerations by input N (nv, nu) say of a machine with loops.

    Raises
    ------
    ControlError
        If inputs work against each other through the loops: their share would be undecided.
    """
    nv, nu = N.shape
    rank = int(np.linalg.matrix_rank(N, tol=SINGULAR * np.linalg.norm(N, 2)))
    if rank < nu:
        raise ControlError(
            f"the {nu} inputs of `{machine_name}` move it in only {rank} independent ways; leave "
            "out those that only strain its loops"
        )
    return Actuation(nv, nu, rank, None, closed=True)


def actuation(B: np.ndarray, symbolic: Matrix, machine_name: str) -> Actuation:
    """Return what samples of B (n, nv, nu) say of it.

    Raises
    ------
    ControlError
        If B has fewer independent columns than inputs and rows, and depends on the state.
    """
    ranks = [np.linalg.matrix_rank(one, tol=SINGULAR * np.linalg.norm(one, 2)) for one in B]
    nv, nu, rank = *B.shape[1:], int(min(ranks, default=0))
    fixed = ca.SX(symbolic).is_constant()
    if rank == 0:
        raise ControlError(f"no input of `{machine_name}` moves anything")
    if rank < min(nv, nu) and not fixed:
        raise ControlError(
            f"the {nu} inputs of `{machine_name}` push in only {rank} independent directions, "
            "which change with the state; leave out the inputs that others replace"
        )
    return Actuation(nv, nu, rank, B[0] if fixed else None)


def nearest(how: Actuation, plant: Kinetics, Mbar: Matrix, bbar: Matrix) -> Matrix:
    """Return the optimal inputs (nu); the smallest of them where several do the same."""
    if how.full:
        wanted = plant.b - plant.M @ solve_symmetric(Mbar, bbar)
        return _inverted(how, plant.B, wanted)
    if how.rank < how.nu:
        L, Z = how.factors
        inner = _optimum(Kinetics(plant.M, plant.b, ca.DM(L), plant.A, plant.c), Mbar, bbar)
        return ca.DM(Z.T) @ inner
    return _optimum(plant, Mbar, bbar)


def metric(plant: Kinetics, Mbar: Matrix) -> Matrix:
    """Return H (nu x nu): the cost of inputs du off the optimum is 1/2 du . H du."""
    N, _ = plant.solved
    return N.T @ Mbar @ N


def _optimum(plant: Kinetics, Mbar: Matrix, bbar: Matrix) -> Matrix:
    N, falling = plant.solved
    return solve_symmetric(N.T @ Mbar @ N, N.T @ (Mbar @ falling - bbar))


def _inverted(how: Actuation, B: Matrix, wanted: Matrix) -> Matrix:
    """Return the smallest u with B u = wanted."""
    if how.constant is not None:
        return ca.sparsify(ca.DM(np.linalg.pinv(how.constant)), 1e-15) @ wanted
    if how.nu == how.nv:
        return ca.solve(ca.densify(B), wanted)
    return B.T @ solve_symmetric(B @ B.T, wanted)
