"""From the inputs u of the actuators to joint forces: force = B(x) u + bias(x, v)."""

from typing import Any

import casadi as ca

from framefree.machine.actuators import JointActuator
from framefree.machine.values import constant
from framefree.motion.spatial import Matrix
from framefree.motion.tree.state import TreeState


def input_matrix(state: TreeState) -> Matrix:
    """Return B (nv x nu)."""
    machine = state.machine
    B = ca.SX(machine.nv, machine.nu)
    for actuator in machine.actuators:
        if actuator.nu:
            B[:, machine.u_slice[actuator.name]] = _joint_forces(
                state, actuator, constant(actuator.columns)
            )
    return B


def input_bias(state: TreeState) -> Matrix:
    """Return the joint forces (nv) of the actuators at zero input: servos, spinning propellers."""
    machine = state.machine
    total = ca.SX(machine.nv, 1)
    for actuator in machine.actuators:
        joint = getattr(actuator, "joint", None)
        x, v = (
            (state.x[machine.x_slice[joint], :], state.v[machine.v_slice[joint], :])
            if joint is not None
            else (ca.SX(0, 1), ca.SX(0, 1))
        )
        bias = actuator.bias(x, v)
        if bias is not None:
            total += _joint_forces(state, actuator, bias)
    return total


def _joint_forces(state: TreeState, actuator: Any, columns: Matrix) -> Matrix:
    """Map forces on a joint, or wrenches on a frame, to all joints (nv x k)."""
    if isinstance(actuator, JointActuator):
        forces = ca.SX(state.machine.nv, columns.shape[1])
        forces[state.machine.v_slice[actuator.joint], :] = columns
        return forces
    return state.jacobian(actuator.frame).value.T @ columns
