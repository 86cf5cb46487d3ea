"""Activations and muscles of a compiled MuJoCo model."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.actuators import (
    Activation,
    IntegratedActivation,
    JointMuscle,
    LaggedActivation,
    MuscleActivation,
    TendonMuscle,
)
from framefree.machine.formats.mjcf_engine import column, enabled, ends, value
from framefree.machine.problems import MachineError

SMALLEST = 1e-15
"""MuJoCo divides by no smaller acceleration."""


def activation_of(model: Any, i: int) -> Activation | None:
    """Return what an actuator's input follows, None where it is the control itself."""
    kind, numbers = int(model.actuator_dyntype[i]), np.array(model.actuator_dynprm[i])
    if kind == value("mjtDyn", "mjDYN_NONE"):
        return None
    if column(model, "actuator_actearly", i):
        raise MachineError("an actuator with `actearly` is not supported")
    low, high = control_limits(model, i)
    limits = {"command_lower": low, "command_upper": high}
    if kind == value("mjtDyn", "mjDYN_INTEGRATOR"):
        return IntegratedActivation(**limits)
    if kind in (value("mjtDyn", "mjDYN_FILTER"), value("mjtDyn", "mjDYN_FILTEREXACT")):
        return LaggedActivation(float(numbers[0]), **limits)
    if kind == value("mjtDyn", "mjDYN_MUSCLE"):
        return MuscleActivation(*map(float, numbers[:3]), **limits)
    raise MachineError("an actuator with this `dyntype` is not supported")


def input_limits(model: Any, i: int) -> tuple[float, float]:
    """Return the limits of an actuator's input: its activation, or its control without one."""
    kind = int(model.actuator_dyntype[i])
    if model.actuator_actlimited[i]:
        return ends(model.actuator_actrange[i])
    if kind == value("mjtDyn", "mjDYN_INTEGRATOR"):
        return -np.inf, np.inf
    if kind == value("mjtDyn", "mjDYN_MUSCLE"):
        return 0.0, 1.0
    return control_limits(model, i)


def control_limits(model: Any, i: int) -> tuple[float, float]:
    """Return the limits of an actuator's control."""
    if not model.actuator_ctrllimited[i] or not enabled(model, "CLAMPCTRL"):
        return -np.inf, np.inf
    return ends(model.actuator_ctrlrange[i])


def is_muscle(model: Any, i: int) -> bool:
    """Whether an actuator has a muscle's active or passive force."""
    return int(model.actuator_gaintype[i]) == value("mjtGain", "mjGAIN_MUSCLE") or int(
        model.actuator_biastype[i]
    ) == value("mjtBias", "mjBIAS_MUSCLE")


def muscle_of(
    model: Any, i: int, name: str, target: str, *, tendon: bool
) -> TendonMuscle | JointMuscle:
    """Return a muscle on a tendon or a joint of a name."""
    active = int(model.actuator_gaintype[i]) == value("mjtGain", "mjGAIN_MUSCLE")
    bias, numbers = int(model.actuator_biastype[i]), np.array(model.actuator_gainprm[i][:9])
    with_passive = bias == value("mjtBias", "mjBIAS_MUSCLE")
    same = not with_passive or np.array_equal(numbers, model.actuator_biasprm[i][:9])
    if not active or not same or not (with_passive or bias == value("mjtBias", "mjBIAS_NONE")):
        raise MachineError(
            "a muscle is supported with its active force and, with the same numbers or not at all, "
            "its passive force"
        )
    if model.actuator_forcelimited[i]:
        raise MachineError("a muscle with `forcerange` is not supported")
    activation = activation_of(model, i)
    if activation is None:
        raise MachineError("a muscle without activation (`dyntype` none) is not supported")
    force = numbers[2] if numbers[2] >= 0 else numbers[3] / max(SMALLEST, model.actuator_acc0[i])
    kind = TendonMuscle if tendon else JointMuscle
    return kind(
        name,
        target,
        float(force),
        np.array(model.actuator_lengthrange[i]),
        range=numbers[:2],
        l_min=float(numbers[4]),
        l_max=float(numbers[5]),
        v_max=float(numbers[6]),
        passive=float(numbers[7]) if with_passive else 0.0,
        f_v_max=float(numbers[8]),
        gear=float(model.actuator_gear[i, 0]),
        activation=activation,
    )
