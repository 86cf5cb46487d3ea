"""Shapes show the viewer what a body looks like; they have no effect on the motion."""

from dataclasses import dataclass
from typing import Any

from framefree.machine.part import Part, checked_name, set_field
from framefree.machine.problems import MachineError
from framefree.machine.values import numbers, pose

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 2, "mesh": 3}


@dataclass(frozen=True, eq=False)
class Shape(Part):
    """A solid drawn on a frame.

    Parameters
    ----------
    frame : str
    kind : str
        box, sphere, cylinder, capsule, ellipsoid, plane or mesh.
    size : numbers
        box: full lengths (3); sphere: radius; cylinder, capsule: radius and length along z, the
        capsule's without its caps; ellipsoid: half axes (3); plane: full lengths (2); mesh: scale
        (3). All in m.
    pose : pose
        In the frame; default the identity.
    file : str
        Path or address of a mesh, as the model file gives it.
    color : (4,)
        Red, green, blue, opacity in [0, 1].
    role : "visual" or "collision"
    name : str
    """

    frame: str
    kind: str
    size: Any
    pose: Any = None
    file: str = ""
    color: Any = (0.6, 0.65, 0.7, 1.0)
    role: str = "visual"
    name: str = ""

    frame_fields = ("frame",)

    def __post_init__(self) -> None:
        checked_name(self.frame, "the frame of a shape")
        if self.kind not in SIZES:
            raise MachineError(
                f"the kind of a shape on `{self.frame}` must be one of {', '.join(SIZES)}, "
                f"got {self.kind!r}"
            )
        if self.role not in ("visual", "collision"):
            raise MachineError(
                f"the role of a shape on `{self.frame}` must be visual or collision, got "
                f"{self.role!r}"
            )
        what = f"the size of a {self.kind} on `{self.frame}`"
        set_field(self, "size", numbers(self.size, (SIZES[self.kind],), what))
        set_field(self, "pose", pose(self.pose, f"the pose of a {self.kind} on `{self.frame}`"))
        set_field(self, "color", numbers(self.color, (4,), f"the color of a {self.kind}"))
