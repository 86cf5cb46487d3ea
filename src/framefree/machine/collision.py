"""What a model file says of contact, kept for an engine that solves contact itself.

Our own equations do not use it: compliant contact is a `Contact` (`machine/contact.py`). MuJoCo as
the plant does, with `simulate(..., plant="mujoco", contacts=True)`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.values import pose


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
        MuJoCo's half sizes; of a mesh the corners (n, 3) of its convex hull, m.
    pose : pose
        In the frame.
    settings : sequence of (name, numbers)
        MuJoCo's, such as ("friction", (1, 0.005, 0.0001)).
    reason : str
    """

    name: str
    frame: str
    kind: str = ""
    size: Any = ()
    pose: Any = None
    settings: tuple[tuple[str, Any], ...] = ()
    reason: str = ""

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


def _kept(values: Any) -> np.ndarray:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _settings(pairs: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (str(name), tuple(np.ravel(values).astype(float).tolist())) for name, values in pairs
    )
