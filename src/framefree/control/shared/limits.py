"""Limits of a machine's inputs: as rows ``lower <= C u <= upper``, and what they cut off.

They are the limits of the inputs themselves, further half-spaces of actuators (tilting propellers),
limits of motors' forces, and of the effort of tendons and joints. Limits of constant numbers that
the others imply are left out of the rows: every one that is not costs a program time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.machine import Machine
from framefree.machine.actuators import JointActuator, Motor, TendonActuator, motor_range
from framefree.machine.values import constant
from framefree.motion.actuation import clip, directions, effort, limited_effort, sensed
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
        rows = [*_polytopes(machine), *_motor_forces(state)]
        rows += [effort.row for effort in _limited_efforts(state) if effort.by_u.nnz()]
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
    tendons = _driven_tendons(machine)
    efforts = [(t.effort_lower, t.effort_upper) for t in tendons]
    efforts += [effort_range for _, effort_range in _driven_velocities(machine)]
    return bool(inputs or further or np.isfinite(efforts).any())


def clipped(machine: Machine, u: Matrix) -> Matrix:
    """Return inputs (nu) cut to their own limits, as drives do; others stay as they are."""
    lower, upper = machine.input_limits
    result = ca.SX(u)
    for k in range(machine.nu):
        result[k] = clip(result[k], lower[k], upper[k])
    return result


def cut(state: State, u: Matrix) -> Matrix:
    """Return the joint forces (nv) that limits of motors and joints take off and put on at u.

    The actuators give ``B u + bias + cut``: first the forces of all actuators of a tendon shrink to
    its limits, then the force of each motor is brought within its own, then the sum of what all
    actuators of a joint do to it.
    """
    machine = state.machine
    change, at_joints = ca.SX(machine.nv, 1), ca.SX(machine.nv, 1)
    for actuator in machine.actuators:
        if not _is_limited(machine, actuator):
            continue
        excess = limited_effort(state, actuator, u) - effort(state, actuator, u)
        change += directions(state, actuator) @ excess
        share = _share_at_joints(state, actuator)
        if share is not None:
            at_joints += share @ excess
    for row in _joint_efforts(state):
        force = row.by_u @ u + row.rest + at_joints[row.velocity]
        change[row.velocity] += clip(force, row.lower, row.upper) - force
    return ca.sparsify(change)


def _is_limited(machine: Machine, actuator: Any) -> bool:
    """Whether a motor's force, or the effort of its tendon, has limits."""
    if isinstance(actuator, TendonActuator) and machine.tendon(actuator.tendon).effort_limited:
        return True
    return isinstance(actuator, Motor) and actuator.force_limited


def _share_at_joints(state: State, actuator: Any) -> Matrix | None:
    """Return the joint forces (nv x k) per unit of what an actuator on joints exerts, or None."""
    if isinstance(actuator, TendonActuator):
        return state.tendon(actuator.tendon).on_joints
    if isinstance(actuator, JointActuator):
        return ca.SX.eye(state.machine.nv)[:, state.machine.v_slice[actuator.joint]]
    return None


def _limited_motors(machine: Machine) -> Iterator[Motor]:
    for actuator in machine.actuators:
        if isinstance(actuator, Motor) and actuator.force_limited:
            yield actuator


class LimitedEffort(NamedTuple):
    """What all actuators of one tendon or joint do to it: ``by_u u + rest``, and its limits.

    `velocity` is the entry of v for a joint.
    """

    by_u: Matrix
    rest: Matrix
    lower: float
    upper: float
    velocity: int = -1

    @property
    def row(self) -> "Row":
        """The limits as a row and its bounds."""
        return self.by_u, less(self.lower, self.rest), less(self.upper, self.rest)


def _limited_efforts(state: State) -> list[LimitedEffort]:
    return [*_tendon_efforts(state), *_joint_efforts(state)]


def _tendon_efforts(state: State) -> list[LimitedEffort]:
    """Return the sums of the forces of a tendon's actuators, before their gears, with limits."""
    machine, efforts = state.machine, []
    for tendon in _driven_tendons(machine):
        if not tendon.effort_limited:
            continue
        by_u, rest = ca.SX(1, machine.nu), ca.SX(0)
        for actuator in _on_tendons(machine):
            if actuator.tendon == tendon.name:
                own, bias = _effort_of(state, actuator)
                by_u, rest = by_u + own / actuator.gear, rest + bias / actuator.gear
        limits = (tendon.effort_lower, tendon.effort_upper)
        efforts.append(LimitedEffort(ca.sparsify(by_u), rest, *limits))
    return efforts


def _joint_efforts(state: State) -> list[LimitedEffort]:
    """Return the efforts of joints that are limited, those of tendons over them included."""
    machine = state.machine
    limited = [(k, ends) for k, ends in _limited_velocities(machine) if np.isfinite(ends).any()]
    if not limited:
        return []
    by_u, rest = ca.SX(machine.nv, machine.nu), ca.SX(machine.nv, 1)
    for actuator in machine.actuators:
        share = _share_at_joints(state, actuator)
        if share is not None:
            own, bias = _effort_of(state, actuator)
            by_u, rest = by_u + share @ own, rest + share @ bias
    by_u = ca.sparsify(by_u)
    return [LimitedEffort(by_u[k, :], rest[k], *ends, velocity=k) for k, ends in limited]


def _effort_of(state: State, actuator: Any) -> tuple[Matrix, Matrix]:
    """Return what an actuator exerts: rows (k x nu) of u, and the rest (k)."""
    columns, machine = constant(actuator.columns), state.machine
    rows = ca.SX(columns.shape[0], machine.nu)
    if actuator.nu:
        rows[:, machine.u_slice[actuator.name]] = columns
    bias = actuator.bias(*sensed(state, actuator))
    return rows, ca.SX(columns.shape[0], 1) if bias is None else bias


def _on_tendons(machine: Machine) -> list[TendonActuator]:
    return [actuator for actuator in machine.actuators if isinstance(actuator, TendonActuator)]


def _driven_tendons(machine: Machine) -> list[Any]:
    names = {actuator.tendon for actuator in _on_tendons(machine)}
    return [tendon for tendon in machine.tendons if tendon.name in names]


def _limited_velocities(machine: Machine) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield driven velocities whose limits the motors' own ones do not imply."""
    implied = {
        machine.v_slice[joint.name].start: motor_range(joint, machine.actuators, machine.tendons)
        for joint in machine.joints
        if joint.nv == 1
    }
    for k, (low, high) in _driven_velocities(machine):
        own = implied.get(k)
        if own is None or own[0] < low or own[1] > high:
            yield k, (low, high)


def _driven_velocities(machine: Machine) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield velocities of joints that actuators drive, directly or by tendons, and their limits."""
    driven = {a.joint for a in machine.actuators if isinstance(a, JointActuator)}
    pulled = {name for tendon in _driven_tendons(machine) for name in tendon.coordinates}
    for joint in machine.joints:
        if joint.name in driven or pulled.intersection(joint.x_names):
            start = machine.v_slice[joint.name].start
            yield from enumerate(zip(*joint.effort_range, strict=True), start)


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
        own, row = ca.SX(motor.force(*sensed(state, motor), 0)), ca.SX(1, machine.nu)
        row[machine.u_slice[motor.name]] = motor.gain
        rows.append((row, less(motor.force_lower, own), less(motor.force_upper, own)))
    return rows


def less(limit: float, own: Matrix) -> Matrix:
    """Return limit - own, a number where the limit is infinite."""
    return ca.SX(limit) if np.isinf(limit) else limit - own


def _single(row: Matrix, low: Matrix, high: Matrix) -> tuple[int, float, float] | None:
    """Return the input that a row bounds alone, and its bounds, if all are numbers."""
    row = ca.sparsify(row)
    if row.nnz() != 1 or not all(value.is_constant() for value in (row, low, high)):
        return None
    k = row.sparsity().get_triplet()[1][0]
    factor = float(row[0, k])
    sides = sorted((float(low) / factor, float(high) / factor))
    return k, sides[0], sides[1]
