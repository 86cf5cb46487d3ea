"""From the inputs u of the actuators to forces: force = B(x) u + bias(x, v), limits left out."""

from typing import Any

import casadi as ca

from framefree.machine.actuators import JointActuator
from framefree.machine.values import constant
from framefree.motion.load import Load
from framefree.motion.spatial import Matrix


def input_matrix(state: Any) -> Matrix:
    """Return B (nv x nu): force on the velocities of a `State` per unit of each input."""
    machine = state.machine
    B = ca.SX(state.v.shape[0], machine.nu)
    for actuator in machine.actuators:
        if actuator.nu:
            B[:, machine.u_slice[actuator.name]] = _forces(
                state, actuator, constant(actuator.columns)
            )
    return B


def input_bias(state: Any) -> Matrix:
    """Return the force (nv) of the actuators at zero input: servos, spinning propellers."""
    total = ca.SX(state.v.shape[0], 1)
    for actuator in state.machine.actuators:
        bias = actuator.bias(*_joint_state(state, actuator))
        if bias is not None:
            total += _forces(state, actuator, bias)
    return total


def input_load(state: Any, u: Matrix) -> Load:
    """Return what the actuators exert at inputs u: forces at joints, wrenches on bodies."""
    machine = state.machine
    load = Load(machine)
    for actuator in machine.actuators:
        effort = ca.SX(constant(actuator.columns).shape[0], 1)
        if actuator.nu:
            effort = ca.mtimes(constant(actuator.columns), u[machine.u_slice[actuator.name]])
        bias = actuator.bias(*_joint_state(state, actuator))
        effort = effort if bias is None else effort + bias
        if isinstance(actuator, JointActuator):
            load.on_joint(actuator.joint, effort)
        else:
            load.on_frame(machine.frame(actuator.frame), effort)
    return load


def _joint_state(state: Any, actuator: Any) -> tuple[Matrix, Matrix]:
    """Return coordinates and rates of the joint that an actuator's bias depends on."""
    machine, joint = state.machine, actuator.sensed_joint
    if joint is None:
        return ca.SX(0, 1), ca.SX(0, 1)
    return state.joint_x[machine.x_slice[joint], :], state.joint_v[machine.v_slice[joint], :]


def _forces(state: Any, actuator: Any, columns: Matrix) -> Matrix:
    """Map forces on a joint, or wrenches on a frame, to all velocities (nv x k)."""
    if isinstance(actuator, JointActuator):
        return state.joint_jacobian[state.machine.v_slice[actuator.joint], :].T @ columns
    return state.jacobian(actuator.frame).value.T @ columns
