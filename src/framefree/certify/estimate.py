"""How good an estimate of the mass matrix is; bounds of M in Euler angles near pitch 90 degrees.

Laws that divide by an estimate Mhat need [From2010, eq. (3)]

    |M^-1 Mhat - I| <= d < 1        (largest singular value) at all configurations.

In Euler angles M_eta = T^T M T loses rank at pitch 90 degrees. At a distance delta or more from it
[From2010, property 3; errata E1-4] the singular values of T squared lie between 1 - cos(delta) and
1 + cos(delta), or are 1, so that

    d1 (1 - cos delta) I <= M_eta <= d2 (1 + cos delta) I

with the bounds d1, d2 of M itself: proved where these are.
"""

from collections.abc import Callable, Iterator

import casadi as ca
import numpy as np

from framefree.certify.mass_search import room
from framefree.certify.own import OwnMatrix
from framefree.certify.proof import proved_bounds
from framefree.certify.report import Finding, Verdict
from framefree.certify.subject import Subject, evaluate
from framefree.machine.joints import Free, Spherical
from framefree.motion.tree.euler import configuration, velocity_map

SEARCHED = 4
"""Number of configurations from which worse ones are searched."""
LEAST_DELTA = 1e-4
"""Smallest distance (rad) from pitch 90 degrees that is looked at."""


def estimate_findings(subject: Subject, estimate: OwnMatrix) -> Iterator[Finding]:
    """Give the worst error of the user's estimate of M, as velocities count."""
    machine = subject.open
    mass = subject.bare.functions["mass"]

    def errors(x: np.ndarray) -> np.ndarray:
        return _errors(evaluate(mass, x)[0], estimate.at(x), subject.scale)

    x = np.vstack([machine.neutral(), subject.units.random(machine, subject.rng(7), 512)])
    worst, place = _worst(subject, errors, x)
    yield Finding(
        "mass_estimate_error",
        Verdict.PASS if worst < 1 else Verdict.FAIL,
        "|M^-1 Mhat - I|, largest over configurations, of your estimate Mhat: laws need it below 1",
        worst,
        1.0,
        note=f"found, not proved: {len(x)} configurations and {SEARCHED} searches",
        remedy="see `mass_margin`: what the best constant multiple of I has; or estimate M by a "
        "function of x",
        x=tuple(place.tolist()),
    )


def property_3(subject: Subject, delta: float, estimate: OwnMatrix | None) -> Iterator[Finding]:
    """Give bounds of M in Euler angles at a distance from pitch 90 degrees, rad."""
    pitching = _pitching(subject)
    names = ("euler_mass_eigenvalue_min_at_delta", "euler_mass_eigenvalue_max_at_delta")
    if not pitching:
        reason = "no joint turns by roll, pitch and yaw"
        for name in names:
            yield Finding.skipped(name, _MEANING, reason)
        return
    M_eta, _ = _euler_masses(subject, pitching, delta)
    values = np.linalg.eigvalsh(M_eta)
    low, high = float(values[:, 0].min()), float(values[:, -1].max())
    proved = proved_bounds(subject.open, subject.scale)
    c = np.cos(delta)
    sides = (
        (names[0], low, None if proved.low is None else proved.low * (1 - c), "more"),
        (names[1], high, None if proved.high is None else proved.high * (1 + c), "less"),
    )
    for name, found, bound, word in sides:
        how = f"; proved: {bound:.6g} or {word}" if bound is not None else ""
        yield Finding(
            name,
            Verdict.PASS,
            f"{_MEANING} of {delta:g} rad",
            found,
            0.0 if word == "more" else None,
            note=f"found at {len(M_eta)} configurations{how}",
            at_least=True,
        )
    yield Finding(
        "euler_mass_margin_at_delta",
        Verdict.PASS,
        "(d2 - d1)/(d2 + d1) there: error of the best constant multiple of I as estimate of M",
        (high - low) / (high + low),
    )
    if estimate is not None:
        yield from _estimate_in_angles(subject, pitching, delta, estimate)


def _estimate_in_angles(
    subject: Subject, pitching: list[int], delta: float, estimate: OwnMatrix
) -> Iterator[Finding]:
    """Give the error of Mhat as an estimate of M in Euler angles, and where it is too large."""

    def worst(distance: float) -> float:
        M_eta, x = _euler_masses(subject, pitching, distance)
        return float(_errors(M_eta, estimate.at(x), np.ones(M_eta.shape[1])).max())

    error = worst(delta)
    yield Finding(
        "euler_mass_estimate_error_at_delta",
        Verdict.PASS if error < 1 else Verdict.WARN,
        f"|M^-1 Mhat - I| of your estimate for M in Euler angles, {delta:g} rad off pitch 90 deg",
        error,
        1.0,
        remedy="use velocities on the group, or keep further away from pitch 90 degrees",
    )
    name = "euler_mass_estimate_delta_rad"
    meaning = "least distance from pitch 90 degrees at which that error stays below 1"
    low, high = LEAST_DELTA, np.pi / 2 - 1e-6
    if worst(high) >= 1:
        yield Finding.skipped(name, meaning, "there is none")
        return
    while high / low > 1.01:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if worst(middle) < 1 else (middle, high)
    yield Finding(name, Verdict.PASS, meaning, high)


def _errors(M: np.ndarray, estimate: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return |M^-1 Mhat - I| (n,); infinite where M is singular or Mhat is not finite."""
    errors = np.full(len(M), np.inf)
    for k, (one, guess) in enumerate(zip(M, estimate, strict=True)):
        try:
            ratio = np.linalg.solve(one, guess) * scale / scale[:, None] - np.eye(len(one))
            errors[k] = np.linalg.norm(ratio, 2) if np.isfinite(ratio).all() else np.inf
        except np.linalg.LinAlgError:
            continue
    return errors


def _worst(
    subject: Subject, errors: Callable[[np.ndarray], np.ndarray], x: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the largest error and where it is: of samples, then of searches from the worst."""
    from scipy.optimize import minimize  # slow to import

    values = errors(x)
    best = int(values.argmax())
    worst, place = float(values[best]), x[best]
    if not np.isfinite(worst):
        return worst, place
    machine, D = subject.open, subject.units.velocity
    for start in x[np.argsort(-values)[:SEARCHED]]:
        lower, upper = room(machine, start, subject.units)
        found = minimize(
            lambda step, start=start: -errors(machine.integrate(start, D * step)[None])[0],
            np.zeros(machine.nv), method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True)),
            options={"maxiter": 30},
        )  # fmt: skip
        if -found.fun > worst:
            worst, place = float(-found.fun), machine.integrate(start, D * found.x)
    return worst, place


def _pitching(subject: Subject) -> list[int]:
    """Return the places of pitch angles among the Euler coordinates."""
    machine = subject.open
    return [
        machine.v_slice[joint.name].stop - 2
        for joint in machine.joints
        if isinstance(joint.kind, Free | Spherical)
    ]


def _euler_masses(
    subject: Subject, pitching: list[int], delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return M in Euler angles (n, nv, nv), and configurations (n, nx).

    In a half of them all pitch angles are as near to 90 degrees as they may be: there M is nearest
    to singular.
    """
    machine = subject.open
    eta = ca.SX.sym("eta", machine.nv)
    x, T = configuration(machine, eta), velocity_map(machine, eta)
    M = T.T @ subject.bare.functions["mass"](x) @ T
    units = ca.diag(ca.DM(subject.scale))
    function = ca.Function("M", [eta], [ca.densify(units @ M @ units), ca.densify(x)])
    rng = subject.rng(8)
    angles = rng.uniform(-np.pi, np.pi, (512, machine.nv))
    for joint in machine.joints:
        place = machine.v_slice[joint.name]
        if joint.kind.vector and joint.nv:
            own = subject.units.random(machine, rng, len(angles))
            angles[:, place] = own[:, machine.x_slice[joint.name]]
    most = np.pi / 2 - delta
    sides = rng.choice([-1.0, 1.0], (len(angles), len(pitching)))
    angles[:, pitching] = np.where(
        np.arange(len(angles))[:, None] % 2, sides * most, rng.uniform(-most, most, sides.shape)
    )
    masses, configurations = evaluate(function, angles)
    return masses, configurations[..., 0]


_MEANING = "eigenvalues of M in roll, pitch and yaw, at a distance from pitch 90 degrees"
