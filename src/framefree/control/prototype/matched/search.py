"""The matched prototype that costs least: at once where linear feedback has one, else near it.

The feedback that costs least without regard to matching is that of a matched prototype for every
machine with one input and no friction where it does not reach: its closed loop is a chain of masses
and springs with one damper [a stable polynomial has even and odd parts whose roots lie between each
other]. For others the prototype whose motion is nearest to it, by a semidefinite program, lies
close to matched ones, and Newton's method goes there. Where it does not arrive, or costs much more
then, a descent begins at that prototype, or at the ideal one, Mbar = M, Kbar = rate^2 M,
Dbar = 2 rate M, which is stable and not matched either, and lets the matching conditions in bit by
bit, by an augmented Lagrangian.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from framefree.control.prototype.matched.problem import MatchingProblem
from framefree.solve.cones import ConicProgram

BARRIER = 1e-3
"""Weight of -log det of inertia and stiffness beside the cost."""
DAMPED = 1e3
"""Weight of the squares of negative eigenvalues of the damping."""
ROUNDS, STEPS = 20, 200
DEARER = 1.5
"""How much more than an unmatched one a matched prototype may cost before others are tried."""
NEARER = 3
"""Times that errors of a prototype's motion are weighed anew, as accelerations."""
CLOSE = 1e-3
"""Largest matching error from which on Newton's method finishes."""
HEAVY = 1e8
"""Largest weight of the matching error: beyond, descent no longer gains."""
EXACT = 1e-11
"""Largest matching error that counts as none."""
LEAST = 1e-5
"""Least eigenvalue of inertia and stiffness, of unit mean for inertia."""


def solve_problem(problem: MatchingProblem) -> np.ndarray | None:
    """Return the parameters of the matched prototype that costs least; None if none is found."""
    theta = from_feedback(problem)
    if theta is not None:
        return theta
    near = nearest_to_feedback(problem)
    done = None if near is None else newton(problem, near)
    found = [done] if done is not None and acceptable(problem, done) else []
    if found and _cost(problem, found[0]) < DEARER * _cost(problem, near):
        return found[0]
    for start in (near, _first(problem)):
        if start is not None and np.isfinite(_cost(problem, start)):
            done = descend(problem, start)
            found += [] if done is None else [done]
    return min(found, key=lambda theta: _cost(problem, theta), default=None)


def _cost(problem: MatchingProblem, theta: np.ndarray | None) -> float:
    """Return the cost of a prototype; infinite for none, and where it is not stable."""
    value = None if theta is None else problem.cost(theta)
    return np.inf if value is None else value[0]


def acceptable(problem: MatchingProblem, theta: np.ndarray) -> bool:
    """Tell whether a prototype is matched, positive, and stable."""
    M, D, K = problem.forms(theta)
    share = len(M) / np.trace(M)
    if not all(np.linalg.eigvalsh(share * X)[0] > LEAST for X in (M, K)):
        return False
    if np.linalg.eigvalsh(share * D)[0] < -1e-9 * max(np.abs(D).max(), 1.0):
        return False
    A = problem.closed_loop(*(np.linalg.solve(M, X) for X in (K, D)))
    stable = np.linalg.eigvals(A).real.max() < -1e-6
    return bool(stable and np.abs(problem.gap(theta)).max(initial=0.0) < EXACT)


def from_feedback(
    problem: MatchingProblem, feedback: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray | None:
    """Return the prototype that moves as the machine does under linear feedback, if there is one.

    That is one with Kbar = Mbar A_K and Dbar = Mbar A_D; `feedback` is (A_K, A_D), by default that
    which costs least.
    """
    feedback = problem.feedback() if feedback is None else feedback
    if feedback is None:
        return None
    rows = _feedback_rows(problem, *feedback, np.eye(problem.n))
    size = rows.shape[1]
    _, sizes, V = np.linalg.svd(rows)
    rank = int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())
    if rank == size:
        return None
    free = V[rank:].T
    theta = _most_positive(problem, free)
    theta = None if theta is None else newton(problem, theta)
    return theta if theta is not None and acceptable(problem, theta) else None


def _feedback_rows(
    problem: MatchingProblem, A_K: np.ndarray, A_D: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return rows that take parameters to weight [Mbar A_K - Kbar, Mbar A_D - Dbar], flattened."""
    none = np.zeros((problem.n, problem.n))
    of_inertia, of_damping, of_stiffness = problem.bases
    columns = [weight @ np.hstack([Q @ A_K, Q @ A_D]) for Q in of_inertia]
    columns += [weight @ np.hstack([none, -Q]) for Q in of_damping]
    columns += [weight @ np.hstack([-Q, none]) for Q in of_stiffness]
    return np.array(columns).reshape(len(columns), -1).T


def nearest_to_feedback(problem: MatchingProblem) -> np.ndarray | None:
    """Return the positive prototype whose motion is nearest to the feedback that costs least.

    That is the least |Mbar^-1 [Mbar A_K - Kbar, Mbar A_D - Dbar]|, Mbar^-1 from one program to the
    next. It need not be matched.
    """
    feedback = problem.feedback()
    if feedback is None:
        return None
    n, theta, weight = problem.n, None, np.eye(problem.n)
    for _ in range(NEARER):
        rows = _feedback_rows(problem, *feedback, weight)
        size = rows.shape[1]
        program = ConicProgram(size)
        for kind, least in enumerate((1.0, 0.0, 1e-2)):
            matrices = [np.zeros_like(basis) for basis in problem.bases]
            matrices[kind] = problem.bases[kind]
            program.semidefinite(np.concatenate(matrices), -least * np.eye(n))
        y = program.minimise(rows.T @ rows + 1e-9 * np.eye(size), np.zeros(size))
        if y is None:
            break
        theta, weight = y, np.linalg.inv(problem.forms(y)[0])
    return None if theta is None else theta * n / np.trace(problem.forms(theta)[0])


def _most_positive(problem: MatchingProblem, free: np.ndarray) -> np.ndarray | None:
    """Return the combination of columns of `free` whose inertia and stiffness are most positive."""
    count, n = free.shape[1], problem.n
    forms = [problem.forms(column) for column in free.T]
    program = ConicProgram(count + 1)
    traces = np.array([np.trace(M) for M, _, _ in forms])
    program.equal(np.append(traces, 0.0)[None], np.array([float(n)]))
    scale = float(np.median(np.abs(np.linalg.eigvals(problem.K)))) + 1.0
    for kind, least in ((0, 1.0), (1, 0.0), (2, scale)):
        matrices = [*(parts[kind] for parts in forms), -least * np.eye(n)]
        program.semidefinite(matrices, np.zeros((n, n)))
    y = program.minimise(np.zeros((count + 1, count + 1)), -np.eye(count + 1)[-1])
    return None if y is None else free @ y[:-1]


def newton(problem: MatchingProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return the nearest matched parameters, by least steps; None if they do not settle."""
    for _ in range(30):
        gap = problem.gap(theta).ravel()
        if np.abs(gap).max(initial=0.0) < EXACT / 10:
            return theta
        theta = theta - np.linalg.lstsq(problem.gap_slope(theta), gap, rcond=1e-10)[0]
        if not np.isfinite(theta).all():
            return None
    return theta if np.abs(gap).max() < EXACT else None


def descend(problem: MatchingProblem, start: np.ndarray) -> np.ndarray | None:
    """Return a matched prototype by descent from one that is not; see the top of this file."""
    theta, multipliers, weight, last = start, 0.0 * problem.gap(start), 1.0, np.inf
    for _ in range(ROUNDS):
        options = {"maxiter": STEPS, "maxcor": 30, "maxfun": 5 * STEPS}
        theta = minimize(
            _lagrangian,
            theta,
            args=(problem, weight, multipliers),
            jac=True,
            method="L-BFGS-B",
            options=options,
        ).x
        gap = problem.gap(theta)
        error = float(np.abs(gap).max(initial=0.0))
        if error < CLOSE:
            break
        multipliers = multipliers + weight * gap
        weight *= 8.0 if error > last / 4 else 1.0
        last = error
        if weight > HEAVY:
            break
    done = newton(problem, theta)
    return done if done is not None and acceptable(problem, done) else None


def _first(problem: MatchingProblem) -> np.ndarray | None:
    """Return the ideal prototype, or the one nearest to it where everything moves and is damped.

    Where few pairs have damping, motions of one frequency escape it: springs of different strength
    on the pairs then tell them apart.
    """
    M = problem.forms(problem.parameters(*(np.eye(problem.n),) * 3))[0]
    if np.linalg.eigvalsh(M)[0] < LEAST:
        best = _most_positive_inertia(problem)
        if best is None:
            return None
        M = best
    strengths = 1.0 + 2.0 * np.arange(len(problem.springs))
    uneven = [np.tensordot(s, problem.springs, 1) for s in (strengths, strengths[::-1])]
    starts = []
    for K in (M, *(np.trace(M) / np.trace(K) * K for K in uneven)):
        theta = problem.parameters(M, 2 * M, K)
        value = problem.cost(theta)
        if value is not None and np.linalg.eigvalsh(problem.forms(theta)[2])[0] > LEAST:
            starts.append((value[0], theta))
    return min(starts, key=lambda start: start[0])[1] if starts else None


def _most_positive_inertia(problem: MatchingProblem) -> np.ndarray | None:
    basis, n = problem.bases[0], problem.n
    size = len(basis) + 1
    program = ConicProgram(size)
    traces = np.array([np.trace(Q) for Q in basis])
    program.equal(np.append(traces, 0.0)[None], np.array([float(n)]))
    program.semidefinite([*basis, -np.eye(n)], np.zeros((n, n)))
    y = program.minimise(np.zeros((size, size)), -np.eye(size)[-1])
    return None if y is None or y[-1] < LEAST else np.tensordot(y[:-1], basis, 1)


def _lagrangian(
    theta: np.ndarray, problem: MatchingProblem, weight: float, multipliers: Any
) -> tuple[float, np.ndarray]:
    """Return cost, matching terms and barriers, and their slope by the parameters."""
    M, D, K = problem.forms(theta)
    nowhere = 1e12, np.zeros_like(theta)
    spectra = [np.linalg.eigvalsh(X) for X in (M, K)]
    if any(values[0] <= 0 for values in spectra):
        return nowhere
    value = problem.cost(theta)
    if value is None:
        return nowhere
    cost, by_K, by_D = value
    n, gap = problem.n, problem.gap(theta)
    push = problem.across.T @ (multipliers + weight * gap)
    by_K, by_D = by_K + push[:, :n], by_D + push[:, n:]
    cost += float((multipliers * gap).sum() + weight / 2 * (gap * gap).sum())
    inverse = np.linalg.inv(M)
    A_K, A_D = inverse @ K, inverse @ D
    size = np.trace(M) - n
    cost += size * size - BARRIER * sum(float(np.log(values).sum()) for values in spectra)
    values, axes = np.linalg.eigh(D)
    negative = np.minimum(values, 0.0)
    cost += DAMPED * float(negative @ negative)
    slope_M = -inverse @ (by_K @ A_K.T + by_D @ A_D.T) - BARRIER * inverse + 2 * size * np.eye(n)
    slope_D = inverse @ by_D + (axes * (2 * DAMPED * negative)) @ axes.T
    slope_K = inverse @ by_K - BARRIER * np.linalg.inv(K)
    return cost, problem.parameters(slope_M, slope_D, slope_K)
