"""From the inputs u of the actuators to forces: force = B(x) u + bias(x, v), limits left out.

An actuator pushes a joint, a tendon or a frame; `sensed`, `directions` and `push` know which.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.machine.actuators import JointActuator, Motor, TendonActuator
from framefree.machine.values import constant
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix


def input_matrix(state: Any) -> Matrix:
    """Return B (nv x nu): force on the velocities of a `State` per unit of each input."""
    machine = state.machine
    B = ca.SX(state.v.shape[0], machine.nu)
    for actuator in machine.actuators:
        if actuator.nu:
            own = ca.SX(actuator.columns_at(*sensed(state, actuator)))
            columns = directions(state, actuator) @ own
            B[:, machine.u_slice[actuator.name]] = columns
    return B


def input_bias(state: Any) -> Matrix:
    """Return the force (nv) of the actuators at zero input: servos, spinning propellers."""
    total = ca.SX(state.v.shape[0], 1)
    for actuator in state.machine.actuators:
        bias = actuator.bias(*sensed(state, actuator))
        if bias is not None:
            total += directions(state, actuator) @ bias
    return total


def input_load(state: Any, u: Matrix) -> Load:
    """Return what the actuators exert at inputs u: forces at joints, wrenches on bodies."""
    load = Load(state.machine)
    for actuator in state.machine.actuators:
        push(load, state, actuator, effort(state, actuator, u))
    return load


def effort(state: Any, actuator: Any, u: Matrix) -> Matrix:
    """Return the force or wrench of one actuator at the inputs u of all, without limits."""
    at = sensed(state, actuator)
    columns, own = ca.SX(actuator.columns_at(*at)), u[state.machine.u_slice[actuator.name]]
    total = columns @ own if actuator.nu else ca.SX(columns.shape[0], 1)
    bias = actuator.bias(*at)
    return total if bias is None else total + bias


def limited_effort(state: Any, actuator: Any, u: Matrix) -> Matrix:
    """Return the same within limits: first of the tendon's effort, then of the motor's force."""
    factor = 1
    if isinstance(actuator, TendonActuator):
        tendon = state.machine.tendon(actuator.tendon)
        if tendon.effort_limited:
            factor = tendon.effort_factor(tendon_sum(state, tendon.name, u))
    if not isinstance(actuator, Motor):
        return effort(state, actuator, u) * factor
    f = _before_gear(state, actuator, u) * factor
    return constant(actuator.gear) * clip(f, actuator.force_lower, actuator.force_upper)


def tendon_sum(state: Any, name: str, u: Matrix) -> Matrix:
    """Return the sum of the forces of all actuators on a tendon, before gears and limits."""
    total = ca.SX(0)
    for actuator in state.machine.actuators:
        if isinstance(actuator, TendonActuator) and actuator.tendon == name:
            total += _before_gear(state, actuator, u)
    return total


def _before_gear(state: Any, actuator: Any, u: Matrix) -> Matrix:
    """Return the force of an actuator itself, before its gear."""
    if isinstance(actuator, Motor):
        return actuator.force(*sensed(state, actuator), u[state.machine.u_slice[actuator.name]])
    return effort(state, actuator, u) / constant(actuator.gear)


def clip(value: Matrix, lower: float, upper: float) -> Matrix:
    """Return a value within bounds, infinite ones left out; what is not a number stays so.

    `fmax` and `fmin` would make a full effort of a command that is not a number.
    """
    value = value if np.isinf(lower) else ca.if_else(value < lower, lower, value)
    return value if np.isinf(upper) else ca.if_else(value > upper, upper, value)


def sensed(state: Any, actuator: Any) -> tuple[Matrix, Matrix]:
    """Return position and velocity of the joint or tendon that an actuator's bias depends on."""
    if isinstance(actuator, TendonActuator):
        tendon = state.tendon(actuator.tendon)
        return tendon.length, tendon.rate
    machine, joint = state.machine, actuator.sensed_joint
    if joint is None:
        return ca.SX(0, 1), ca.SX(0, 1)
    return state.joint_x[machine.x_slice[joint], :], state.joint_v[machine.v_slice[joint], :]


def directions(state: Any, actuator: Any) -> Matrix:
    """Return the forces on all velocities (nv x k) per unit of what an actuator exerts."""
    if isinstance(actuator, TendonActuator):
        return state.tendon_jacobian(actuator.tendon).T
    if isinstance(actuator, JointActuator):
        return state.joint_jacobian[state.machine.v_slice[actuator.joint], :].T
    return state.jacobian(actuator.frame).value.T


def push(load: Load, state: Any, actuator: Any, effort: Matrix) -> None:
    """Add what an actuator exerts to a load: a force on its joint or tendon, or a wrench."""
    if isinstance(actuator, TendonActuator):
        load.on_tendon(state.tendon(actuator.tendon), effort)
    elif isinstance(actuator, JointActuator):
        load.on_joint(actuator.joint, effort)
    else:
        load.on_frame(state.machine.frame(actuator.frame), effort)
