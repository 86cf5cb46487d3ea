"""Shares that count as rounding are others in single precision, and nothing else is."""

import casadi as ca
import numpy as np
import pytest

from framefree.kernel import compile
from framefree.kernel.single_c import in_single
from framefree.rounding import COARSEST, in_single_precision, rounding, rounding_square


@pytest.mark.parametrize("share", [1e-15, 1e-12, 1e-9, 1e-7, 3e-5])
def test_a_marked_share_is_the_share_in_double_precision(share):
    for marked in (rounding(share), rounding_square(share)):
        assert marked == pytest.approx(share, rel=4e-9)
        assert float(repr(marked)) == marked


def test_shares_in_single_precision_lie_above_its_rounding_in_the_same_order():
    shares = [in_single_precision(rounding(10.0**-k)) for k in range(15, 4, -1)]
    assert shares == sorted(shares)
    assert shares[0] > 2.0**-23
    assert shares[-1] == COARSEST
    squares = [in_single_precision(rounding_square(10.0**-k)) for k in range(30, 10, -2)]
    np.testing.assert_allclose(np.sqrt(squares), shares[: len(squares)], rtol=1e-6)


def test_what_is_no_such_share_stays_as_it_is():
    for value in (0.0, 1e-12, -1e-12, 0.1, 1.0, np.inf, rounding(0.0), rounding(1e-3)):
        assert in_single_precision(value) == value


def test_graphs_tables_and_text_keep_the_mark():
    share = rounding(1e-12)
    x = ca.SX.sym("x")
    function = ca.Function("f", [x], [share * x], ["x"], ["y"])
    assert compile(function)(1.0) == share
    assert compile(function, precision="single")(1.0) == pytest.approx(share**0.45283, rel=1e-3)
    text = compile(function).c_source().source
    assert repr(share) in text
    assert f"{in_single_precision(share)!r}f" in in_single(text)
