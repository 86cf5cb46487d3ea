"""Whether data contradict a symmetry: f(g z) = g f(z) is assumed by a model, never by nature.

Two bases are fitted to the same samples and judged on motions that were left out of the fit:

    with:      all polynomial wrenches of degree 2 that commute with the symmetry, and the terms of
               the library that is to be used
    without:   these, and all wrenches of degree 1 that do not commute with it

The second can always do what the first does. If the symmetry holds, its further terms only fit
noise, and it is worse on motions left out. If it is clearly better there, the forces depend on
something that the symmetry forbids them to see, such as which side of a body is up.

Whole motions are left out in turn, in ten parts at most. Under
the hypothesis that the symmetry holds, the share of the squared error that the further terms save
in a part is as likely negative as positive: the p-value is the share of all changes of signs
whose mean saving is as large as the one seen [Fisher1935]. A symmetry is contradicted if p is below
one percent and the error on motions left out falls by a quarter or more: with many samples also
what is too small to matter becomes significant, and what neither basis knows of, such as a current,
can be mimicked in part by terms that should not be there.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from framefree.errors import FramefreeWarning
from framefree.learn.basis_fit import weighted_columns
from framefree.learn.errors import LearnError
from framefree.learn.library import Library, PolynomialLibrary
from framefree.learn.samples import Samples, check_enough
from framefree.learn.symmetry import Symmetry, Trivial

PARTS = 10
"""Most parts that are left out in turn."""
MOTIONS = 7
"""Fewest motions: pieces of one motion are alike, and fewer signs give no p-value below 1/100."""
RIDGE = 1e-9
"""Added to squares of columns scaled to one: some depend on others."""
UNLIKELY, SAVED = 0.01, 0.25
"""p-value below which, and share of the error from which on, a symmetry counts as contradicted."""


class SymmetryWarning(FramefreeWarning):
    """The data contradict a symmetry that a model assumes."""


@dataclass(frozen=True)
class SymmetryEvidence:
    """What samples say about a symmetry.

    Attributes
    ----------
    symmetry : Symmetry
    error_with, error_without : float
        Relative errors on motions left out, of the basis with the symmetry and of that with
        further terms which it forbids.
    p_value : float
        Probability of so much being saved by chance if the symmetry holds.
    samples, parts : int
        Numbers of samples, and of parts that were left out in turn.
    """

    symmetry: Symmetry
    error_with: float
    error_without: float
    p_value: float
    samples: int
    parts: int

    @property
    def contradicted(self) -> bool:
        """Whether the data contradict the symmetry."""
        saved = 1 - self.error_without / self.error_with if self.error_with else 0.0
        return self.p_value < UNLIKELY and saved >= SAVED

    def statement(self) -> str:
        """Return the evidence in a sentence."""
        name = type(self.symmetry).__name__
        verdict = "contradict" if self.contradicted else "do not contradict"
        return (
            f"the data {verdict} the symmetry `{name}`: terms that it forbids change the error on "
            f"motions left out from {100 * self.error_with:.3g} to "
            f"{100 * self.error_without:.3g} percent (p = {self.p_value:.2g}, {self.samples} "
            f"samples in {self.parts} parts)"
        )


def symmetry_evidence(
    samples: Samples, symmetry: Symmetry, *, library: Library | None = None, current: Any = None
) -> SymmetryEvidence:
    """Test a symmetry of the bodies on samples; see the top of this file.

    Parameters
    ----------
    samples : Samples
    symmetry : Symmetry
        What a model would assume.
    library : Library, optional
        Terms that a model would have; they should commute with the symmetry.
    current : (3,), optional
        Of the fluid, m/s, where it is known; default none.
    """
    check_enough(samples)
    if symmetry.inputs != samples.inputs.shape[-1]:
        raise LearnError(
            f"the symmetry is of {symmetry.inputs} inputs, the samples have "
            f"{samples.inputs.shape[-1]}"
        )
    parts = _parts(samples)
    c = np.zeros(3) if current is None else np.asarray(current, float)
    length = float(np.mean(samples.lengths))
    features = ("velocity", "rate", "down", *(("inputs",) if symmetry.inputs else ()))
    own = PolynomialLibrary(symmetry, length, 2, features)
    free = PolynomialLibrary(Trivial(symmetry.inputs), length, 1, features)
    known = [weighted_columns(one, samples, c) for one in (own, library) if one is not None]
    b = samples.whiten(samples.labels).ravel()
    rows = np.repeat(parts, samples.labels.shape[1])
    having = _left_out(np.hstack(known), b, rows)
    without = _left_out(np.hstack([*known, weighted_columns(free, samples, c)]), b, rows)
    size = float(b @ b)
    return SymmetryEvidence(
        symmetry,
        float(np.sqrt(having.sum() / size)),
        float(np.sqrt(without.sum() / size)),
        _p_value(1 - without / having),
        len(samples),
        len(np.unique(parts)),
    )


def _parts(samples: Samples) -> np.ndarray:
    """Return the part (n,) that each sample is left out with: whole motions."""
    if not tells_symmetry(samples):
        raise LearnError(
            f"{len(samples)} samples of {len(np.unique(samples.motion))} motions are too few to "
            f"judge a symmetry: {2 * PARTS} or more, of {MOTIONS} motions or more, are needed"
        )
    return np.unique(samples.motion, return_inverse=True)[1] % PARTS


def tells_symmetry(samples: Samples) -> bool:
    """Whether there are enough samples and motions to judge a symmetry."""
    return len(samples) >= 2 * PARTS and len(np.unique(samples.motion)) >= MOTIONS


def _left_out(A: np.ndarray, b: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the squared error in each part of a fit to all others."""
    sizes = np.linalg.norm(A, axis=0)
    A = A / np.where(sizes > 0, sizes, 1.0)
    which = [parts == part for part in np.unique(parts)]
    squares = [A[own].T @ A[own] for own in which]
    sides = [A[own].T @ b[own] for own in which]
    S, s, ridge = sum(squares), sum(sides), RIDGE * np.eye(A.shape[1])
    errors = []
    for own, square, side in zip(which, squares, sides, strict=True):
        a = np.linalg.solve(S - square + ridge, s - side)
        errors.append(float(np.sum((A[own] @ a - b[own]) ** 2)))
    return np.array(errors)


def _p_value(savings: np.ndarray) -> float:
    """Return the share of changes of signs whose mean is as large as that of the savings."""
    signs = np.array(list(product((1.0, -1.0), repeat=len(savings))))
    return float(np.mean(signs @ savings >= savings.sum() - 1e-12 * np.abs(savings).sum()))
