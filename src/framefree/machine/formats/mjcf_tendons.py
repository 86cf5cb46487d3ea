"""Tendons of a compiled MuJoCo model, and laws of joints that only a tendon can say."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.formats.mjcf_engine import column, enabled, ends, part_names, value
from framefree.machine.formats.mjcf_spatial import is_spatial, path_of
from framefree.machine.formats.mjcf_tree import HINGE, SLIDE, MjcfTree
from framefree.machine.problems import MachineError, Problems
from framefree.machine.spatial_tendon import SpatialTendon
from framefree.machine.tendon import JointTendon, Tendon

NARROW = 0.02
"""Share of a tendon's travel below which its range is nearly a coupling."""


def tendons(model: Any, tree: MjcfTree, problems: Problems) -> dict[int, Tendon]:
    """Return the tendons by MuJoCo's number of each."""
    result: dict[int, Tendon] = {}
    for i in range(model.ntendon):
        where = tree.document.where("tendon", model.tendon(i).name, i)
        with problems.at(where):
            forces = _forces(model, tree, i, where)
            if is_spatial(model, i):
                path = path_of(model, tree, i)
                result[i] = SpatialTendon(tendon_name(model, i), path, **forces)
            else:
                result[i] = _fixed(model, tree, i, forces)
            _note_narrow(model, tree, i, where)
    return result


def tendon_name(model: Any, i: int) -> str:
    """Return the name of a tendon, or one by its number."""
    return part_names(model, "tendon", model.ntendon)[i]


def polynomial_laws(model: Any, tree: MjcfTree, problems: Problems) -> list[Tendon]:
    """Return springs and damping of joints with powers, as tendons over one joint each.

    MuJoCo's spring is k0 d + k1 d^2 + k2 d^3 and its damping d0 v + d1 |v| v + d2 v^3; the terms
    with k0 and d0 are the joint's own.
    """
    laws: list[Tendon] = []
    for j, name in tree.joint_names.items():
        spring = np.ravel(column(model, "jnt_stiffnesspoly", j))
        damping = np.ravel(column(model, "dof_dampingpoly", int(model.jnt_dofadr[j])))
        for a, gear in tree.driven.get(j, ()):
            damping = damping + gear * gear * np.ravel(column(model, "actuator_dampingpoly", a))
        spring = spring if enabled(model, "SPRING") else np.zeros(1)
        damping = damping if enabled(model, "DAMPER") else np.zeros(1)
        if not (spring.any() or damping.any()):
            continue
        with problems.at(tree.document.where("joint", model.joint(j).name, j)):
            if model.jnt_type[j] not in (HINGE, SLIDE):
                raise MachineError(
                    "stiffness and damping with powers are supported on hinges and slides only"
                )
            rest = float(model.qpos_spring[model.jnt_qposadr[j]])
            law = {"stiffness": (0.0, *spring), "rest": rest, "damping": (0.0, *damping)}
            laws.append(JointTendon(f"{name}_powers", (name,), **law))
    return laws


def _forces(model: Any, tree: MjcfTree, i: int, where: str) -> dict[str, Any]:
    """Return what acts along a tendon; with `without="tendon"` only its actuators do."""
    limits = _range(model, i, "limited", "range")
    efforts = _range(model, i, "actfrclimited", "actfrcrange")
    result: dict[str, Any] = {"lower": limits[0], "upper": limits[1]}
    result |= {"effort_lower": efforts[0], "effort_upper": efforts[1]}
    spring = [model.tendon_stiffness[i], *np.ravel(column(model, "tendon_stiffnesspoly", i))]
    damping = np.append(model.tendon_damping[i], column(model, "tendon_dampingpoly", i))
    armature = float(column(model, "tendon_armature", i))
    for a in _pulling(model, i):
        gear = float(model.actuator_gear[a, 0])
        square = gear * gear
        own = column(model, "actuator_damping", a), column(model, "actuator_dampingpoly", a)
        damping = damping + square * np.append(*own)
        armature += square * float(column(model, "actuator_armature", a))
    acting: dict[str, Any] = {
        "stiffness": spring if enabled(model, "SPRING") else 0.0,
        "damping": damping if enabled(model, "DAMPER") else 0.0,
        "friction": model.tendon_frictionloss[i] if enabled(model, "FRICTIONLOSS") else 0.0,
        "armature": armature,
    }
    acting = {name: number for name, number in acting.items() if np.any(number)}
    if "tendon" in tree.options.without:
        words = ", ".join(f"`{name}`" for name in (*acting, *(["limits"] if limits[2] else [])))
        if words:
            tree.ignored.append(f"{where}: {words} (left out on request)")
        return {**result, "lower": -np.inf, "upper": np.inf}
    hint = 'is not supported; `without="tendon"` leaves it out'
    if acting.pop("armature", 0.0):
        raise MachineError(f"a tendon with `armature`, its own or of an actuator, {hint}")
    if column(model, "tendon_plasticadr", i, -1) >= 0:
        raise MachineError(f"a spring that yields (`springyield`) {hint}")
    if "stiffness" in acting:
        result["rest"] = np.array(model.tendon_lengthspring[i])
    if "friction" in acting:
        tree.smooth_friction.append(tendon_name(model, i))
    return {**result, **acting}


def _pulling(model: Any, i: int) -> list[int]:
    """Return the actuators on a tendon."""
    on_tendon = model.actuator_trntype == value("mjtTrn", "mjTRN_TENDON")
    return np.flatnonzero(on_tendon & (model.actuator_trnid[:, 0] == i)).tolist()


def _range(model: Any, i: int, flag: str, field: str) -> tuple[float, float, bool]:
    if not column(model, f"tendon_{flag}", i):
        return -np.inf, np.inf, False
    return *ends(column(model, f"tendon_{field}", i)), True


def _fixed(model: Any, tree: MjcfTree, i: int, forces: dict[str, Any]) -> Tendon:
    """Return a tendon over joints: the sum of `coef` times each joint's coordinate."""
    first, count = int(model.tendon_adr[i]), int(model.tendon_num[i])
    shares: dict[str, float] = {}
    for w in range(first, first + count):
        name = tree.joint_names[int(model.wrap_objid[w])]
        shares[name] = shares.get(name, 0.0) + float(model.wrap_prm[w])
    return JointTendon(tendon_name(model, i), tuple(shares), list(shares.values()), **forces)


def _note_narrow(model: Any, tree: MjcfTree, i: int, where: str) -> None:
    """Say of a range that leaves a tendon next to no way: limits are not enforced."""
    low, high, limited = _range(model, i, "limited", "range")
    if not limited or "tendon" in tree.options.without or is_spatial(model, i):
        return
    travel = 0.0
    for w in range(int(model.tendon_adr[i]), int(model.tendon_adr[i] + model.tendon_num[i])):
        joint = int(model.wrap_objid[w])
        ends = model.jnt_range[joint] if model.jnt_limited[joint] else (0.0, 2 * np.pi)
        travel += abs(float(model.wrap_prm[w])) * float(ends[1] - ends[0])
    if high - low < NARROW * travel:
        tree.remarks.append(
            f"{where}: its range {low:g} to {high:g} holds it nearly still, which MuJoCo enforces; "
            "limits are data here, so that the joints move freely: a Coupling would hold them"
        )
