"""Rows eliminated along the tree of velocities, against dense systems in NumPy at every rank."""

import casadi as ca
import numpy as np
import pytest

from framefree.motion.constrained.algebra import DampedRows
from framefree.motion.constrained.clusters import Cluster, carriers, clusters
from framefree.motion.constrained.fronts import plan_fronts
from framefree.motion.constrained.gauss import ConstrainedSystem, damped_step


def tree_mass(rng, carrier):
    """A positive definite matrix that couples velocities with those that carry them alone."""
    n = len(carrier)
    L = np.diag(rng.uniform(0.5, 2.0, size=n))
    for k in range(n):
        for i in way(carrier, k)[1:]:
            L[k, i] = rng.normal()
    return L.T @ L


def way(carrier, k):
    return [k, *(way(carrier, carrier[k]) if carrier[k] >= 0 else [])]


def random_rows(rng, carrier, count):
    """Rows on the ways between two velocities; some repeat others, scaled, or are zero."""
    n, rows = len(carrier), []
    while len(rows) < count:
        row = np.zeros(n)
        ends = rng.integers(n, size=2)
        ways = [set(way(carrier, k)) for k in ends]
        places = sorted(ways[0] ^ ways[1]) or [int(ends[0])]
        row[places] = rng.normal(size=len(places))
        rows.append(row)
        if rng.random() < 0.3 and len(rows) > 1:
            rows.append(3 * rows[-1] - 0.5 * rows[-2])
        if rng.random() < 0.1:
            rows.append(np.zeros(n))
    return np.array(rows)


def sparse(values):
    return ca.sparsify(ca.SX(ca.DM(values)))


def number(expression):
    return ca.Function("f", [], [expression])()["o0"].full()


def dense(M, Q, A, b):
    """The acceleration of Gauss' principle, rows met in the sense of least squares."""
    values, vectors = np.linalg.eigh(M)
    root = vectors / np.sqrt(values)
    free = root @ (root.T @ Q)
    return free + root @ (np.linalg.pinv(A @ root, rcond=1e-10) @ (b - A @ free))


@pytest.mark.parametrize("seed", range(40))
def test_the_dense_solution_is_found_at_every_rank(seed):
    """Also where rows contradict each other: then in the sense of least squares."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    carrier = [int(rng.integers(-1, k)) if k else -1 for k in range(n)]
    M, A = tree_mass(rng, carrier), random_rows(rng, carrier, int(rng.integers(1, 6)))
    Q, b = rng.normal(size=(n, 2)), rng.normal(size=(len(A), 2))
    if seed % 2:
        b = A @ rng.normal(size=(n, 2))
    system = ConstrainedSystem(sparse(M), sparse(A), ca.SX.ones(len(A)), 1e-9)
    rank = np.linalg.matrix_rank(A, tol=1e-9)
    assert number(system.rank) == rank
    a = number(system.solve(sparse(Q), sparse(b)))
    expected = dense(M, Q, A, b)
    assert np.abs(a - expected).max() < 1e-9 * np.abs(expected).max()
    # The shortest multipliers of a force in the range of A^T.
    lam = A.T @ rng.normal(size=len(A))
    shortest = np.linalg.pinv(A.T, rcond=1e-10) @ lam
    assert np.allclose(number(system.multipliers(sparse(lam[:, None])))[:, 0], shortest, atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_constraint_forces_lie_in_the_range_of_the_rows(seed):
    """``M a - Q = A^T lam`` and ``A a = b``: the system itself, without another solver."""
    rng = np.random.default_rng(100 + seed)
    carrier = [-1, 0, 1, 2, 2, 4, 1, 6, 7]
    M, A = tree_mass(rng, carrier), random_rows(rng, carrier, 3)
    Q, b = rng.normal(size=(9, 1)), A @ rng.normal(size=(9, 1))
    system = ConstrainedSystem(sparse(M), sparse(A), ca.SX.ones(len(A)), 1e-9)
    a = number(system.solve(sparse(Q), sparse(b)))
    lam = number(system.multipliers(sparse(M @ a - Q)))
    assert np.allclose(M @ a, Q + A.T @ lam, atol=1e-9)
    assert np.allclose(A @ a, b, atol=1e-9)


@pytest.mark.parametrize("small", [1e-3, 1e-5, 1e-7, 1e-8])
def test_weak_rows_of_a_carried_cluster_are_met_to_rounding(small):
    """Near positions in which rows lose rank, on branches of a tree that moves freely."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        carrier = [-1, 0, 1, 2, 3, 1, 5, 6]
        M = tree_mass(rng, carrier)
        A = np.zeros((3, 8))
        A[:, 2:] = np.outer(rng.normal(size=3), rng.normal(size=6))
        A[:, 2:] += small * rng.normal(size=(3, 6))
        a = rng.normal(size=8)
        system = ConstrainedSystem(sparse(M), sparse(A), ca.SX.ones(3), 1e-9)
        assert number(system.rank) == 3
        found = number(system.solve(ca.SX(8, 1), sparse((A @ a)[:, None])))[:, 0]
        assert np.abs(A @ (found - a)).max() < 1e-12 * np.abs(a).max()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("unit", [1.0, 1e-4])
def test_more_rows_than_velocities(rank, unit):
    """A planar linkage in space has five rows on three joints; some may be in other units."""
    rng = np.random.default_rng(rank)
    for _ in range(5):
        A = np.zeros((7, 6))
        A[:5, 1:4] = rng.normal(size=(5, rank)) @ rng.normal(size=(rank, 3))
        A[3:5] *= unit
        A[5:, 3:] = rng.normal(size=(2, 3))
        M, b = tree_mass(rng, [-1, 0, 1, 0, 3, 4]), A @ rng.normal(size=(6, 1))
        b[:5] += rng.normal(size=(5, 1)) * np.array([[1.0]] * 3 + [[unit]] * 2)
        Q = rng.normal(size=(6, 1))
        system = ConstrainedSystem(sparse(M), sparse(A), sparse((A**2).sum(axis=1)), 1e-9)
        expected = dense(M, Q, A, b)
        a = number(system.solve(sparse(Q), sparse(b)))
        assert np.abs(a - expected).max() < 1e-9 * np.abs(expected).max() / unit
        force = A.T @ rng.normal(size=(7, 1))
        shortest = np.linalg.pinv(A.T, rcond=1e-9) @ force
        lam = number(system.multipliers(sparse(force)))
        assert np.abs(lam - shortest).max() < 1e-9 * np.abs(shortest).max() / unit


def test_clusters_are_loops_that_share_a_velocity():
    """A floating base with two legs, each with a linkage; the second carries another linkage."""
    #            base        leg 0     leg 1        on leg 1
    carrier = [-1, 0, 1, 2, 3, 4, 5, 5, 5, 8, 9, 9]
    found = clusters(carrier, [{6, 7}, {8, 9}, {9, 10}, set(), {11}])
    assert found == [
        Cluster((11,), (4,)),
        Cluster((8, 9, 10), (1, 2)),
        Cluster((6, 7), (0,)),
        *(Cluster((k,), ()) for k in (5, 4, 3, 2, 1, 0)),
    ]


def test_what_lies_between_belongs_to_a_cluster():
    carrier = [-1, 0, 1, 2, 0, 4]
    assert clusters(carrier, [{3, 5}])[0] == Cluster((1, 2, 3, 4, 5), (0,))
    assert clusters(carrier, [{1, 3}])[-2] == Cluster((1, 2, 3), (0,))
    assert clusters(carrier, [{0, 5}])[-1] == Cluster((0, 4, 5), (0,))


def test_carriers_are_those_of_the_joints():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(1, 12))
        carrier = [int(rng.integers(-1, k)) if k else -1 for k in range(n)]
        M = tree_mass(rng, carrier)
        assert carriers([np.flatnonzero(M[k, :k]).tolist() for k in range(n)]) == carrier


def test_fronts_of_neighbours_stay_small():
    """Columns that meet their neighbours alone, in any order: no front grows with their number."""
    rng = np.random.default_rng(1)
    for count in (5, 50):
        names = rng.permutation(count)
        fronts = plan_fronts([{int(k), int(k) + 1} for k in names])
        assert sorted(j for front in fronts for j in front.pivots) == list(range(count))
        assert max(len(front.others) for front in fronts) <= 2


@pytest.mark.parametrize("legs", [2, 4])
def test_work_grows_with_the_number_of_legs(legs):
    """Each leg of a floating base closes a loop of its own; twice the legs, twice the work."""

    def work(legs):
        carrier = [-1, 0, 1, 2, 3, 4]
        rows = []
        for _ in range(legs):
            first = len(carrier)
            carrier += [5, first, first + 1, 5, first + 3]
            rows += [set(range(first, first + 5))] * 3
        n = len(carrier)
        M, A = ca.SX(n, n), ca.SX(len(rows), n)
        for k in range(n):
            for i in way(carrier, k):
                M[k, i] = M[i, k] = ca.SX.sym(f"M{k}_{i}")
        for r, row in enumerate(rows):
            for k in row:
                A[r, k] = ca.SX.sym(f"A{r}_{k}")
        system = ConstrainedSystem(M, A, ca.SX.ones(len(rows)), 1e-9)
        a = system.solve(ca.SX.sym("Q", n), ca.SX.sym("b", len(rows)))
        return ca.Function("f", ca.symvar(a), [a]).n_instructions()

    base = 2 * work(1) - work(2)
    assert work(2 * legs) - base < 2.1 * (work(legs) - base)


@pytest.mark.parametrize("error", [1e-8, 1e-2, 10.0])
def test_damped_step_minimises_error_and_length(error):
    """``min dv . M dv + |G dv - e|^2 / damping``, with the damping of one cluster."""
    rng = np.random.default_rng(2)
    carrier = [-1, -1, 1, 2, 1]
    M, G = tree_mass(rng, carrier), np.zeros((3, 5))
    G[:, 2:] = rng.normal(size=(3, 3))
    G[2] = G[0] + G[1]
    e = error * rng.normal(size=3)
    inner = np.linalg.inv(np.linalg.cholesky(M[2:, 2:]).T)
    # Inside the cluster, carriers at rest; then the whole system with that damping.
    damping = ((G[:, 2:] @ inner) ** 2).sum() * (np.linalg.norm(e) + 1e-14)
    expected = np.linalg.solve(M + G.T @ G / damping, G.T @ e / damping)
    step = number(damped_step(sparse(M), sparse(G), sparse(e[:, None])))[:, 0]
    assert np.allclose(step, expected, rtol=1e-6, atol=1e-9 * error)


def test_damped_rows_of_zero_do_nothing():
    rows = DampedRows(ca.SX(3, 2), ca.SX(1.0))
    assert number(rows.combine(rows.weights(ca.SX([1.0, 2.0])))).max() == 0
