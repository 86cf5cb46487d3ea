"""All limits of a machine's inputs as rows ``lower <= C u <= upper`` at a state.

They are the limits of the inputs themselves, further half-spaces of actuators (tilting propellers),
limits of motors' forces, and of the effort of joints. Limits of constant numbers that the others
imply are left out: every one that is not costs a program time.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.machine.actuators import JointActuator, JointForce
from framefree.machine.values import constant, is_symbolic
from framefree.motion.tree.state import TreeState

Matrix = Any

IMPLIED = 1e-9
"""By how much, relative to its size, the others may exceed a limit that they imply."""


class InputLimits(NamedTuple):
    """Rows C (m x nu) with their bounds (m each); infinite bounds are numbers."""

    C: Matrix
    lower: Matrix
    upper: Matrix

    @classmethod
    def at(cls, state: TreeState) -> "InputLimits":
        """Return the limits at a state; rows that bound one input alone are joined to one.

        Raises
        ------
        ControlError
            If no input is within all limits that are constant.
        """
        machine = state.machine
        lower, upper = (np.array(side, float) for side in machine.input_limits)
        rows = [*_polytopes(machine), *_motor_forces(state), *_efforts(state)]
        fixed, moving = [], []
        for row in rows:
            place = _single(*row)
            if place is not None:
                k, low, high = place
                lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
            else:
                (fixed if all(part.is_constant() for part in row) else moving).append(row)
        C = np.vstack([*(ca.DM(row).full() for row, _, _ in fixed), np.eye(machine.nu)])
        lower = np.concatenate([[float(low) for _, low, _ in fixed], lower])
        upper = np.concatenate([[float(high) for _, _, high in fixed], upper])
        lower, upper = _pruned(C, lower, upper, bool(fixed))
        kept = np.isfinite(lower) | np.isfinite(upper)
        numbers = [ca.sparsify(ca.SX(ca.DM(C[kept]))), ca.SX(lower[kept]), ca.SX(upper[kept])]
        return cls(*(ca.vertcat(a, *b) for a, b in zip(numbers, _columns(moving), strict=True)))

    def within(self, u: Matrix) -> Matrix:
        """Tell whether inputs (nu) keep all limits."""
        values = self.C @ u
        return ca.mmin(ca.vertcat(values - self.lower, self.upper - values)) >= 0


def irredundant(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell which rows of A u <= b (m of them) are not implied by the others: (m,) of bool.

    Of rows that imply each other the last ones are kept.

    Raises
    ------
    ControlError
        If no u fulfils them all.
    """
    from scipy.optimize import linprog

    scale = np.linalg.norm(A, axis=1)
    A, b = A / scale[:, None], b / scale
    free = [(None, None)] * A.shape[1]
    if linprog(np.zeros(A.shape[1]), A, b, bounds=free).status == 2:
        raise ControlError("the limits of the inputs leave no input at all")
    kept = np.ones(len(b), bool)
    for i in range(len(b)):
        kept[i] = False
        # The row itself, a little further out, keeps the largest value finite.
        rows, sides = np.vstack([A[kept], A[i]]), np.append(b[kept], b[i] + 1.0)
        found = linprog(-A[i], rows, sides, bounds=free)
        kept[i] = found.status != 0 or -found.fun > b[i] + IMPLIED * max(1.0, abs(b[i]))
    return kept


def _pruned(
    C: np.ndarray, lower: np.ndarray, upper: np.ndarray, general: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of C u that are infinite where the others imply them."""
    if not general:
        # Every input on its own: nothing is implied.
        if (lower > upper).any():
            raise ControlError("the limits of the inputs leave no input at all")
        return lower, upper
    above, below = np.flatnonzero(np.isfinite(upper)), np.flatnonzero(np.isfinite(lower))
    sides = np.concatenate([upper[above], -lower[below]])
    kept = irredundant(np.vstack([C[above], -C[below]]), sides)
    lower, upper = np.array(lower), np.array(upper)
    upper[above[~kept[: len(above)]]] = np.inf
    lower[below[~kept[len(above) :]]] = -np.inf
    return lower, upper


def _columns(rows: list["Row"]) -> list[list[Matrix]]:
    """Return all first parts of rows, all second and all third ones."""
    return [[row[i] for row in rows] for i in range(3)]


Row = tuple[Matrix, Matrix, Matrix]


def _polytopes(machine: Any) -> list[Row]:
    found = []
    for actuator in machine.actuators:
        A, b = actuator.polytope
        wide = np.zeros((len(b), machine.nu))
        wide[:, machine.u_slice[actuator.name]] = A
        found += [
            (ca.sparsify(ca.SX(ca.DM(row).T)), ca.SX(-np.inf), ca.SX(float(side)))
            for row, side in zip(wide, b, strict=True)
        ]
    return found


def _motor_forces(state: TreeState) -> list[Row]:
    """Limits of gain u + (bias) of motors that have them."""
    machine, found = state.machine, []
    for motor in machine.actuators:
        if not isinstance(motor, JointForce):
            continue
        if not np.isfinite([motor.force_lower, motor.force_upper]).any():
            continue
        x, v = (
            state.x[machine.x_slice[motor.joint]],
            state.v[machine.v_slice[motor.joint]],
        )
        gear, terms = constant(motor.gear), motor.bias_terms
        own = ca.SX(terms[0]) + terms[2] * ca.dot(gear, v)
        if is_symbolic(terms) or terms[1] != 0.0:
            own = own + terms[1] * ca.dot(gear, x)
        row = ca.SX(1, machine.nu)
        row[machine.u_slice[motor.name]] = motor.gain
        found.append((row, _less(motor.force_lower, own), _less(motor.force_upper, own)))
    return found


def _less(limit: float, own: Matrix) -> Matrix:
    """Return limit - own, a number where the limit is infinite."""
    return ca.SX(limit) if np.isinf(limit) else limit - own


def _efforts(state: TreeState) -> list[Row]:
    """Limits of what all actuators of a joint together do to it."""
    machine, found = state.machine, []
    for joint in machine.joints:
        limited = np.flatnonzero(np.isfinite(joint.effort_limit)).tolist()
        own = [
            a for a in machine.actuators if isinstance(a, JointActuator) and a.joint == joint.name
        ]
        if not limited or not own:
            continue
        x, v = state.x[machine.x_slice[joint.name]], state.v[machine.v_slice[joint.name]]
        rows, bias = ca.SX(joint.nv, machine.nu), ca.SX(joint.nv, 1)
        for actuator in own:
            if actuator.nu:
                rows[:, machine.u_slice[actuator.name]] = constant(actuator.columns)
            extra = actuator.bias(x, v)
            bias = bias if extra is None else bias + extra
        rows = ca.sparsify(rows)
        for i in limited:
            most = float(joint.effort_limit[i])
            if rows[i, :].nnz():
                found.append((rows[i, :], -most - bias[i], most - bias[i]))
    return found


def _single(row: Matrix, low: Matrix, high: Matrix) -> tuple[int, float, float] | None:
    """Return the input that a row bounds alone, and its bounds, if all are numbers."""
    row = ca.sparsify(row)
    if row.nnz() != 1 or not all(value.is_constant() for value in (row, low, high)):
        return None
    k = row.sparsity().get_triplet()[1][0]
    factor = float(row[0, k])
    sides = sorted((float(low) / factor, float(high) / factor))
    return k, sides[0], sides[1]
