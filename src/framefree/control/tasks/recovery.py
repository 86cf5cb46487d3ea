"""From joint forces to inputs: what the actuators can give of them, and what is left."""

from typing import Any

import casadi as ca
import numpy as np

from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.constrained.algebra import RowSpace
from framefree.motion.constrained.solve import null_space, pseudo_inverse
from framefree.motion.tree.state import TreeState

Matrix = Any


class Recovery:
    """The actuators of a machine at a state: joint forces ``B u + bias``.

    Attributes
    ----------
    B : (nv x nu)
    bias : (nv)
    """

    def __init__(self, state: TreeState) -> None:
        self.B, self.bias = ca.SX(input_matrix(state)), input_bias(state)
        self._constant = self.B.is_constant()

    def inputs(self, tau: Matrix) -> tuple[Matrix, Matrix]:
        """Return the inputs u of least squares for joint forces tau, and ``tau - B u - bias``."""
        wanted = tau - self.bias
        u = self.least(wanted)
        return u, wanted - self.B @ u

    def least(self, wanted: Matrix) -> Matrix:
        """Return ``B^+ wanted`` (nu x k)."""
        if self._constant:
            return ca.sparsify(ca.DM(pseudo_inverse(ca.DM(self.B).full()))) @ wanted
        sizes = ca.SX.ones(self.B.shape[0], 1) * ca.sumsqr(self.B)
        return RowSpace(self.B, sizes, None).least(wanted)

    def unactuated(self, carried: slice | None = None) -> Matrix:
        """Return N (k x nv) with ``N (tau - bias) = 0`` iff actuators can give tau.

        Joint forces in `carried`, which others give, are left out.
        """
        n = self.B.shape[0]
        own = np.ones(n, bool)
        if carried is not None:
            own[carried] = False
        rows = np.flatnonzero(own)
        if self._constant:
            N = np.zeros((n, n - np.count_nonzero(~own)))
            N[rows] = np.eye(len(rows))
            free = null_space((N.T @ ca.DM(self.B).full()).T)
            return ca.sparsify(ca.DM((N @ free).T))
        chosen = self.B[rows.tolist(), :]
        sizes = ca.SX.ones(chosen.shape[1], 1) * ca.sumsqr(chosen)
        basis = RowSpace(chosen.T, sizes, None).rows.basis
        projector = ca.SX.eye(len(rows)) - sum(
            (b @ b.T for b in basis), ca.SX(len(rows), len(rows))
        )
        N = ca.SX(len(rows), n)
        N[:, rows.tolist()] = projector
        return N
