"""Actuators, by what they push; `base.py` holds the contract for adding one."""

from framefree.machine.actuators.activation import (
    Activation,
    IntegratedActivation,
    LaggedActivation,
    MuscleActivation,
)
from framefree.machine.actuators.base import (
    Actuator,
    FrameActuator,
    JointActuator,
    TendonActuator,
)
from framefree.machine.actuators.effort import motor_range
from framefree.machine.actuators.joint_force import JointForce, motors
from framefree.machine.actuators.motor import Motor
from framefree.machine.actuators.muscle import JointMuscle, Muscle, TendonMuscle
from framefree.machine.actuators.propeller import Propeller, SpinningPropeller, TiltingPropeller
from framefree.machine.actuators.tendon_force import TendonForce
from framefree.machine.actuators.wrench import Wrench

__all__ = [
    "Activation",
    "Actuator",
    "FrameActuator",
    "IntegratedActivation",
    "JointActuator",
    "JointForce",
    "JointMuscle",
    "LaggedActivation",
    "Motor",
    "Muscle",
    "MuscleActivation",
    "Propeller",
    "SpinningPropeller",
    "TendonActuator",
    "TendonForce",
    "TendonMuscle",
    "TiltingPropeller",
    "Wrench",
    "motor_range",
    "motors",
]
