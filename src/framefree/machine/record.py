"""Machines as plain data: dictionaries, lists, numbers and text that JSON can hold."""

from dataclasses import fields
from typing import Any

import numpy as np

from framefree.geometry.moments import Moments
from framefree.lazy import resolved
from framefree.machine import actuators, joints
from framefree.machine.body import Body
from framefree.machine.collision import CollisionExclusion, CollisionShape, CollisionSolver
from framefree.machine.coupling import Coupling, Linear, Polynomial
from framefree.machine.damper import Damper
from framefree.machine.flow import Flow
from framefree.machine.fluid import Fluid
from framefree.machine.frame import Frame
from framefree.machine.immersed import Immersed, ImmersedBox, ImmersedEllipsoid
from framefree.machine.joint import Joint
from framefree.machine.keyframe import Keyframe
from framefree.machine.later import PLACES
from framefree.machine.loop import Loop
from framefree.machine.part import Part
from framefree.machine.problems import MachineError
from framefree.machine.shape import Shape
from framefree.machine.spring import ConstantForce, EulerSpring, Spring
from framefree.machine.tendon import JointTendon
from framefree.machine.tree import unknown

VERSION = 1
_KINDS = [getattr(joints, name) for name in joints.__all__ if name not in ("JointKind", "Custom")]
_ACTUATORS = [
    actuators.IntegratedActivation,
    actuators.JointForce,
    actuators.JointMuscle,
    actuators.LaggedActivation,
    actuators.MuscleActivation,
    actuators.Propeller,
    actuators.SpinningPropeller,
    actuators.TendonForce,
    actuators.TendonMuscle,
    actuators.TiltingPropeller,
    actuators.Wrench,
]
_OTHERS = [
    Body,
    CollisionExclusion,
    CollisionShape,
    CollisionSolver,
    ConstantForce,
    Coupling,
    Damper,
    EulerSpring,
    Flow,
    Fluid,
    Frame,
    Immersed,
    ImmersedBox,
    ImmersedEllipsoid,
    Joint,
    JointTendon,
    Keyframe,
    Linear,
    Loop,
    Moments,
    Polynomial,
    Shape,
    Spring,
]
_TYPES = {kind.__name__: kind for kind in (*_KINDS, *_ACTUATORS, *_OTHERS)}
_LATER = {name: PLACES[name] for name in PLACES if name not in ("Interaction", "Stops")}
_NAMES = {*_TYPES, *_LATER}


def _type(name: str) -> type:
    """Return the kind of part of a name in `_NAMES`."""
    return _TYPES[name] if name in _TYPES else resolved(PLACES[name])


def encoded(value: Any, where: str = "machine") -> Any:
    """Return a value as plain data; infinite numbers become text, as JSON has none.

    Raises
    ------
    MachineError
        Naming a user's own function, or a symbol, which have no plain form.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.ndarray):
        return [encoded(item, where) for item in value.tolist()]
    if isinstance(value, tuple | list):
        return [encoded(item, where) for item in value]
    if isinstance(value, Part | Moments) and type(value).__name__ in _NAMES:
        own = getattr(value, "name", "")
        place = f"{where}, {type(value).__name__} `{own}`" if own else where
        names = [f.name for f in fields(_type(type(value).__name__)) if f.init]
        items = {name: encoded(getattr(value, name), place) for name in names}
        return {"type": type(value).__name__, **items}
    raise MachineError(
        f"{where}: a {type(value).__name__} cannot be written down as data; "
        "custom joints, couplings and interactions with the user's own functions live only in "
        "Python"
    )


def decoded(value: Any) -> Any:
    """Return the value that `encoded` turned into plain data."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = dict(value)
    kind = items.pop("type", None)
    if kind not in _NAMES:
        raise MachineError(unknown("the type of part", str(kind), sorted(_NAMES)))
    known = {f.name for f in fields(_type(kind)) if f.init}
    for name in items:
        if name not in known:
            raise MachineError(unknown(f"{kind}: field", name, known))
    try:
        return _type(kind)(**{name: decoded(item) for name, item in items.items()})
    except (TypeError, ValueError) as error:
        raise MachineError(f"{kind}: {error}") from None
