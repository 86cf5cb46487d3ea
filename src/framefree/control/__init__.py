"""Control: laws, one file each or one folder each, and the references they follow.

All laws are here by name, `framefree.control.PDGravity`, and loaded when they are first asked for;
what else their folders have comes by ``from framefree.control.port import Sphere``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from framefree.errors import hint

if TYPE_CHECKING:
    from framefree.control.computed_torque import ComputedTorque
    from framefree.control.contact import HybridControl, PassiveImpedance
    from framefree.control.estimation import EncoderFilter, ForceObserver, InvariantFilter
    from framefree.control.function_law import FunctionLaw
    from framefree.control.impedance import Impedance
    from framefree.control.law import (
        AnyLaw,
        Command,
        ControlError,
        Law,
        NumericCommand,
        NumericLaw,
        OpenLoop,
    )
    from framefree.control.passive import (
        AdaptivePassivity,
        EndEffectorPassivity,
        FramesPassivity,
        PassivityControl,
        StationKeeping,
    )
    from framefree.control.pd_gravity import PDGravity
    from framefree.control.port import EndEffectorControl, PoseControl, VelocityControl
    from framefree.control.prototype import PrototypeControl
    from framefree.control.qp import qp_kernel, solve_qp
    from framefree.control.robust import RobustControl
    from framefree.control.shared.allocation import Allocated, Allocation
    from framefree.control.shared.limits import InputLimits
    from framefree.control.shared.model import Model, ModelState
    from framefree.control.tasks import LimitedTaskControl, TaskControl
    from framefree.control.together import LawsTogether
    from framefree.control.unknown import (
        Adaptation,
        Adaptive,
        Assisted,
        CorrectionsTogether,
        IntegralAction,
        LearnedAdaptation,
        Mapped,
        MomentumObserver,
        Observing,
        UnknownForce,
    )

_PLACES = {
    "Adaptation": "framefree.control.unknown",
    "Adaptive": "framefree.control.unknown",
    "Assisted": "framefree.control.unknown",
    "CorrectionsTogether": "framefree.control.unknown",
    "LearnedAdaptation": "framefree.control.unknown",
    "AdaptivePassivity": "framefree.control.passive",
    "Allocated": "framefree.control.shared.allocation",
    "Allocation": "framefree.control.shared.allocation",
    "ComputedTorque": "framefree.control.computed_torque",
    "EncoderFilter": "framefree.control.estimation",
    "ForceObserver": "framefree.control.estimation",
    "InvariantFilter": "framefree.control.estimation",
    "FunctionLaw": "framefree.control.function_law",
    "HybridControl": "framefree.control.contact",
    "PassiveImpedance": "framefree.control.contact",
    "Impedance": "framefree.control.impedance",
    "AnyLaw": "framefree.control.law",
    "Command": "framefree.control.law",
    "ControlError": "framefree.control.law",
    "Law": "framefree.control.law",
    "NumericCommand": "framefree.control.law",
    "NumericLaw": "framefree.control.law",
    "OpenLoop": "framefree.control.law",
    "InputLimits": "framefree.control.shared.limits",
    "Model": "framefree.control.shared.model",
    "ModelState": "framefree.control.shared.model",
    "EndEffectorPassivity": "framefree.control.passive",
    "FramesPassivity": "framefree.control.passive",
    "PassivityControl": "framefree.control.passive",
    "StationKeeping": "framefree.control.passive",
    "PDGravity": "framefree.control.pd_gravity",
    "EndEffectorControl": "framefree.control.port",
    "PoseControl": "framefree.control.port",
    "VelocityControl": "framefree.control.port",
    "PrototypeControl": "framefree.control.prototype",
    "qp_kernel": "framefree.control.qp",
    "solve_qp": "framefree.control.qp",
    "RobustControl": "framefree.control.robust",
    "LimitedTaskControl": "framefree.control.tasks",
    "TaskControl": "framefree.control.tasks",
    "LawsTogether": "framefree.control.together",
    "IntegralAction": "framefree.control.unknown",
    "Mapped": "framefree.control.unknown",
    "MomentumObserver": "framefree.control.unknown",
    "Observing": "framefree.control.unknown",
    "UnknownForce": "framefree.control.unknown",
}

__all__ = [
    "Adaptation",
    "Adaptive",
    "AdaptivePassivity",
    "Allocated",
    "Allocation",
    "AnyLaw",
    "Assisted",
    "Command",
    "ComputedTorque",
    "ControlError",
    "CorrectionsTogether",
    "EncoderFilter",
    "EndEffectorControl",
    "EndEffectorPassivity",
    "ForceObserver",
    "FramesPassivity",
    "FunctionLaw",
    "HybridControl",
    "Impedance",
    "InputLimits",
    "IntegralAction",
    "InvariantFilter",
    "Law",
    "LawsTogether",
    "LearnedAdaptation",
    "LimitedTaskControl",
    "Mapped",
    "Model",
    "ModelState",
    "MomentumObserver",
    "NumericCommand",
    "NumericLaw",
    "Observing",
    "OpenLoop",
    "PDGravity",
    "PassiveImpedance",
    "PassivityControl",
    "PoseControl",
    "PrototypeControl",
    "RobustControl",
    "StationKeeping",
    "TaskControl",
    "UnknownForce",
    "VelocityControl",
    "qp_kernel",
    "solve_qp",
]


def __getattr__(name: str) -> Any:
    """Load a law when it is first asked for: all of them would make `import framefree` slow."""
    if name not in _PLACES:
        question = "" if name.startswith("_") else hint(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{question}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
