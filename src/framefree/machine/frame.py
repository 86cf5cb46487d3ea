"""A named pose on a body or on the world."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.machine.body import WORLD
from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import pose


@dataclass(frozen=True, eq=False)
class Frame(Part):
    """A frame fixed to a body.

    Parameters
    ----------
    name : str
        Unique among frames and bodies: every body also is the frame of its own name.
    body : str
        Name of the body, or "world".
    pose : 4x4 pose, position (3), or position and quaternion wxyz (7)
        The frame seen from the body frame; default the identity.
    """

    name: str
    body: str
    pose: Any = None

    def __post_init__(self) -> None:
        checked_name(self.name, "a frame")
        checked_name(self.body, f"the body of frame `{self.name}`")
        set_field(self, "pose", pose(self.pose, f"the pose of frame `{self.name}`"))
        if self.name == WORLD and (self.body != WORLD or not np.array_equal(self.pose, np.eye(4))):
            raise MachineError("a frame must not be named `world`: that is the frame of the world")
