"""Quadratic programs against solutions known by construction, ProxSuite, and closed forms."""

from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.qp import qp_kernel, solve_qp
from framefree.kernel import compile

KINDS = (
    "generic",
    "tight",
    "redundant",
    "degenerate",
    "weak",
    "one-sided",
    "box",
    "equality",
    "semidefinite",
    "ill-conditioned",
    "scaled",
)


LOOSE = ("degenerate", "semidefinite")
"""Kinds whose multipliers are not the only ones."""


def problem(kind, rng, n, m):
    """Return a program and its only solution: chosen first, g is then what makes it optimal."""
    while True:
        found = _drawn(kind, rng, n, m)
        if found is not None:
            return found


def _drawn(kind, rng, n, m):
    L = rng.normal(size=(n, n))
    H, C = L @ L.T + 0.1 * np.eye(n), rng.normal(size=(m, n))
    A = np.zeros((0, n))
    z = rng.normal(size=n) * 10 ** rng.uniform(-1, 1)
    if kind == "box":
        C[: min(n, m)] = np.eye(n)[: min(n, m)]
        C[n:] = 0.0
    elif kind == "semidefinite":
        H = L[:, : n // 2] @ L[:, : n // 2].T
    elif kind == "ill-conditioned":
        Q = np.linalg.qr(L)[0]
        H = (Q * 10 ** rng.uniform(-3, 3, n)) @ Q.T
        H = (H + H.T) / 2
    elif kind == "redundant":
        C[m // 2 :] = C[: m - m // 2] * rng.uniform(0.5, 2, (m - m // 2, 1))
    elif kind == "equality":
        A = rng.normal(size=(3, n))
        A[2] = 2 * A[0]
    many = kind in ("degenerate", "semidefinite")
    active = rng.random(m) < (0.7 if many else 0.25)
    if not many:  # no more than there are directions
        active[np.flatnonzero(active)[max(n - 2 * (len(A) > 0), 0) :]] = False
    upper_side = rng.random(m) < 0.5
    size = active * (rng.exponential(size=m) * 10 ** rng.uniform(-1, 2) + 1e-2)
    if kind in ("degenerate", "weak"):
        size[rng.random(m) < 0.3] = 0.0
    y, along = np.where(upper_side, size, -size), C @ z
    gaps = (1e-3 if kind == "tight" else 1.0) * (rng.exponential(size=(2, m)) + 1e-2)
    lower = np.where(active & ~upper_side, along, along - gaps[0])
    upper = np.where(active & upper_side, along, along + gaps[1])
    if kind == "tight":
        k = min(n // 3, m)
        lower[:k] = upper[:k] = along[:k]
        y[:k] = rng.normal(size=k)
    if kind == "one-sided":
        lower = np.where(y < 0, lower, -np.inf)
        upper = np.where(y < 0, np.inf, upper)
    rows = np.vstack([H, A, C[y != 0]])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    if np.linalg.svd(rows, compute_uv=False)[n - 1] < 1e-3:
        return None  # the solution would not be the only one
    g = -(H @ z + C.T @ y + A.T @ rng.normal(size=len(A)))
    if kind == "scaled":
        s, r = 10 ** rng.uniform(-2.5, 2.5, n), 10 ** rng.uniform(-2, 2, m)
        H, g, C, z = H * s[:, None] * s, g * s, C * s * r[:, None], z / s
        lower, upper = lower * r, upper * r
    return (H, g, A, A @ z, C, lower, upper), z


@lru_cache
def solver(n, equations, below, above):
    m = len(below)
    H, g = ca.SX.sym("H", n, n), ca.SX.sym("g", n)
    A, b = ca.SX.sym("A", equations, n), ca.SX.sym("b", equations)
    C, lower, upper = ca.SX.sym("C", m, n), ca.SX.sym("lower", m), ca.SX.sym("upper", m)
    low = ca.vertcat(*(lower[i] if below[i] else -np.inf for i in range(m)))
    high = ca.vertcat(*(upper[i] if above[i] else np.inf for i in range(m)))
    found = solve_qp(H, g, A, b, C, low, high)
    return ca.Function("qp", [H, g, A, b, C, lower, upper], list(found))


def solved(H, g, A, b, C, lower, upper):
    below, above = np.isfinite(lower), np.isfinite(upper)
    function = solver(len(g), len(b), tuple(below), tuple(above))
    given = np.where(below, lower, 0.0), np.where(above, upper, 0.0)
    return [value.full()[:, 0] for value in function(H, g, A, b, C, *given)]


def relative(H, z, exact):
    """Return the largest error, each variable measured by its own curvature."""
    sizes = np.sqrt(np.maximum(np.diag(H), 1e-300))
    return np.abs((z - exact) * sizes).max() / np.abs(exact * sizes).max()


@pytest.mark.parametrize("kind", KINDS)
def test_solutions_known_by_construction(kind):
    rng = np.random.default_rng(list(kind.encode()))
    for n, m, count in ((2, 4, 35), (5, 9, 40), (8, 16, 20)):
        if kind == "one-sided":
            count //= 4  # every pattern of bounds is another graph
        for _ in range(count):
            program, exact = problem(kind, rng, n, m)
            z, equality, bounds, residual, _ = solved(*program)
            H, g, A, b, C, lower, upper = program
            assert relative(H, z, exact) < 1e-8
            scale = 1 + np.abs(np.concatenate([b, C @ z])).max()
            assert residual[0] < 1e-8 * scale
            worst = np.concatenate([lower - C @ z, C @ z - upper, np.abs(A @ z - b), [0.0]]).max()
            assert residual[0] == pytest.approx(worst, abs=1e-10 * scale)
            slope = (H @ z + g + C.T @ bounds + A.T @ equality) / np.sqrt(
                np.maximum(np.diag(H), 1e-12)
            )
            if kind not in ("degenerate", "semidefinite"):
                assert np.abs(slope).max() < 1e-6 * (1 + np.abs(g).max())


@pytest.mark.parametrize("kind", ["generic", "degenerate", "tight", "equality"])
def test_twenty_variables_and_forty_rows(kind):
    rng = np.random.default_rng(8)
    for _ in range(10):
        program, exact = problem(kind, rng, 20, 40)
        assert relative(program[0], solved(*program)[0], exact) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_programs(kind):
    rng = np.random.default_rng(1)
    errors = []
    for n, m, count in ((4, 8, 300), (8, 16, 100), (14, 30, 30)):
        for _ in range(count if kind != "one-sided" else count // 10):
            program, exact = problem(kind, rng, n, m)
            errors.append(relative(program[0], solved(*program)[0], exact))
    errors = np.array(errors)
    # Where more bounds are active than there are directions, some only just, or bounds are closer
    # to each other than 1e-5 of what they hold back, a few programs keep fewer digits.
    assert (errors < 1e-8).mean() >= 0.99
    assert errors.max() < 1e-3


def test_against_proxsuite():
    proxsuite = pytest.importorskip("proxsuite")
    rng = np.random.default_rng(3)
    n, m = 6, 12
    for _ in range(60):
        L = rng.normal(size=(n, n))
        H, g, C = L @ L.T + 0.1 * np.eye(n), 5 * rng.normal(size=n), rng.normal(size=(m, n))
        A = rng.normal(size=(2, n))
        start = rng.normal(size=n)
        lower, upper = (C @ start + s * rng.exponential(size=m) for s in (-1, 1))
        qp = proxsuite.proxqp.dense.QP(n, 2, m)
        qp.settings.eps_abs, qp.settings.eps_rel = 1e-11, 0.0
        qp.init(H, g, A, A @ start, C, lower, upper)
        qp.solve()
        z = solved(H, g, A, A @ start, C, lower, upper)[0]
        if qp.results.info.pri_res < 1e-10 and qp.results.info.dua_res < 1e-10:
            np.testing.assert_allclose(z, qp.results.x, atol=1e-8 * (1 + np.abs(z).max()))


def test_no_solution_is_finite_and_says_so():
    rng = np.random.default_rng(5)
    n, m = 4, 6
    for _ in range(50):
        H, g, C = np.eye(n), rng.normal(size=n), rng.normal(size=(m, n))
        C[1] = -C[0]
        lower, upper = np.full(m, -1.0), np.ones(m)
        # c . z <= -1 - d and -c . z <= -1 - d: off by 1 + d each, at best.
        d = rng.exponential()
        upper[:2], lower[:2] = -1.0 - d, -100.0
        values = solved(H, g, np.zeros((0, n)), np.zeros(0), C, lower, upper)
        assert all(np.isfinite(value).all() for value in values)
        assert values[3][0] >= (1 + d) * (1 - 1e-9)
        assert values[3][0] < 100 * (1 + d)


def test_crossed_bounds_and_contradicting_equations_are_finite():
    H, g = np.diag([1.0, 2.0, 3.0]), np.ones(3)
    A = np.array([[1.0, 0, 0], [1.0, 0, 0]])
    values = solved(H, g, A, np.array([0.0, 1.0]), np.eye(3), np.ones(3), -np.ones(3))
    assert all(np.isfinite(value).all() for value in values)
    assert values[3][0] >= 0.5


def test_zeros_everywhere():
    values = solved(
        np.zeros((2, 2)),
        np.zeros(2),
        np.zeros((0, 2)),
        np.zeros(0),
        np.eye(2),
        -np.ones(2),
        np.ones(2),
    )
    assert all(np.isfinite(value).all() for value in values)
    assert values[3][0] == 0.0


def test_diagonal_box_is_clipped():
    H, g = ca.diag(ca.SX.sym("h", 3)), ca.SX.sym("g", 3)
    found = solve_qp(H, g, lower=-1, upper=ca.DM([1, 2, np.inf]))
    function = ca.Function("f", [ca.symvar(H)[0], *ca.symvar(H)[1:], g], [found.z, found.bounds])
    assert function.n_instructions() < 60
    z, bounds = function(2, 2, 2, [8, -8, -8])
    assert z.full()[:, 0].tolist() == [-1.0, 2.0, 4.0]
    assert bounds.full()[:, 0].tolist() == [-6.0, 4.0, 0.0]


def test_without_constraints():
    H, g = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -1.0])
    found = solve_qp(ca.DM(H), ca.DM(g))
    np.testing.assert_allclose(ca.DM(found.z).full()[:, 0], -np.linalg.solve(H, g), atol=1e-14)


def test_kernel_of_calls_agrees_and_takes_infinite_bounds():
    rng = np.random.default_rng(6)
    kernel = qp_kernel(3, 1, 4)
    batch = []
    for _ in range(50):
        L, start = rng.normal(size=(3, 3)), rng.normal(size=3)
        C, A = rng.normal(size=(4, 3)), rng.normal(size=(1, 3))
        lower, upper = (C @ start + s * rng.exponential(size=4) for s in (-1, 1))
        batch.append(
            (L @ L.T + 0.1 * np.eye(3), 5 * rng.normal(size=3), A, A @ start, C, lower, upper)
        )
    found = kernel(*(np.stack(values) for values in zip(*batch, strict=True)))
    for k, program in enumerate(batch):
        np.testing.assert_allclose(found[0][k], solved(*program)[0], atol=1e-9)
    H, g, A, b, C, lower, upper = batch[0]
    z = kernel(H, g, A, b, C, np.full(4, -np.inf), upper)[0]
    np.testing.assert_allclose(z, solved(H, g, A, b, C, np.full(4, -np.inf), upper)[0], atol=1e-8)


def test_kernel_finds_solutions_known_by_construction():
    rng, kernel, programs, exact = np.random.default_rng(9), qp_kernel(8, 3, 16), [], []
    for kind in KINDS:
        for _ in range(12):
            (H, g, A, b, C, lower, upper), z = problem(kind, rng, 8, 16)
            A, b = np.vstack([A, np.zeros((3 - len(A), 8))]), np.append(b, np.zeros(3 - len(b)))
            programs.append((H, g, A, b, C, lower, upper))
            exact.append(z)
    z, equality, bounds, residual, _ = kernel(*map(np.stack, zip(*programs, strict=True)))
    for k, (H, g, A, b, C, _, _) in enumerate(programs):
        assert relative(H, z[k], exact[k]) < 1e-8, KINDS[k // 12]
        assert residual[k] < 1e-8 * (1 + np.abs(np.concatenate([b, C @ z[k]])).max())
        slope = H @ z[k] + g + C.T @ bounds[k] + A.T @ equality[k]
        slope = np.abs(slope / np.sqrt(np.maximum(np.diag(H), 1e-12))).max()
        assert slope < 1e-6 * (1 + np.abs(g).max()) or KINDS[k // 12] in LOOSE
    single = kernel(*programs[5])
    assert all(np.array_equal(a, b[5]) for a, b in zip(single, (z, equality, bounds), strict=False))


def test_compiled_batch_is_the_interpreted_function():
    g = ca.SX.sym("g", 3)
    H = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    found = solve_qp(H, g, lower=-1.0, upper=1.0)
    function = ca.Function("f", [g], [found.z])
    kernel = compile(function)
    rng = np.random.default_rng(7)
    many = 3 * rng.normal(size=(20, 3))
    z = kernel(many)
    for k in range(20):
        np.testing.assert_allclose(z[k], function(many[k]).full()[:, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"H": np.eye(3)}, "`H` must be 2 x 2"),
        ({"A": np.eye(2)}, "both `A` and `b`"),
        ({"A": np.eye(3), "b": np.ones(3)}, "`A` must have 2 columns"),
        ({"C": np.eye(2)}, "bounds nothing"),
        ({"C": np.eye(2), "upper": np.ones(3)}, "`upper` an entry for each"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    given = {"H": np.eye(2), "g": np.zeros(2), **arguments}
    with pytest.raises(ControlError, match=message):
        solve_qp(**given)
