"""Calculus along velocities that need not be the rates of coordinates.

With dx/dt = A(x) v, derivatives are taken along the columns of A, d_i f = A^alpha_i df/dx^alpha, so
that they stay on the surface on which x lives. They do not commute [Konz2024, eq. 2.19]:

    d_i d_j - d_j d_i = gamma^k_ij d_k,      gamma^k_ij = (d_i A^alpha_j - d_j A^alpha_i) Y^k_alpha

Nothing here builds the nv^3 numbers gamma unless asked for them: contracted with a velocity or a
momentum they cost a few directional derivatives of A.
"""

from functools import cached_property

import casadi as ca

from framefree.motion.spatial import Matrix, solve_symmetric


class Tangent:
    """Derivatives at a symbol x. Velocities and momenta passed in are held fixed."""

    def __init__(self, x: Matrix, A: Matrix) -> None:
        self.x, self.A = x, A
        self.nx, self.nv = A.shape

    def along(self, f: Matrix) -> Matrix:
        """Return d_i f_r: row r, column i."""
        return ca.jacobian(f, self.x) @ self.A

    def gradient(self, f: Matrix) -> Matrix:
        """Return the column d_i f of a scalar."""
        return self.A.T @ ca.gradient(f, self.x)

    def rate(self, f: Matrix, v: Matrix) -> Matrix:
        """Return v^i d_i f for an f of any shape."""
        return ca.reshape(ca.jtimes(ca.vec(ca.densify(f)), self.x, self.A @ v), *f.shape)

    def pseudoinverse_times(self, columns: Matrix) -> Matrix:
        """Return ``Y columns`` with Y = (A^T A)^-1 A^T."""
        return solve_symmetric(self._gram, self.A.T @ columns)

    def pulled(self, p: Matrix) -> Matrix:
        """Return ``Y^T p`` (nx)."""
        return self.A @ solve_symmetric(self._gram, p)

    @cached_property
    def _gram(self) -> Matrix:
        return self.A.T @ self.A

    # ------------------------------------------------------------------ commutation coefficients

    def bracket(self, p: Matrix) -> Matrix:
        """Return ``gamma^k_ij p_k``: row i, column j, skew."""
        held = ca.SX.sym("held", self.nx)
        turning = self.along(self.A.T @ held)  # row j, column i: held . d_i A_j
        return ca.substitute(turning.T - turning, held, self.pulled(p))

    def bracket_force(self, v: Matrix, p: Matrix) -> Matrix:
        """Return ``gamma^k_ij v^j p_k`` (nv)."""
        held, y = ca.SX.sym("held", self.nv), ca.SX.sym("y", self.nx)
        turning = self.gradient(ca.dot(y, self.A @ held)) - self.rate(self.A.T @ y, held)
        return _substituted(turning, (held, y), (v, self.pulled(p)))

    def turning(self, v: Matrix) -> Matrix:
        """Return ``gamma^k_ij v^j``: row i, column k. For a free body this is -ad_v^T."""
        held = ca.SX.sym("held", self.nv)
        moved = self.along(self.A @ held) - self.rate(self.A, held)
        return _substituted(self.pseudoinverse_times(moved).T, (held,), (v,))

    @cached_property
    def commutation(self) -> list[Matrix]:
        """The matrices gamma^k (row i, column j), k = 1..nv."""
        slopes = [self.rate(self.A, column) for column in ca.horzsplit(ca.SX.eye(self.nv))]
        rows: list[list[Matrix]] = [[] for _ in slopes]
        for i, slope in enumerate(slopes):
            other = ca.horzcat(*(s[:, i] for s in slopes))
            found = self.pseudoinverse_times(slope - other)  # row k, column j
            for k in range(self.nv):
                rows[k].append(found[k, :])
        return [ca.densify(ca.vertcat(*row)) for row in rows]

    # ------------------------------------------------------------------ connection coefficients

    def connection(self, metric: Matrix) -> list[Matrix]:
        """Return the matrices Gamma_i (row j, column k) of a metric M(x) [Konz2024, eq. 3.35].

        Gamma_ijk = 1/2 (d_k M_ij + d_j M_ik - d_i M_jk
                         + gamma^s_ij M_sk + gamma^s_ik M_sj - gamma^s_jk M_si)
        """
        gamma = self.commutation
        slopes = [self.rate(metric, column) for column in ca.horzsplit(ca.SX.eye(self.nv))]
        found = []
        for i in range(self.nv):
            slope = ca.horzcat(*(s[i, :].T for s in slopes))
            turned = ca.vertcat(*(g[i, :] for g in gamma)).T @ metric
            both = slope + turned
            last = slopes[i] + sum((metric[s, i] * gamma[s] for s in range(self.nv)), ca.SX(0))
            found.append(ca.densify(both + both.T - last) / 2)
        return found

    def connection_matrix(self, metric: Matrix, v: Matrix) -> Matrix:
        """Return ``C_ij = Gamma_ijk v^k``: dM/dt = C + C^T, and C v is the inertial bias."""
        held = ca.SX.sym("held", self.nv)
        slope = self.along(metric @ held)
        turned = self.turning(held) @ metric
        C = self.rate(metric, held) + slope - slope.T + turned - turned.T
        return _substituted((C + self.bracket(metric @ held)) / 2, (held,), (v,))

    def hessian(self, potential: Matrix, metric: Matrix) -> Matrix:
        """Return the covariant Hessian ``d_i d_j V - Gamma^k_ji d_k V``, a symmetric matrix.

        The order of the lower indices matters (errata E4-3): with Gamma^k_ij it is not symmetric.
        Where d_i V = 0 it does not depend on the metric.
        """
        gradient = self.gradient(potential)
        held = ca.SX.sym("held", self.nv)
        slope = self.along(metric @ held)
        turned = self.turning(held) @ metric
        # Gamma_lji held^l, row j, column i.
        lowered = slope + slope.T - self.rate(metric, held) - turned - turned.T
        lowered = (lowered - self.bracket(metric @ held)) / 2
        lowered = _substituted(lowered, (held,), (solve_symmetric(metric, gradient),))
        return (self.along(gradient) - lowered).T


def velocity_deviation(tangent: Tangent, v: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
    """Return W(x, v), ``W_ij = gamma^i_kj v^k``, and its rate along (v, a); v is a symbol."""
    W = -tangent.turning(v).T
    along_v = ca.reshape(ca.jtimes(ca.vec(ca.densify(W)), v, a), *W.shape)
    return W, tangent.rate(W, v) + along_v


def _substituted(f: Matrix, symbols: tuple, values: tuple) -> Matrix:
    return ca.substitute([f], list(symbols), [ca.densify(ca.SX(value)) for value in values])[0]
