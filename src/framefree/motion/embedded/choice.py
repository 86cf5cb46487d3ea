"""Which velocities of a closed chain are independent, and which loop fails where none serve."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.machine import Machine
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.rows import of_machine, stacked
from framefree.motion.constrained.scales import scales, velocity_units
from framefree.motion.constrained.solve import numerical_rank
from framefree.motion.embedded.maps import SINGULAR

PREFERENCE = 1e-3
"""Weight of driven joints when dependent coordinates are chosen: they are taken last."""
SOUND = 1e-3
"""Smallest singular value of dimensionless rows with which no better configuration is sought."""
AROUND = (0.3, -0.3, 1.0)
"""How far single coordinates (rad, or lengths of the machine) are moved in that search."""


class SingularError(ClosureError):
    """The dependent coordinates of loops are not determined by the independent ones.

    Attributes
    ----------
    loops : tuple of str
    margin : float
        Smallest singular value of the loops' dimensionless rows in the dependent velocities.
    """

    def __init__(self, message: str, loops: tuple[str, ...], margin: float) -> None:
        super().__init__(message, {})
        self.loops, self.margin = loops, margin


class ClosureRows:
    """Rows of a machine's loops and couplings in numbers, without units (`scales`).

    Parameters
    ----------
    constrained : Constrained
        The machine under its loops and couplings.
    """

    def __init__(self, constrained: Constrained) -> None:
        self.machine, self.constrained = constrained.machine, constrained

    @cached_property
    def _function(self) -> ca.Function:
        x, parameters = ca.SX.sym("x", self.machine.nx), self.machine.parameters.symbols
        state = self.constrained.base.at(x)
        parts = [constraint.rows(state) for constraint in of_machine(self.machine, None)]
        A = stacked(parts, self.machine.nv).A
        sizes = scales(self.machine)
        factors = ca.DM(np.outer(sizes.rows, 1 / sizes.columns))
        return ca.Function("rows", [x, parameters], [ca.densify(factors * A)])

    def __call__(self, x: Any, parameters: Any = None) -> np.ndarray:
        """Return the rows (m, nv) at a configuration."""
        values = self.machine.parameters.values(parameters)
        return np.asarray(self._function(x, values).full())

    def generic(self, x: np.ndarray, dependent: Sequence[int] | None = None) -> np.ndarray:
        """Return the configuration of largest rank among x, which is closed, and closed ones.

        Where the `dependent` velocities are known already, that in which they follow best from the
        others.

        Those are sought around it by moving one coordinate after the other and closing the loops
        with the others: a mechanism that can leave a singular position leaves it so. No rank
        exceeds the one at configurations that are not closed, which ends the search early.
        """
        best, best_quality = x, self._quality(x, dependent)
        most = max(self._quality(near, dependent)[0] for near in self._strayed(x))
        for coordinate, step in self._single_moves():
            if best_quality[0] >= most and best_quality[1] > SOUND:
                break
            moved = self.machine.integrate(best, step)
            try:
                candidate = self.constrained.project(
                    moved, weight="unit", hold=(coordinate,), limits=False
                ).x
            except ClosureError:
                continue
            quality = self._quality(candidate, dependent)
            if quality > best_quality:
                best, best_quality = candidate, quality
        return best

    def _quality(self, x: np.ndarray, dependent: Sequence[int] | None) -> tuple[int, float]:
        """Return the rank of the rows, and the least singular value that counts."""
        A = self(x)
        rank = numerical_rank(A, SINGULAR)
        if dependent is not None:
            return rank, margin(A, dependent)
        return rank, float(np.linalg.svd(A, compute_uv=False)[rank - 1]) if rank else np.inf

    def _strayed(self, x: np.ndarray) -> Iterator[np.ndarray]:
        rng, units = np.random.default_rng(0), velocity_units(self.machine)
        for _ in range(3):
            yield self.machine.integrate(x, 0.1 * units * rng.normal(size=len(units)))

    def _single_moves(self) -> Iterator[tuple[str, np.ndarray]]:
        """Give single velocities and moves along them, driven joints first."""
        units, driven = velocity_units(self.machine), _driven(self.machine)
        order = sorted(range(self.machine.nv), key=lambda k: not driven[k])
        for size in AROUND:
            for k in order:
                step = np.zeros(self.machine.nv)
                step[k] = size * units[k]
                yield self.machine.v_names[k], step


def choose(machine: Machine, A: np.ndarray) -> tuple[str, ...]:
    """Return independent velocities: those that a greedy choice of dependent ones leaves over.

    Columns of A, dimensionless, are taken by what they add to those taken before; driven joints
    come last.
    """
    rest = A * np.where(_driven(machine), PREFERENCE, 1.0)
    taken: list[int] = []
    for _ in range(numerical_rank(A, SINGULAR)):
        lengths = np.linalg.norm(rest, axis=0)
        lengths[taken] = -1.0
        best = int(np.argmax(lengths))
        taken.append(best)
        direction = rest[:, best] / lengths[best]
        rest = rest - np.outer(direction, direction @ rest)
    return tuple(name for k, name in enumerate(machine.v_names) if k not in taken)


def margin(A: np.ndarray, dependent: Sequence[int]) -> float:
    """Return the smallest singular value of the dependent columns of A, dimensionless; at most 1.

    It is zero where there are fewer rows than dependent columns.
    """
    if len(dependent) > len(A):
        return 0.0
    values = np.linalg.svd(A[:, list(dependent)], compute_uv=False)
    return float(values.min(initial=1.0))


def singular(
    machine: Machine, A: np.ndarray, owners: Sequence[str], dependent: Sequence[int]
) -> SingularError:
    """Return the error that names what is not determined; `owners` names the loop of each row."""
    columns = A[:, list(dependent)]
    # Padded, so that there is a direction for every dependent velocity.
    _, _, vectors = np.linalg.svd(np.vstack([columns, np.zeros((len(dependent),) * 2)]))
    loose = np.abs(vectors[-1]) > 0.1 if len(vectors) else np.zeros(0, dtype=bool)
    names = [machine.v_names[k] for k, part in zip(dependent, loose, strict=True) if part]
    involved = np.abs(columns[:, loose]).max(axis=1, initial=0.0) > SINGULAR
    loops = dict.fromkeys(o for o, part in zip(owners, involved, strict=True) if part)
    loops = tuple(loops or dict.fromkeys(owners))
    others = [name for k, name in enumerate(machine.v_names) if k not in dependent]
    smallest = margin(A, dependent)
    message = (
        f"loop {', '.join(f'`{name}`' for name in loops)} is near a singular position: there "
        f"{', '.join(f'`{name}`' for name in names)} do not follow from the independent "
        f"{', '.join(f'`{name}`' for name in others) or '(none)'} (relative singular value "
        f"{smallest:.2g}); choose other independent coordinates, or the constrained formulation, "
        "which passes such positions"
    )
    return SingularError(message, loops, smallest)


def driven_targets(machine: Machine) -> list[str]:
    """Return the targets of couplings that actuators drive although not all sources are driven."""
    pairs = zip(machine.v_names, _driven(machine), strict=True)
    driven = {name for name, drives in pairs if drives}
    return [
        coupling.target
        for coupling in machine.couplings
        if coupling.target in driven and not driven.issuperset(coupling.sources)
    ]


def _driven(machine: Machine) -> np.ndarray:
    """Return which velocities (nv) are those of joints with actuators."""
    driven = {actuator.sensed_joint for actuator in machine.actuators}
    mask = np.zeros(machine.nv, dtype=bool)
    for joint in machine.joints:
        mask[machine.v_slice[joint.name]] = joint.name in driven
    return mask
