"""Solvers agree with each other and with independent ones, where the theory says so."""

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.tasks import (
    Kkt,
    Level,
    StrictPriority,
    TaskProblem,
    UdwadiaKalaba,
    Weighted,
)
from framefree.control.tasks.report import examined
from framefree.kernel import compile
from framefree.motion.constrained.solve import METHODS, solve

SHAPES = ((4, 2, 1), (6, 3, 2), (7, 6, 3), (9, 4, 4), (14, 6, 6))
"""Size, rows of the first and of the second level."""
COUNT = 200
"""Problems of each shape: 1000 in all."""


def random_rows(rng, m, n, deficient):
    """Return rows; if deficient, some are combinations of others or zero."""
    A = rng.normal(size=(m, n))
    if deficient and m > 1:
        for i in range(1, m, 2):
            A[i] = rng.normal(size=i) @ A[:i] if i % 3 else 0.0
    return A


def random_mass(rng, n):
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return Q @ np.diag(rng.uniform(0.1, 10, n)) @ Q.T


def problems(shape, *, consistent=True, semidefinite=False):
    n, m1, m2 = shape
    for k in range(COUNT):
        rng = np.random.default_rng([n, k])
        M, Q, wish = random_mass(rng, n), 5 * rng.normal(size=n), rng.normal(size=n)
        if semidefinite:
            values, vectors = np.linalg.eigh(M)
            values[: m1 // 2 + 1] = 0.0
            M = vectors @ np.diag(values) @ vectors.T
        A1, A2 = random_rows(rng, m1, n, k % 3 == 1), random_rows(rng, m2, n, k % 3 == 2)
        if k % 7 == 3:
            A2[0] = A1[0]
        b1, b2 = A1 @ wish, A2 @ wish
        if not consistent:
            b2 = b2 + rng.normal(size=m2)
        yield TaskProblem(M, Q, (Level(A1, b1), Level(A2, b2)))


def stacked(problem):
    return [np.concatenate(parts) for parts in zip(*problem.levels, strict=True)]


def assert_near(a, b):
    assert np.abs(a - b).max() < 1e-8 * (1 + np.abs(b).max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.first_cases(1)
def test_tasks_that_agree_have_one_answer(shape):
    """Udwadia-Kalaba, KKT and null spaces, compiled and in numbers: one acceleration."""
    for problem in problems(shape):
        A, b = stacked(problem)
        expected = UdwadiaKalaba().solve(problem)
        for method in METHODS:
            assert_near(solve(problem.M, problem.Q, A, b, method).a, expected.a)
        assert_near(Kkt().solve(problem).a, expected.a)
        assert_near(StrictPriority().solve(problem).a, expected.a)
        assert max(np.abs(r).max() for r in expected.residuals) < 1e-8


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weighted_form_has_one_answer(shape):
    """The compiled weighted form is the quadratic program that dense KKT solves."""
    for problem in problems(shape, consistent=False):
        (A1, b1), (A2, b2) = problem.levels
        expected = solve(problem.M + 50 * A2.T @ A2, problem.Q + 50 * A2.T @ b2, A1, b1, "gauss").a
        assert_near(Weighted(50).solve(problem).a, expected)
        assert_near(Weighted(50, Kkt()).solve(problem).a, expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_strict_priority_is_lexicographic(shape):
    """No level disturbs those above; each is then as near as it can be; the rest is of Gauss."""
    for problem in problems(shape, consistent=False):
        (A1, b1), (A2, b2) = problem.levels
        answer = StrictPriority().solve(problem)
        assert np.abs(answer.residuals[0]).max() < 1e-8 * (1 + np.abs(b1).max())
        # By least squares in the null space, with a cut for what is dependent.
        first = np.linalg.lstsq(A1, b1, rcond=1e-9)[0]
        _, s, rows = np.linalg.svd(A1)
        N = rows[int((s > 1e-9 * s[0]).sum()) :].T
        left = np.where(np.linalg.norm(A2 @ N, axis=1, keepdims=True) > 1e-9, A2 @ N, 0.0)
        best = left @ np.linalg.lstsq(left, b2 - A2 @ first, rcond=1e-9)[0] - (b2 - A2 @ first)
        assert_near(answer.residuals[1], best)
        # What is left free is as Gauss wants it: the force is in the span of the rows.
        span = np.linalg.lstsq(np.vstack([A1, A2]).T, answer.force, rcond=1e-9)[0]
        assert_near(np.vstack([A1, A2]).T @ span, answer.force)


@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_semidefinite_mass(shape):
    """Where [M; A] has full rank the acceleration is unique, and all find it."""
    checked = 0
    for problem in problems(shape, semidefinite=True):
        A, b = stacked(problem)
        expected = solve(problem.M, problem.Q, A, b, "gauss")
        if not expected.unique:
            continue
        # Problems that are nearly not unique lose as many digits for everyone.
        values = np.linalg.svd(np.vstack([problem.M, A]), compute_uv=False)
        if values[-1] < 1e-2 * values[0]:
            continue
        checked += 1
        for solver in (UdwadiaKalaba(True), Kkt(True), StrictPriority(True)):
            assert_near(solver.solve(problem).a, expected.a)
        force = UdwadiaKalaba(True).solve(problem).force
        assert_near(force, expected.constraint_force)
    assert checked > 20


def test_contradictions_are_met_in_the_mean():
    """Two rows that want different things of one direction: least squares."""
    A = np.array([[1.0, 0, 0], [1.0, 0, 0]])
    problem = TaskProblem(np.diag([1.0, 2, 3]), np.zeros(3), (Level(A, np.array([1.0, 3.0])),))
    np.testing.assert_allclose(UdwadiaKalaba().solve(problem).a, [2, 0, 0], atol=1e-12)
    np.testing.assert_allclose(StrictPriority().solve(problem).a, [2, 0, 0], atol=1e-12)
    report = examined(problem, [("first", "second")])
    assert report.levels[0].rank == 1
    assert report.levels[0].contradicting == ("first", "second")
    np.testing.assert_allclose(report.levels[0].residual, [1, -1], atol=1e-12)


def test_weight_goes_as_its_inverse():
    """The residual of the soft level falls as 1/weight; strict priority has none."""
    problem = next(problems((7, 2, 3), consistent=False))
    sizes = [np.linalg.norm(Weighted(w).solve(problem).residuals[1]) for w in (1e4, 1e5, 1e6)]
    assert sizes[0] / sizes[1] == pytest.approx(10, rel=0.05)
    assert sizes[1] / sizes[2] == pytest.approx(10, rel=0.05)
    assert np.linalg.norm(StrictPriority().solve(problem).residuals[1]) < 1e-10


def test_refusals():
    with pytest.raises(ControlError, match="`weight` must be positive"):
        Weighted(0.0)
    problem = next(problems((7, 2, 3)))
    with pytest.raises(ControlError, match="a number or 1 of them"):
        Weighted((1.0, 2.0)).solve(problem)


def crossing(rng, share):
    """Return five unknowns, three rows, and four in the two directions that these leave.

    Of the second of the four only a share is new beside the first.
    """
    above = rng.normal(size=(3, 5))
    left = np.linalg.svd(above)[2][3:]
    one, turned = left[0], left[1]
    new = np.array([one, one + share * turned, *(rng.normal(size=(2, 2)) @ left)])
    below = new + rng.normal(size=(4, 3)) @ above
    return np.eye(5), np.zeros(5), above, rng.normal(size=3), below, rng.normal(size=4)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("share", [1.0, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-10])
def test_rows_that_come_near_others_leave_the_rest_alone(share, precision):
    """Rows below others that become nearly dependent: their least squares do not notice."""
    rows = [Level(ca.SX.sym("A", m, 5), ca.SX.sym("b", m)) for m in (3, 4)]
    M, Q = ca.SX.sym("M", 5, 5), ca.SX.sym("Q", 5)
    a = StrictPriority().acceleration(TaskProblem(M, Q, tuple(rows)))
    symbols = [M, Q, *(part for level in rows for part in level)]
    kernel = compile(ca.Function("a", symbols, [ca.densify(a)]), precision=precision)
    for seed in range(50):
        problem = crossing(np.random.default_rng(seed), share)
        above, b, below, d = problem[2:]
        least = np.linalg.pinv(above) @ b
        left = np.linalg.svd(above)[2][3:].T
        expected = least + left @ np.linalg.lstsq(below @ left, d - below @ least)[0]
        off = np.abs(kernel(*problem) - expected).max() / np.abs(expected).max()
        assert off < (1e-4 if precision == "single" else 1e-11)
