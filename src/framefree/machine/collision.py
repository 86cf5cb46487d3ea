"""What a model file says of contact, kept for an engine that solves contact itself.

Our own equations do not use it: compliant contact is a `Contact` (`machine/contact.py`). MuJoCo as
the plant does, with `simulate(..., plant="mujoco", contacts=True)`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.shape import Shape
from framefree.machine.values import pose

MESHES = (".stl", ".obj", ".msh")
"""Files of meshes that MuJoCo reads."""


@dataclass(frozen=True, eq=False)
class CollisionShape(Part):
    """A geom that may touch others, as its file has it.

    Parameters
    ----------
    name, frame : str
    kind : str
        "plane", "sphere", "capsule", "ellipsoid", "cylinder", "box" or "mesh"; empty where another
        engine cannot be given it, for the `reason`.
    size : numbers
        MuJoCo's half sizes; of a mesh the corners (n, 3) of its convex hull, m, or its scale (3)
        where it is in a `file`.
    pose : pose
        In the frame.
    settings : sequence of (name, numbers)
        MuJoCo's, such as ("friction", (1, 0.005, 0.0001)).
    reason : str
    file : str
        Of a mesh: MuJoCo takes its convex hull.
    """

    name: str
    frame: str
    kind: str = ""
    size: Any = ()
    pose: Any = None
    settings: tuple[tuple[str, Any], ...] = ()
    reason: str = ""
    file: str = ""

    frame_fields = ("frame",)

    def __post_init__(self) -> None:
        checked_name(self.name, "a collision shape")
        set_field(self, "size", _kept(self.size))
        set_field(self, "pose", pose(self.pose, f"the pose of collision shape `{self.name}`"))
        set_field(self, "settings", _settings(self.settings))


@dataclass(frozen=True, eq=False)
class CollisionExclusion(Part):
    """Two bodies whose shapes never touch."""

    name: str
    frame_a: str
    frame_b: str

    frame_fields = ("frame_a", "frame_b")


@dataclass(frozen=True, eq=False)
class CollisionSolver(Part):
    """How an engine solves contact: settings by MuJoCo's names, and what cannot be kept of a file.

    Where machines are merged the first one counts.
    """

    name: str = "solver"
    settings: tuple[tuple[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "settings", _settings(self.settings))
        set_field(self, "reasons", tuple(self.reasons))


def of_shapes(shapes: Iterable[Shape]) -> tuple[CollisionShape, ...]:
    """Return the solids among shapes of a file (role "collision"), by MuJoCo's sizes."""
    solids = [shape for shape in shapes if shape.role == "collision"]
    return tuple(_solid(shape, f"{shape.frame}_solid{i}") for i, shape in enumerate(solids))


def _solid(shape: Shape, name: str) -> CollisionShape:
    sizes = {
        "box": lambda size: size / 2,
        "sphere": lambda size: size,
        "ellipsoid": lambda size: size,
        "cylinder": lambda size: (size[0], size[1] / 2),
        "capsule": lambda size: (size[0], size[1] / 2),
        "plane": lambda size: (*(size / 2), 1.0),
        "mesh": lambda size: size,
    }
    reason = ""
    if shape.kind == "mesh" and not shape.file.lower().endswith(MESHES):
        reason = f"MuJoCo reads meshes of the kinds {', '.join(MESHES)}, not `{shape.file}`"
    elif shape.kind == "mesh" and not Path(shape.file).is_file():
        reason = f"the mesh `{shape.file}` was not found"
    size = sizes[shape.kind](np.asarray(shape.size))
    return CollisionShape(
        name, shape.frame, shape.kind, size, shape.pose, reason=reason, file=shape.file
    )


def _kept(values: Any) -> np.ndarray:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _settings(pairs: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (str(name), tuple(np.ravel(values).astype(float).tolist())) for name, values in pairs
    )
