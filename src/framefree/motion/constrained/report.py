"""What can be said of constraints at one state: errors, ranks, contradictions, uniqueness."""

from dataclasses import dataclass

import numpy as np

from framefree.motion.constrained.solve import (
    RANK,
    null_space,
    numerical_rank,
    row_pseudo_inverse,
    unique_acceleration,
    unit_rows,
)

UNDETERMINED = 1e-7
"""Share of undetermined multipliers above which a row, or a wrench they cause, counts."""


@dataclass(frozen=True)
class Report:
    """The constraints at one state.

    Attributes
    ----------
    rows : tuple of str
        Names of all rows.
    rank : int
        Of A.
    redundant : tuple of str
        Rows that depend on each other, or on nothing: their multipliers are not unique.
    contradicting : tuple of str
        Rows that cannot be met together with the others.
    residual : float
        Least length of A a - b over all a.
    position_error, velocity_error : (m,)
    unique : bool
        Whether the acceleration is unique: [M; A] has full column rank.
    joint_wrench_unique : (joints, 6) of bool
    loop_wrench_unique : (loops, 6) of bool
        Which components of `joint_wrench` and `loop_wrench` are unique; for the others the values
        given are those of the shortest multipliers.
    """

    rows: tuple[str, ...]
    rank: int
    redundant: tuple[str, ...]
    contradicting: tuple[str, ...]
    residual: float
    position_error: np.ndarray
    velocity_error: np.ndarray
    unique: bool
    joint_wrench_unique: np.ndarray
    loop_wrench_unique: np.ndarray

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} rows of rank {self.rank}"]
        for title, names in (
            ("multipliers not unique", self.redundant),
            ("contradicting", self.contradicting),
        ):
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        if self.contradicting:
            lines.append(f"least residual of A a = b: {self.residual:.3g}")
        if not (self.joint_wrench_unique.all() and self.loop_wrench_unique.all()):
            lines.append("some joint or loop wrenches are not unique")
        if not self.unique:
            lines.append("the acceleration is not unique: mass and constraints leave it open")
        return "\n".join(lines)


def without_noise(A: np.ndarray, size: np.ndarray, rank: float = RANK) -> np.ndarray:
    """Return A with rows that are rounding errors, compared to their squared size, set to zero."""
    return np.where(((A**2).sum(axis=1) > rank**2 * size)[:, None], A, 0.0)


def undetermined_multipliers(A: np.ndarray) -> np.ndarray:
    """Return a basis (columns) of the multipliers of unit rows that exert no force."""
    return null_space(unit_rows(A).T)


def report(
    labels: tuple[str, ...],
    M: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    errors: tuple[np.ndarray, np.ndarray],
    unique_wrenches: tuple[np.ndarray, np.ndarray],
) -> Report:
    """Return what the numbers say; A without rounding errors."""
    idle = undetermined_multipliers(A)
    taking_part = np.abs(idle).max(axis=1, initial=0.0) > UNDETERMINED
    gap = b - A @ (row_pseudo_inverse(A) @ b)
    noticed = np.abs(gap) > 1e-8 * (1 + np.abs(b).max(initial=0.0))
    return Report(
        labels,
        numerical_rank(unit_rows(A)),
        _chosen(labels, taking_part),
        _chosen(labels, noticed),
        float(np.linalg.norm(gap)),
        *errors,
        unique_acceleration(M, A),
        *unique_wrenches,
    )


def _chosen(labels: tuple[str, ...], mask: np.ndarray) -> tuple[str, ...]:
    return tuple(label for label, chosen in zip(labels, mask, strict=True) if chosen)
