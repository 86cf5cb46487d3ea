"""Trust in a learned model: how far from its data it is asked, and how wrong it may be.

Distance. Of what a body meets, the invariants i of its symmetry count (`polynomials.py`), so that
headings which were never seen are no distance. With their mean m and covariance S over the data,

    r^2 = (i - m)^T S^-1 (i - m),        trust = 1 for r <= r_1,  0 for r >= 2 r_1,

r_1 the largest distance of the data, and a smooth step between. `GuardedModel` multiplies a model's
wrench by it: where there are no data, the law is the one without learning.

Bound. Samples of one motion are alike; only motions are exchangeable. The largest misfit |eps| of
each of n motions that the model has not seen, sorted, gives a bound that holds for the largest
misfit of a further motion with probability 1 - alpha, whatever the distribution: the value at place
ceil((n + 1)(1 - alpha)) [Vovk2005]. It needs n >= 1/alpha - 1 motions.

Ball. |eps| is in the metric W^-1 of `samples.py`. With dV/dt = -s^T Kd s + s^T eps and
s^T Kd s >= k |s|^2 in the metric W, s falls into |s| <= |eps| / k.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.learn.basis_fit import evaluate, relative_kernel
from framefree.learn.errors import LearnError
from framefree.learn.learned import LearnedModel
from framefree.learn.model import BodyMotion, WrenchModel
from framefree.learn.polynomials import SymmetricPolynomials
from framefree.learn.samples import Samples, gyration
from framefree.learn.symmetry import Symmetry, symmetry_of
from framefree.machine import Machine

RIDGE = 1e-6
"""Added to the covariance, relative to its mean diagonal: invariants may be dependent."""

Matrix = Any


@dataclass(frozen=True, eq=False)
class DataRange:
    """Where the data of a model lie, in the invariants of its symmetry.

    Parameters
    ----------
    symmetry : Symmetry
    length : float
        l, m, by which rates are made speeds.
    current : (3,)
        m/s.
    mean, root : (i,), (i, i)
        m, and a root A of S^-1: r = |A (i - m)|.
    radius : float
        r_1.
    """

    symmetry: Symmetry
    length: float
    current: Any
    mean: Any
    root: Any
    radius: float

    @classmethod
    def of(cls, model: LearnedModel, samples: Samples) -> "DataRange":
        """Return the range of some samples, as a model sees them."""
        part = model.network or model.library
        assert part is not None
        flat = invariants_of(part.symmetry, samples, model.current)
        mean, S = flat.mean(axis=0), np.cov(flat.T)
        S = S + RIDGE * float(np.mean(np.diag(S))) * np.eye(len(S))
        root = np.linalg.inv(np.linalg.cholesky(S))
        radius = float(np.linalg.norm((flat - mean) @ root.T, axis=1).max())
        length = float(np.mean(samples.lengths))
        return cls(part.symmetry, length, model.current, mean, root, radius)

    @cached_property
    def _polynomials(self) -> SymmetricPolynomials:
        kinds = ("velocity", "rate", "down", *(("inputs",) if self.symmetry.inputs else ()))
        return SymmetricPolynomials(self.symmetry, kinds, 1)

    def invariants(self, v: Matrix, w: Matrix, d: Matrix, inputs: Matrix) -> Matrix:
        """Return the invariants (i) of a motion relative to the current."""
        return self._polynomials.invariants(ca.vertcat(v, self.length * w, d, inputs)).T

    def distance(self, motion: BodyMotion) -> Matrix:
        """Return r / r_1: at most 1 at all data."""
        xi = motion.relative(ca.DM(self.current))
        i = self.invariants(xi[:3], xi[3:], motion.down, motion.inputs)
        off = ca.DM(self.root) @ (i - ca.DM(self.mean))
        return ca.sqrt(ca.dot(off, off) + 1e-24) / self.radius

    def trust(self, motion: BodyMotion) -> Matrix:
        """Return 1 within the data, 0 beyond twice their radius, smooth between."""
        s = ca.fmin(ca.fmax(2 - self.distance(motion), 0), 1)
        return s * s * s * (10 + s * (6 * s - 15))

    def turned(self, R: Any) -> "DataRange":
        """Return the range in a world turned by R."""
        current = np.asarray(R, float) @ np.asarray(self.current)
        return DataRange(self.symmetry, self.length, current, self.mean, self.root, self.radius)

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        arrays = {name: np.asarray(getattr(self, name)) for name in ("current", "mean", "root")}
        plain = {"length": self.length, "radius": self.radius}
        return {"symmetry": self.symmetry.parts(), **plain, **arrays}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "DataRange":
        """Return the range that `parts` describes."""
        values = {key: value for key, value in parts.items() if key != "symmetry"}
        return cls(symmetry_of(parts["symmetry"]), **values)


@dataclass(frozen=True, eq=False)
class GuardedModel(WrenchModel):
    """A model that fades out where it has no data.

    Parameters
    ----------
    model : LearnedModel
    data : DataRange
    """

    model: LearnedModel
    data: DataRange

    def __post_init__(self) -> None:
        for name in ("names", "units", "linear", "inputs", "coefficients"):
            object.__setattr__(self, name, getattr(self.model, name))

    @classmethod
    def of(cls, model: LearnedModel, samples: Samples) -> "GuardedModel":
        """Return a model that is trusted as far as some samples reach."""
        return cls(model, DataRange.of(model, samples))

    def wrench(self, motion: BodyMotion, numbers: Matrix | None = None) -> Matrix:
        """Return the wrench (6), faded."""
        return self.data.trust(motion) * self.model.wrench(motion, numbers)

    def trust(self, motion: BodyMotion) -> Matrix:
        """Return how far the model is trusted, 0 to 1."""
        return self.data.trust(motion)

    def turned(self, R: Any) -> "GuardedModel":
        """Return model and range in a world turned by R."""
        return GuardedModel(self.model.turned(R), self.data.turned(R))

    def with_coefficients(self, values: Any) -> "GuardedModel":
        """Return the model with other numbers, and the same range."""
        return GuardedModel(self.model.with_coefficients(values), self.data)

    def parts(self) -> dict[str, Any]:
        """Return what makes it again."""
        return {"kind": "GuardedModel", "model": self.model.parts(), "data": self.data.parts()}

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> "GuardedModel":
        """Return the model that `parts` describes."""
        return cls(LearnedModel.of_parts(parts["model"]), DataRange.of_parts(parts["data"]))


def invariants_of(symmetry: Symmetry, samples: Samples, current: Any) -> np.ndarray:
    """Return the invariants (n * bodies, i) of all bodies in samples, relative to a current."""
    bare = DataRange(symmetry, float(np.mean(samples.lengths)), current, 0.0, 0.0, 1.0)
    kernel = relative_kernel(
        "invariants", symmetry.inputs, lambda *z: {"invariants": bare.invariants(*z)}
    )
    values = evaluate(kernel, samples, np.asarray(current, float))[0]
    return values.reshape(-1, values.shape[-1])


def conformal_bound(model: WrenchModel, samples: Samples, alpha: float = 0.1) -> float:
    """Return a bound (N, metric W^-1) on the misfit of a new motion, with probability 1 - alpha.

    Parameters
    ----------
    model : WrenchModel
    samples : Samples
        Of motions that the model was not learned from.
    alpha : float
    """
    if not 0 < alpha < 1:
        raise LearnError(f"`alpha` must lie between 0 and 1, got {alpha}")
    misfit = np.linalg.norm(samples.whiten(samples.predicted(model) - samples.labels), axis=1)
    motions = np.unique(samples.motion)
    worst = np.sort([misfit[samples.motion == one].max() for one in motions])
    place = int(np.ceil((len(worst) + 1) * (1 - alpha)))
    if place > len(worst):
        raise LearnError(
            f"a bound that holds in {100 * (1 - alpha):g} percent of motions needs "
            f"{int(np.ceil(1 / alpha)) - 1} or more that were held out, got {len(worst)}"
        )
    return float(worst[place - 1])


def ball_radius(bound: float, machine: Machine, dampings: Mapping[str, Any]) -> float:
    """Return the radius (m/s, metric W) of the ball into which s of a port law falls.

    Parameters
    ----------
    bound : float
        On |eps|, as `conformal_bound` gives it.
    machine : Machine
        With body frames at mass centers.
    dampings : mapping of str to (6, 6)
        Kd of every body.
    """
    least = np.inf
    for body in machine.bodies:
        scale = np.r_[np.ones(3), np.full(3, 1 / gyration(machine, body.name))]
        K = scale[:, None] * np.asarray(dampings[body.name], float) * scale
        least = min(least, float(np.linalg.eigvalsh((K + K.T) / 2)[0]))
    if not least > 0:
        raise LearnError("the damping must be positive definite for s to fall into a ball")
    return bound / least
