"""Mesh files of a machine: read by trimesh, or named as missing with what would help.

A file is untrusted: its size is limited, and no other file that it names is opened.
"""

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from framefree.look.solids import MESH_BYTES
from framefree.machine import Machine
from framefree.machine.formats.source import MESHES
from framefree.machine.shape import Shape

MISSING = "missing:"


@dataclass(frozen=True)
class MeshOnBody:
    """A mesh and where it is.

    Attributes
    ----------
    body : int
        Index of its body; -1 for the world.
    pose : (4, 4)
        In the body's frame.
    mesh : trimesh.Trimesh
    scale : (3,)
    """

    body: int
    pose: np.ndarray
    mesh: Any
    scale: tuple[float, float, float]


def meshes_of(machine: Machine, role: str = "visual") -> tuple[list[MeshOnBody], list[str]]:
    """Return the meshes that can be shown, and for each of the others what is wrong with it."""
    shown, problems = [], []
    for shape in machine.geometry:
        if shape.kind != "mesh" or shape.role != role:
            continue
        mesh = mesh_of(shape.file, tuple(np.round(np.clip(shape.color, 0, 1), 4).tolist()))
        if isinstance(mesh, str):
            problems.append(mesh)
            continue
        frame = machine.frame(shape.frame)
        pose = np.asarray(frame.pose, float) @ np.asarray(shape.pose, float)
        scale: Any = tuple(float(part) for part in np.asarray(shape.size))
        shown.append(MeshOnBody(machine.body_index[frame.body], pose, mesh, scale))
    return shown, list(dict.fromkeys(problems))


def note_on_missing(machine: Machine) -> str:
    """Return what is missing of a machine's looks and how to give it; "" where nothing is."""
    problems = [p for role in ("visual", "collision") for p in meshes_of(machine, role)[1]]
    if not problems:
        return ""
    shown = "".join(f"\n- {words}" for words in problems[:4])
    more = f"\n- ... and {len(problems) - 4} more" if len(problems) > 4 else ""
    return (
        f"**{len(problems)} mesh files are not shown:**{shown}{more}\n\nBones between the joints "
        "stand for them. Say where packages are: `ff.read(file, packages=[FOLDER])`, on the "
        "command line `--packages FOLDER`, where FOLDER holds the folder that `package://` names."
    )


@lru_cache(maxsize=512)
def mesh_of(file: str, color: tuple[float, ...]) -> Any:
    """Return a mesh file as trimesh has it, or words on why it cannot be shown.

    STL and OBJ have the color of the shape, others their own.
    """
    path = Path(file.removeprefix(MISSING))
    name = f"`{file.removeprefix(MISSING)}`"
    if file.startswith((MISSING, "package://", "model://", "http://", "https://")):
        return f"{name} was not found"
    kind = path.suffix.lower()
    if kind not in MESHES:
        return f"{name}: meshes are {', '.join(MESHES)}"
    try:
        import trimesh
        from trimesh.visual import ColorVisuals
    except ImportError:
        return f'{name} needs `trimesh`: pip install "framefree[view]"'
    try:
        if path.stat().st_size > MESH_BYTES:
            return f"{name} has more than {MESH_BYTES // 2**20} MiB"
        scene = trimesh.load_scene(io.BytesIO(path.read_bytes()), file_type=kind[1:])
        mesh = scene.to_mesh()
    except FileNotFoundError:
        return f"{name} was not found"
    except Exception as error:  # whatever a mesh file holds, the machine is shown without it
        return f"{name} cannot be read: {str(error)[:120] or type(error).__name__}"
    vertices = np.asarray(mesh.vertices, float)
    if len(vertices) < 3 or not len(mesh.faces) or not np.isfinite(vertices).all():
        return f"{name} holds no triangles"
    if kind in (".stl", ".obj", ".ply"):
        rgba = np.round(255 * np.array(color)).astype(np.uint8)
        mesh.visual = ColorVisuals(mesh, face_colors=np.tile(rgba, (len(mesh.faces), 1)))
    return mesh


def is_missing(shape: Shape) -> bool:
    """Whether a shape is a mesh that cannot be shown."""
    color = tuple(np.round(np.clip(shape.color, 0, 1), 4).tolist())
    return shape.kind == "mesh" and isinstance(mesh_of(shape.file, color), str)
