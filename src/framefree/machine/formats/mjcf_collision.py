"""Contact of a compiled MuJoCo model, kept as it is: geoms, bodies that never touch, the solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.collision import CollisionExclusion, CollisionShape, CollisionSolver
from framefree.machine.formats.mjcf_engine import column, enabled, mujoco_module, value
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.poses import pose_of_quaternion

GEOM_SETTINGS = (
    *("friction", "condim", "contype", "conaffinity", "priority", "solmix", "solref", "solimp"),
    *("margin", "gap"),
)
"""Settings of a geom, by the names that both MJCF and the compiled model have."""
SOLVER_SETTINGS = (
    *("cone", "impratio", "solver", "iterations", "tolerance", "ls_iterations", "ls_tolerance"),
    *("noslip_iterations", "noslip_tolerance", "ccd_iterations", "ccd_tolerance"),
    *("o_margin", "o_solref", "o_solimp", "o_friction"),
)
SWITCHES = {
    "disableflags": ("FILTERPARENT", "REFSAFE", "NATIVECCD", "MULTICCD"),
    "enableflags": ("OVERRIDE",),
}
"""Flags of MuJoCo that change contact."""
_SIZES = {"PLANE": 3, "SPHERE": 1, "CAPSULE": 2, "ELLIPSOID": 3, "CYLINDER": 2, "BOX": 3}


def collisions(model: Any, tree: MjcfTree) -> tuple[Any, ...]:
    """Return shapes, exclusions and solver of a model; none where nothing may touch."""
    shapes = [
        _shape(model, tree, i)
        for i in range(model.ngeom)
        if model.geom_contype[i] or model.geom_conaffinity[i]
    ]
    if not shapes and not model.npair:
        return ()
    reasons = [
        f"<pair> of geoms `{model.geom(int(model.pair_geom1[i])).name}` and "
        f"`{model.geom(int(model.pair_geom2[i])).name}`"
        for i in range(model.npair)
    ]
    if not enabled(model, "CONTACT") or not enabled(model, "CONSTRAINT"):
        reasons.append("the file switches contact off (<flag>)")
    exclusions = _exclusions(model, tree, reasons)
    settings = [(name, getattr(model.opt, name)) for name in SOLVER_SETTINGS]
    settings += [(name, getattr(model.opt, name) & _mask(name)) for name in SWITCHES]
    solver = CollisionSolver(settings=tuple(settings), reasons=tuple(reasons))
    return (*shapes, *exclusions, solver)


def _mask(field: str) -> int:
    kind = {"disableflags": ("mjtDisableBit", "mjDSBL"), "enableflags": ("mjtEnableBit", "mjENBL")}
    words, prefix = kind[field]
    flags = getattr(mujoco_module(), words)
    names = [f"{prefix}_{name}" for name in SWITCHES[field]]
    return sum(int(getattr(flags, name)) for name in names if hasattr(flags, name))


def _shape(model: Any, tree: MjcfTree, i: int) -> CollisionShape:
    body, offset = tree.place[int(model.geom_bodyid[i])]
    name = model.geom(i).name or f"{body}_geom{i}"
    pose = offset @ pose_of_quaternion(model.geom_pos[i], model.geom_quat[i])
    for word in ("adhesion", "surfacevel"):
        if np.any(column(model, f"geom_{word}", i, 0.0)):
            return CollisionShape(name, body, pose=pose, reason=f"`{word}` of a geom")
    settings = tuple((word, getattr(model, f"geom_{word}")[i]) for word in GEOM_SETTINGS)
    kind = int(model.geom_type[i])
    for word, count in _SIZES.items():
        if kind == value("mjtGeom", f"mjGEOM_{word}"):
            size = np.array(model.geom_size[i][:count])
            return CollisionShape(name, body, word.lower(), size, pose, settings)
    if kind == value("mjtGeom", "mjGEOM_MESH"):
        return CollisionShape(name, body, "mesh", _hull(model, i), pose, settings)
    return CollisionShape(name, body, pose=pose, reason="a height field or signed distances")


def _hull(model: Any, i: int) -> np.ndarray:
    """Return the corners (n, 3) of the convex hull of a mesh: contact knows no more of it."""
    mesh = int(model.geom_dataid[i])
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    corners = np.array(model.mesh_vert[first : first + count], float)
    graph = int(model.mesh_graphadr[mesh])
    if graph < 0:
        return corners
    number = int(model.mesh_graph[graph])
    return corners[model.mesh_graph[graph + 2 + number : graph + 2 + 2 * number]]


def _exclusions(model: Any, tree: MjcfTree, reasons: list[str]) -> list[CollisionExclusion]:
    """Return the excluded pairs of bodies; those of bodies that are part of others are reasons."""
    holders = [body for body, _ in tree.place]
    with_geoms = [holders[int(body)] for body in set(model.geom_bodyid.tolist())]
    result = []
    for signature in model.exclude_signature:
        ends = int(signature) >> 16, int(signature) & 0xFFFF
        a, b = (holders[end] for end in ends)
        if a == b:
            continue
        if any(with_geoms.count(holder) > 1 for holder in (a, b)):
            names = " and ".join(f"`{tree.body_names[end]}`" for end in ends)
            reasons.append(f"<exclude> of {names}: one of them is part of a larger body here")
            continue
        result.append(CollisionExclusion(f"exclude{len(result)}", a, b))
    return result
