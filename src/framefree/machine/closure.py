"""Configurations and velocities at which a machine's loops and couplings hold."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from framefree.geometry import se3
from framefree.machine.loop import TOLERANCE
from framefree.machine.units import Units, limits, translations
from framefree.machine.values import constant_pose

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

STEPS = 40
RANK = 1e-9
"""Singular values of J below this, relative to the largest, count as zero."""
CLOSED = 1e-11
"""Largest residual, rad or lengths of the machine, of what counts as closed."""
WELL_POSED = 1e-3
"""Least singular value of J, relative to the largest, of configurations that are examined.

Where loops lose rank, as a four-bar does that lies flat, accelerations jump from one branch of the
motion to another, and near it rounding errors grow by the inverse of this number.
"""

UNDETERMINED = 1e-7
"""Share in a free motion above which a velocity takes part in it."""

_LINEAR_ROWS = {"weld": 3, "ball": 3, "hinge": 3, "slider": 2, "distance": 1}
"""Number of rows of a loop, the first ones, that are lengths; the others are angles."""


class LoopClosure:
    """The residual phi(x) of all loops and couplings and its rate J v, in natural units.

    Rows that are lengths count in lengths of the machine, and J has velocities of translation in
    lengths, too: J = d(phi)/dx D.
    """

    def __init__(self, machine: "Machine", units: Units | None = None) -> None:
        self.machine = machine
        self.units = units = Units.of(machine.tree) if units is None else units
        x = ca.SX.sym("x", machine.nx)
        poses = body_poses(machine, x)
        rows, sizes, closed = [], [], []
        for loop in machine.loops:
            a, b = (_frame_pose(machine, poses, name) for name in (loop.frame_a, loop.frame_b))
            rows.append(loop.residual(se3.compose(se3.inverse(a), b)))
            lengths = _LINEAR_ROWS[loop.kind]
            sizes += [units.length] * lengths + [1.0] * (loop.size - lengths)
            # A loop that is rounded has a tolerance of its own, larger than usual.
            own = loop.tolerance if loop.tolerance > TOLERANCE else CLOSED
            closed += [own / units.length] * lengths + [own] * (loop.size - lengths)
        place = {name: i for i, name in enumerate(machine.x_names)}
        linear = translations(machine)
        for coupling in machine.couplings:
            sources = [x[place[name]] for name in coupling.sources]
            rows.append(x[place[coupling.target]] - coupling.value(*sources))
            sizes.append(units.length if linear[place[coupling.target]] else 1.0)
            closed.append(CLOSED)
        phi = ca.densify(ca.SX(ca.vertcat(*rows))) / ca.DM(np.array(sizes))
        jacobian = ca.jacobian(phi, x) @ machine.rate_matrix(x) @ ca.diag(ca.DM(units.velocity))
        self._tolerance = np.array(closed)[:, None]
        self._rank = max(RANK, 10.0 * max(closed, default=0.0))
        self._function = ca.Function("closure", [x], [phi, ca.densify(jacobian)])

    def closed(self, x: np.ndarray, count: int) -> np.ndarray:
        """Return where Newton's method from starts (n, nx) closes all loops: `count` at most.

        Coordinates that would leave the limits of their joints are held there. Configurations near
        which the loops lose rank are left out, see `WELL_POSED`, and those beyond limits if there
        are others.
        """
        lower, upper = limits(self.machine)
        ends: list[np.ndarray] = []
        values: list[np.ndarray] = []
        good: list[np.ndarray] = []
        for end in map(self._kept_within, x):
            if end is None:
                continue
            ends.append(end)
            values.append(self._singular_values(end))
            good = [
                e for e, well in zip(ends, _well_posed(values, self._rank), strict=True) if well
            ]
            within = [e for e in good if (lower <= e).all() and (e <= upper).all()]
            if len(within) == count:
                return np.array(within)
        kept = [e for e in good if (lower <= e).all() and (e <= upper).all()] or good
        return np.array(kept[:count]).reshape(-1, self.machine.nx)

    def allowed(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return velocities (n, nv) projected to those that keep loops closed: J v = 0."""
        D = self.units.velocity
        result = np.array(v)
        for i, J in enumerate(self.jacobians(x)):
            result[i] -= D * (np.linalg.pinv(J, rcond=self._rank) @ (J @ (v[i] / D)))
        return result

    def allowed_directions(self, x: np.ndarray) -> list[np.ndarray]:
        """Return orthonormal bases Z (nv, k), J Z = 0: the velocities D Z keep loops closed."""
        bases = []
        for J in self.jacobians(x):
            _, sizes, rows = np.linalg.svd(J)
            bases.append(rows[int((sizes > self._rank * max(sizes[0], 1e-300)).sum()) :].T)
        return bases

    def independent(self, x: np.ndarray) -> bool:
        """Whether the rows of J are independent at all of these configurations (n, nx)."""
        return all(v[-1] > self._rank * v[0] for v in map(self._singular_values, x))

    def determined(self, x: np.ndarray, independent: list[int]) -> np.ndarray:
        """Return where (n,) the independent velocities determine all others, by a clear margin."""
        others = [k for k in range(self.machine.nv) if k not in independent]
        margins = []
        for J in self.jacobians(x):
            values = np.linalg.svd(J[:, others], compute_uv=False)
            margins.append(len(values) >= len(others) and values[len(others) - 1] / values[0])
        return np.array(margins, dtype=float) > WELL_POSED

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Return how far (n,) loops are from losing rank: least over largest singular value."""
        values = [self._singular_values(row) for row in x]
        rank = _rank(values, self._rank)
        return np.array([one[rank - 1] / one[0] if rank else 1.0 for one in values])

    def jacobians(self, x: np.ndarray) -> np.ndarray:
        """Return J (n, rows, nv)."""
        return np.array([self._function(row)[1].full() for row in x])

    def _singular_values(self, x: np.ndarray) -> np.ndarray:
        """Return all singular values of J, as many as it has rows; zeros where it is wide."""
        J = self._function(x)[1].full()
        values = np.linalg.svd(J, compute_uv=False)
        return np.append(values, np.zeros(len(J) - len(values)))

    def _kept_within(self, x: np.ndarray) -> np.ndarray | None:
        """Return what is reached from x, within limits if that can be."""
        lower, upper = limits(self.machine)
        first = end = self._closed(x)
        held: set[int] = set()
        while end is not None:
            beyond = np.flatnonzero((end < lower) | (end > upper))
            if not len(beyond):
                return end
            further = {self._velocity_of[int(i)] for i in beyond} - held
            if not further:
                break
            held |= further
            end = self._closed(np.clip(end, lower, upper), sorted(held))
        return first

    @cached_property
    def _velocity_of(self) -> dict[int, int]:
        """Velocity of every coordinate that may have limits."""
        pairs: dict[int, int] = {}
        for joint in self.machine.joints:
            x, v = self.machine.x_slice[joint.name], self.machine.v_slice[joint.name]
            last = v.stop - 1
            pairs |= {i: min(v.start + k, last) for k, i in enumerate(range(x.start, x.stop))}
        return pairs

    def _closed(self, x: np.ndarray, held: Sequence[int] = ()) -> np.ndarray | None:
        """Return where Newton's method ends from x, some velocities held; None if not closed."""
        best = np.inf
        for _ in range(STEPS):
            phi, J = (part.full() for part in self._function(x))
            J[:, list(held)] = 0.0
            residual = float((np.abs(phi) / self._tolerance).max())
            if not np.isfinite(residual):
                return None
            # One step past the bar: Newton's method then stands at rounding error.
            if best <= 1.0:
                return x if residual <= 1.0 else None
            best = residual
            step = -np.linalg.pinv(J, rcond=self._rank) @ phi[:, 0]
            step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
            x = self.machine.normalise(self.machine.integrate(x, self.units.velocity * step))
        return None


def body_poses(machine: "Machine", x: Any) -> list[Any]:
    """Return the poses (4x4, casadi) of all bodies seen from the world at a configuration x."""
    poses: list[Any] = []
    for joint, parent in zip(machine.joints, machine.parent, strict=True):
        step = se3.compose(
            constant_pose(joint.parent_pose),
            joint.kind.pose(x[machine.x_slice[joint.name], :]),
            se3.inverse(constant_pose(joint.child_pose)),
        )
        poses.append(se3.compose(poses[parent], step) if parent >= 0 else step)
    return poses


def _frame_pose(machine: "Machine", poses: list[Any], name: str) -> Any:
    frame = machine.frame(name)
    index = machine.body_index[frame.body]
    on_body = constant_pose(frame.pose)
    return se3.compose(poses[index], on_body) if index >= 0 else on_body


def loose_joints(machine: "Machine", names: Sequence[str]) -> list[str]:
    """Return which of some joints without inertia are not led by loops and couplings either.

    The acceleration is unique where [M; A] has full column rank. M does not feel the velocities of
    these joints, so that the columns of A that belong to them must be independent.
    """
    if not names or not machine.closed:
        return list(names)
    numeric = machine.numeric
    closure = LoopClosure(numeric)
    starts = np.vstack([numeric.neutral(), numeric.random(np.random.default_rng(0), 20)])
    x = closure.closed(starts, 3)
    columns = [k for name in names for k in range(machine.nv)[machine.v_slice[name]]]
    loose = set(columns)
    for J in closure.jacobians(x if len(x) else starts[:1])[:, :, columns]:
        _, values, rows = np.linalg.svd(J)
        free = rows[int((values > RANK * max(values[0], 1e-300)).sum()) :]
        moving = np.abs(free).max(axis=0, initial=0.0) > UNDETERMINED
        loose &= {k for k, moves in zip(columns, moving, strict=True) if moves}
    return [name for name in names if loose & set(range(machine.nv)[machine.v_slice[name]])]


def _rank(values: list[np.ndarray], tolerance: float) -> int:
    """Return the largest rank that J has at any of the configurations."""
    return max((int((one > tolerance * one[0]).sum()) for one in values if len(one)), default=0)


def _well_posed(values: list[np.ndarray], tolerance: float) -> list[bool]:
    """Return where J has the largest rank by a clear margin."""
    rank = _rank(values, tolerance)
    return [not rank or bool(one[rank - 1] > WELL_POSED * one[0]) for one in values]
