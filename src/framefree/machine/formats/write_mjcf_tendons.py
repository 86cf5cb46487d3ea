"""Writing MJCF: tendons, and forces that carry weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.formats.markup import Element
from framefree.machine.formats.write_mjcf_forces import plain_coordinates
from framefree.machine.formats.write_mjcf_joints import limits_of
from framefree.machine.formats.write_mjcf_spatial import AddTo, PathWriter
from framefree.machine.formats.writing import node
from framefree.machine.joint import FRICTION_WIDTH
from framefree.machine.problems import MachineError, Problems
from framefree.machine.spatial_tendon import SpatialTendon
from framefree.machine.spring import ConstantForce
from framefree.machine.tendon import JointTendon, Tendon

if TYPE_CHECKING:
    from framefree.machine.machine import Machine

POWERS = 3
"""Coefficients of a spring or damping that MuJoCo takes."""
CENTERED = 1e-9
"""Share of its distance from the origin by which compensated weight may miss the center."""


def tendons(machine: Machine, add: AddTo, problems: Problems) -> Element:
    """Return the <tendon> section; sites and geoms of spatial ones are added to their bodies."""
    section, paths = node("tendon"), PathWriter(machine, add)
    for tendon in machine.tendons:
        with problems.at(f"tendon `{tendon.name}`"):
            section.children.append(_tendon(machine, tendon, paths))
    return section


def _tendon(machine: Machine, tendon: Tendon, paths: PathWriter) -> Element:
    if isinstance(tendon, SpatialTendon):
        return node("spatial", *paths.steps(tendon), name=tendon.name, **forces_of(tendon))
    if not isinstance(tendon, JointTendon):
        raise MachineError(f"MJCF has no {type(tendon).__name__}")
    plain = plain_coordinates(machine)
    if not set(tendon.coordinates) <= set(plain):
        raise MachineError("MJCF has tendons over slides and hinges only")
    shares = zip(tendon.coordinates, tendon.coefficients, strict=True)
    joints = [node("joint", joint=plain[name], coef=float(share)) for name, share in shares]
    return node("fixed", *joints, name=tendon.name, **forces_of(tendon))


def forces_of(tendon: Tendon) -> dict[str, Any]:
    """Return the attributes of what acts along a tendon of any kind."""
    if tendon.friction and tendon.friction_width != FRICTION_WIDTH:
        raise MachineError(f"`friction_width` must be the default, {FRICTION_WIDTH:g}")
    attributes: dict[str, Any] = {"frictionloss": float(tendon.friction) or None}
    for name in ("stiffness", "damping"):
        values = np.asarray(getattr(tendon, name))
        if len(values) > POWERS and np.any(values[POWERS:]):
            raise MachineError(f"MJCF has {POWERS} coefficients of `{name}` at most")
        attributes[name] = values[:POWERS] if np.any(values) else None
    if tendon.has_spring:
        attributes["springlength"] = tendon.rest
    attributes |= limits_of("", tendon.lower, tendon.upper)
    return attributes | limits_of("actuatorfrc", tendon.effort_lower, tendon.effort_upper)


def compensation(machine: Machine) -> dict[str, float]:
    """Return the share of their weight by which constant forces carry bodies, where they do so.

    They do where all on a body act against gravity and together at the body's center, as `gravcomp`
    of MJCF.
    """
    masses: dict[str, list[tuple[float, np.ndarray]]] = {}
    for part in machine.springs:
        mass = _carried(machine, part)
        if mass:
            frame = machine.frame(part.frame_b)
            point = np.asarray(frame.pose) @ np.append(part.point, 1.0)
            masses.setdefault(frame.body, []).append((mass, point[:3]))
    shares = {}
    for name, parts in masses.items():
        total = sum(mass for mass, _ in parts)
        first = sum((mass * point for mass, point in parts), np.zeros(3))
        body = machine.body(name)
        if body.massless or not total:
            continue
        center = np.asarray(body.moments.center)
        reach = max(float(np.abs(point).max()) for _, point in parts)
        if np.abs(first / total - center).max() <= CENTERED * reach:
            shares[name] = total / float(body.moments.total)
    return shares


def written_as_compensation(machine: Machine) -> tuple[Any, ...]:
    """Return the constant forces that `gravcomp` says."""
    shares = compensation(machine)
    return tuple(
        part
        for part in machine.springs
        if _carried(machine, part) and machine.frame(part.frame_b).body in shares
    )


def _carried(machine: Machine, part: Any) -> float:
    """Return the mass whose weight a constant force from the world carries; 0 for others."""
    if not isinstance(part, ConstantForce):
        return 0.0
    start, g = machine.frame(part.frame_a), np.asarray(machine.gravity)
    if start.body != WORLD or machine.frame(part.frame_b).body == WORLD or not g.any():
        return 0.0
    force = np.asarray(start.pose)[:3, :3] @ np.asarray(part.force)
    mass = -float(force @ g) / float(g @ g)
    straight = np.abs(force + mass * g).max() <= CENTERED * np.abs(force).max()
    return mass if straight else 0.0
