"""Shapes of a compiled MuJoCo model: its geoms, for the viewer."""

from __future__ import annotations

from typing import Any

import numpy as np

from framefree.machine.formats.mjcf_engine import value
from framefree.machine.formats.mjcf_text import Document
from framefree.machine.formats.mjcf_tree import MjcfTree
from framefree.machine.formats.poses import inverse, pose_of_quaternion, posed
from framefree.machine.formats.writing import UNSEEN
from framefree.machine.problems import MachineError
from framefree.machine.shape import Shape

VISIBLE_GROUPS = 3
"""MuJoCo's viewer shows geoms of the first three groups unless configured otherwise."""


def shapes(model: Any, tree: MjcfTree, document: Document) -> tuple[Shape, ...]:
    """Return the geoms as shapes; what cannot be drawn is left out."""
    result = []
    for i in range(model.ngeom):
        try:
            shape = _shape(model, tree, document, i)
        except MachineError:
            continue
        if shape is not None:
            result.append(shape)
    return tuple(result)


def _shape(model: Any, tree: MjcfTree, document: Document, i: int) -> Shape | None:
    if model.geom_rgba[i, 3] == 0 and model.geom_group[i] == UNSEEN["group"]:
        return None  # it is there for a tendon or a fluid alone
    body, offset = tree.place[int(model.geom_bodyid[i])]
    pose = offset @ pose_of_quaternion(model.geom_pos[i], model.geom_quat[i])
    kind, size = int(model.geom_type[i]), np.array(model.geom_size[i])
    words, file = _WORDS.get(_name_of(kind)), ""
    if words is not None:
        name, size = words[0], words[1](size)
    elif model.geom_dataid[i] >= 0 and _name_of(kind) == "MESH":
        name, size, pose, file = _mesh(model, document, i, pose)
    else:
        return None
    role = "visual" if model.geom_group[i] < VISIBLE_GROUPS else "collision"
    return Shape(body, name, size, pose, file, _color(model, i), role, model.geom(i).name)


_WORDS = {
    "PLANE": ("plane", lambda s: 2 * s[:2]),
    "SPHERE": ("sphere", lambda s: s[:1]),
    "CAPSULE": ("capsule", lambda s: (s[0], 2 * s[1])),
    "ELLIPSOID": ("ellipsoid", lambda s: s),
    "CYLINDER": ("cylinder", lambda s: (s[0], 2 * s[1])),
    "BOX": ("box", lambda s: 2 * s),
}


def _name_of(kind: int) -> str:
    return next(
        (name for name in (*_WORDS, "MESH") if value("mjtGeom", f"mjGEOM_{name}") == kind), ""
    )


def _mesh(model: Any, document: Document, i: int, pose: np.ndarray) -> tuple:
    """Return a mesh by its file; one that is written out in the model is shown by its box."""
    mesh = int(model.geom_dataid[i])
    file = document.meshes.get(model.mesh(mesh).name, "")
    if not file:
        center, half = model.geom_aabb[i][:3], model.geom_aabb[i][3:]
        return "box", 2 * half, pose @ posed(np.eye(3), center), ""
    # MuJoCo centers a mesh and turns it to its principal axes.
    own = pose_of_quaternion(model.mesh_pos[mesh], model.mesh_quat[mesh])
    return "mesh", np.array(model.mesh_scale[mesh]), pose @ inverse(own), file


def _color(model: Any, i: int) -> np.ndarray:
    material = int(model.geom_matid[i])
    plain = (0.5, 0.5, 0.5, 1.0)
    own = np.array(model.geom_rgba[i], dtype=float)
    if material >= 0 and np.allclose(own, plain):
        own = np.array(model.mat_rgba[material], dtype=float)
    return np.array(Shape.color) if np.allclose(own, plain) else own
