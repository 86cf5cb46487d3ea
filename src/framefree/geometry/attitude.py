"""The attitude function V(R) = -tr(P R) on SO(3), its critical points, and fits of rotations.

It is the potential of springs between points of a body and of the world, the cost of fitting
one set of directions to another, and the distance of R to P^T. Everything about it follows from
one fact: in axes from the singular value decomposition of P it is a quadratic form of the unit
quaternion, V = V_min + 2 (lam_1 q_x^2 + lam_2 q_y^2 + lam_3 q_z^2). So its critical sets are the
eigenspaces of 0, lam_1, lam_2, lam_3: points, circles, spheres, or everything. Compare the case by
case list in [Konz2024, eq. 2.67], of which two entries are misprinted. Numbers (NumPy) only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from framefree.geometry import operators, quaternion
from framefree.geometry.arrays import GeometryError

_KINDS = ("point", "circle", "sphere", "all")


@dataclass(frozen=True, slots=True, eq=False)
class CriticalSet:
    """A connected set of critical points of V, all of one value and one type.

    Attributes
    ----------
    kind
        "point", "circle" (rotations R_0 exp(t a), one axis), "sphere" (like the half turns about
        every axis; opposite axes are one rotation, so a projective plane) or "all" of SO(3).
    type
        "minimum", "saddle", "maximum", or "constant" where V is.
    value
        V on the set.
    curvatures
        Eigenvalues (3), ascending, of the Hessian; one zero for each dimension of the set, and no
        others.
    basis_wxyz
        Orthonormal columns (4, dimension + 1): the quaternions of the set are exactly their
        combinations of unit length.
    """

    kind: str
    type: str
    value: float
    curvatures: np.ndarray
    basis_wxyz: np.ndarray

    @property
    def dimension(self) -> int:
        """0, 1, 2 or 3: the number of directions along which V stays critical."""
        return self.basis_wxyz.shape[1] - 1

    @property
    def index(self) -> int:
        """The number of directions in which V falls."""
        return int(np.sum(self.curvatures < 0.0))

    def rotation(self, coordinates: ArrayLike | None = None) -> np.ndarray:
        """Return one rotation (3x3) of the set, by its coordinates (dimension + 1) of any length.

        Without coordinates the first basis quaternion is taken, for a point the point itself.
        """
        size = self.dimension + 1
        c = np.eye(size)[0] if coordinates is None else np.asarray(coordinates, float)
        if c.shape != (size,) or not np.linalg.norm(c) > 0.0:
            raise GeometryError(f"`coordinates` must be {size} numbers, not all zero, got {c}")
        return np.array(quaternion.to_rotation(self.basis_wxyz @ (c / np.linalg.norm(c))))

    def distance(self, R: ArrayLike) -> float:
        """Return the angle, rad, of the smallest turn that takes R (3x3) into the set."""
        q = np.array(quaternion.from_rotation(R)).ravel()
        inside = self.basis_wxyz.T @ q
        outside = q - self.basis_wxyz @ inside
        return float(2.0 * np.arctan2(np.linalg.norm(outside), np.linalg.norm(inside)))


@dataclass(frozen=True, slots=True, eq=False)
class AttitudeFunction:
    """V(R) = -tr(P R) for a 3x3 matrix P.

    P = X diag(sigma) Y^T with rotations X, Y and sigma_1 >= sigma_2 >= |sigma_3|; only sigma_3
    may be negative.
    """

    P: np.ndarray
    X: np.ndarray = field(init=False)
    sigma: np.ndarray = field(init=False)
    Y: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        P = _finite(self.P, (3, 3), "P")
        X, sigma, Y = proper_svd(P)
        for name, value in (("P", P), ("X", X), ("sigma", sigma), ("Y", Y)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def lam(self) -> np.ndarray:
        """Eigenvalues (3) of the Hessian at the minimum, ascending, none negative.

        lam = (sigma_2 + sigma_3, sigma_1 + sigma_3, sigma_1 + sigma_2).
        """
        s1, s2, s3 = self.sigma
        return np.array([s2 + s3, s1 + s3, s1 + s2])

    @property
    def minimum(self) -> np.ndarray:
        """A rotation (3x3) at which V is least, Y X^T; the only one iff lam_1 > 0."""
        return self.Y @ self.X.T

    def value(self, R: ArrayLike) -> float:
        """Return V(R) = -tr(P R)."""
        return -float(np.trace(self.P @ _finite(R, (3, 3), "R")))

    def gradient(self, R: ArrayLike) -> np.ndarray:
        """Return g (3) with dV/dt = g . w for dR/dt = R wed(w): g = vee2(P R)."""
        return np.array(operators.vee2(self.P @ _finite(R, (3, 3), "R"))).ravel()

    def hessian(self, R: ArrayLike) -> np.ndarray:
        """Return H (3x3) with V(R exp(w)) = V(R) + g . w + w . H w / 2 + O(|w|^3).

        H = Vee of the symmetric part of P R. At the minimum its eigenvalues are `lam`.
        """
        PR = self.P @ _finite(R, (3, 3), "R")
        return np.array(operators.Vee((PR + PR.T) / 2))

    def critical_sets(self, tolerance: float = 1e-9) -> tuple[CriticalSet, ...]:
        """Return all sets of critical points, by rising value of V.

        With distinct, positive lam they are four points: a minimum, two saddles, a maximum. Every
        coincidence among 0, lam_1, lam_2, lam_3 (within `tolerance` of lam_3) joins points to
        a circle, a sphere or, for P = 0, to all rotations.
        """
        levels = np.array([0.0, *self.lam])
        bound = tolerance * levels[-1]
        new = np.flatnonzero(np.diff(levels, prepend=-np.inf) > bound)
        groups = [range(a, b) for a, b in zip(new, [*new[1:], 4], strict=True)]
        return tuple(self._critical_set(levels, group) for group in groups)

    def _critical_set(self, levels: np.ndarray, group: range) -> CriticalSet:
        """Return the critical set of the equal levels numbered by `group`."""
        level = levels[group.start : group.stop].mean()
        others = np.delete(levels, list(group)) - level
        curvatures = np.sort(np.concatenate([others, np.zeros(len(group) - 1)]))
        lowest, highest = group.start == 0, group.stop == 4
        types = {(True, True): "constant", (True, False): "minimum", (False, True): "maximum"}
        return CriticalSet(
            kind=_KINDS[len(group) - 1],
            type=types.get((lowest, highest), "saddle"),
            value=float(2.0 * level - self.sigma.sum()),
            curvatures=curvatures,
            basis_wxyz=self._principal_quaternions()[:, group.start : group.stop],
        )

    def _principal_quaternions(self) -> np.ndarray:
        """Return (4, 4): the minimum, and the minimum times half turns about X's columns."""
        q0 = quaternion.from_rotation(self.minimum)
        turns = np.eye(4)
        turns[1:, 1:] = self.X
        return np.hstack([np.array(quaternion.product(q0, turn)) for turn in turns.T])


@dataclass(frozen=True, slots=True, eq=False)
class SpecialPolar:
    """Q = rotation @ Wed(K), rotation in SO(3), K symmetric and positive semidefinite.

    K is unique. So is the rotation, the one nearest to Q, iff K is positive definite (`unique`).
    Unlike the usual polar decomposition the rotation is proper for every Q; the symmetric factor
    `stretch` = Wed(K) pays with one eigenvalue that may be negative.
    """

    rotation: np.ndarray
    K: np.ndarray
    stretch: np.ndarray
    unique: bool


def special_polar(Q: ArrayLike, tolerance: float = 1e-12) -> SpecialPolar:
    """Return the special polar decomposition of Q (3x3); `unique` is judged within `tolerance`."""
    X, sigma, Y = proper_svd(_finite(Q, (3, 3), "Q"))
    stretch = (Y * sigma) @ Y.T
    lam = sigma.sum() - sigma
    return SpecialPolar(
        rotation=X @ Y.T,
        K=(Y * lam) @ Y.T,
        stretch=stretch,
        unique=bool(lam[0] > tolerance * lam[2]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class WahbaSolution:
    """The rotation that fits directions best, with what certifies it.

    Attributes
    ----------
    rotation
        R (3x3).
    cost
        sum of w_i |a_i - R b_i|^2, at its least.
    hessian
        Half the second derivative (3x3) of the cost in the axes of b; weights 1/variance make it
        the information matrix of R's error.
    unique
        Whether no other rotation fits as well.
    """

    rotation: np.ndarray
    cost: float
    hessian: np.ndarray
    unique: bool


def wahba(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, tolerance: float = 1e-12
) -> WahbaSolution:
    """Return the rotation R (3x3) that minimises sum of w_i |a_i - R b_i|^2 [Wahba1965].

    Parameters
    ----------
    a, b
        The same vectors (n, 3) in two frames, a_i = R_ab b_i up to noise.
    weights
        Their weights (n), not negative; default all one.
    tolerance
        Relative curvature below which the solution is called not unique.
    """
    a = np.atleast_2d(np.asarray(a, float))
    a, b = _finite(a, (len(a), 3), "a"), _finite(np.atleast_2d(b), (len(a), 3), "b")
    w = np.ones(len(a)) if weights is None else _finite(weights, (len(a),), "weights")
    if np.any(w < 0.0):
        raise GeometryError(f"`weights` must not be negative, got {w.tolist()}")
    # sum w |a - R b|^2 = constant - 2 tr(P R) with P = sum w b a^T.
    V = AttitudeFunction(np.einsum("p,pi,pj->ij", w, b, a))
    R = V.minimum
    cost = float(w @ np.sum((a - b @ R.T) ** 2, axis=1))
    return WahbaSolution(R, cost, V.hessian(R), bool(V.lam[0] > tolerance * V.lam[2]))


def proper_svd(P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, sigma, Y with P = X diag(sigma) Y^T, X and Y rotations, sigma_3 of either sign."""
    X, sigma, Yt = np.linalg.svd(P)
    Y = Yt.T.copy()
    for factor in (X, Y):
        if np.linalg.det(factor) < 0.0:
            factor[:, 2] *= -1.0
            sigma[2] *= -1.0
    return X, sigma, Y


def _finite(value: ArrayLike, shape: tuple[int, ...], name: str) -> np.ndarray:
    array = np.array(value, dtype=float)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise GeometryError(f"`{name}` must be finite numbers of shape {shape}, got {value!r}")
    return array
