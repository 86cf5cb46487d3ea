"""One Coriolis matrix, or one choice of coordinates, with the properties that it has, measured.

M_dot = C + C^T            skew: what Lyapunov proofs use
C v = c                    right: a wrong matrix can be skew
v^T (M_dot - 2C) v = 0     weaker than skew; energy conservation gives it to every right C
d1 I <= M <= d2 I          bounded: Euler angles lose it at pitch 90 degrees, task coordinates
                           where the arm is singular, and every form does where a joint that
                           slides without limits changes M

Whether a number counts as zero does not depend on units: see `framefree.machine.units`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from framefree.certify.subject import evaluate
from framefree.machine.units import definiteness

BAR = 1e-11
DEFINITE = 1e-10
"""Least eigenvalue of M with unit diagonal that counts as different from zero."""
WORDS = {
    "skew": "Levi-Civita coefficients of the bodies",
    "kirchhoff": "Kirchhoff form",
    "adjoint": "plain adjoint form",
    "quasi": "quasi-coordinates (Boltzmann-Hamel)",
    "christoffel": "Christoffel symbols of plain coordinates",
    "euler": "roll, pitch and yaw",
    "printed": "as printed in [From2010], eq. (22)",
    "quaternion": "rates of quaternions",
    "task": "rates of base and end frame",
    "task_euler": "rates of base and end frame, base in roll, pitch and yaw [From2010, eq. (23)]",
    "own": "as given",
}


@dataclass(frozen=True)
class Residual:
    """The largest residual over all states, relative, and the state (x, v) that gave it."""

    value: float
    x: np.ndarray
    v: np.ndarray

    @property
    def holds(self) -> bool:
        """Whether nothing but rounding is left."""
        return self.value <= BAR


@dataclass(frozen=True)
class Form:
    """One Coriolis matrix, or one choice of coordinates, measured.

    Attributes
    ----------
    name : str
        One of `WORDS`.
    skew, bias, weak : Residual
        Residuals of M_dot = C + C^T, C v = c and v^T (M_dot - 2C) v = 0, relative to M times a
        rate.
    smallest : float
        Smallest eigenvalue of M over the states.
    smallest_x : (nx,)
        Where M is nearest to singular; angles eta (nv) for "euler".
    definite : float
        How far M is from singular there, whatever its units.
    unbounded : tuple of str
        Coordinates without limits along which eigenvalues of M grow without bound, or vanish.
    singular : str
        Where rates are not defined, so that M in them has no bound; empty where nowhere.
    """

    name: str
    skew: Residual
    bias: Residual
    weak: Residual
    smallest: float
    smallest_x: np.ndarray
    definite: float
    unbounded: tuple[str, ...] = ()
    singular: str = ""

    @property
    def bounded(self) -> bool:
        """Whether d1 I <= M <= d2 I with 0 < d1 <= d2 < infinity: `reason` tells why not."""
        return not self.reason

    @property
    def reason(self) -> str:
        """The reason why M is not bounded; empty where it is."""
        reasons = []
        if not self.definite > DEFINITE:
            reasons.append("M is singular")
        if self.unbounded:
            names = ", ".join(f"`{name}`" for name in self.unbounded)
            reasons.append(f"M has no bound along {names}, which has no limits")
        if self.singular:
            reasons.append(self.singular)
        return "; ".join(reasons)

    @property
    def words(self) -> str:
        """The name of the matrix in words."""
        return WORDS[self.name]


def form_of(
    name: str,
    symbols: list[ca.SX],
    outputs: list[ca.SX],
    x: np.ndarray,
    v: np.ndarray,
    D: np.ndarray,
    inertia: np.ndarray | None = None,
) -> Form:
    """Return a form with its residuals at states.

    Parameters
    ----------
    name : str
    symbols : list of casadi columns
        Configuration and velocities.
    outputs : list of casadi matrices
        M, dM/dt, C and c.
    x, v : (n, ...)
    D : (m,)
        Natural units of the velocities.
    inertia : (m,), optional
        What each velocity could feel; default the diagonal of M.
    """
    function = ca.Function("form", symbols, [ca.densify(one) for one in outputs])
    return form_at(name, x, v, evaluate(function, x, v), D, inertia)


def form_at(
    name: str,
    x: np.ndarray,
    v: np.ndarray,
    matrices: Sequence[np.ndarray],
    D: np.ndarray,
    inertia: np.ndarray | None = None,
) -> Form:
    """Return the same from M, dM/dt, C (n, m, m) and c (n, m, 1) in numbers."""
    M, M_dot, C, bias = matrices
    M_nat, M_dot, C = (D[:, None] * matrix * D for matrix in (M, M_dot, C))
    bias, rates = D * bias[..., 0], v / D
    scale = largest(C) + largest(M_nat) * largest(rates)
    skew = M_dot - C - C.swapaxes(1, 2)
    wrong = np.einsum("nij,nj->ni", C, rates) - bias
    weak = np.einsum("ni,nij,nj->n", rates, M_dot - 2 * C, rates)
    sizes = (scale, scale * largest(rates), scale * largest(rates) ** 2)
    residuals: list[Residual] = []
    for gap, size in zip((skew, wrong, weak[:, None]), sizes, strict=True):
        values = np.where(np.isfinite(size), largest(gap) / np.minimum(size, 1e300), np.inf)
        worst = int(values.argmax())
        residuals.append(Residual(float(values[worst]), x[worst], v[worst]))
    finite = np.isfinite(M).all(axis=(1, 2))
    definite = np.full(len(M), -np.inf)
    definite[finite] = [
        definiteness(one, np.abs(np.diag(one)) if inertia is None else inertia) for one in M[finite]
    ]
    least = int(definite.argmin())
    smallest = float(np.linalg.eigvalsh(M[finite])[:, 0].min(initial=np.inf))
    one, two, three = residuals
    return Form(name, one, two, three, smallest, x[least], float(definite[least]))


def largest(values: np.ndarray) -> np.ndarray:
    """Return the largest entry of each state (n,); infinite where one is not finite."""
    flat = np.abs(values.reshape(len(values), -1))
    return np.where(np.isfinite(flat), flat, np.inf).max(axis=1, initial=1e-300)
