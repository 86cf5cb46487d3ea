"""All limits of a machine's inputs as rows ``lower <= C u <= upper`` at a state.

They are the limits of the inputs themselves, further half-spaces of actuators (tilting propellers),
limits of motors' forces, and of the effort of joints.
"""

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.model import ModelState
from framefree.machine.actuators import JointActuator, JointForce
from framefree.machine.values import constant, is_symbolic

Matrix = Any


class InputLimits(NamedTuple):
    """Rows C (m x nu) with their bounds (m each); infinite bounds are numbers."""

    C: Matrix
    lower: Matrix
    upper: Matrix

    @classmethod
    def at(cls, state: ModelState) -> "InputLimits":
        """Return the limits at a state; rows that bound one input alone are joined to one."""
        machine = state.model.machine
        lower, upper = (np.array(side, float) for side in machine.input_limits)
        rows = [*_polytopes(machine), *_motor_forces(state), *_efforts(state)]
        general = []
        for row, low, high in rows:
            place = _single(row, low, high)
            if place is None:
                general.append((row, low, high))
                continue
            k, low, high = place
            lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
        bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper)).tolist()
        C = [ca.SX.eye(machine.nu)[bounded, :], *(row for row, _, _ in general)]
        lows = [ca.SX(ca.DM(lower[bounded])), *(low for _, low, _ in general)]
        highs = [ca.SX(ca.DM(upper[bounded])), *(high for _, _, high in general)]
        return cls(ca.sparsify(ca.vertcat(*C)), ca.vertcat(*lows), ca.vertcat(*highs))


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


def _motor_forces(state: ModelState) -> list[Row]:
    """Limits of gain u + (bias) of motors that have them."""
    machine, found = state.model.machine, []
    for motor in machine.actuators:
        if not isinstance(motor, JointForce):
            continue
        if not np.isfinite([motor.force_lower, motor.force_upper]).any():
            continue
        x, v = (
            state.tree.x[machine.x_slice[motor.joint]],
            state.tree.v[machine.v_slice[motor.joint]],
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


def _efforts(state: ModelState) -> list[Row]:
    """Limits of what all actuators of a joint together do to it."""
    machine, found = state.model.machine, []
    for joint in machine.joints:
        limited = np.flatnonzero(np.isfinite(joint.effort_limit)).tolist()
        own = [
            a for a in machine.actuators if isinstance(a, JointActuator) and a.joint == joint.name
        ]
        if not limited or not own:
            continue
        x, v = state.tree.x[machine.x_slice[joint.name]], state.tree.v[machine.v_slice[joint.name]]
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
