"""Random programs of levels, and cascades of programs by other solvers to compare them with."""

from functools import partial

import numpy as np
from scipy import sparse


def random_hierarchy(rng):
    """2 to 5 levels of 7 to 30 variables: dependent and conflicting rows, limits active or not."""
    n, count = int(rng.integers(7, 31)), int(rng.integers(2, 6))
    inside = rng.normal(size=n) * rng.choice([0.1, 1, 10])
    levels = []
    for k in range(count):
        m = int(rng.integers(1, max(3, int(1.6 * n / count)) + 1))
        A = rng.normal(size=(m, n))
        if rng.random() < 0.4 and m > 2:
            rank = int(rng.integers(1, m))
            A = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
        if levels and rng.random() < 0.3:
            above = np.vstack([level[0] for level in levels])
            some = int(rng.integers(1, m + 1))
            A[:some] = rng.normal(size=(some, len(above))) @ above
        if rng.random() < 0.3:
            A[:, rng.integers(0, n)] = 0
        middle = A @ inside + (rng.normal(size=m) if rng.random() < 0.5 else 0)
        room = rng.exponential(size=m) * rng.choice([0.01, 0.3, 3]) * (rng.random(m) > 0.5)
        lower, upper = middle - room, middle + room
        if k == 0 and rng.random() < 0.6:
            A = np.vstack([A, np.eye(n)])
            lower = np.r_[lower, -abs(rng.normal(size=n)) * rng.choice([0.2, 2])]
            upper = np.r_[upper, abs(rng.normal(size=n)) * rng.choice([0.2, 2])]
        bounded, side = lower < upper, rng.random(len(lower))
        lower[bounded & (side < 0.2)] = -np.inf
        upper[bounded & (side > 0.8)] = np.inf
        levels.append((A, lower, upper))
    return levels


def stacked(levels):
    """Rows, bounds and ends of levels."""
    Y, lower, upper = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    return Y, lower, upper, tuple(np.cumsum([len(A) for A, _, _ in levels]).tolist())


def padded(levels, n, rows, count):
    """The same program with variables and rows that do not matter, and where its rows are."""
    Y = np.zeros((rows * count, n))
    lower, upper = np.full(rows * count, -np.inf), np.full(rows * count, np.inf)
    places = []
    for k, (A, low, high) in enumerate(levels):
        at = slice(k * rows, k * rows + len(A))
        Y[at, : A.shape[1]], lower[at], upper[at] = A, low, high
        places.append(np.arange(at.start, at.stop))
    return Y, lower, upper, places


def missed(v, lower, upper):
    return np.where(v > upper, v - upper, np.where(v < lower, v - lower, 0.0))


def lengths(levels, z):
    """Length of what every level misses."""
    return np.array([np.linalg.norm(missed(A @ z, low, high)) for A, low, high in levels])


def cascade(levels, solve, relax):
    """Slacks by one program a level, kept (up to `relax`) in those after it; and the last z."""
    n = levels[0][0].shape[1]
    C, low, high, slacks = np.zeros((0, n)), np.zeros(0), np.zeros(0), []
    for A, lower, upper in levels:
        m = len(A)
        H = np.diag(np.r_[np.zeros(n), np.ones(m)])
        rows = np.block([[C, np.zeros((len(C), m))], [A, -np.eye(m)]])
        z = solve(H, rows, np.r_[low, lower], np.r_[high, upper])[:n]
        s, equal = missed(A @ z, lower, upper), lower == upper
        room = relax * (1 + abs(s))
        C = np.vstack([C, A])
        low = np.r_[low, lower + np.where(equal, s, np.minimum(s, 0)) - room]
        high = np.r_[high, upper + np.where(equal, s, np.maximum(s, 0)) + room]
        slacks.append(np.linalg.norm(s))
    return np.array(slacks), solve(np.eye(n), C, low, high)


def clarabel(H, C, lower, upper):
    import clarabel as solver

    same = lower == upper
    above, below = np.isfinite(upper) & ~same, np.isfinite(lower) & ~same
    A = sparse.csc_matrix(np.vstack([C[same], C[above], -C[below]]))
    b = np.r_[upper[same], upper[above], -lower[below]]
    settings = solver.DefaultSettings()
    settings.verbose, settings.max_iter = False, 400
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [solver.ZeroConeT(int(same.sum()))]
    cones.append(solver.NonnegativeConeT(int(above.sum() + below.sum())))
    P = sparse.csc_matrix(np.triu(H))
    return np.array(solver.DefaultSolver(P, np.zeros(len(H)), A, b, cones, settings).solve().x)


def proxqp(H, C, lower, upper, accuracy=1e-10):
    import proxsuite

    same = lower == upper
    qp = proxsuite.proxqp.dense.QP(len(H), int(same.sum()), int((~same).sum()))
    qp.settings.eps_abs, qp.settings.max_iter = accuracy, 3000 if accuracy < 1e-10 else 500
    low, high = np.maximum(lower[~same], -1e20), np.minimum(upper[~same], 1e20)
    qp.init(H, np.zeros(len(H)), C[same], lower[same], C[~same], low, high)
    qp.solve()
    return qp.results.x.copy()


SOLVERS = (clarabel, proxqp, partial(proxqp, accuracy=1e-12))


def careful_cascade(levels, alike):
    """Slacks by the best of several solves a level; None where all leave the levels above.

    Programs without interior are hard for every solver, above all with rows that repeat: some stop
    early, some leave the rows of levels above. So equations of levels above are eliminated; of the
    solves that keep those levels, with no room at all or next to none, the least slack counts, and
    of all that are alike to it the one that keeps them best.
    """
    n = levels[0][0].shape[1]
    C, low, high, slacks = np.zeros((0, n)), np.zeros(0), np.zeros(0), []
    for A, lower, upper in levels:
        for shares, most in (((0, 1e-12, 1e-11, 1e-10), 1e-9), ((1e-9, 1e-8), 1e-7)):
            tried = [
                trial
                for eliminates in (True, False)
                for solve in SOLVERS
                for share in shares
                if (trial := _trial(solve, (C, low, high), (A, lower, upper), share, eliminates))[0]
                < most
            ]
            if tried:
                break
        else:
            return None
        least = min(slack for _, slack, _ in tried)
        near = [trial for trial in tried if trial[1] <= least + alike * (1 + least)]
        z = min(near, key=lambda trial: trial[0])[2]
        s, equal = missed(A @ z, lower, upper), lower == upper
        C = np.vstack([C, A])
        low = np.r_[low, lower + np.where(equal, s, np.minimum(s, 0))]
        high = np.r_[high, upper + np.where(equal, s, np.maximum(s, 0))]
        slacks.append(np.linalg.norm(s))
    return np.array(slacks)


def _trial(solve, above, level, share, eliminates):
    """One solve of a level: how far it leaves the rows above, relative; its slack; and z."""
    (C, low, high), (A, lower, upper) = above, level
    z, N, kept = np.zeros(A.shape[1]), np.eye(A.shape[1]), np.ones(len(C), bool)
    if eliminates and (low == high).any():
        kept = low < high
        U, s, V = np.linalg.svd(C[~kept])
        rank = int((s > 1e-10 * s[0]).sum())
        z, N = V[:rank].T @ (U[:, :rank].T @ low[~kept] / s[:rank]), V[rank:].T
    n, m, D = N.shape[1], len(A), C[kept]
    H = np.diag(np.r_[np.zeros(n), np.ones(m)])
    rows = np.block([[D @ N, np.zeros((len(D), m))], [A @ N, -np.eye(m)]])
    room = share * (1 + abs(D).sum(1))
    offset = np.r_[D, A] @ z
    bounds = np.r_[low[kept] - room, lower] - offset, np.r_[high[kept] + room, upper] - offset
    z = z + N @ solve(H, rows, *bounds)[:n]
    if not abs(z).max() < 1e100:
        return np.inf, np.inf, z
    left = abs(missed(C @ z, low, high)) / (1 + abs(C) @ abs(z))
    return left.max(initial=0.0), np.linalg.norm(missed(A @ z, lower, upper)), z


def references(levels):
    """Slacks of cascades that kept what they promised, by several solvers."""
    relaxed = ((clarabel, share) for share in (0.0, 1e-9, 1e-11, 1e-8, 1e-10, 1e-7))
    for solve, relax in (*relaxed, (proxqp, 0.0), (proxqp, 1e-9)):
        slacks, z = cascade(levels, solve, relax)
        if abs(z).max() < 1e100 and np.allclose(lengths(levels, z), slacks, 1e-6, 1e-6):
            yield slacks
    for alike in (1e-7, 1e-8, 1e-9):
        slacks = careful_cascade(levels, alike)
        if slacks is not None:
            yield slacks
