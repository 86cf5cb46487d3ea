"""The uniform ultimate bound of the robust law, from its proof.

With s^T kappa sat(s / eps) >= sum kappa_i (|s_i| - eps_i / 4) and |d_i| <= dbar_i,

    dV/dt <= -sum f_i(s_i) + b
    f_i(s) = K_i s^2 + (kappa_i - dbar_i) |s|,    b = sum kappa_i eps_i / 4

So V falls wherever sum f_i > b. Where kappa_i < dbar_i, f_i has a negative least value, -w_i; with
w_i = 0 elsewhere, |s_i| <= r_i holds wherever V may rise, r_i being the positive root of

    K_i r^2 + (kappa_i - dbar_i) r = b + sum_(j != i) w_j

The smallest level set of V around that box is V <= V_max, and a run that has come into it stays:

    V_max = max_q 1/2 r^T |Gamma(q)| r,     |s_i| <= sqrt(2 V_max max_q (Gamma^-1(q))_ii)
    |e_i(t)| <= |e_i(t1)| exp(-Lambda_i (t - t1)) + s_i / Lambda_i
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.control.law import ControlError


@dataclass(frozen=True)
class UltimateBound:
    """Where errors end.

    Attributes
    ----------
    box : (n,)
        |s_i| up to which V may rise.
    V : float
        Level of V below which the run stays once it is there, J.
    s, e : (n,)
        Largest |s_i| within that level, and largest |e_i| in the end.
    """

    box: np.ndarray
    V: float
    s: np.ndarray
    e: np.ndarray

    @property
    def size(self) -> float:
        """Norm of the bound on e."""
        return float(np.linalg.norm(self.e))

    def envelope(self, t: Any, e: Any, Lambda: Any) -> np.ndarray:
        """Return the bound (rows, n) on |e| from the time t[0] on, V being below its level there.

        Parameters
        ----------
        t : (rows,)
        e : (n,)
            Error at t[0].
        Lambda : (n,)
        """
        t, rate = np.asarray(t, float), np.asarray(Lambda, float)
        decay = np.exp(-np.outer(t - t[0], rate))
        return np.abs(np.asarray(e, float)) * decay + self.e * (1 - decay)

    def used(self, t: Any, e: Any, Lambda: Any) -> float:
        """Return how much of what the envelope allows beyond decay errors have used; at most 1.

        The largest (|e_i(t)| - |e_i(t1)| decay_i) / (bound of e_i (1 - decay_i)) for t after the
        first time t1. Just after t1 this is sign(e_i) s_i over its bound, so that it is as sharp
        there as later.

        Parameters
        ----------
        t : (rows,)
        e : (rows, n)
            Errors; V is below its level in all rows if the bound holds.
        Lambda : (n,)
        """
        t, e = np.asarray(t, float), np.abs(np.asarray(e, float))
        decay = np.exp(-np.outer(t - t[0], np.asarray(Lambda, float)))
        beyond, allowed = (e - e[0] * decay)[1:], (self.e * (1 - decay))[1:]
        # Differences of nearly equal numbers say nothing below their rounding errors.
        rounding = 4 * np.finfo(float).eps * e[0]
        ratio = (beyond - rounding) / np.where(allowed > 0, allowed, np.finfo(float).tiny)
        return float(ratio.max(initial=-np.inf)) if len(t) > 1 else 0.0


def ultimate_bound(
    Lambda: Any, K: Any, kappa: Any, eps: Any, uncertainty: Any, masses: Any
) -> UltimateBound:
    """Return the bound for gains (n,), an uncertainty dbar (n,), and mass matrices (m, n, n).

    The mass matrices are those of the positions that the run takes: the bound is as local as they
    and the uncertainty are (errata E2-7).
    """
    Lambda, K, kappa, eps, dbar = (
        np.asarray(g, float) for g in (Lambda, K, kappa, eps, uncertainty)
    )
    masses = np.asarray(masses, float)
    masses = masses[None] if masses.ndim == 2 else masses
    n = len(dbar)
    if masses.shape[1:] != (n, n):
        raise ControlError(f"`masses` must be (m, {n}, {n}), got {masses.shape}")
    spare = kappa - dbar
    lowest = np.where(spare < 0, spare**2 / (4 * K), 0.0)
    right = (kappa * eps).sum() / 4 + lowest.sum() - lowest
    box = (-spare + np.sqrt(spare**2 + 4 * K * right)) / (2 * K)
    V = float(np.einsum("i,mij,j->m", box, np.abs(masses), box).max() / 2)
    widest = np.linalg.inv(masses).diagonal(axis1=1, axis2=2).max(axis=0)
    s = np.sqrt(2 * V * widest)
    return UltimateBound(box, V, s, s / Lambda)
