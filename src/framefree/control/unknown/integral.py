"""Integral action of the velocity error: the unknown force is what it has to be for s = 0.

With z the integral of S s and the force -S^T K z beside the law's own,

    M ds/dt + C s = -(law's damping) - S^T K z + d
    V_I = 1/2 z^T K z,      dV_I/dt = s^T S^T K z

so that V of the law and V_I together fall at the law's stated rate where d = 0. Where d = S^T w
with constant w, the same is true of V with z - K^-1 w in the place of z: s goes to zero, and with
it the error, whatever w is. The law records V with z, as it does not know w; the stated rate then
lacks s^T d. S turns forces on the velocities to the axes in which they are constant, or is the
Jacobian of a frame for a wrench at it (`UnknownForce`): V_I needs no rate of S.
"""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.shared.gains import vector_gain
from framefree.control.shared.model import Model
from framefree.control.unknown.correction import (
    Correction,
    CorrectionChange,
    CorrectionForce,
    ReferenceMotion,
    UnknownForce,
    at_symbols,
)

Matrix = Any


@dataclass(frozen=True)
class IntegralAction(Correction):
    """Integral action as an option of a law; see the top of this file.

    Records `unknown` (n), the estimated force on the velocities, and `unknown_wrench` (6) where it
    acts at a frame.

    Parameters
    ----------
    gain : float or (k,)
        K: force by integral of velocity error (N/m, Nm/rad), one a number of z.
    unknown : UnknownForce
        What is taken as constant.
    """

    gain: Any = 20.0
    unknown: UnknownForce = field(default_factory=UnknownForce)

    def size(self, model: Model) -> int:
        """Return the number of integrals."""
        return self.unknown.size(model)

    def check(self, model: Model) -> None:
        """Raise `ControlError` if the gain does not fit."""
        self._gain(model)

    def _gain(self, model: Model) -> np.ndarray:
        names = model.v_names if self.unknown.frame is None else ()
        return vector_gain(self.gain, self.size(model), "gain", "IntegralAction", of=names)

    def meet(
        self, model: Model, x: Matrix, v: Matrix, memory: Matrix, wanted: ReferenceMotion
    ) -> CorrectionForce:
        """Return the integral action at a state."""
        K = ca.DM(self._gain(model))
        (S,) = at_symbols(model, lambda state: [self.unknown.directions(state)])(x, v)
        estimated = K * memory
        against = S.T @ estimated
        signals = {"unknown": against}
        if self.unknown.frame is not None:
            signals["unknown_wrench"] = estimated

        def change(s: Matrix, u: Matrix) -> CorrectionChange:
            return CorrectionChange(S @ s, memory, ca.dot(memory, estimated) / 2, ca.SX(0), signals)

        return CorrectionForce(-against, change)
