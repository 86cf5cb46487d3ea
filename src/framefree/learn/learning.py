"""Learning, top to bottom: the basis first, then a network on what it leaves.

    model = learn(samples, library=RodLibrary(0.4), training=Training())

1. The basis and the current are fitted (`basis_fit.py`), terms that are not needed are dropped.
2. What the basis leaves becomes the lesson of a network that commutes with the symmetry of the body
   (`network.py`, `training.py`).
3. The model is judged on motions that were held out from both.
4. So is the symmetry that it assumes (`symmetry_evidence.py`): where the data contradict it, a
   warning says so, with the evidence.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from framefree.learn.basis_fit import BasisFit, evaluate, fit_basis, relative_kernel
from framefree.learn.errors import LearnError
from framefree.learn.learned import LearnedModel
from framefree.learn.library import Library
from framefree.learn.network import SymmetricNetwork
from framefree.learn.samples import Samples, check_enough
from framefree.learn.symmetry import Symmetry, Trivial
from framefree.learn.symmetry_evidence import (
    SymmetryEvidence,
    SymmetryWarning,
    symmetry_evidence,
    tells_symmetry,
)
from framefree.learn.training import Lesson, Trained, Training, train

LOW = 1e-9
"""Smallest width by which an invariant is divided."""


@dataclass(frozen=True)
class Learned:
    """A model that was learned, and how.

    Attributes
    ----------
    model : LearnedModel
    basis : BasisFit or None
    trained : Trained or None
    held_error : float
        Relative error of T^T tau on motions held out.
    evidence : SymmetryEvidence or None
        What the samples say about the symmetry; None without one, or with too few samples.
    """

    model: LearnedModel
    basis: BasisFit | None
    trained: Trained | None
    held_error: float
    evidence: SymmetryEvidence | None = None


def learn(
    samples: Samples,
    *,
    library: Library | None = None,
    symmetry: Symmetry | None = None,
    training: Training | None = None,
    features: tuple[str, ...] = ("velocity", "rate", "down"),
    degree: int = 1,
    current: Any = None,
    threshold: bool = True,
) -> Learned:
    """Learn the wrench that the equations of a machine lack.

    Parameters
    ----------
    samples : Samples
    library : Library, optional
        Terms of the basis; without, a network alone is learned.
    symmetry : Symmetry, optional
        Of the network; default that of the library.
    training : Training, optional
        How the network is trained; without, there is none.
    features : tuple of str
        What the network looks at.
    degree : int
        Of the network's polynomial wrenches, 1 or 2.
    current : (3,), optional
        A current that is known (zeros for none); without, it is found with the basis.
    threshold : bool
        Whether terms that are not needed are dropped.

    Warns
    -----
    SymmetryWarning
        If the data contradict the symmetry.
    """
    check_enough(samples)
    if library is None and training is None:
        raise LearnError("give a `library` of terms, a `training` of a network, or both")
    seed, share = (training.seed, training.held) if training else (0, 0.2)
    taken, held = samples.split(share, seed)
    basis = None
    if library is not None:
        basis = fit_basis(
            library, taken if training else samples, current=current, threshold=threshold
        )
    if training is None:
        assert basis is not None
        evidence = _evidence(samples, basis.model.library, None, basis.model.current)
        return Learned(basis.model, basis, None, held.error(basis.model), evidence)
    own = symmetry or (library.symmetry if library is not None else None)
    if own is None:
        raise LearnError("a network alone needs a `symmetry`; `Trivial()` for none")
    c = basis.model.current if basis is not None else np.zeros(3)
    if basis is None and current is not None:
        c = np.asarray(current, float)
    network, trained = _network(taken, held, own, features, degree, c, basis, training)
    numbers = np.concatenate([[], [1.0], c])
    deviations = None
    if basis is not None:
        terms = len(basis.model.library)  # type: ignore[arg-type]
        numbers = np.insert(basis.model.coefficients, terms, 1.0)
        deviations = np.insert(basis.model.deviations, terms, 0.0)
    model = LearnedModel(library, numbers, network, deviations)
    evidence = _evidence(samples, library, own, c)
    return Learned(model, basis, trained, held.error(model), evidence)


def _evidence(
    samples: Samples, library: Library | None, symmetry: Symmetry | None, current: np.ndarray
) -> SymmetryEvidence | None:
    """Return what the samples say about a symmetry; warn where they contradict it."""
    assumed = symmetry or (library.symmetry if library is not None else None)
    if assumed is None or isinstance(assumed, Trivial) or not tells_symmetry(samples):
        return None
    evidence = symmetry_evidence(samples, assumed, library=library, current=current)
    if evidence.contradicted:
        advice = "take a smaller group, or `Trivial` for none"
        warnings.warn(f"{evidence.statement()}; {advice}", SymmetryWarning, stacklevel=3)
    return evidence


def _network(
    taken: Samples,
    held: Samples,
    symmetry: Symmetry,
    features: tuple[str, ...],
    degree: int,
    current: np.ndarray,
    basis: BasisFit | None,
    training: Training,
) -> tuple[SymmetricNetwork, Trained]:
    speed = float(np.sqrt(np.mean(np.sum(taken.twist[..., :3] ** 2, axis=-1))))
    if not speed > 0:
        raise LearnError("the bodies do not move in any of the samples")
    length = float(np.mean(taken.lengths))
    force = taken.size() / np.sqrt(len(taken.bodies))
    bare = SymmetricNetwork(symmetry, features, length, speed, force, degree=degree)

    def outputs(*arguments: Any) -> dict[str, Any]:
        return {"invariants": bare.invariants(*arguments), "wrenches": bare.wrenches(*arguments)}

    kernel = relative_kernel("network_features", symmetry.inputs, outputs)
    first, wrenches = evaluate(kernel, taken, current)
    means = first.mean(axis=(0, 1))
    widths = np.maximum(first.std(axis=(0, 1)), LOW)

    def lesson(samples: Samples, inputs: np.ndarray, maps: np.ndarray) -> Lesson:
        labels = samples.labels
        if basis is not None:
            labels = labels - samples.predicted(basis.model)
        return Lesson((inputs - means) / widths, whitened_maps(samples, maps),
                      samples.whiten(labels))  # fmt: skip

    trained = train(
        lesson(taken, first, wrenches), lesson(held, *evaluate(kernel, held, current)), training
    )
    network = SymmetricNetwork(
        symmetry, features, length, speed, force, trained.layers, means, widths, degree
    )
    return network, trained


def whitened_maps(samples: Samples, wrenches: np.ndarray) -> np.ndarray:
    """Return L^-1 J_b^T w_bk (n, m, bodies, k) of wrenches (n, bodies, 6, k), body by body."""
    each = np.einsum("nbiv,nbik->nvbk", samples.jacobian, wrenches, optimize=True)
    n, m, count, k = each.shape
    return samples.whiten(each.reshape(n, m, count * k)).reshape(n, m, count, k)
