"""What constraints say does not depend on the units of their rows, nor on those of coordinates."""

from dataclasses import replace

import numpy as np
import pytest
from constrained_machines import four_bar_state, n_four_bar
from random_machines import random_machine, relative_error

from framefree.machine import Prismatic, Revolute
from framefree.motion.constrained import Constrained
from framefree.motion.constrained.report import report
from framefree.motion.constrained.rows import Closed, Holonomic, Nonholonomic
from framefree.motion.constrained.solve import (
    METHODS,
    row_pseudo_inverse,
    solve,
    unique_acceleration,
    unit_rows,
)
from framefree.motion.constrained.states import numbers

UNITS = (1e-12, 1e-6, 1.0, 1e6, 1e12)


def rows_of_rank(rng, m, n, rank):
    """Rows of which the first `rank` are independent, and the others depend on them."""
    A = rng.normal(size=(m, n))
    A[rank:] = rng.normal(size=(m - rank, rank)) @ A[:rank]
    return A


# ------------------------------------------------ ranks and forces in numbers


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rank", [2, 4])
def test_solutions_do_not_depend_on_units_of_rows(method, rank):
    rng = np.random.default_rng(rank)
    for _ in range(30):
        A = rows_of_rank(rng, 4, 6, rank)
        root, Q = rng.normal(size=(6, 6)), rng.normal(size=6)
        M, b = root @ root.T + 0.1 * np.eye(6), A @ rng.normal(size=6)
        units = rng.choice(UNITS, size=4)
        plain = solve(M, Q, A, b, method)
        scaled = solve(M, Q, units[:, None] * A, units * b, method)
        assert scaled.rank == plain.rank == rank
        assert scaled.unique_multipliers == plain.unique_multipliers == (rank == 4)
        assert scaled.unique
        assert relative_error(scaled.a, plain.a) < 1e-8
        assert relative_error(scaled.constraint_force, plain.constraint_force) < 1e-7
        if rank == 4:
            assert relative_error(scaled.multipliers * units, plain.multipliers) < 1e-6


def test_pseudo_inverse_of_rows_that_differ_by_many_orders():
    rng = np.random.default_rng(0)
    for _ in range(100):
        rank = int(rng.integers(1, 5))
        A = rng.choice(UNITS, size=(6, 1)) * rows_of_rank(rng, 6, 5, rank)
        inverse = row_pseudo_inverse(A)
        # On the range of A it is a right inverse, row by row to all digits.
        b = A @ rng.normal(size=5)
        lengths = np.linalg.norm(A, axis=1)
        assert np.abs((A @ (inverse @ b) - b) / lengths).max() < 1e-9
        assert np.linalg.matrix_rank(unit_rows(A), tol=1e-8) == rank
    assert (row_pseudo_inverse(np.zeros((2, 3))) == 0).all()


def test_uniqueness_with_rows_and_coordinates_in_any_unit():
    """Whether a singular M and rows leave the acceleration open is told apart in every unit."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        root, A = rng.normal(size=(5, 3)), rng.normal(size=(2, 5))
        c, r = rng.choice(UNITS[1:4], size=5), rng.choice(UNITS, size=(2, 1))
        M = c[:, None] * (root @ root.T) * c
        assert unique_acceleration(M, r * A * c)
        assert not unique_acceleration(M, r * np.vstack([A[0], 2 * A[0]]) * c)


def test_reports_do_not_depend_on_units_of_rows():
    rng = np.random.default_rng(2)
    wrenches = np.ones((1, 6), dtype=bool), np.ones((0, 6), dtype=bool)
    labels = ("first", "second", "third", "free")
    for _ in range(30):
        A = rng.normal(size=(4, 5))
        A[2] = 0.3 * A[0] - 2.0 * A[1]
        b, errors = A @ rng.normal(size=5), (np.zeros(4), np.zeros(4))
        units = rng.choice(UNITS, size=4)
        result = report(labels, np.eye(5), units[:, None] * A, units * b, errors, wrenches)
        assert result.rank == 3
        assert result.redundant == ("first", "second", "third")
        assert result.unique


# ------------------------------------------------ machines


def scaled_constraints(scale):
    """Two constraints on the joints of a tree: the first in other units."""
    return [
        Holonomic("first", lambda x, t: scale * (x[0] + 0.5 * x[1] - 0.2)),
        Nonholonomic("second", lambda x, v, t: v[1] - 0.3 * v[2]),
    ]


@pytest.mark.parametrize("scale", [1e-10, 1e-5, 1e5, 1e10])
def test_user_rows_in_other_units(scale):
    rng = np.random.default_rng(3)
    machine = random_machine(rng, bodies=5)
    while sum(isinstance(j.kind, Revolute | Prismatic) for j in machine.joints) < 4:
        machine = random_machine(rng, bodies=5)
    plain, other = (Constrained(machine, scaled_constraints(s)) for s in (1.0, scale))
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    force = rng.normal(size=machine.nv)
    state = {"x": x, "v": v, "force": force}
    for name in ("forward", "constraint_force"):
        (expected,), (value,) = (numbers(eom, name, **state) for eom in (plain, other))
        assert relative_error(value, expected) < 1e-9
    expected, value = (numbers(eom, "multipliers", **state)[0] for eom in (plain, other))
    assert relative_error(value * (scale, 1.0), expected) < 1e-8
    for eom in (plain, other):
        verdict = eom.report(x, v)
        assert verdict.rank == 2
        assert verdict.redundant == ()
        assert verdict.joint_wrench_unique.all()


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_forces_of_a_loop_beside_a_row_in_other_units(scale):
    """A second closing of the same loop, and the coordinates' own row in another unit."""
    machine = n_four_bar(1)
    x, v = four_bar_state(machine, 0.4, 0.7)
    (loop,) = machine.loops
    again = Closed("again", replace(loop, name="again"))
    row = Holonomic("row", lambda x, t: scale * (x[0] - x[2]))
    alone = Constrained(machine).report(x, v)
    double = Constrained(machine, [again, row]).report(x, v)
    assert double.rank == alone.rank == 2
    assert not double.loop_wrench_unique.all()
    assert "row" in double.redundant
    assert {"l0[0]", "l0[1]", "again[0]", "again[1]"} <= set(double.redundant)
