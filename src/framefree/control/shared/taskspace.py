"""The directions of a frame in the metric of the inertia, and what they leave free."""

from functools import cached_property
from typing import Any

import casadi as ca

from framefree.control.qp.factor import SymmetricFactor
from framefree.control.shared.model import ModelState
from framefree.motion.constrained.algebra import MassFactor

Matrix = Any


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
        return ca.sqrt(SymmetricFactor(self.A).least)

    @cached_property
    def _factor(self) -> SymmetricFactor:
        diagonal = ca.diag(self.A)
        share = ca.fmax(self._singular - self.margin, 0) ** 2
        # Directions that the frame does not have at all get a number, too, that harms nothing.
        floor = 1e-9 * ca.sum1(diagonal) + 1e-300
        return SymmetricFactor(self.A + share * ca.diag(diagonal + floor))

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
