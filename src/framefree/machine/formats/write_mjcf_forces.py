"""Writing MJCF: loops and couplings, actuators, and keyframes."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.actuators import JointForce, Motor, Muscle, Propeller, TendonForce, Wrench
from framefree.machine.coupling import Coupling, Linear, Polynomial
from framefree.machine.formats.markup import Element
from framefree.machine.formats.write_mjcf_activation import input_of, muscle
from framefree.machine.formats.write_mjcf_joints import limits_of
from framefree.machine.formats.write_mjcf_loops import AddSite, LoopWriter
from framefree.machine.formats.writing import node, unused
from framefree.machine.joints import Continuous, Free, Planar, Spherical
from framefree.machine.problems import MachineError, Problems

if TYPE_CHECKING:
    from framefree.machine.machine import Machine


def _site_names(machine: Machine) -> set[str]:
    return {frame.name for frame in machine.frames}


def equalities(
    machine: Machine, add_site: AddSite, strings: Element, problems: Problems
) -> Element:
    """Return the <equality> section: loops and couplings; `strings` is the <tendon> section."""
    section, writer = node("equality"), LoopWriter(machine, add_site, strings)
    for loop in machine.loops:
        written = writer.write(loop)
        section.children += written
        if not written:
            problems.add(
                f'loop `{loop.name}`: MJCF has no {loop.kind} loop; `without="equality"` leaves '
                "out all loops and couplings"
            )
    for coupling in machine.couplings:
        with problems.at(f"coupling `{coupling.name}`"):
            section.children.append(_coupling(machine, coupling))
    return section


def _coupling(machine: Machine, coupling: Coupling) -> Element:
    plain = plain_coordinates(machine)
    if len(coupling.sources) != 1 or not set(coupling.coordinates) <= set(plain):
        raise MachineError("MJCF couples one coordinate of a slide or hinge to one other")
    law = coupling.law
    if isinstance(law, Linear):
        coefficients = [float(law.offset), float(law.multipliers[0])]
    elif isinstance(law, Polynomial) and len(law.coefficients) <= 5:
        coefficients = _expanded(np.asarray(law.coefficients), float(law.at))
    else:
        raise MachineError("MJCF has only polynomials up to the fourth power")
    coefficients = [*coefficients, *[0.0] * (5 - len(coefficients))]
    return node(
        "joint",
        name=coupling.name,
        joint1=plain[coupling.target],
        joint2=plain[coupling.sources[0]],
        polycoef=coefficients,
    )


def _expanded(coefficients: np.ndarray, at: float) -> list[float]:
    """Return the coefficients of powers of q of sum c_k (q - at)^k."""
    powers = np.zeros(len(coefficients))
    for k, c in enumerate(coefficients):
        for j in range(k + 1):
            powers[j] += c * comb(k, j) * (-at) ** (k - j)
    return powers.tolist()


def plain_coordinates(machine: Machine) -> dict[str, str]:
    """Return MuJoCo's joint for every coordinate that is one of its slides or hinges."""
    names = {}
    for joint in machine.joints:
        if isinstance(joint.kind, Spherical | Continuous):
            continue
        count = {Free: 3, Planar: 2}.get(type(joint.kind), joint.nx)
        names |= {name: name for name in joint.x_names[:count]}
    return names


# ---------------------------------------------------------------------- actuators


def actuators(machine: Machine, add_site: AddSite, problems: Problems) -> Element:
    """Return the <actuator> section."""
    section, taken = node("actuator"), _site_names(machine)
    taken |= {f"{loop.name}_{end}" for loop in machine.loops for end in "ab"}
    for actuator in machine.actuators:
        with problems.at(f"actuator `{actuator.name}`"):
            if isinstance(actuator, Muscle):
                section.children.append(muscle(actuator))
            elif isinstance(actuator, TendonForce):
                section.children.append(
                    _motor(actuator, {"tendon": actuator.tendon}, actuator.gear)
                )
            elif isinstance(actuator, JointForce):
                section.children.append(_joint_force(machine, actuator, add_site, taken))
            elif isinstance(actuator, Wrench | Propeller):
                section.children.extend(_wrenches(machine, actuator, add_site, taken))
            else:
                raise MachineError(
                    f'MJCF has no {type(actuator).__name__}; `without="actuator"` leaves out all'
                )
    return section


def _joint_force(
    machine: Machine, actuator: JointForce, add_site: AddSite, taken: set[str]
) -> Element:
    joint = machine.joint(actuator.joint)
    gear = np.asarray(actuator.gear)
    if isinstance(joint.kind, Free):
        if np.any(actuator.bias_terms):
            raise MachineError("MJCF has no servo on a free joint")
        site = add_site(unused(f"{actuator.name}_site", taken), joint.child, joint.child_pose)
        target = {"site": site}
    elif isinstance(joint.kind, Spherical):
        target = {"joint": joint.name}
    else:
        driven = np.flatnonzero(gear)
        if len(driven) > 1:
            raise MachineError("MJCF drives one slide or hinge by an actuator, not several")
        if isinstance(joint.kind, Planar):
            raise MachineError("MJCF drives a planar joint along axes of its parent")
        part = int(driven[0]) if len(driven) else 0
        target, gear = {"joint": joint.v_names[part]}, gear[part : part + 1]
    bias = np.asarray(actuator.bias_terms)
    if bias[1] and isinstance(joint.kind, Spherical | Continuous):
        raise MachineError("MJCF cannot describe this position servo")
    return _motor(actuator, target, gear)


def _motor(actuator: Motor, target: dict[str, str], gear: Any) -> Element:
    bias = np.asarray(actuator.bias_terms)
    return node(
        "general",
        name=actuator.name,
        **target,
        gear=[*gear, *[0.0] * (6 - len(gear))],
        gainprm=float(actuator.gain),
        biastype="affine" if bias.any() else "none",
        biasprm=bias if bias.any() else None,
        **input_of(actuator),
        **limits_of("force", actuator.force_lower, actuator.force_upper),
    )


def _wrenches(
    machine: Machine, actuator: Wrench | Propeller, add_site: AddSite, taken: set[str]
) -> list[Element]:
    if len(actuator.polytope[1]):
        raise MachineError("MJCF has limits of single inputs only, not `A u <= b`")
    frame = machine.frame(actuator.frame)
    site = frame.name
    if frame.name not in _site_names(machine):
        site = add_site(unused(f"{actuator.name}_site", taken), frame.body, np.asarray(frame.pose))
    columns = np.array(actuator.columns, dtype=float).reshape(6, -1)
    return [
        node(
            "general",
            name=name,
            site=site,
            gear=columns[:, k],
            **input_of(actuator, k),
        )
        for k, name in enumerate(actuator.u_names)
    ]


# ---------------------------------------------------------------------- keyframes


def keyframes(machine: Machine, without_inputs: bool, problems: Problems) -> Element:
    """Return the <keyframe> section."""
    section = node("keyframe")
    if not machine.keyframes:
        return section
    try:
        layout = machine.layout("mujoco")
    except MachineError:
        return section  # a joint that MJCF does not have is reported where it is written
    for key in machine.keyframes:
        x, v, u = machine.keyframe(key.name)
        ctrl = u if len(u) and not without_inputs else None
        active = [machine.u_slice[a.name].start for a in machine.actuators if a.activation]
        section.children.append(
            node(
                "key",
                name=key.name,
                qpos=layout.x_to(x) if machine.nx else None,
                qvel=layout.v_to(x, v) if machine.nv else None,
                ctrl=ctrl,
                act=None if ctrl is None or not active else u[active],
            )
        )
    return section
