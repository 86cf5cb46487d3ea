"""Actuators and keyframes of a compiled MuJoCo model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from framefree.machine.actuators import Actuator, JointForce, TendonForce, Wrench, motor_range
from framefree.machine.formats.mjcf_activation import (
    activation_of,
    input_limits,
    is_muscle,
    muscle_of,
)
from framefree.machine.formats.mjcf_engine import column, enabled, ends, part_names, value
from framefree.machine.formats.mjcf_tree import BALL, FREE, HINGE, SLIDE, MjcfTree
from framefree.machine.formats.poses import pose_of_quaternion
from framefree.machine.joint import Joint
from framefree.machine.keyframe import Keyframe
from framefree.machine.problems import MachineError, Problems, known_names
from framefree.machine.tendon import Tendon

MAX_GROUP = 30
"""Largest group of actuators that can be disabled."""


def actuators(
    model: Any, tree: MjcfTree, tendons: dict[int, Tendon], problems: Problems
) -> list[Actuator]:
    """Return the actuators: motors and servos on joints and tendons, wrenches on sites."""
    result: list[Actuator] = []
    if not enabled(model, "ACTUATION"):
        tree.ignored.append("all actuators: actuation is disabled")
        return result
    names = _names(model)
    _check_left_out(tree, names, problems)
    for i, name in enumerate(names):
        where = tree.document.where("actuator", model.actuator(i).name, i)
        reason = _left_out(model, tree, i, name)
        if reason:
            tree.ignored.append(f"{where}: {reason}")
            continue
        try:
            actuator = _actuator(model, tree, tendons, i, name)
        except MachineError as error:
            hint = f'; `without="actuator:{name}"` leaves it out, `without="actuator"` all'
            problems.extend((problem + hint for problem in error.problems), where)
            continue
        if actuator is not None:
            result.append(actuator)
    return result


def _names(model: Any) -> list[str]:
    return part_names(model, "actuator", int(getattr(model, "nactuator", model.nu)))


def _check_left_out(tree: MjcfTree, names: list[str], problems: Problems) -> None:
    for name in tree.options.without_actuators:
        if name not in names:
            known = known_names(names)
            problems.add(
                f"`without` names actuator `{name}`, which is not there; there are {known}"
            )


def _left_out(model: Any, tree: MjcfTree, i: int, name: str) -> str:
    """Return why an actuator is not taken over, or nothing."""
    if name in tree.options.without_actuators:
        return "left out on request"
    group = int(model.actuator_group[i])
    if 0 <= group <= MAX_GROUP and model.opt.disableactuator & (1 << group):
        return f"`actuatorgroupdisable` disables its group {group}"
    if int(model.actuator_trntype[i]) == value("mjtTrn", "mjTRN_BODY"):
        return "adhesion moves nothing where contact is not modelled"
    return ""


def _actuator(
    model: Any, tree: MjcfTree, tendons: dict[int, Tendon], i: int, name: str
) -> Actuator | None:
    _refuse_dynamics(model, i)
    kind = int(model.actuator_trntype[i])
    if kind == value("mjtTrn", "mjTRN_SITE"):
        return _wrench(model, tree, i, name)
    if kind == value("mjtTrn", "mjTRN_TENDON"):
        tendon = tendons.get(int(model.actuator_trnid[i, 0]))
        if tendon is None:  # it was refused already
            return None
        if is_muscle(model, i):
            return muscle_of(model, i, name, tendon.name, tendon=True)
        gear = model.actuator_gear[i, :1]
        return TendonForce(name, tendon.name, gear, **_servo(model, i))
    return _joint_force(model, tree, i, name)


def _refuse_dynamics(model: Any, i: int) -> None:
    muscle = is_muscle(model, i)
    unsupported = {
        "a delay": column(model, "actuator_delay", i) != 0,
        "several inputs or outputs": column(model, "actuator_ctrlnum", i, 1) != 1
        or column(model, "actuator_outnum", i, 1) != 1,
        "a gain that is not constant": not muscle
        and model.actuator_gaintype[i] != value("mjtGain", "mjGAIN_FIXED")
        and (
            model.actuator_gaintype[i] != value("mjtGain", "mjGAIN_AFFINE")
            or bool(np.any(model.actuator_gainprm[i][1:3]))
        ),
        "this bias": not muscle
        and model.actuator_biastype[i]
        not in (value("mjtBias", "mjBIAS_NONE"), value("mjtBias", "mjBIAS_AFFINE")),
    }
    words = [name for name, present in unsupported.items() if present]
    if words:
        raise MachineError(f"an actuator with {' and '.join(words)} is not supported")


def _servo(model: Any, i: int) -> dict[str, Any]:
    """Return gain, bias and limits of a motor."""
    (lower, upper), (low, high) = input_limits(model, i), _force_limits(model, i)
    return {
        "gain": float(model.actuator_gainprm[i, 0]),
        "bias_terms": _bias(model, i),
        "lower": lower,
        "upper": upper,
        "force_lower": low,
        "force_upper": high,
        "activation": activation_of(model, i),
    }


def _bias(model: Any, i: int) -> np.ndarray:
    affine = model.actuator_biastype[i] == value("mjtBias", "mjBIAS_AFFINE")
    return np.array(model.actuator_biasprm[i][:3]) if affine else np.zeros(3)


def _force_limits(model: Any, i: int) -> tuple[float, float]:
    if not model.actuator_forcelimited[i]:
        return -np.inf, np.inf
    return ends(model.actuator_forcerange[i])


def _joint_force(model: Any, tree: MjcfTree, i: int, name: str) -> Actuator | None:
    transmission = int(model.actuator_trntype[i])
    in_parent = transmission == value("mjtTrn", "mjTRN_JOINTINPARENT")
    if transmission != value("mjtTrn", "mjTRN_JOINT") and not in_parent:
        raise MachineError("an actuator on a slider-crank is not supported")
    joint = int(model.actuator_trnid[i, 0])
    if joint not in tree.joint_names:
        tree.ignored.append(f"actuator `{name}`: its joint was replaced by the fixed base")
        return None
    if is_muscle(model, i):
        if model.jnt_type[joint] not in (HINGE, SLIDE):
            raise MachineError("a muscle on a ball or free joint is not supported")
        return muscle_of(model, i, name, tree.joint_names[joint], tendon=False)
    kind, gear, bias = int(model.jnt_type[joint]), np.array(model.actuator_gear[i]), _bias(model, i)
    if kind in (HINGE, SLIDE):
        gear = gear[:1]
    else:
        gear = gear[:3] if kind == BALL else gear
        if in_parent or (kind == FREE and gear[:3].any()):
            raise MachineError(
                "forces on a ball or free joint along axes of its parent are not supported; use a "
                "site on the body instead"
            )
        if bias[1]:
            raise MachineError("a position servo on a ball or free joint is not supported")
    return JointForce(name, tree.joint_names[joint], gear, **_servo(model, i))


def _wrench(model: Any, tree: MjcfTree, i: int, name: str) -> Wrench:
    site, reference = (int(k) for k in model.actuator_trnid[i])
    bias = _bias(model, i)
    if reference >= 0:
        raise MachineError("an actuator on a site with a `refsite` is not supported")
    if is_muscle(model, i):
        raise MachineError("a muscle on a site is not supported")
    if bias[0] or bias[2]:  # a site's length is zero, so that bias[1] does nothing
        raise MachineError("an actuator on a site with a bias is not supported")
    gain = float(model.actuator_gainprm[i, 0])
    lower, upper = input_limits(model, i)
    low, high = _force_limits(model, i)
    if gain and model.actuator_forcelimited[i]:
        bounds = sorted((low / gain, high / gain))
        lower, upper = max(lower, bounds[0]), min(upper, bounds[1])
    direction = gain * np.array(model.actuator_gear[i])
    activation = activation_of(model, i)
    return Wrench(name, tree.site_names[site], direction, lower, upper, activation=activation)


def with_motor_limits(
    joints: list[Joint], driven: list[Actuator], tendons: Iterable[Tendon]
) -> list[Joint]:
    """Return joints that know what their motors can do, so that other motors can take over.

    The motors' own limits imply these, which therefore change nothing.
    """
    cables, result = tuple(tendons), []
    moved = {actuator.joint for actuator in driven if isinstance(actuator, JointForce)}
    for joint in joints:
        if joint.name in moved and joint.nv == 1:
            low, high = motor_range(joint, driven, cables)
            lower, upper = (side[0] for side in joint.effort_range)
            low, high = max(low, lower), min(high, upper)
            if low < high:
                joint = replace(joint, effort_lower=low, effort_limit=high)
        result.append(joint)
    return result


def keyframes(model: Any, tree: MjcfTree, driven: list[Actuator]) -> list[Keyframe]:
    """Return the keyframes by joint and actuator name, and where the model starts.

    A MJCF model starts where its bodies are drawn; where that is not our neutral configuration, it
    is the keyframe `initial`.
    """
    inputs, known = _names(model), {actuator.name for actuator in driven}
    result, names = [], part_names(model, "key", model.nkey)
    for i in range(model.nkey):
        x, v = _state(model, tree, model.key_qpos[i], model.key_qvel[i])
        values = [_input(model, i, k) for k in range(len(inputs))]
        active = [k for k in range(len(inputs)) if model.actuator_actadr[k] >= 0]
        if active and model.key_ctrl[i][active].any():
            numbers = " ".join(f"{number:g}" for number in model.key_ctrl[i][active])
            tree.ignored.append(
                f"keyframe `{names[i]}`: `ctrl` {numbers} of actuators with an activation, which "
                "is their input here (`act`)"
            )
        u = {name: values[k] for k, name in enumerate(inputs) if name in known}
        result.append(Keyframe(names[i], x, v, u))
    start, _ = _state(model, tree, model.qpos0, np.zeros(model.nv))
    neutral = {joint.name: joint.kind.neutral for joint in tree.joints}
    moved = {name for name, value in start.items() if not np.array_equal(value, neutral[name])}
    if moved and "initial" not in {key.name for key in result}:
        result.append(Keyframe("initial", start))
    return result


def _input(model: Any, key: int, actuator: int) -> np.ndarray:
    """Return the input of an actuator in a keyframe: its activation if it has one, or control."""
    at = int(model.actuator_actadr[actuator])
    return (
        model.key_ctrl[key][actuator : actuator + 1] if at < 0 else model.key_act[key][at : at + 1]
    )


def _state(model: Any, tree: MjcfTree, qpos: Any, qvel: Any) -> tuple[dict, dict]:
    """Return MuJoCo's state by joint name, with velocities of free joints in body axes."""
    x, v = {}, {}
    joints = {joint.name: joint for joint in tree.joints}
    for j, name in tree.joint_names.items():
        q, dof = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        x[name] = np.array(qpos[q : q + joints[name].nx])
        v[name] = np.array(qvel[dof : dof + joints[name].nv])
        if model.jnt_type[j] == FREE:
            turned = pose_of_quaternion(np.zeros(3), x[name][3:])[:3, :3]
            v[name][:3] = turned.T @ v[name][:3]
    return x, v
