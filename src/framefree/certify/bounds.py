"""Smallest and largest eigenvalue of the mass matrix over the configuration space, found by search.

    d1 = min over x of min over u of u^T M(x) u / u^T u,     d2 likewise with max

Random configurations within the limits first, then local searches from the best. An eigenvalue's
gradient is that of twice the kinetic energy at velocity u, its unit eigenvector; so it costs one
backward pass through the graph of the energy. What is found is no proof: d1 may be smaller still,
d2 larger. M mixes units (kg, kg m, kg m^2), and so do its eigenvalues, unless linear velocities are
measured by a length.

With d1 I <= M <= d2 I a constant estimate Mhat = 2 d1 d2 / (d1 + d2) I has the least worst error,
|M^-1 Mhat - I| <= (d2 - d1) / (d2 + d1), the margin.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from framefree.certify.confirm import confirm
from framefree.certify.proof import proved_bounds
from framefree.certify.report import Finding, Verdict
from framefree.certify.subject import SINGULAR, Subject, evaluate
from framefree.machine import Machine
from framefree.motion import Equations

STARTS = 6
ITERATIONS = 60
REACH = np.pi
"""How far, rad or m, a local search may move a coordinate that has no limits."""
COMPILED = 10_000
"""Number of configurations from which compiling M pays."""
CLOSED = 200
"""Number of configurations with closed loops at which M is looked at, at most."""
ILL = 1e8
QUICKLY, CONFIRMED = 20_000, 1_000_000
"""Random configurations at which the bounds are tried."""
MANY = 16
"""Number of velocities up to which the test of definiteness is compiled."""


@dataclass(frozen=True)
class Extreme:
    """An eigenvalue of M with its unit eigenvector u (nv,) at configuration x (nx,)."""

    value: float
    x: np.ndarray
    u: np.ndarray


@dataclass(frozen=True)
class Bounds:
    """Extreme eigenvalues found, the largest condition number, and coordinates that M grows with.

    Attributes
    ----------
    smallest, largest : Extreme
    condition : float
        Largest ratio of the eigenvalues at one configuration.
    unbounded : tuple of str
        Coordinates without limits along which the largest eigenvalue grows without bound.
    searches : int
        Number of local searches that followed the random ones.
    """

    smallest: Extreme
    largest: Extreme
    condition: float
    unbounded: tuple[str, ...] = ()
    searches: int = 0


def mass_bounds(subject: Subject, thorough: bool = False) -> Iterator[Finding]:
    """Give the eigenvalues of M that were found and proved, and the worst condition number."""
    found = _closed_bounds(subject) if subject.closed else search(subject)
    if found is None:
        for name, meaning in _MEANINGS.items():
            yield Finding.skipped(name, meaning, "no configuration was found that closes all loops")
        return
    yield from _findings(subject, found, thorough)


def _findings(subject: Subject, found: Bounds, thorough: bool) -> Iterator[Finding]:
    how = f"found, not proved: {subject.samples} configurations, {found.searches} local searches"
    if subject.closed:
        how = "found, not proved: random configurations, along what loops and couplings allow"
    if subject.length is not None:
        how += f"; linear velocities in units of {subject.length:g} m/s"
    yield _smallest(subject, found, how)
    yield _largest(found, how)
    if not subject.closed:
        yield from _proved(subject, found)
        yield _confirmed(subject, found, CONFIRMED if thorough else QUICKLY)
    yield _margin(found)
    name = "mass_condition"
    yield Finding(
        name,
        Verdict.PASS if found.condition <= ILL else Verdict.WARN,
        _MEANINGS[name],
        found.condition,
        ILL,
        remedy="accelerations lose this many digits; make the light bodies at the tips heavier, "
        "or fix their joints",
    )


def _proved(subject: Subject, found: Bounds) -> Iterator[Finding]:
    """Give the bounds that hold at every configuration; what was found must lie within."""
    proved = proved_bounds(subject.open, subject.scale)
    sides = (
        ("min", proved.low, proved.reason_low, found.smallest, 1),
        ("max", proved.high, proved.reason_high, found.largest, -1),
    )
    for which, value, reason, extreme, sign in sides:
        name = f"mass_eigenvalue_{which}_proved"
        if value is None:
            yield Finding.skipped(name, _MEANINGS[name], f"no proof: {reason}")
            continue
        within = sign * value <= sign * extreme.value * (1 + sign * 1e-9)
        yield Finding(
            name,
            Verdict.PASS if within or not np.isfinite(extreme.value) else Verdict.FAIL,
            _MEANINGS[name],
            value,
            note="proved from lengths, masses and inertias",
            remedy="this is an error of framefree: please report it with the file",
        )


def _confirmed(subject: Subject, found: Bounds, states: int) -> Finding:
    name = "mass_bounds_outside"
    low, high = found.smallest.value, found.largest.value
    if subject.open.nv > MANY or not low > 0:
        why = (
            "M is singular" if not low > 0 else f"more than {MANY} velocities take long to compile"
        )
        return Finding.skipped(name, _MEANINGS[name], why)
    slack = 1e-9 * high
    tried = confirm(
        subject.bare,
        low - slack,
        high + slack,
        states=states,
        seed=subject.seed + 6,
        scale=subject.scale,
    )
    return Finding(
        name,
        Verdict.PASS if not tried.below + tried.above else Verdict.WARN,
        _MEANINGS[name],
        tried.below + tried.above,
        0,
        note=f"{states} random configurations",
        remedy="the search missed these: give it more `samples`",
        x=None if tried.x is None else tuple(tried.x.tolist()),
    )


def _margin(found: Bounds) -> Finding:
    low, high = found.smallest.value, found.largest.value
    name = "mass_margin"
    if found.unbounded or not low > 0:
        reason = "M is unbounded" if found.unbounded else "M is singular"
        return Finding.skipped(name, _MEANINGS[name], reason)
    return Finding(
        name,
        Verdict.PASS,
        _MEANINGS[name],
        (high - low) / (high + low),
        note=f"attained by the constant matrix {2 * low * high / (low + high):.4g} I",
    )


def _smallest(subject: Subject, found: Bounds, how: str) -> Finding:
    name, extreme = "mass_eigenvalue_min", found.smallest
    worst = subject.open.v_names[int(np.abs(extreme.u).argmax())]
    bar = SINGULAR * found.largest.value
    return Finding(
        name,
        Verdict.PASS if extreme.value > bar else Verdict.FAIL,
        _MEANINGS[name],
        extreme.value,
        bar,
        note=f"{how}; mostly along velocity `{worst}`",
        remedy=f"give what `{worst}` moves an inertia, or its joint an armature; if the eigenvalue "
        "is negative, correct impossible inertias",
        at_least=True,
        x=tuple(extreme.x.tolist()),
    )


def _largest(found: Bounds, how: str) -> Finding:
    name = "mass_eigenvalue_max"
    names = ", ".join(f"`{coordinate}`" for coordinate in found.unbounded)
    return Finding(
        name,
        Verdict.WARN if found.unbounded else Verdict.PASS,
        _MEANINGS[name],
        found.largest.value,
        note=f"unbounded along {names}; this is within {REACH:.3g} m of the samples"
        if found.unbounded
        else how,
        remedy=f"give {names} limits: proofs that need a bound on M hold only within them",
        x=tuple(found.largest.x.tolist()),
    )


_MEANINGS = {
    "mass_eigenvalue_min_proved": "no eigenvalue of M is smaller than this, at any configuration",
    "mass_eigenvalue_max_proved": "no eigenvalue of M is larger than this, at any configuration",
    "mass_bounds_outside": "random configurations at which M leaves the bounds that were found",
    "mass_margin": "(d2 - d1)/(d2 + d1): worst relative error of the best constant estimate of M, "
    "which computed-torque proofs need below 1",
    "mass_eigenvalue_min": "smallest eigenvalue of M (kg, kg m^2): above zero, every motion has "
    "energy and accelerations are unique",
    "mass_eigenvalue_max": "largest eigenvalue of M (kg, kg m^2) over all configurations",
    "mass_condition": "largest condition number of M: digits that accelerations lose",
}


class Search:
    """The mass matrix as a function on the configuration space, with gradients of eigenvalues."""

    def __init__(self, eom: Equations, scale: np.ndarray | None = None) -> None:
        self.eom, self.machine = eom, eom.machine
        self.scale = np.ones(eom.machine.nv) if scale is None else scale

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

        def cost(step: np.ndarray) -> tuple[float, np.ndarray]:
            here = self.extreme(self.machine.integrate(x, step), sign)
            return unit * here.value, unit * self._slope(x, step, self.scale * here.u).full()[:, 0]

        lower, upper = _room(self.machine, x)
        result = minimize(
            cost,
            np.zeros(self.machine.nv),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(lower, upper, strict=True)),
            options={"maxiter": ITERATIONS, "ftol": 1e-14, "gtol": 1e-9},
        )
        return self.extreme(self.machine.integrate(x, result.x), sign)

    @cached_property
    def _slope(self) -> ca.Function:
        """Gradient along `step` of u^T M(x (+) step) u, twice the kinetic energy at velocity u."""
        x = ca.SX.sym("x", self.machine.nx)
        step, u = ca.SX.sym("step", self.machine.nv), ca.SX.sym("u", self.machine.nv)
        kinetic = self.eom.functions["energy"](self.machine.integrate(x, step), u)[0]
        return ca.Function("slope", [x, step, u], [ca.densify(2 * ca.gradient(kinetic, step))])


def search(subject: Subject) -> Bounds:
    """Return the bounds of M of the open machine."""
    machine, space = subject.open, Search(subject.bare, subject.scale)
    x = np.vstack([_neutral(machine), machine.random(subject.rng(4), subject.samples)])
    M = space.masses(x)
    if not np.isfinite(M).all():
        nothing = Extreme(np.nan, x[0], np.zeros(machine.nv))
        return Bounds(nothing, nothing, np.inf)
    values = np.linalg.eigvalsh(M)
    low = _best(space, x, np.argsort(values[:, 0])[:STARTS], 1)
    high = _best(space, x, np.argsort(-values[:, -1])[:STARTS], -1)
    conditions = [_condition(values), _condition(np.linalg.eigvalsh(space.masses(low.x[None])))]
    return Bounds(low, high, max(conditions), _unbounded(space, high), 2 * STARTS)


def _neutral(machine: Machine) -> np.ndarray:
    """Return the neutral configuration, brought within the limits."""
    limits = [(joint.lower, joint.upper) for joint in machine.joints]
    lower, upper = (np.concatenate([np.zeros(0), *side]) for side in zip(*limits, strict=True))
    return np.clip(machine.neutral(), lower, upper)


def _best(space: Search, x: np.ndarray, starts: np.ndarray, sign: int) -> Extreme:
    found = [space.extreme(x[starts[0]], sign)]
    found += [space.refine(x[start], sign) for start in starts]
    return min(found, key=lambda extreme: sign * extreme.value)


def _condition(values: np.ndarray) -> float:
    """Return the largest ratio of eigenvalues (n, nv), infinite where one is not positive."""
    if (values[:, 0] <= 0).any():
        return np.inf
    return float((values[:, -1] / values[:, 0]).max())


def _room(machine: Machine, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each velocity may move x (nv, nv) before a limit, or `REACH`."""
    lower, upper = np.full(machine.nv, -REACH), np.full(machine.nv, REACH)
    for joint in machine.joints:
        if not joint.kind.vector:
            continue
        at, v = x[machine.x_slice[joint.name]], machine.v_slice[joint.name]
        lower[v] = np.where(np.isfinite(joint.lower), joint.lower - at, -REACH)
        upper[v] = np.where(np.isfinite(joint.upper), joint.upper - at, REACH)
    return lower, upper


def _unbounded(space: Search, largest: Extreme) -> tuple[str, ...]:
    """Return the coordinates without limits along which the largest eigenvalue keeps growing."""
    machine, far = space.machine, (1e3, 1e4)
    free = [i for i, name in enumerate(machine.x_names) if name in _unlimited(machine)]
    if not free:
        return ()
    rows = np.array([largest.x + d * np.eye(machine.nx)[i] for i in free for d in far])
    values = np.linalg.eigvalsh(space.masses(rows))[:, -1].reshape(-1, 2)
    growing = values[:, 1] > 2 * np.maximum(values[:, 0], largest.value)
    return tuple(machine.x_names[i] for i, grows in zip(free, growing, strict=True) if grows)


def _unlimited(machine: Machine) -> set[str]:
    names = set()
    for joint in machine.joints:
        unit = {i for block in joint.kind.unit_blocks for i in range(joint.nx)[block]}
        for i, name in enumerate(joint.x_names):
            if i not in unit and not (np.isfinite(joint.lower[i]) and np.isfinite(joint.upper[i])):
                names.add(name)
    return names


def _closed_bounds(subject: Subject) -> Bounds | None:
    """Return the bounds of Z^T M Z, with Z an orthonormal basis of what loops allow."""
    x = subject.closed_configurations(subject.rng(5), min(subject.samples, CLOSED))
    low = high = None
    condition = 0.0
    masses = Search(subject.bare, subject.scale).masses(x)
    for at, M, Z in zip(x, masses, subject.closure.allowed_directions(x), strict=True):
        if not Z.shape[1]:
            continue
        values, vectors = np.linalg.eigh(Z.T @ M @ Z)
        condition = max(condition, _condition(values[None]))
        if low is None or values[0] < low.value:
            low = Extreme(float(values[0]), at, Z @ vectors[:, 0])
        if high is None or values[-1] > high.value:
            high = Extreme(float(values[-1]), at, Z @ vectors[:, -1])
    return None if low is None or high is None else Bounds(low, high, condition)
