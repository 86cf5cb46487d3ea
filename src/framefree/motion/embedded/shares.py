"""What each body contributes to the inertia and to the kinetic energy of a machine."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.motion.embedded.embedded import Embedded

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
    """

    bodies: tuple[str, ...]
    coordinates: tuple[str, ...]
    Gamma: np.ndarray
    inertia: np.ndarray
    kinetic: np.ndarray


def shares(equations: Embedded, x: Any, v: Any, parameters: Any = None) -> Shares:
    """Return the shares of all bodies at a state, (n,), or at many, (rows, n).

    Parameters
    ----------
    equations : Embedded
    x, v : arrays
        In the minimal coordinates of the equations.
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
    )
