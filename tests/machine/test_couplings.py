"""Couplings: laws over numbers and expressions, and what is refused."""

import casadi
import numpy as np
import pytest
from machine_samples import chain

from framefree.machine import Coupling, Linear, MachineError, Polynomial, Revolute


def test_mimic():
    coupling = Coupling.mimic("m", "finger2", "finger1", -2.0, 0.1)
    assert float(coupling.value(casadi.DM(0.3))) == pytest.approx(-0.5)
    assert coupling.coordinates == ("finger2", "finger1")


def test_differential():
    coupling = Coupling("d", "ring", ("left", "right"), Linear((0.5, 0.5)))
    assert float(coupling.value(casadi.DM(1.0), casadi.DM(3.0))) == pytest.approx(2.0)


def test_polynomial_about_a_point():
    law = Polynomial((1.0, -2.0, 0.5, 0.25), at=0.3)
    q = np.linspace(-1, 1, 7)
    expected = np.polyval([0.25, 0.5, -2.0, 1.0], q - 0.3)
    assert np.allclose([float(law(casadi.DM(value))) for value in q], expected)


def test_crane_cylinder_drives_the_elbow():
    """zeta = -acos((l0 + delta)^2 / (2 L0^2) - 1), with its published rates."""
    coupling = Coupling(
        "elbow", "zeta", "delta", lambda d: -casadi.acos((0.425 + d) ** 2 / (2 * 0.35**2) - 1)
    )
    d = casadi.SX.sym("d")
    zeta = coupling.value(d)
    both = casadi.Function("f", [d], [zeta, casadi.jacobian(zeta, d)])
    degrees, rate = (float(value) for value in both(0.1))
    assert np.degrees(degrees) == pytest.approx(-82.8192, abs=1e-4)
    assert rate == pytest.approx(4.31959, abs=1e-5)


def test_coupling_order_puts_sources_first():
    kinds = [Revolute() for _ in range(4)]
    pairs = [("j3", "j2"), ("j1", "j0"), ("j2", "j1")]
    machine = chain(kinds, couplings=[Coupling(t, t, s) for t, s in pairs])
    assert [coupling.target for coupling in machine.coupling_order] == ["j1", "j2", "j3"]


def test_equality_is_by_value_for_built_in_laws():
    assert Coupling.mimic("m", "a", "b", 2.0) == Coupling.mimic("m", "a", "b", 2.0)
    assert Coupling.mimic("m", "a", "b", 2.0) != Coupling.mimic("m", "a", "b", 3.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Coupling("c", "a", "a"), "its own source"),
        (lambda: Coupling("c", "a", ()), "at least one source"),
        (lambda: Coupling("c", "a", "b", 3.0), "must be callable"),
        (lambda: Coupling("c", "a", ("b", "d"), lambda b: b), "must take 2 sources"),
        (lambda: Coupling("c", "a", ("b", "d"), Linear((1.0,))), "2 sources"),
        (lambda: Coupling("c", "a", "b", lambda b: casadi.vertcat(b, b)), "one number"),
        (lambda: Linear((np.nan,)), "finite"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(MachineError, match=message):
        make()
