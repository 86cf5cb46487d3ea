"""What a frame leaves free of a machine: damped, and drawn to a posture.

    tau = -D_n N v - K_n (posture),    N = I - M^-1 J^T A^-1 J,    A = J M^-1 J^T [Khatib1987]

acts by N^T tau, which the frame does not feel.
"""

from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import joint_gain
from framefree.control.shared.joint_error import joint_error
from framefree.control.shared.joint_law import AllocatingLaw
from framefree.control.shared.model import ModelState
from framefree.control.shared.taskspace import TaskSpace
from framefree.machine.part import set_field

Matrix = Any


class NullSpaceLaw(AllocatingLaw):
    """A law of a frame with `null_damping`, `null_stiffness` and `posture` for what it leaves."""

    frame: str
    null_damping: Any
    null_stiffness: Any
    posture: Any

    def check_null_space(self, used: int) -> None:
        """Check and complete the gains, where the frame has so many directions."""
        joints, free = self.model.joints, self.model.n > used
        if free and self.null_damping is None:
            raise ControlError(
                f"`{self.machine.name}` has motions that `{self.frame}` does not feel: give their "
                "`null_damping`"
            )
        # `replace` gives a law its own matrices again: one of zeros pulls nowhere.
        pulls = self.null_stiffness is not None and np.any(self.null_stiffness)
        if (pulls and self.posture is None) or (
            self.posture is not None and self.null_stiffness is None
        ):
            raise ControlError("give both `null_stiffness` and `posture`, or neither")
        for name in ("null_damping", "null_stiffness"):
            value = 0.0 if getattr(self, name) is None else getattr(self, name)
            set_field(self, name, joint_gain(value, joints, name, definite=False))
        if self.posture is not None:
            set_field(self, "posture", np.asarray(self.posture, float))
            self.machine.validate(self.posture)

    def null_force(self, state: ModelState, task: TaskSpace) -> Matrix:
        """Tau (n): damping of N v and pull to the posture."""
        tau = -ca.DM(self.null_damping) @ task.free(state.v)
        if self.posture is not None:
            still = ca.SX(self.machine.nv, 1)
            posture = ca.DM(self.posture), still, still
            now = state.tree.x, state.tree.v
            error = joint_error(self.machine, self.model.joints, posture, now)
            tau -= error.E.T @ (ca.DM(self.null_stiffness) @ error.e)
        return tau

    @property
    def has_null_force(self) -> bool:
        """Whether anything acts there."""
        return bool(np.any(self.null_damping) or np.any(self.null_stiffness))
