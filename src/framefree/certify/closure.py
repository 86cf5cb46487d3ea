"""Configurations and velocities at which a machine's loops and couplings hold."""

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.motion.constrained.limits import CoordinateLimits
from framefree.motion.forces import Bodies
from framefree.motion.tree import Tree

STEPS = 40
RANK = 1e-9
"""Singular values of J below this, relative to the largest, count as zero."""
CLOSED = 1e-11
"""Largest residual, m or rad, of what counts as closed."""
REGULAR = 1e-3
"""Smallest singular value of J, relative to that of the best configuration: nearer to a singular
position accelerations are not determined to the digits that are compared."""


class Closure:
    """The residual of all loops and couplings, phi(x), and its rate J v."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        x = ca.SX.sym("x", machine.nx)
        state = Tree(machine.tree).at(x)
        bodies = Bodies(machine, state.poses, state.twists)
        rows = [loop.residual(bodies.relative(loop)[2]) for loop in machine.loops]
        place = {name: i for i, name in enumerate(machine.x_names)}
        for coupling in machine.couplings:
            sources = [x[place[name]] for name in coupling.sources]
            rows.append(x[place[coupling.target]] - coupling.value(*sources))
        phi = ca.densify(ca.SX(ca.vertcat(*rows)))
        jacobian = ca.densify(ca.jacobian(phi, x) @ machine.rate_matrix(x))
        self._function = ca.Function("closure", [x], [phi, jacobian])

    def closed(self, x: np.ndarray, count: int) -> np.ndarray:
        """Return where Newton's method from starts (n, nx) closes all loops: `count` at most.

        Configurations near singular ones are left out, and those beyond the limits of joints if
        there are others.
        """
        limits = CoordinateLimits(self.machine, range(self.machine.nv))
        within: list[np.ndarray] = []
        beyond: list[np.ndarray] = []
        for end in map(self._closed, x):
            if end is not None:
                (beyond if limits.beyond(end) else within).append(end)
            if len(within) == 2 * count:
                break
        reached = np.array(within or beyond).reshape(-1, self.machine.nx)
        return self._regular(reached)[:count]

    def _regular(self, x: np.ndarray) -> np.ndarray:
        """Return those of the configurations (n, nx) that are not near singular ones."""
        if not len(x):
            return x
        values = np.linalg.svd(self.jacobians(x), compute_uv=False)
        ranks = (values > RANK * values[:, :1]).sum(axis=1)
        rank = int(ranks.max(initial=0))
        smallest = values[:, rank - 1] if rank else np.ones(len(x))
        return x[(ranks == rank) & (smallest >= REGULAR * smallest.max())]

    def allowed(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return velocities (n, nv) projected to those that keep loops closed: J v = 0."""
        result = np.array(v)
        for i, J in enumerate(self.jacobians(x)):
            result[i] -= np.linalg.pinv(J, rcond=RANK) @ (J @ v[i])
        return result

    def allowed_directions(self, x: np.ndarray) -> list[np.ndarray]:
        """Return orthonormal bases Z (nv, k) of the velocities with J v = 0."""
        bases = []
        for J in self.jacobians(x):
            _, sizes, rows = np.linalg.svd(J)
            bases.append(rows[int((sizes > RANK * max(sizes[0], 1e-300)).sum()) :].T)
        return bases

    def independent(self, x: np.ndarray) -> bool:
        """Whether the rows of J are independent at all of these configurations (n, nx)."""
        return all(np.linalg.matrix_rank(J, tol=RANK) == len(J) for J in self.jacobians(x))

    def jacobians(self, x: np.ndarray) -> np.ndarray:
        """Return J (n, rows, nv)."""
        return np.array([self._function(row)[1].full() for row in x])

    def _closed(self, x: np.ndarray) -> np.ndarray | None:
        best = np.inf
        for _ in range(STEPS):
            phi, J = (part.full() for part in self._function(x))
            residual = float(np.abs(phi).max())
            if not np.isfinite(residual):
                return None
            # One step past the bar: Newton's method then stands at rounding error.
            if best <= CLOSED:
                return x if residual <= CLOSED else None
            best = residual
            step = -np.linalg.pinv(J, rcond=RANK) @ phi[:, 0]
            step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
            x = self.machine.normalise(self.machine.integrate(x, step))
        return None
