"""Control: laws, one file each or one folder each, and the references they follow.

The laws of the folders port, passive, prototype, robust and tasks are also here by name; what else
they have comes by ``from framefree.control.port import Sphere``.
"""

from framefree.control.allocation import Allocated, Allocation
from framefree.control.computed_torque import ComputedTorque
from framefree.control.impedance import Impedance
from framefree.control.law import AnyLaw, Command, ControlError, Law, NumericLaw, OpenLoop
from framefree.control.limits import InputLimits
from framefree.control.model import Model, ModelState
from framefree.control.passive import EndEffectorPassivity, PassivityControl, StationKeeping
from framefree.control.pd_gravity import PDGravity
from framefree.control.port import EndEffectorControl, PoseControl, VelocityControl
from framefree.control.prototype import PrototypeControl
from framefree.control.qp import qp_kernel, solve_qp
from framefree.control.robust import RobustControl
from framefree.control.tasks import LimitedTaskControl, TaskControl

__all__ = [
    "Allocated",
    "Allocation",
    "AnyLaw",
    "Command",
    "ComputedTorque",
    "ControlError",
    "EndEffectorControl",
    "EndEffectorPassivity",
    "Impedance",
    "InputLimits",
    "Law",
    "LimitedTaskControl",
    "Model",
    "ModelState",
    "NumericLaw",
    "OpenLoop",
    "PDGravity",
    "PassivityControl",
    "PoseControl",
    "PrototypeControl",
    "RobustControl",
    "StationKeeping",
    "TaskControl",
    "VelocityControl",
    "qp_kernel",
    "solve_qp",
]
