"""The inputs whose accelerations come closest to the desired ones, in the metric of the template.

    min_u 1/2 |a + Mbar^-1 bbar|^2_Mbar    subject to    M a + b = B u

Gauss's principle with the template's inertia. Where the machine is fully actuated the minimum is
zero and the template is the closed loop; elsewhere the inputs do what they can:

    H = N^T Mbar N,   N = M^-1 B,     u = H^-1 N^T (Mbar M^-1 b - bbar)
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.motion.spatial import solve_symmetric

Matrix = Any

SINGULAR = 1e-9
"""Share of the largest singular value below which one counts as zero."""


@dataclass(frozen=True)
class Kinetics:
    """The machine at a state: M a + b = B u."""

    M: Matrix
    b: Matrix
    B: Matrix

    def accelerations(self, u: Matrix) -> Matrix:
        """Return M^-1 (B u - b)."""
        return solve_symmetric(self.M, self.B @ u - self.b)


@dataclass(frozen=True)
class Actuation:
    """How many directions the inputs reach: decides the form of the law.

    Attributes
    ----------
    nv, nu, rank : int
    constant : (nv, nu) or None
        B where it does not depend on the state.
    """

    nv: int
    nu: int
    rank: int
    constant: np.ndarray | None

    @property
    def full(self) -> bool:
        """Whether every acceleration can be had."""
        return self.rank == self.nv

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """B = L Z with L (nv x rank) and Z (rank x nu) of full rank, of a constant B."""
        assert self.constant is not None
        U, s, Vt = np.linalg.svd(self.constant)
        return U[:, : self.rank] * s[: self.rank], Vt[: self.rank]


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
        inner = _optimum(Kinetics(plant.M, plant.b, ca.DM(L)), Mbar, bbar)
        return ca.DM(Z.T) @ inner
    return _optimum(plant, Mbar, bbar)


def metric(plant: Kinetics, Mbar: Matrix) -> Matrix:
    """Return H (nu x nu): the cost of inputs du off the optimum is 1/2 du . H du."""
    N = solve_symmetric(plant.M, plant.B)
    return N.T @ Mbar @ N


def _optimum(plant: Kinetics, Mbar: Matrix, bbar: Matrix) -> Matrix:
    N = solve_symmetric(plant.M, plant.B)
    falling = solve_symmetric(plant.M, plant.b)
    return solve_symmetric(N.T @ Mbar @ N, N.T @ (Mbar @ falling - bbar))


def _inverted(how: Actuation, B: Matrix, wanted: Matrix) -> Matrix:
    """Return the smallest u with B u = wanted."""
    if how.constant is not None:
        return ca.sparsify(ca.DM(np.linalg.pinv(how.constant)), 1e-15) @ wanted
    if how.nu == how.nv:
        return ca.solve(ca.densify(B), wanted)
    return B.T @ solve_symmetric(B @ B.T, wanted)
