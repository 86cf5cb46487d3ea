"""Smallest and largest eigenvalue of the mass matrix over the configuration space, by search.

    d1 = min over x of min over u of u^T M(x) u / u^T u,     d2 likewise with max

Random configurations within the limits first, then local searches from the best. An eigenvalue's
gradient is that of twice the kinetic energy at velocity u, its unit eigenvector; so it costs one
backward pass through the graph of the energy. A search proves nothing: d1 may be smaller still,
d2 larger. M mixes units (kg, kg m, kg m^2), and so do its eigenvalues, unless linear velocities are
measured by a length. Verdicts do not: they rest on M in the natural units of the machine.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.certify.subject import Subject, evaluate
from framefree.machine import Machine
from framefree.machine.closure import LoopClosure
from framefree.machine.units import (
    SINGULAR,
    Units,
    definiteness,
    endless,
    limits,
    with_unit_diagonal,
)
from framefree.motion import Equations

STARTS = 6
ITERATIONS = 60
REACH = np.pi
"""Range, rad or lengths of the machine, of a local search in a coordinate without limits."""
FAR = (1e2, 1e3, 1e4)
"""Distance, in lengths of the machine, at which M is tested for growth without bound."""
COMPILED = 10_000
"""Number of configurations from which compiling M pays."""
CLOSED = 200
"""Number of configurations with closed loops at which M is looked at, at most."""


@dataclass(frozen=True)
class Extreme:
    """An eigenvalue of M with its unit eigenvector u (nv,) at configuration x (nx,)."""

    value: float
    x: np.ndarray
    u: np.ndarray


@dataclass(frozen=True)
class MassBounds:
    """Extreme eigenvalues that a search reached, and along what M has no bounds.

    Attributes
    ----------
    smallest, largest : Extreme
    condition : float
        Largest condition number of M with unit diagonal at one configuration.
    definite : float
        How far M is from singular, whatever its units: see `framefree.machine.units.definiteness`.
    growing : tuple of str
        Coordinates without limits along which the largest eigenvalue grows without bound.
    vanishing : tuple of str
        Coordinates without limits along which the smallest eigenvalue tends to zero.
    searches : int
        Number of local searches that followed the random ones.
    """

    smallest: Extreme
    largest: Extreme
    condition: float
    definite: float
    growing: tuple[str, ...] = ()
    vanishing: tuple[str, ...] = ()
    searches: int = 0

    @property
    def bounded(self) -> bool:
        """Whether M stays away from zero and from infinity wherever the search looked."""
        return self.definite > SINGULAR and not self.growing and not self.vanishing


class MassSearch:
    """The mass matrix as a function on the configuration space, with gradients of eigenvalues."""

    def __init__(
        self, eom: Equations, scale: np.ndarray | None = None, units: Units | None = None
    ) -> None:
        self.eom, self.machine = eom, eom.machine
        self.scale = np.ones(eom.machine.nv) if scale is None else scale
        self.units = Units.of(eom.machine) if units is None else units

    def masses(self, x: np.ndarray) -> np.ndarray:
        """Return M (n, nv, nv) at configurations (n, nx)."""
        compiled = len(x) >= COMPILED
        M = self.eom.mass(x) if compiled else evaluate(self.eom.functions["mass"], x)[0]
        return self.scale[:, None] * M * self.scale

    def extreme(self, x: np.ndarray, sign: int) -> Extreme:
        """Return the smallest (sign 1) or largest (-1) eigenvalue at x."""
        values, vectors = np.linalg.eigh(self.masses(x[None])[0])
        k = 0 if sign > 0 else -1
        return Extreme(float(values[k]), x, vectors[:, k])

    def refine(self, x: np.ndarray, sign: int) -> Extreme:
        """Search locally from x for a smaller (sign 1) or larger (-1) eigenvalue."""
        from scipy.optimize import minimize  # slow to import

        # In units of the first value, so that the search ends at the same digits for every machine.
        unit = sign / max(abs(self.extreme(x, sign).value), 1e-300)
        D = self.units.velocity

        def cost(step: np.ndarray) -> tuple[float, np.ndarray]:
            here = self.extreme(self.machine.integrate(x, D * step), sign)
            slope = self._slope(x, D * step, self.scale * here.u).full()[:, 0]
            return unit * here.value, unit * D * slope

        lower, upper = room(self.machine, x, self.units)
        result = minimize(
            cost,
            np.zeros(self.machine.nv),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lower, upper, strict=True)),
            options={"maxiter": ITERATIONS, "ftol": 1e-14, "gtol": 1e-9},
        )
        moved = self.machine.integrate(x, D * result.x)
        return self.extreme(np.clip(moved, *limits(self.machine)), sign)

    @cached_property
    def _slope(self) -> ca.Function:
        """Gradient along `step` of u^T M(x (+) step) u, twice the kinetic energy at velocity u."""
        x = ca.SX.sym("x", self.machine.nx)
        step, u = ca.SX.sym("step", self.machine.nv), ca.SX.sym("u", self.machine.nv)
        kinetic = self.eom.functions["energy"](self.machine.integrate(x, step), u)[0]
        return ca.Function("slope", [x, step, u], [ca.densify(2 * ca.gradient(kinetic, step))])


def search(subject: Subject) -> MassBounds:
    """Return the bounds of M of the open machine."""
    machine, units = subject.open, subject.units
    space = MassSearch(subject.bare, subject.scale, units)
    start = np.clip(machine.neutral(), *limits(machine))
    x = np.vstack([start, units.random(machine, subject.rng(4), subject.samples)])
    M = space.masses(x)
    if not np.isfinite(M).all():
        return _not_finite(x, M)
    values = np.linalg.eigvalsh(M)
    low = _best(space, x, np.argsort(values[:, 0])[:STARTS], 1)
    high = _best(space, x, np.argsort(-values[:, -1])[:STARTS], -1)
    # Definiteness and condition are those of M itself, whatever the units of the eigenvalues.
    plain = space.masses(np.vstack([x, low.x])) / np.outer(subject.scale, subject.scale)
    growing, vanishing = unbounded_coordinates(subject.bare, units, np.vstack([high.x, x[:STARTS]]))
    return MassBounds(
        low,
        high,
        worst_condition(plain),
        min(definiteness(one, units.inertia) for one in plain),
        growing,
        vanishing,
        2 * STARTS,
    )


def _not_finite(x: np.ndarray, masses: np.ndarray) -> MassBounds:
    """Return empty bounds, for an M that is not finite at some configuration."""
    worst = int((~np.isfinite(masses)).any(axis=(1, 2)).argmax())
    nothing = Extreme(np.nan, x[worst], np.zeros(masses.shape[-1]))
    return MassBounds(nothing, nothing, np.inf, -np.inf)


def _best(space: MassSearch, x: np.ndarray, starts: np.ndarray, sign: int) -> Extreme:
    extremes = [space.extreme(x[starts[0]], sign)]
    extremes += [space.refine(x[start], sign) for start in starts]
    return min(extremes, key=lambda extreme: sign * extreme.value)


def worst_condition(masses: np.ndarray) -> float:
    """Return the largest condition number of matrices (n, k, k) with unit diagonal."""
    values = np.linalg.eigvalsh(with_unit_diagonal(masses))
    if not (values[:, 0] > 0).all():
        return np.inf
    return float((values[:, -1] / values[:, 0]).max())


def room(machine: Machine, x: np.ndarray, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each velocity may move x (nv,), in natural units, before a limit."""
    lower, upper = np.full(machine.nv, -REACH), np.full(machine.nv, REACH)
    for joint in machine.joints:
        if not joint.kind.vector:
            continue
        at, v = x[machine.x_slice[joint.name]], machine.v_slice[joint.name]
        D = units.velocity[v]
        lower[v] = np.where(np.isfinite(joint.lower), (joint.lower - at) / D, -REACH)
        upper[v] = np.where(np.isfinite(joint.upper), (joint.upper - at) / D, REACH)
    return lower, upper


def unbounded_coordinates(
    eom: Equations, units: Units, x: np.ndarray, closure: LoopClosure | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the coordinates without limits along which eigenvalues of M grow, and vanish.

    From configurations x (n, nx) each coordinate alone is moved far away, towards a side without
    limit; with loops, others follow as the loops ask. Eigenvalues are those of M in natural units.
    """
    machine = eom.machine
    growing, vanishing = [], []
    for i in np.flatnonzero(endless(machine)).tolist():
        for start in x:
            away = [_moved_away(machine, units, start, i, far, closure) for far in (0.0, *FAR)]
            if any(one is None for one in away):
                continue
            low, high = _natural_extremes(eom, units, np.array(away), closure)
            if (high[2:] > 4 * high[1:-1]).all() and high[-1] > 4 * high[0]:
                growing.append(machine.x_names[i])
            if (4 * low[2:] < low[1:-1]).all() and 4 * low[-1] < low[0]:
                vanishing.append(machine.x_names[i])
    return tuple(dict.fromkeys(growing)), tuple(dict.fromkeys(vanishing))


def _moved_away(
    machine: Machine, units: Units, x: np.ndarray, i: int, far: float, closure: LoopClosure | None
) -> np.ndarray | None:
    """Return x with coordinate i moved by `far` lengths; None where loops do not let it go."""
    distance = far * units.stride[i]
    if np.isfinite(limits(machine)[1][i]):
        distance = -distance
    if closure is None:
        return x + distance * np.eye(machine.nx)[i]
    D = units.velocity
    row = np.array(ca.DM(machine.rate_matrix(ca.DM(x))))[i] * D
    (Z,) = closure.allowed_directions(x[None])
    along = Z @ (Z.T @ row)
    if row @ along <= 1e-9 * (row @ row):
        return None
    start = machine.integrate(x, D * along * (distance / (row @ along)))
    ends = closure.closed(start[None], 1)
    reached = len(ends) and abs(ends[0, i] - x[i]) >= abs(distance) / 2
    return ends[0] if reached else None


def _natural_extremes(
    eom: Equations, units: Units, x: np.ndarray, closure: LoopClosure | None
) -> np.ndarray:
    """Return the smallest and largest eigenvalues (2, n) of M in natural units, kg m^2."""
    masses = MassSearch(eom, units.velocity, units).masses(x)
    if closure is not None:
        bases = closure.allowed_directions(x)
        values = [np.linalg.eigvalsh(Z.T @ M @ Z) for M, Z in zip(masses, bases, strict=True)]
        return np.array([[one[0], one[-1]] for one in values]).T
    return np.linalg.eigvalsh(masses)[:, [0, -1]].T


def closed_search(subject: Subject) -> MassBounds | None:
    """Return the bounds of Z^T M Z, with Z an orthonormal basis of what loops allow."""
    x = subject.closed_configurations(subject.rng(5), min(subject.samples, CLOSED))
    low = high = None
    condition, definite = 1.0, 1.0
    D = subject.units.velocity / subject.scale
    masses = MassSearch(subject.bare, subject.scale, subject.units).masses(x)
    if not np.isfinite(masses).all():
        return _not_finite(x, masses)
    plain = masses / np.outer(subject.scale, subject.scale)
    bases = subject.closure.allowed_directions(x)
    for at, M, M_plain, Z in zip(x, masses, plain, bases, strict=True):
        if not Z.shape[1]:
            continue
        basis, _ = np.linalg.qr(D[:, None] * Z)
        values, vectors = np.linalg.eigh(basis.T @ M @ basis)
        definite = min(definite, subject.definiteness_closed(M_plain, Z))
        natural = subject.units.of_mass(M_plain)
        condition = max(condition, worst_condition((Z.T @ natural @ Z)[None]))
        if low is None or values[0] < low.value:
            low = Extreme(float(values[0]), at, basis @ vectors[:, 0])
        if high is None or values[-1] > high.value:
            high = Extreme(float(values[-1]), at, basis @ vectors[:, -1])
    if low is None or high is None:
        return None
    endless_sides = unbounded_coordinates(subject.bare, subject.units, x[:3], subject.closure)
    return MassBounds(low, high, condition, definite, *endless_sides)
