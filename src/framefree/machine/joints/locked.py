"""A joint held at one configuration, which remembers what it was."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.machine.joints.base import JointKind
from framefree.machine.part import set_field
from framefree.machine.values import numbers


@dataclass(frozen=True, eq=False)
class Locked(JointKind):
    """A joint without motion, at the pose of `joint` in configuration `value`.

    Made by `machine.lock`; `machine.unlock` brings back `joint`.
    """

    joint: Any
    value: Any

    nx = 0
    nv = 0
    x_names = ()
    v_names = ()

    def __post_init__(self) -> None:
        what = f"the value at which joint `{self.joint.name}` is locked"
        set_field(self, "value", numbers(self.value, (self.joint.nx,), what))

    @property
    def locked(self) -> bool:
        """True: this joint is locked."""
        return True

    def pose(self, x: Any) -> Any:
        """Return the pose of the locked joint."""
        return self.joint.kind.pose(casadi.DM(self.value))

    def jacobian(self, x: Any) -> Any:
        """Empty (6 x 0)."""
        return casadi.DM.zeros(6, 0)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Empty."""
        return np.zeros((count, 0))
