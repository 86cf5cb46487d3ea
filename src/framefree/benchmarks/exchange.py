"""Speed of exchanging a body: the crane's second link, and the mass matrix of the new crane."""

import numpy as np

from framefree.benchmarks.peers import pinocchio, to_pinocchio
from framefree.benchmarks.timing import best_seconds, circumstances, speedup
from framefree.gallery.machines.crane import (
    LENGTH,
    LONGER,
    arm_moments,
    crane_model,
    elbow,
    elbow_slope,
)
from framefree.motion.embedded import Embedded, body_values, tunable_body

Q = np.array([0.3, 0.7, 0.1])
"""phi, theta (rad) and delta (m) at which the mass matrix is wanted."""


def run() -> dict[str, object]:
    """Return the figures of `framefree bench exchange`.

    `update.over_pinocchio` is the time from the new link's moments to the mass matrix in (phi,
    theta, delta), over the time in which Pinocchio takes another inertia and gives the mass matrix
    of the open chain, which NumPy then reduces; `update.over_rebuild` is the same time over that of
    deriving and compiling the equations of the other crane.
    """
    update, peer = UpdatedCrane(), PinocchioCrane()
    expected = peer()
    return {
        "update.over_pinocchio": 1 / speedup(update, peer, repeats=15, loops=20),
        "update.over_rebuild": 1 / speedup(update, rebuilt, repeats=1),
        "update.microseconds": 1e6 * best_seconds(update, repeats=15, loops=20),
        "largest_difference": float(np.abs(update() - expected).max() / np.abs(expected).max()),
        **circumstances("pin"),
    }


class UpdatedCrane:
    """The longer link put into compiled equations, numbers only."""

    def __init__(self) -> None:
        self.equations = Embedded(tunable_body(crane_model(), "arm", ("tip",)))
        self.arm, self.tip = arm_moments(LONGER), (LENGTH * LONGER, 0, 0)

    def __call__(self) -> np.ndarray:
        """Return the mass matrix (3, 3)."""
        values = body_values("arm", self.arm, tip=self.tip)
        return self.equations.mass(Q, self.equations.machine.parameters.values(values))


def rebuilt() -> np.ndarray:
    """Derive the equations of the crane with the longer link and return its mass matrix (3, 3)."""
    return Embedded(crane_model(LONGER)).mass(Q)


class PinocchioCrane:
    """The open chain (phi, theta, zeta) in Pinocchio, reduced by the slope of the elbow."""

    def __init__(self) -> None:
        arm, self.pin = arm_moments(LONGER), pinocchio()
        self.model = to_pinocchio(crane_model().detach("rod"))
        self.data, self.index = self.model.createData(), self.model.getJointId("zeta")
        self.inertia = float(arm.total), np.array(arm.center), np.array(arm.moment_at_center)

    def __call__(self) -> np.ndarray:
        """Return the mass matrix (3, 3)."""
        self.model.inertias[self.index] = self.pin.Inertia(*self.inertia)
        upper = np.triu(self.pin.crba(self.model, self.data, np.array([*Q[:2], elbow(Q[2])])))
        E = np.diag([1.0, 1.0, elbow_slope(Q[2])])
        return E @ (upper + np.triu(upper, 1).T) @ E
