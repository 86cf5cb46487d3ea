"""Which forms parameters on pairs of frames can give, and parameters that give a form.

Moments X' (4x4, ten numbers) on a pair with Jacobian J add J^T Vee(X') J to the prototype's
inertia, damping or stiffness. Of all parameters that give a form at rest, those are taken that are
positive for every pair by itself, where there are such: then the form is so at every configuration.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.prototype.kinematics import relative_kinematics, route_between
from framefree.control.prototype.parameters import Pair, named_pair
from framefree.geometry import Moments
from framefree.machine import WORLD, Machine
from framefree.machine.units import Units
from framefree.motion import equations
from framefree.solve.cones import ConicProgram

MANY = 6
"""Number of bodies up to which all pairs of them are taken."""
NUMBERS = 10
USED = 1e-6
"""Share of the largest number below which a pair counts as without parameters."""
INDEFINITE = 1e3
"""How much more a pair's push counts than its pull where parameters must be negative."""
_PARTS = [(3, 3), (0, 3), (1, 3), (2, 3), (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
"""Entry of the 4x4 form that each of the ten numbers is: total, first and second moment."""
_POWERS = np.array([sum(k < 3 for k in part) for part in _PARTS], float)
"""Powers of a length in them."""


def default_pairs(machine: Machine) -> tuple[Pair, ...]:
    """Return every body seen from the world, and bodies from each other.

    All of these where there are few, else neighbours only; without those that do not move against
    each other.
    """
    names = [body.name for body in machine.bodies]
    if len(names) <= MANY:
        relative = list(combinations(names, 2))
    else:
        relative = [(j.parent, j.child) for j in machine.joints if j.parent != WORLD]
    pairs = [*((WORLD, name) for name in names), *relative]
    return tuple(pair for pair in pairs if route_between(machine, *pair).joints)


def named_pairs(machine: Machine, pairs: Sequence | None) -> tuple[Pair, ...]:
    """Return the pairs that a user names, by default all; a frame alone is seen from the world."""
    if pairs is None:
        return default_pairs(machine)
    named = tuple(named_pair(machine, key, "prototype") for key in pairs)
    if not named:
        raise ControlError("a prototype needs at least one pair of frames, got none")
    return named


def moments_of(numbers: np.ndarray) -> Moments:
    """Return the moments with these ten numbers."""
    second = np.zeros((3, 3))
    for (i, j), value in zip(_PARTS[4:], numbers[4:], strict=True):
        second[i, j] = second[j, i] = value
    return Moments(float(numbers[0]), numbers[1:4], second)


_UNITS6 = np.array([np.array(moments_of(unit).matrix6, float) for unit in np.eye(NUMBERS)])


def pair_forms(machine: Machine, x_R: np.ndarray, pairs: Sequence[Pair]) -> np.ndarray:
    """Return J^T X J (10 per pair, nv, nv) of each of the moments' ten numbers alone, at x_R."""
    state = equations(machine.numeric.tree).at(ca.SX(ca.DM(x_R)), ca.SX(machine.nv, 1))
    forms = []
    for a, b in pairs:
        J = np.array(ca.DM(ca.densify(relative_kinematics(state, a, b).J)))
        forms += [J.T @ X @ J for X in _UNITS6]
    return np.array(forms)


def pair_springs(machine: Machine, forms: np.ndarray) -> np.ndarray:
    """Return the forms (pairs, nv, nv) of one spring on each pair, as stiff in turns as in shifts.

    `forms` are those of `pair_forms`.
    """
    length = Units.of(machine.numeric).length
    numbers = np.array([1.0 if i == j == 3 else length**2 * (i == j) for i, j in _PARTS])
    return np.tensordot(forms.reshape(-1, NUMBERS, *forms.shape[1:]), numbers, (1, 0))


def on_pairs(
    machine: Machine, pairs: Sequence[Pair], forms: np.ndarray, wanted: np.ndarray
) -> Mapping[Pair, Moments]:
    """Return moments on the pairs whose forms sum to `wanted` (nv, nv).

    The least of them, each positive by itself where that can be. Pairs with nothing are left out.
    """
    units = Units.of(machine.numeric)
    # Lengths in those of the machine, so that all numbers and all entries of forms are weights.
    scale = np.tile(units.length**_POWERS, len(pairs))
    velocity = units.velocity / units.length
    rows = (forms * np.outer(velocity, velocity)).reshape(len(forms), -1).T * scale
    side = (wanted * np.outer(velocity, velocity)).ravel()
    size = float(np.abs(side).max(initial=0.0))
    if not size:
        return {}
    y = _positive(rows, side / size, len(pairs)).reshape(len(pairs), NUMBERS)
    used = np.abs(y).max(axis=1) > USED * np.abs(y).max()
    places = np.repeat(used, NUMBERS)
    # The solver meets the equations to its tolerance: the last digits are put in.
    y = y[used].ravel()
    y = y + np.linalg.lstsq(rows[:, places], side / size - rows[:, places] @ y, rcond=1e-10)[0]
    numbers = (size * scale[places] * y).reshape(-1, NUMBERS)
    chosen = [pair for pair, kept in zip(pairs, used, strict=True) if kept]
    return {pair: moments_of(own) for pair, own in zip(chosen, numbers, strict=True)}


def _positive(rows: np.ndarray, side: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers with ``rows y = side`` whose forms have the least trace, and are positive.

    Where they cannot be, a pair's form may lack t >= 0 times one, which costs more.
    """
    width = NUMBERS * count
    program = ConicProgram(width + count)
    U, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    kept = U[:, sizes > 1e-9 * sizes.max()].T
    program.equal(kept @ rows, kept @ side)
    objective = np.zeros(width + count)
    for k in range(count):
        own = slice(NUMBERS * k, NUMBERS * (k + 1))
        matrices = np.zeros((width + count, 6, 6))
        matrices[own], matrices[width + k] = _UNITS6, np.eye(6)
        program.semidefinite(matrices, np.zeros((6, 6)))
        # Where several pairs do the same, the first is taken.
        objective[own] = (1 + 0.1 * k) * np.trace(_UNITS6, axis1=1, axis2=2)
    objective[width:] = INDEFINITE
    program.below(-np.eye(width + count)[width:], np.zeros(count))
    y = program.minimise(np.zeros((width + count, width + count)), objective)
    return np.linalg.lstsq(rows, side, rcond=1e-10)[0] if y is None else y[:width]
