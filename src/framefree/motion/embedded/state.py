"""One symbolic state in minimal coordinates, with all that follows from it, on demand."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca

from framefree.motion.constrained.algebra import RowSpace
from framefree.motion.constrained.state import ConstrainedState
from framefree.motion.constrained.wrenches import loop_loads
from framefree.motion.embedded.maps import Chart
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix, symmetric
from framefree.motion.state import Jacobian, State
from framefree.motion.tree.state import TreeState

if TYPE_CHECKING:
    from framefree.motion.embedded.embedded import Embedded


class EmbeddedState(State):
    """A state (x, v) of minimal coordinates; without v the machine is at rest."""

    equations: "Embedded"

    def __init__(self, equations: "Embedded", x: Matrix, v: Matrix | None, t: Any = 0) -> None:
        self.equations, self.x, self.t = equations, x, t
        self.v = ca.SX(equations.map.nv, 1) if v is None else v
        self.chart: Chart = equations.map.at(x, self.v)
        self.tree: TreeState = equations.tree.at(self.chart.x, self.chart.E @ self.v, t)

    # ------------------------------------------------------------------ the tree's state

    @property
    def poses(self) -> list[Matrix]:
        """Pose (4x4) of every body."""
        return self.tree.poses

    @property
    def twists(self) -> list[Matrix]:
        """Body twist (6) of every body."""
        return self.tree.twists

    def accelerations(self, a: Matrix) -> list[Matrix]:
        """Rate (6) of every body twist under an acceleration a (n)."""
        return self.tree.accelerations(self.acceleration(a))

    @property
    def joint_x(self) -> Matrix:
        """Coordinates of all joints."""
        return self.chart.x

    @property
    def joint_v(self) -> Matrix:
        """Velocities of all joints."""
        return self.tree.v

    @property
    def joint_jacobian(self) -> Matrix:
        """E (nv_tree x n)."""
        return self.chart.E

    @property
    def joint_jacobian_rate(self) -> Matrix:
        """dE/dt (nv_tree x n)."""
        return self.chart.rate

    @property
    def kinetic(self) -> Matrix:
        """Kinetic energy (J)."""
        return self.tree.kinetic

    def acceleration(self, a: Matrix | None = None) -> Matrix:
        """Return the tree's accelerations: E a + dE/dt v; without a, at a = 0."""
        carried = self.chart.rate @ self.v
        return carried if a is None else self.chart.E @ a + carried

    @cached_property
    def mass(self) -> Matrix:
        """``Gamma = sum_b Gamma_b = E^T M E`` (n x n), in the second form, which is cheaper."""
        return symmetric(self.chart.E.T @ (self.tree.mass @ self.chart.E))

    # ------------------------------------------------------------------ equations of motion

    def inverse(self, a: Matrix) -> Matrix:
        """Return the force (n) for an acceleration."""
        return self.chart.E.T @ self.tree.inverse(self.acceleration(a))

    def generalised(self, load: Load) -> Matrix:
        """Return the force (n) that a load amounts to."""
        at_joints = Load(self.machine, joint_force=load.joint_force, wrenches=load.wrenches)
        total = self.chart.E.T @ self.tree.generalised(at_joints)
        return total if load.force is None else total + load.force

    @cached_property
    def coriolis(self) -> Matrix:
        """``C = E^T (M dE/dt + C_tree E)`` (n x n): skew wherever the tree's is."""
        return self.coriolis_from(self.tree.coriolis)

    def coriolis_from(self, C: Matrix) -> Matrix:
        """Return the same from any Coriolis matrix of the tree."""
        E = self.chart.E
        return E.T @ (self.tree.mass @ self.chart.rate + C @ E)

    @cached_property
    def gravity_force(self) -> Matrix:
        """Force (n) that holds the machine against gravity alone."""
        return self.chart.E.T @ self.tree.gravity_force

    def jacobian(self, frame: str) -> Jacobian:
        """Return the body Jacobian of a frame (6 x n), and its rate."""
        J, dJ = self.tree.jacobian(frame)
        return Jacobian(J @ self.chart.E, dJ @ self.chart.E + J @ self.chart.rate)

    # ------------------------------------------------------------------ what loops carry

    @cached_property
    def _closure(self) -> ConstrainedState:
        return ConstrainedState(self.equations.constrained, self.tree)

    def loop_wrenches(self, load: Load) -> list[Matrix]:
        """Return the wrench (6) of every loop, frame a on frame b in b's axes."""
        return self._wrenches_of_loops(self.forward(load), load)

    def _wrenches_of_loops(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return the same at an acceleration a (n).

        What the tree's joint forces do not account for is ``A^T lam``; lam is the shortest.
        """
        if not self.equations.constrained.closed:
            return []
        joint_force = load.joint_force
        if load.force is not None:
            joint_force = joint_force + self.equations.map.spread(self.chart, load.force)
        missing = self.tree.inverse(self.acceleration(a), load.wrenches) - joint_force
        rows = self._closure.rows
        return self._closure.wrenches_of(RowSpace(rows.A, rows.size, None).multipliers(missing))

    def carried_wrenches(self, a: Matrix, load: Load) -> list[Matrix]:
        """Return what the joints carry at an acceleration a (n) that a load is known to give."""
        pairs = zip(
            self.equations.constrained.closed, self._wrenches_of_loops(a, load), strict=True
        )
        held = load.plus(wrenches=loop_loads(self.tree, pairs))
        return self.tree.carried_wrenches(self.acceleration(a), held)
