"""Which velocities of a closed chain are independent, and which loop fails where none serve."""

from collections.abc import Sequence

import numpy as np

from framefree.machine import Machine
from framefree.motion.constrained.project import ClosureError
from framefree.motion.constrained.solve import numerical_rank
from framefree.motion.embedded.maps import SINGULAR

PREFERENCE = 1e-3
"""Weight of driven joints when dependent coordinates are chosen: they are taken last."""


class SingularError(ClosureError):
    """The dependent coordinates of loops are not determined by the independent ones.

    Attributes
    ----------
    loops : tuple of str
    margin : float
        Smallest relative singular value of the loops' rows in the dependent velocities.
    """

    def __init__(self, message: str, loops: tuple[str, ...], margin: float) -> None:
        super().__init__(message, {})
        self.loops, self.margin = loops, margin


def choose(machine: Machine, A: np.ndarray) -> tuple[str, ...]:
    """Return independent velocities: those that a greedy choice of dependent ones leaves over.

    Columns of A are taken by what they add to those taken before; driven joints come last.
    """
    driven = {getattr(actuator, "joint", None) for actuator in machine.actuators}
    weights = np.ones(machine.nv)
    for joint in machine.joints:
        if joint.name in driven:
            weights[machine.v_slice[joint.name]] = PREFERENCE
    rest = A * weights
    taken: list[int] = []
    for _ in range(numerical_rank(A)):
        lengths = np.linalg.norm(rest, axis=0)
        lengths[taken] = -1.0
        best = int(np.argmax(lengths))
        taken.append(best)
        direction = rest[:, best] / lengths[best]
        rest = rest - np.outer(direction, direction @ rest)
    return tuple(name for k, name in enumerate(machine.v_names) if k not in taken)


def margin(A: np.ndarray, dependent: Sequence[int]) -> float:
    """Return the smallest singular value of A's dependent columns, each scaled to unit length."""
    return float(_scaled_values(A, dependent)[1].min(initial=1.0))


def singular(
    machine: Machine, A: np.ndarray, owners: Sequence[str], dependent: Sequence[int]
) -> SingularError:
    """Return the error that names what is not determined; `owners` names the loop of each row."""
    columns, values, vectors = _scaled_values(A, dependent)
    loose = np.abs(vectors[-1]) > 0.1 if len(vectors) else np.zeros(0, dtype=bool)
    names = [machine.v_names[k] for k, part in zip(dependent, loose, strict=True) if part]
    involved = np.abs(columns[:, loose]).max(axis=1, initial=0.0) > SINGULAR
    loops = tuple(dict.fromkeys(o for o, part in zip(owners, involved, strict=True) if part))
    others = [name for k, name in enumerate(machine.v_names) if k not in dependent]
    smallest = float(values.min(initial=0.0))
    message = (
        f"loop {', '.join(f'`{name}`' for name in loops)} is near a singular position: there "
        f"{', '.join(f'`{name}`' for name in names)} do not follow from the independent "
        f"{', '.join(f'`{name}`' for name in others) or '(none)'} (relative singular value "
        f"{smallest:.2g}); choose other independent coordinates, or the constrained formulation, "
        "which passes such positions"
    )
    return SingularError(message, loops, smallest)


def _scaled_values(
    A: np.ndarray, dependent: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = A[:, list(dependent)]
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns / np.where(lengths > 0, lengths, 1.0)
    _, values, vectors = np.linalg.svd(columns, full_matrices=False)
    if len(values) < len(dependent):
        values = np.zeros(len(dependent))
    return columns, values, vectors
