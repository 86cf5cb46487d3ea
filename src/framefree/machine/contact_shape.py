"""Shapes that touch, each in a frame; `contact_pairs` tells how deep one is in another."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.geometry import se3
from framefree.machine.contact_pairs import PAIRS
from framefree.machine.contact_pairs.base import TouchPoint, seen_from_other
from framefree.machine.part import Part, set_field
from framefree.machine.problems import MachineError, known_names
from framefree.machine.values import constant, numbers, pose

SIZES = {
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "cylinder": ("radius", "length"),
    "disk": ("radius",),
    "box": ("x", "y", "z"),
    "half_space": (),
}
"""What the sizes of each kind are, m; `length` is along z, without the ends of a capsule."""


@dataclass(frozen=True, eq=False)
class ContactShape(Part):
    """A solid for contact, placed in a frame.

    Parameters
    ----------
    kind : str
        "sphere", "capsule", "cylinder", "disk" (a rim without thickness), "box", or "half_space",
        which fills z <= 0; "plane" means the same.
    size : number or sequence
        See `SIZES`: radius; radius and length; or the three edges of a box; m.
    pose : pose
        In its frame; default the identity.
    """

    kind: str
    size: Any = ()
    pose: Any = None

    def __post_init__(self) -> None:
        kind = "half_space" if self.kind == "plane" else self.kind
        if kind not in SIZES:
            raise MachineError(
                f"there is no contact shape `{self.kind}`; there are {known_names(SIZES)}"
            )
        set_field(self, "kind", kind)
        words, what = SIZES[kind], f"the size of a contact shape `{kind}`"
        if np.size(self.size) != len(words):
            listed = ", ".join(words) or "nothing"
            raise MachineError(f"{what} is {listed}, got {self.size!r}")
        size = numbers(np.atleast_1d(np.asarray(self.size, float)).ravel(), (len(words),), what)
        if not (size > 0).all():
            raise MachineError(f"{what} must be positive, got {size.tolist()}")
        set_field(self, "size", size)
        set_field(self, "pose", pose(self.pose, f"the pose of a contact shape `{kind}`"))

    @property
    def extent(self) -> float:
        """Smallest half width, m: no depth can be larger; infinite for a half-space."""
        halves = {"half_space": [np.inf], "box": self.size / 2}
        if self.kind == "cylinder":
            halves["cylinder"] = [self.size[0], self.size[1] / 2]
        return float(min(halves.get(self.kind, self.size[:1])))


def touching(a: ContactShape, b: ContactShape, pose_ab: Any) -> list[TouchPoint]:
    """Return where two shapes touch, from the pose of frame b seen from frame a."""
    on_a, on_b = constant(a.pose), constant(b.pose)
    G = se3.compose(se3.inverse(on_a), pose_ab, on_b)
    if (a.kind, b.kind) in PAIRS:
        places = PAIRS[a.kind, b.kind](a.size, b.size, G)
    else:
        back = PAIRS[b.kind, a.kind](b.size, a.size, se3.inverse(G))
        places = [seen_from_other(place, G) for place in back]
    return [place.moved(on_b) for place in places]


def refusal(a: ContactShape, b: ContactShape) -> str:
    """Return why two shapes cannot touch, empty where they can."""
    if (a.kind, b.kind) in PAIRS or (b.kind, a.kind) in PAIRS:
        return ""
    return "two half-spaces have no relative motion that contact could limit"
