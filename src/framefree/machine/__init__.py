"""Describe a machine: its bodies, joints and forces, and how it is read, edited and written."""

from typing import TYPE_CHECKING

from framefree.lazy import lazy
from framefree.machine.actuators import (
    Activation,
    Actuator,
    FrameActuator,
    IntegratedActivation,
    JointActuator,
    JointForce,
    JointMuscle,
    LaggedActivation,
    Muscle,
    MuscleActivation,
    Propeller,
    SpinningPropeller,
    TendonActuator,
    TendonForce,
    TendonMuscle,
    TiltingPropeller,
    Wrench,
    motors,
)
from framefree.machine.body import WORLD, Body
from framefree.machine.collision import CollisionShape
from framefree.machine.coupling import Coupling, Linear, Polynomial
from framefree.machine.damper import Damper
from framefree.machine.flow import Flow
from framefree.machine.fluid import Fluid
from framefree.machine.frame import Frame
from framefree.machine.immersed import Immersed, ImmersedBox, ImmersedEllipsoid
from framefree.machine.joint import Joint
from framefree.machine.joints import (
    Continuous,
    Custom,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    JointKind,
    Locked,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.keyframe import Keyframe
from framefree.machine.later import PLACES
from framefree.machine.loop import Loop
from framefree.machine.machine import Machine
from framefree.machine.pair_force import PairForce
from framefree.machine.problems import MachineError, Problems, StateError
from framefree.machine.shape import Shape
from framefree.machine.spring import ConstantForce, EulerSpring, Spring
from framefree.machine.tendon import JointTendon, Tendon

if TYPE_CHECKING:
    from framefree.machine.contact import Contact
    from framefree.machine.contact_shape import ContactShape
    from framefree.machine.interaction import Interaction
    from framefree.machine.joint_stop import JointStop, Stops
    from framefree.machine.point_spring import PointSpring
    from framefree.machine.sea import FloatingHull, Waves
    from framefree.machine.spatial_tendon import Pulley, SpatialTendon, Wrap
    from framefree.machine.wind import Gusts, WindDrag

__all__ = [
    "WORLD",
    "Activation",
    "Actuator",
    "Body",
    "CollisionShape",
    "ConstantForce",
    "Contact",
    "ContactShape",
    "Continuous",
    "Coupling",
    "Custom",
    "Cylindrical",
    "Damper",
    "EulerSpring",
    "Fixed",
    "FloatingHull",
    "Flow",
    "Fluid",
    "Frame",
    "FrameActuator",
    "Free",
    "Gusts",
    "Helical",
    "Immersed",
    "ImmersedBox",
    "ImmersedEllipsoid",
    "IntegratedActivation",
    "Interaction",
    "Joint",
    "JointActuator",
    "JointForce",
    "JointKind",
    "JointMuscle",
    "JointStop",
    "JointTendon",
    "Keyframe",
    "LaggedActivation",
    "Linear",
    "Locked",
    "Loop",
    "Machine",
    "MachineError",
    "Muscle",
    "MuscleActivation",
    "PairForce",
    "Planar",
    "PointSpring",
    "Polynomial",
    "Prismatic",
    "Problems",
    "Propeller",
    "Pulley",
    "Revolute",
    "Shape",
    "SpatialTendon",
    "Spherical",
    "SpinningPropeller",
    "Spring",
    "StateError",
    "Stops",
    "Tendon",
    "TendonActuator",
    "TendonForce",
    "TendonMuscle",
    "TiltingPropeller",
    "Universal",
    "Waves",
    "WindDrag",
    "Wrap",
    "Wrench",
    "motors",
]

__getattr__ = lazy(__name__, PLACES)
