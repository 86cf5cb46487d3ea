"""Integral action of the prototype law, with its place in the error energy.

Beside its machine the law counts a force z that it integrates itself,

    dz/dt = K M^-1 (p_E + T g),    p_E = Mbar v_E,    g = grad of the potential

with the error velocity v_E and the prototype's inertia Mbar. Where a constant force f acts that the
law does not know, constant in the axes of the velocities,

    V = W + v_E . T g + 1/2 (f - z) . K^-1 (f - z)

has a rate in which f does not occur: with the accelerations a that the model has under the inputs
and z,

    dV/dt = dW/dt(a) + d/dt(v_E . T g)(a)

For a fully actuated machine, with the energy approach or for a single free body with the body
approach, that is -v_E . Dbar v_E - g . Mbar^-1 T g and terms with the times T that these dominate
where they are short enough (`largest_factor`): then z goes to f, and the error to zero.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.gains import positive, vector_gain

Matrix = Any


@dataclass(frozen=True)
class PrototypeIntegral:
    """Integral action as an option of `PrototypeControl`; see the top of this file.

    Parameters
    ----------
    gain : number or (nv,)
        K: force by integral of the velocity error, N/m and Nm/rad.
    time : number or (nv,)
        T, s: how much of the error itself is integrated, beside its velocity.
    force : (nv,), optional
        The force that acts, for the record of V only, which needs it: the law does not use it.
    """

    gain: Any
    time: Any
    force: Any = None

    def __post_init__(self) -> None:
        positive(self.gain, "gain", "PrototypeIntegral")
        positive(self.time, "time", "PrototypeIntegral")

    def gains(self, nv: int) -> np.ndarray:
        """Return K for all velocities."""
        return vector_gain(self.gain, nv, "gain", "PrototypeIntegral")

    def times(self, nv: int) -> np.ndarray:
        """Return T for all velocities."""
        return vector_gain(self.time, nv, "time", "PrototypeIntegral")

    def stored(self, z: Matrix) -> Matrix:
        """Return the part of V that holds what z misses of the force."""
        nv = z.shape[0]
        force = np.zeros(nv) if self.force is None else np.asarray(self.force, float)
        if force.shape != (nv,) or not np.isfinite(force).all():
            raise ControlError(f"`force` must be {nv} finite numbers, got {force.tolist()}")
        missed = ca.DM(force) - z
        return ca.dot(missed, missed / ca.DM(self.gains(nv))) / 2


def largest_factor(M: np.ndarray, D: np.ndarray, K: np.ndarray, times: np.ndarray) -> float:
    """Return by how much the times may grow until V is not positive, or does not fall.

    That is at rest and near the reference, where M, D and K (nv, nv) are the prototype's inertia,
    damping and stiffness. Below one, the times are too long.
    """

    def good(factor: float) -> bool:
        TK = factor * times[:, None] * K
        cross = D @ np.linalg.solve(M, TK) / 2
        pull = K @ np.linalg.solve(M, TK)
        V = np.block([[M, TK], [TK.T, K]])
        loss = np.block([[D - (TK + TK.T) / 2, cross], [cross.T, (pull + pull.T) / 2]])
        return all(np.linalg.eigvalsh(_scaled(form))[0] > 0 for form in (V, loss))

    low, high = 0.0, 1.0
    while good(high) and high < 1e6:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _scaled(form: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.maximum(np.abs(np.diag(form)), 1e-300))
    return form / np.outer(size, size)
