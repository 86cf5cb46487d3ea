"""The fixed joint: no motion."""

from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np

from framefree.machine.joints.base import JointKind


@dataclass(frozen=True, eq=False)
class Fixed(JointKind):
    """The child joint frame coincides with the parent joint frame; no coordinates."""

    nx = 0
    nv = 0
    x_names = ()
    v_names = ()

    def pose(self, x: Any) -> Any:
        """Identity."""
        return casadi.DM(np.eye(4))

    def jacobian(self, x: Any) -> Any:
        """Empty (6 x 0)."""
        return casadi.DM.zeros(6, 0)

    def sample(self, rng: "np.random.Generator", count: int) -> np.ndarray:
        """Empty."""
        return np.zeros((count, 0))
