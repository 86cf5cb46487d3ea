"""Limits of a machine's inputs: as rows ``lower <= C u <= upper``, and what they cut off.

They are the limits of the inputs themselves, further half-spaces of actuators (tilting propellers),
limits of motors' forces, and of the effort of joints. Limits of constant numbers that the others
imply are left out of the rows: every one that is not costs a program time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.machine import Machine
from framefree.machine.actuators import JointActuator, JointForce
from framefree.machine.joint import Joint
from framefree.machine.values import constant
from framefree.motion.state import State

Matrix = Any

IMPLIED = 1e-9
"""By how much, relative to its size, the others may exceed a limit that they imply."""


class InputLimits(NamedTuple):
    """Rows C (m x nu) with their bounds (m each); infinite bounds are numbers."""

    C: Matrix
    lower: Matrix
    upper: Matrix

    @classmethod
    def at(cls, state: State) -> "InputLimits":
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
        result = linprog(-A[i], rows, sides, bounds=free)
        kept[i] = result.status != 0 or -result.fun > b[i] + IMPLIED * max(1.0, abs(b[i]))
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


def limited(machine: Machine) -> bool:
    """Tell whether anything limits what the actuators of a machine give."""
    inputs = np.isfinite(np.concatenate(machine.input_limits)).any()
    further = len(machine.input_polytope[1]) or any(True for _ in _limited_motors(machine))
    return bool(inputs or further or any(True for _ in _limited_joints(machine)))


def clipped(machine: Machine, u: Matrix) -> Matrix:
    """Return inputs (nu) cut to their own limits, as drives do; others stay as they are."""
    lower, upper = machine.input_limits
    result = ca.SX(u)
    for k in range(machine.nu):
        result[k] = _clip(result[k], lower[k], upper[k])
    return result


def cut(state: State, u: Matrix) -> Matrix:
    """Return the joint forces (nv) that limits of motors and joints take off and put on at u.

    The actuators give ``B u + bias + cut``: first the force of each motor is brought within its
    limits, then the sum of what all actuators of a joint do to it.
    """
    machine = state.machine
    change = ca.SX(machine.nv, 1)
    for motor in _limited_motors(machine):
        x, v = state.x[machine.x_slice[motor.joint]], state.v[machine.v_slice[motor.joint]]
        f = motor.force(x, v, u[machine.u_slice[motor.name]])
        excess = _clip(f, motor.force_lower, motor.force_upper) - f
        change[machine.v_slice[motor.joint]] += constant(motor.gear) * excess
    for joint, limited in _limited_joints(machine):
        rows, bias = _effort(state, joint)
        own = machine.v_slice[joint.name]
        effort = rows @ u + bias + change[own]
        for i in limited:
            most = float(joint.effort_limit[i])
            change[own.start + i] += _clip(effort[i], -most, most) - effort[i]
    return ca.sparsify(change)


def _clip(value: Matrix, lower: float, upper: float) -> Matrix:
    value = value if np.isinf(lower) else ca.fmax(value, lower)
    return value if np.isinf(upper) else ca.fmin(value, upper)


def _limited_motors(machine: Machine) -> Iterator[JointForce]:
    for actuator in machine.actuators:
        if isinstance(actuator, JointForce) and actuator.force_limited:
            yield actuator


def _limited_joints(machine: Machine) -> Iterator[tuple[Joint, list[int]]]:
    """Yield joints whose actuators are limited together, and which of their velocities are."""
    for joint in machine.joints:
        limited = np.flatnonzero(np.isfinite(joint.effort_limit)).tolist()
        if limited and _actuators_of(machine, joint):
            yield joint, limited


def _actuators_of(machine: Machine, joint: Joint) -> list[JointActuator]:
    on_joints = (a for a in machine.actuators if isinstance(a, JointActuator))
    return [actuator for actuator in on_joints if actuator.joint == joint.name]


def _effort(state: State, joint: Joint) -> tuple[Matrix, Matrix]:
    """Return what the actuators of a joint do to it: rows (nv x nu) of u, and the rest (nv)."""
    machine = state.machine
    x, v = state.x[machine.x_slice[joint.name]], state.v[machine.v_slice[joint.name]]
    rows, bias = ca.SX(joint.nv, machine.nu), ca.SX(joint.nv, 1)
    for actuator in _actuators_of(machine, joint):
        if actuator.nu:
            rows[:, machine.u_slice[actuator.name]] = constant(actuator.columns)
        extra = actuator.bias(x, v)
        bias = bias if extra is None else bias + extra
    return ca.sparsify(rows), bias


def _polytopes(machine: Machine) -> list[Row]:
    rows = []
    for actuator in machine.actuators:
        A, b = actuator.polytope
        wide = np.zeros((len(b), machine.nu))
        wide[:, machine.u_slice[actuator.name]] = A
        rows += [
            (ca.sparsify(ca.SX(ca.DM(row).T)), ca.SX(-np.inf), ca.SX(float(side)))
            for row, side in zip(wide, b, strict=True)
        ]
    return rows


def _motor_forces(state: State) -> list[Row]:
    """Return the limits of gain u + (bias) of motors that have them."""
    machine, rows = state.machine, []
    for motor in _limited_motors(machine):
        x, v = state.x[machine.x_slice[motor.joint]], state.v[machine.v_slice[motor.joint]]
        own, row = ca.SX(motor.force(x, v, 0)), ca.SX(1, machine.nu)
        row[machine.u_slice[motor.name]] = motor.gain
        rows.append((row, less(motor.force_lower, own), less(motor.force_upper, own)))
    return rows


def less(limit: float, own: Matrix) -> Matrix:
    """Return limit - own, a number where the limit is infinite."""
    return ca.SX(limit) if np.isinf(limit) else limit - own


def _efforts(state: State) -> list[Row]:
    """Return the limits of what all actuators of a joint together do to it."""
    limits = []
    for joint, limited in _limited_joints(state.machine):
        rows, bias = _effort(state, joint)
        for i in limited:
            most = float(joint.effort_limit[i])
            if rows[i, :].nnz():
                limits.append((rows[i, :], -most - bias[i], most - bias[i]))
    return limits


def _single(row: Matrix, low: Matrix, high: Matrix) -> tuple[int, float, float] | None:
    """Return the input that a row bounds alone, and its bounds, if all are numbers."""
    row = ca.sparsify(row)
    if row.nnz() != 1 or not all(value.is_constant() for value in (row, low, high)):
        return None
    k = row.sparsity().get_triplet()[1][0]
    factor = float(row[0, k])
    sides = sorted((float(low) / factor, float(high) / factor))
    return k, sides[0], sides[1]
