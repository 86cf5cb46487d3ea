"""Whether a machine has matched prototypes at all, and if not, a proof.

A prototype is matched about rest if rows N (a x nv), one for each of the a directions that no input
reaches, take its inertia, damping and stiffness to those of the machine there:

    N Mbar = B_perp^T M =: c_M,    N Dbar = B_perp^T D =: c_D,    N Kbar = B_perp^T K =: c_K

Then N c_M^T = N Mbar N^T is symmetric and positive definite, and so are N c_K^T and, semidefinite,
N c_D^T. The other way round, every N with these three properties has symmetric Mbar, Kbar > 0 and
Dbar >= 0 that go with it. So matched prototypes exist if and only if the semidefinite program

    N c_M^T > 0,    N c_K^T > 0,    N c_D^T >= 0    (all symmetric)

has a solution. It has none if there are matrices G (a x a) with positive semidefinite symmetric
parts, those of G_M and G_K not both zero, and

    c_M^T G_M + c_K^T G_K + c_D^T G_D = 0,

because the trace of N times this sum would be positive. For one direction that means: no vector N
has a positive product with c_M and c_K and none below zero with c_D. A pendulum that stands, with
friction in its hinge, has none: c_K and c_D point against each other.
"""

from dataclasses import dataclass

import numpy as np

from framefree.control.law import ControlError
from framefree.control.prototype.rest import RestDynamics
from framefree.machine.units import Units
from framefree.solve.cones import ConicProgram

LEAST = 1e-7
"""Least eigenvalue, where the mean of those of N c_M^T is one, below which there is none."""
PROVED = 1e-6
"""Largest entry of the sum in a proof, where the traces of G_M and G_K sum to one."""


@dataclass(frozen=True, eq=False)
class NoPrototypeProof:
    """Matrices G (a x a) that leave no room for a matched prototype; see the top of this file.

    Attributes
    ----------
    inertia, stiffness, damping : (a, a)
        G_M, G_K and G_D, for rows c made orthonormal in M and times in 1/s.
    error : float
        Largest entry of the sum that must be zero.
    """

    inertia: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    error: float


class NoPrototypeError(ControlError):
    """There is no matched prototype, or none was found.

    Attributes
    ----------
    proof : NoPrototypeProof or None
        Numbers that prove that there is none; None where the message says why, or where the search
        did not find one although there may be some.
    """

    def __init__(self, message: str, proof: NoPrototypeProof | None = None) -> None:
        super().__init__(message)
        self.proof = proof


def unreached_rows(rest: RestDynamics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return c_M, c_D and c_K (a, nv) over velocities of unit energy, c_M orthonormal."""
    L = np.linalg.cholesky(rest.M)
    root = np.linalg.inv(L)
    rows = np.linalg.qr((rest.across @ L).T)[0].T
    c_D, c_K = (rows @ root @ X @ root.T for X in (rest.D, rest.K))
    return rows, c_D, c_K


def exists(rest: RestDynamics) -> bool:
    """Tell whether a machine has matched prototypes with general inertia about rest."""
    rows = unreached_rows(rest)
    a, nv = rows[0].shape
    if not a:
        return True
    c_M, c_D, c_K = rows
    # Times in units of the fastest motion, so that all three have entries of order one.
    rate = _rate(rest, c_D, c_K)
    products = [_products(c) for c in (c_M, c_D / rate, c_K / rate**2)]
    program = ConicProgram(a * nv + 1)
    program.equal(np.append(_trace(products[0]), 0.0)[None], np.array([float(a)]))
    for k, product in enumerate(products):
        skew = np.array([p - p.T for p in product])[:, *np.triu_indices(a, 1)]
        program.equal(skew.T, np.zeros(skew.shape[1]))
        least = 0.0 if k == 1 else 1.0
        symmetric = [(p + p.T) / 2 for p in product]
        program.semidefinite([*symmetric, -least * np.eye(a)], np.zeros((a, a)))
    size = a * nv + 1
    # A tenth of a thousandth against N without bound, where several do as well.
    P = np.diag(np.append(np.full(size - 1, 1e-9), 0.0))
    y = program.minimise(P, -np.eye(size)[-1])
    return y is not None and y[-1] > LEAST


def proof(rest: RestDynamics) -> NoPrototypeProof | None:
    """Return a proof that there is no matched prototype; None where none is found."""
    c_M, c_D, c_K = unreached_rows(rest)
    a = len(c_M)
    if not a:
        return None
    rate = _rate(rest, c_D, c_K)
    rows = c_M, c_K / rate**2, c_D / rate
    size = 3 * a * a
    program = ConicProgram(size + 1)
    units = np.eye(a * a).reshape(-1, a, a)
    for k in range(3):
        parts = np.zeros((size, a, a))
        parts[k * a * a : (k + 1) * a * a] = (units + units.transpose(0, 2, 1)) / 2
        program.semidefinite(parts, np.zeros((a, a)))
    traces = np.concatenate([_trace(units)] * 2 + [np.zeros(a * a)])
    program.equal(traces[None], np.ones(1))
    sums = np.hstack([np.array([(c.T @ unit).ravel() for unit in units]).T for c in rows])
    bound = -np.ones((len(sums), 1))
    for sign in (1.0, -1.0):
        program.below(np.hstack([sign * sums, bound]), np.zeros(len(sums)))
    y = program.minimise(np.zeros((size + 1, size + 1)), np.eye(size + 1)[-1])
    if y is None:
        return None
    G_M, G_K, G_D = y[:-1].reshape(3, a, a)
    error = float(np.abs(sums @ y[:-1]).max())
    least = min(np.linalg.eigvalsh(G + G.T)[0] for G in (G_M, G_K, G_D))
    if error > PROVED or least < -PROVED:
        return None
    return NoPrototypeProof(G_M, G_K / rate**2, G_D / rate, error)


def _rate(rest: RestDynamics, c_D: np.ndarray, c_K: np.ndarray) -> float:
    """Return the largest rate, 1/s, in rows of unit length, at least that of falling."""
    falling = 1e-3 / Units.of(rest.machine.numeric).time
    return max(float(np.abs(c_K).max()) ** 0.5, float(np.abs(c_D).max()), falling)


def _products(c: np.ndarray) -> np.ndarray:
    """Return N c^T (a x a) for every N (a, nv) with one entry that is one."""
    a, nv = c.shape
    return np.array([N.reshape(a, nv) @ c.T for N in np.eye(a * nv)])


def _trace(matrices: np.ndarray) -> np.ndarray:
    return np.trace(matrices, axis1=1, axis2=2)
