"""What each body contributes to the equations of motion of a machine, in numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.motion.equations import Equations

NOTHING = 1e-9
"""Entries of Gamma below this times sqrt(Gamma_ii Gamma_jj) have no shares."""


@dataclass(frozen=True)
class Shares:
    """Shares of the bodies of a machine at one state, or (rows, ...) at many.

    Attributes
    ----------
    bodies : tuple of str
    coordinates : tuple of str
    Gamma : (bodies, n, n)
        Gamma_b, kg m^2 and kg.
    inertia : (bodies, n, n)
        Gamma_b / Gamma, entry by entry; they add up to 1, but those of an entry off the diagonal
        may be negative. Not a number where the entry of Gamma is zero.
    kinetic : (bodies,)
        Share of the kinetic energy; not a number at rest.
    C : (bodies, n, n)
        C_b with dGamma_b/dt = C_b + C_b^T; they add up to the skew Coriolis matrix.
    h : (bodies, n)
        Force at zero acceleration, weight and passive forces included; they add up to the bias.
    """

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]
    Gamma: np.ndarray
    inertia: np.ndarray
    kinetic: np.ndarray
    C: np.ndarray
    h: np.ndarray


def shares(equations: Equations, x: Any, v: Any, parameters: Any = None) -> Shares:
    """Return the shares of all bodies at a state, (n,), or at many, (rows, n).

    Parameters
    ----------
    equations : Equations
        Any formulation, most of all `Embedded` and `Tree`.
    x, v : arrays
        In the coordinates of the equations.
    parameters : optional
        Values of tunable numbers: a mapping, a vector, or one vector a row.
    """
    given: list[Any] = []
    if len(equations.machine.parameters):
        many = np.ndim(parameters) == 2
        given = [parameters if many else equations.machine.parameters.values(parameters)]
    x, v = np.asarray(x, float), np.asarray(v, float)
    Gamma = np.asarray(equations.kernel("body_mass")(x, *given))
    energy = np.asarray(equations.kernel("body_kinetic")(x, v, *given))
    whole = Gamma.sum(axis=-3, keepdims=True)
    size = np.sqrt(np.abs(np.diagonal(whole, axis1=-2, axis2=-1)))
    tiny = np.abs(whole) <= NOTHING * size[..., :, None] * size[..., None, :]
    total = energy.sum(axis=-1, keepdims=True)
    return Shares(
        tuple(body.name for body in equations.machine.bodies),
        equations.v_names,
        Gamma,
        Gamma / np.where(tiny, np.nan, whole),
        energy / np.where(total > 0, total, np.nan),
        np.asarray(equations.kernel("body_coriolis")(x, v, *given)),
        np.asarray(equations.kernel("body_bias")(x, v, *given)),
    )
