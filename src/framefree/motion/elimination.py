"""One body with its joint, eliminated from the equations of all: what every sweep is made of.

In the axes of the joint's link, with S (6 x nv) the joint's subspace:

    W = S (S^T S)^-1      dual directions: W^T S = I, and W tau is a wrench that a motor tau exerts
    N (6 x (6 - nv))      blocked directions: orthonormal, N^T S = 0, hence N^T W = 0

so that any twist is ``S (W^T xi) + N (N^T xi)`` and any wrench ``W (S^T w) + N (N^T w)``. The
elimination itself is explained in `framefree.motion.maximal.graph`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from framefree.machine.values import constant_pose
from framefree.motion.spatial import Matrix, cholesky, solve_symmetric, symmetric
from framefree.motion.tree.links import Link


class Directions(NamedTuple):
    """Free (S), dual (W) and blocked (N) directions of a joint in the axes of its link."""

    S: Matrix
    W: Matrix
    N: Matrix


def directions(link: Link, x: Matrix) -> Directions:
    """Return S, W and N of a link at joint coordinates x of the machine."""
    S = link.subspace(x)
    if S.is_constant():
        numbers = np.asarray(ca.DM(S).full())
        return Directions(S, _constant(np.linalg.pinv(numbers).T), _constant(_complement(numbers)))
    W = solve_symmetric(S.T @ S, S.T).T
    return Directions(S, W, _moving_complement(S))


def dual_rate(link: Link, x: Matrix, v: Matrix) -> Matrix:
    """Return ``dW/dt`` (6 x nv) in link axes at joint coordinates x and rates v of the machine."""
    q = ca.SX.sym("q", link.kind.nx)
    padded = ca.vertcat(ca.SX(link.x.start, 1), q, ca.SX(x.shape[0] - link.x.stop, 1))
    W = ca.densify(ca.SX(directions(link, padded).W))
    rate = ca.jtimes(ca.vec(W), q, ca.mtimes(link.kind.rate(q), v[link.v]))
    return ca.reshape(ca.substitute(rate, q, x[link.x]), *W.shape)


def _constant(values: np.ndarray) -> Matrix:
    return ca.sparsify(ca.SX(constant_pose(values)))


def _complement(S: np.ndarray) -> np.ndarray:
    """Orthonormal basis of what is orthogonal to S; unit vectors where S has empty rows."""
    empty = ~np.any(S, axis=1)
    columns = list(np.eye(6)[empty])
    if not empty.all():
        U, sizes, _ = np.linalg.svd(S[~empty])
        for column in U[:, len(sizes) :].T:
            full = np.zeros(6)
            full[~empty] = column
            columns.append(full)
    return np.reshape(columns, (-1, 6)).T


def _moving_complement(S: Matrix) -> Matrix:
    """Return the same for a symbolic S of full rank, by Householder reflections.

    The basis may jump where a reflection changes sign; the space that it spans does not.
    """
    S = ca.sparsify(S)
    used = sorted(set(S.sparsity().row()))
    rows, nv = len(used), S.shape[1]
    R, Q = ca.densify(S[used, :]), ca.SX(ca.DM.eye(rows))
    for c in range(nv):
        u = R[c:, c]
        size = ca.sqrt(ca.sumsqr(u))
        u[0] += ca.if_else(u[0] < 0, -size, size)
        scale = 2 / ca.sumsqr(u)
        R[c:, :] -= scale * u @ (u.T @ R[c:, :])
        Q[:, c:] -= scale * (Q[:, c:] @ u) @ u.T
    N = ca.SX(6, 6 - nv)
    for k, row in enumerate(r for r in range(6) if r not in used):
        N[row, k] = 1
    N[used, 6 - rows :] = Q[:, nv:]
    return N


# ------------------------------------------------------------------ elimination


class EliminatedLoad(NamedTuple):
    """What the inward sweep leaves at a body for the outward one, and `passed` for the parent."""

    offset: Matrix
    blocked: Matrix
    passed: Matrix


class BodyFactor(NamedTuple):
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
    def of(cls, directions: Directions, A: Matrix, M: Matrix) -> "BodyFactor":
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

    def inward(self, load: Matrix, tau: Matrix, bias: Matrix | None) -> EliminatedLoad:
        """Return what the parent feels of a load on the body, a joint force and a bias."""
        S, W, N = self.directions
        u = solve_symmetric(self.D, tau + S.T @ load)
        blocked = N.T @ load - self.Uz @ u
        along = -tau if self.Ky is None else self.A @ u - tau
        passed = N @ blocked + W @ along
        if bias is not None:
            passed = passed - self.shown @ bias
        return EliminatedLoad(u, blocked, ca.densify(passed))

    def whitened(self, load: Matrix, tau: Matrix) -> Matrix:
        """Return ``C^-1 (tau + S^T load)`` (nv x k) with ``C C^T = D``.

        Summed over all joints, squares of it are the mobility of the load and joint forces.
        """
        C, right = cholesky(self.D), tau + self.directions.S.T @ load
        rows: list[Matrix] = []
        for i in range(C.shape[0]):
            known = sum((C[i, j] * rows[j] for j in range(i)), ca.SX(1, right.shape[1]))
            rows.append((right[i, :] - known) / C[i, i])
        return ca.vertcat(*rows) if rows else ca.SX(0, right.shape[1])

    def acceleration(self, carried: Matrix, offset: Matrix) -> Matrix:
        """Return the acceleration of the body alone, for what is carried to here and u."""
        S, _, N = self.directions
        return ca.densify(N @ (N.T @ carried) + S @ self._total(carried, offset))

    def _total(self, carried: Matrix, offset: Matrix) -> Matrix:
        """Return the body's acceleration along the joint: W^T a."""
        _, W, N = self.directions
        total = offset - self.Kz @ (N.T @ carried)
        return total if self.Ky is None else total + self.Ky @ (W.T @ carried)

    def outward(
        self, carried: Matrix, load: EliminatedLoad, tau: Matrix
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Return acceleration, joint rate and joint wrench for the acceleration carried to here."""
        S, W, N = self.directions
        z, along = N.T @ carried, W.T @ carried
        total = self._total(carried, load.offset)
        lam, drive = self.Lam @ z - load.blocked, tau
        if self.Z is not None:
            lam = lam + self.Z.T @ along
            drive = tau - self.A @ (total - along)
        return ca.densify(N @ z + S @ total), total - along, ca.densify(N @ lam + W @ drive)

    @property
    def for_accelerations(self) -> "BodyFactor":
        """The same without what `acceleration` does not use."""
        names = ("A", "D", "Uz", "Lam", "shown")
        nothing = {name: ca.SX(*getattr(self, name).shape) for name in names}
        return self._replace(Z=None, **nothing)
