"""A frame's error to its reference, and the directions of a frame in the metric of the inertia."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.model import ModelState
from framefree.control.qp.iteration import Factor
from framefree.geometry import se3, so3
from framefree.motion.constrained.algebra import MassFactor

Matrix = Any


class FrameError(NamedTuple):
    """A frame beside its reference.

    Attributes
    ----------
    e : (6)
        `se3.pose_error`: (r_d - r, log(R^T R_d)).
    y, y_d : (6)
        (v_d - v, R_d^T (w_d - w)), velocities in world axes, and what the reference has in it:
        de/dt = L y and y = y_d - J v.
    L : (6 x 6)
    J : (6 x n)
    drift : (6)
        dy/dt at zero joint acceleration: dy/dt = drift - J a.
    """

    e: Matrix
    y: Matrix
    y_d: Matrix
    L: Matrix
    J: Matrix
    drift: Matrix


def frame_error(state: ModelState, frame: str, reference: Mapping[str, Matrix]) -> FrameError:
    """Return the error of a frame to "FRAME.pose", "FRAME.twist" and "FRAME.acceleration".

    Without an acceleration the reference is taken to have none.
    """
    G, G_d = state.tree.frame_pose(frame), reference[f"{frame}.pose"]
    xi_d = reference[f"{frame}.twist"]
    dxi_d = reference.get(f"{frame}.acceleration", ca.SX(6, 1))
    R, R_d = se3.rotation(G), se3.rotation(G_d)
    Q = R_d.T @ R
    J, rate = state.jacobian(frame)
    xi = J @ state.v
    e = se3.pose_error(G, G_d)
    L = ca.diagcat(ca.DM.eye(3), so3.right_jacobian_inverse(e[3:]))
    y_d = ca.vertcat(R_d @ xi_d[:3], xi_d[3:])
    y = y_d - ca.vertcat(R @ xi[:3], Q @ xi[3:])
    dxi = rate @ state.v
    drift = ca.vertcat(
        R_d @ (dxi_d[:3] + ca.cross(xi_d[3:], xi_d[:3])) - R @ (dxi[:3] + ca.cross(xi[3:], xi[:3])),
        dxi_d[3:] - Q @ dxi[3:] + ca.cross(xi_d[3:], Q @ xi[3:]),
    )
    return FrameError(e, y, y_d, L, ca.vertcat(R @ J[:3, :], Q @ J[3:, :]), drift)


class TaskSpace:
    """Directions J (k x n) of a frame, and what they leave free.

    Parameters
    ----------
    state : ModelState
    J : (k x n)
    singular : float
        Margin below which A = J M^-1 J^T is damped: by the share
        (singular - margin)^2 of its own diagonal.
    """

    def __init__(self, state: ModelState, J: Matrix, singular: float) -> None:
        self.J, self._singular = J, singular
        self._mass = MassFactor(state.mass)

    @cached_property
    def _inner(self) -> Matrix:
        """D^-1/2 L^-T J^T (n x k): its products are A."""
        return self._mass.into(ca.densify(self.J.T))

    @cached_property
    def A(self) -> Matrix:
        """J M^-1 J^T (k x k)."""
        return self._inner.T @ self._inner

    @cached_property
    def margin(self) -> Matrix:
        """Root of the least pivot of A relative to its diagonal entry, between 0 and 1."""
        k = self.A.shape[0]
        rows = [[self.A[i, j] for j in range(i + 1)] for i in range(k)]
        least = ca.SX(1)
        for j in range(k):
            diagonal = ca.fmax(self.A[j, j], 1e-300)
            least = ca.fmin(least, ca.fmax(rows[j][j], 0) / diagonal)
            reciprocal = 1 / ca.fmax(rows[j][j], 1e-14 * diagonal)
            for i in range(j + 1, k):
                factor = rows[i][j] * reciprocal
                for m in range(j + 1, i + 1):
                    rows[i][m] = rows[i][m] - factor * rows[m][j]
        return ca.sqrt(least)

    @cached_property
    def _factor(self) -> Factor:
        diagonal = ca.diag(self.A)
        share = ca.fmax(self._singular - self.margin, 0) ** 2
        # Directions that the frame does not have at all get a number, too, that harms nothing.
        floor = 1e-9 * ca.sum1(diagonal) + 1e-300
        return Factor(self.A + share * ca.diag(diagonal + floor))

    def acceleration(self, wanted: Matrix) -> Matrix:
        """Return the accelerations (n) of least v . M v with J a = wanted (k), damped."""
        return self._mass.out(self._inner @ self._factor.solve(wanted))

    def free(self, v: Matrix) -> Matrix:
        """Return N v: what v (n) does beside J."""
        return v - self.acceleration(self.J @ v)

    def unfelt(self, force: Matrix) -> Matrix:
        """Return N^T force (n): the part of a force that does not accelerate the frame."""
        felt = self._inner.T @ self._mass.into(force)
        return force - self.J.T @ self._factor.solve(felt)

    def solve_mass(self, force: Matrix) -> Matrix:
        """Return M^-1 force (n)."""
        return self._mass.out(self._mass.into(ca.densify(force)))
