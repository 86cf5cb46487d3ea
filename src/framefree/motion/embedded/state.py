"""One symbolic state in minimal coordinates, with all that follows from it, on demand."""

from functools import cached_property

import casadi as ca

from framefree.motion.constrained.algebra import RowSpace
from framefree.motion.constrained.carrier import OnTree, TreeCarrier
from framefree.motion.constrained.motion import ConstraintState
from framefree.motion.constrained.rows import Closed, Constraint
from framefree.motion.embedded.maps import Chart, Map
from framefree.motion.spatial import Matrix, solve_symmetric, symmetric
from framefree.motion.tree.kinematics import Jacobian
from framefree.motion.tree.state import TreeState


class EmbeddedState:
    """A state (x, v) of minimal coordinates; without v the machine is at rest."""

    def __init__(self, map: Map, carrier: TreeCarrier, x: Matrix, v: Matrix | None) -> None:
        self._map, self._carrier = map, carrier
        self.v = ca.SX(map.nv, 1) if v is None else v
        self.chart: Chart = map.at(x, self.v)
        self.tree: TreeState = carrier.model.at(self.chart.x, self.chart.E @ self.v)

    def acceleration(self, a: Matrix | None = None) -> Matrix:
        """Return the tree's accelerations: E a + dE/dt v; without a, at a = 0."""
        carried = self.chart.rate @ self.v
        return carried if a is None else self.chart.E @ a + carried

    # ------------------------------------------------------------------ body by body

    @cached_property
    def _link_jacobians(self) -> list[Matrix]:
        return [jacobian.value @ self.chart.E for jacobian in self.tree.link_jacobians]

    @cached_property
    def body_masses(self) -> list[Matrix]:
        """``Gamma_b = J_b^T M_b J_b`` (n x n) of every body, and of the rotor of its joint."""
        masses = []
        for link, inertia, J in zip(
            self.tree.links, self.tree.model.inertias, self._link_jacobians, strict=True
        ):
            turning = self.chart.E[link.v, :]
            masses.append(J.T @ (inertia.matrix @ J) + turning.T @ (link.armature @ turning))
        return masses

    @cached_property
    def mass(self) -> Matrix:
        """``Gamma = sum_b Gamma_b = E^T M E`` (n x n), in the second form, which is cheaper."""
        return symmetric(self.chart.E.T @ (self.tree.mass @ self.chart.E))

    @cached_property
    def body_gravities(self) -> list[Matrix]:
        """Force (n) that holds each body against gravity: ``-J_b^T M_b (R_b^T g, 0)``."""
        gravities = []
        for G, link, J in zip(self.tree.poses, self.tree.links, self._link_jacobians, strict=True):
            R = G[:3, :3] @ link.to_body[:3, :3].T
            weight = link.inertia.matrix[:, :3] @ (R.T @ self.tree.model.gravity)
            gravities.append(-J.T @ weight)
        return gravities

    # ------------------------------------------------------------------ equations of motion

    @cached_property
    def bias(self) -> Matrix:
        """Force (n) at zero acceleration."""
        return self.inverse()

    def inverse(self, a: Matrix | None = None) -> Matrix:
        """Return the force (n) for an acceleration; without one, for none."""
        return self.chart.E.T @ self.tree.inverse(self.acceleration(a))

    def forward(self, force: Matrix) -> Matrix:
        """Return the acceleration (n) under a force."""
        return solve_symmetric(self.mass, force - self.bias)

    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame (6 x n), and its rate."""
        J, dJ = self.tree.jacobian(frame)
        return Jacobian(J @ self.chart.E, dJ @ self.chart.E + J @ self.chart.rate)

    # ------------------------------------------------------------------ what loops carry

    def loop_wrenches(
        self, constraints: list[Constraint], a: Matrix, joint_force: Matrix
    ) -> list[Matrix]:
        """Return the wrench (6) of every loop, frame a on frame b in b's axes.

        What the tree's joint forces do not account for is ``A^T lam``; lam is the shortest.
        """
        if not any(isinstance(constraint, Closed) for constraint in constraints):
            return []
        rows = ConstraintState(self._carrier, constraints, OnTree(self.tree), ca.SX(0))
        missing = self.tree.inverse(self.acceleration(a)) - joint_force
        space = RowSpace(rows.rows.A, rows.rows.size, None)
        return rows.loop_wrenches(space.multipliers(missing))
