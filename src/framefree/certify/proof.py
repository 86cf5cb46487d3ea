"""Bounds of the mass matrix that hold at every configuration: exact, certified, or by lengths.

*Exactly.* Where the entries of M do not contain the configuration, its eigenvalues are the bounds.

*By a certificate* of small matrices, nearly sharp: `framefree.certify.certificate`.

*By lengths* and inertias alone (`framefree.certify.lengths`), where the solver of certificates is
not installed or a joint is not made of turns and slides. Of two bounds the better one counts.

Velocities (nv) may be measured in units of their own, `scale`: then M stands for scale M scale.
"""

from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from framefree.certify.certificate import certify_bound
from framefree.certify.lengths import VANISHES, LengthBounds, bounds_by_lengths
from framefree.certify.moves import TURN, moves_of, whole_turns
from framefree.certify.slides import unbounded_slides
from framefree.machine import Machine
from framefree.machine.units import SINGULAR, Units, definiteness
from framefree.motion.tree import Tree

ROUNDING = 1e-12
"""Share by which the bounds are widened, for the rounding in their own computation."""


@dataclass(frozen=True)
class Proved:
    """Bounds ``low I <= M <= high I`` that hold everywhere; None where there is no proof, and why.

    Attributes
    ----------
    low, high : float or None
    reason_low, reason_high : str
        Why there is none.
    how_low, how_high : str
        How each was proved.
    exact : bool
        Whether M is constant, and these are its eigenvalues.
    """

    low: float | None
    high: float | None
    reason_low: str = ""
    reason_high: str = ""
    how_low: str = ""
    how_high: str = ""
    exact: bool = False


EXACT = "exact: M is constant"
CERTIFIED = "proved by a certificate of small matrices, which was looked at again"
LENGTHS = "proved from lengths, masses and inertias"
COARSE = f"{LENGTHS}; with clarabel (extra `identify`) there is a tighter proof"
FEW = 2
"""Number of turns with a range up to which the range is made use of in any case."""


def proved_bounds(
    machine: Machine, scale: np.ndarray | None = None, *, thorough: bool = False
) -> Proved:
    """Return what can be proved about the eigenvalues of M at all configurations in the limits.

    Parameters
    ----------
    machine : Machine
    scale : (nv,), optional
        Units of the velocities: M stands for scale M scale.
    thorough : bool
        Make use of the limits of all joints that turn; otherwise, where more than a few have some,
        they count as going all the way round.
    """
    units = np.ones(machine.nv) if scale is None else np.asarray(scale, float)
    M = constant_mass(machine)
    if M is not None:
        values = np.linalg.eigvalsh(units[:, None] * M * units)
        low = float(values[0]) * (1 - ROUNDING)
        if definiteness(M, Units.of(machine).inertia) <= SINGULAR:
            low = 0.0
        reason = "" if low > 0 else VANISHES
        high = float(values[-1]) * (1 + ROUNDING)
        return Proved(low if low > 0 else None, high, reason, "", EXACT, EXACT, exact=True)
    by_lengths = _by_lengths(bounds_by_lengths(machine, units))
    if find_spec("clarabel") is None:
        return replace(by_lengths, how_low=COARSE, how_high=COARSE)
    return _certified(machine, units, by_lengths, thorough)


def _certified(machine: Machine, units: np.ndarray, by_lengths: Proved, thorough: bool) -> Proved:
    """Return bounds with those of a certificate where they are better."""
    moves = moves_of(machine, units, Units.of(machine).length)
    if moves is None:
        return by_lengths
    turns = sum(move.kind == TURN and move.ranged for move in moves)
    moves = moves if thorough or turns <= FEW else whole_turns(moves)
    low = certify_bound(moves, 1)
    if low is not None and low.bound > (by_lengths.low or 0.0):
        by_lengths = replace(by_lengths, low=low.bound, reason_low="", how_low=CERTIFIED)
    if unbounded_slides(machine):
        return by_lengths
    high = certify_bound(moves, -1)
    if high is not None and high.bound < (by_lengths.high or np.inf):
        by_lengths = replace(by_lengths, high=high.bound, reason_high="", how_high=CERTIFIED)
    return by_lengths


def _by_lengths(bounds: LengthBounds) -> Proved:
    low = None if bounds.low is None else bounds.low * (1 - ROUNDING)
    high = None if bounds.high is None else bounds.high * (1 + ROUNDING)
    return Proved(low, high, bounds.reason_low, bounds.reason_high, LENGTHS, LENGTHS)


def constant_mass(machine: Machine) -> np.ndarray | None:
    """Return M (nv, nv) if none of its entries contains the configuration; else None."""
    if not machine.nv:
        return None
    mass = Tree(machine.tree).functions["mass"]
    if mass.jac_sparsity(0, 0).nnz():
        return None
    return mass(machine.neutral()).full()
