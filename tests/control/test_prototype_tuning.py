"""Matching conditions, placed poles, and inputs within polytopes."""

import dataclasses
import itertools

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype import APPROACHES, PrototypeControl
from framefree.control.prototype.coupled_masses import coupled_masses
from framefree.control.prototype.tuning import (
    characteristic,
    chosen,
    free_body,
    matching,
    sideways,
    thrust_borne,
)
from framefree.control.shared.limits import irredundant
from framefree.errors import FramefreeWarning
from framefree.gallery.machines import planar
from framefree.gallery.machines.multicopters import bicopter, quadcopter, tricopter
from framefree.gallery.scenarios.prototypes import bicopter_circle, pvtol
from framefree.gallery.scenarios.prototypes.flights import QUADCOPTER_GAINS

POLES = characteristic((3.0, 0.8), (12.0, 0.8))


def near(poles, wanted, tolerance=1e-6):
    return all(np.abs(poles - root).min() < tolerance for root in np.roots(wanted[::-1]))


def test_characteristic_polynomial():
    assert np.allclose(POLES, [1296, 864, 245.16, 24, 1])


@pytest.mark.parametrize("approach", APPROACHES)
def test_matched_quadcopter_moves_like_its_prototype(approach):
    gains = thrust_borne(1.001, POLES, (2.5, 0.7), 0.0307)
    machine = quadcopter(drag=False, offset=False)
    found = matching(PrototypeControl(machine, **gains.on("body"), approach=approach))
    assert found.error < 1e-12
    assert found.stable_at_rest
    assert np.allclose(found.poles, found.template_poles, atol=1e-9)
    assert near(found.poles, POLES)
    assert near(found.poles, characteristic((2.5, 0.7)))


def test_parameters_of_the_published_bicopter():
    """The gains that the bicopter's simulation was tuned with, to all printed digits."""
    gains = bicopter_circle.gains()
    assert gains.stiffness.total == pytest.approx(6.196213425129087, rel=1e-12)
    assert gains.damping.total == pytest.approx(4.130808950086058, rel=1e-12)
    assert gains.inertia.center[2] == pytest.approx(0.07479843280266081, rel=1e-12)
    for moments in (gains.damping, gains.stiffness):
        assert moments.center[2] == pytest.approx(0.30039653951522544, rel=1e-12)
    about = [np.diag(m.moment_at_center) for m in (gains.inertia, gains.damping, gains.stiffness)]
    assert np.allclose(about[0], [0.010580978326880182, 0.061994006167860195, 0.025], atol=1e-12)
    assert np.allclose(about[1], [0, 0, 0.45], atol=1e-12)
    assert np.allclose(about[2], [2.213117426850259, 2.213117426850259, 2.025], atol=1e-12)
    found = matching(PrototypeControl(bicopter(), **gains.on("body"), approach="body"))
    assert found.error < 1e-12
    assert found.stable_at_rest
    assert near(found.poles, POLES)


def test_published_poles_of_the_quadcopters_flight_gains():
    """Linear poles as recomputed from the printed gains; sideways those of the matched form."""
    machine = quadcopter(drag=False, offset=False)
    free = (0.0307, 0.1, 0.2)
    gains = chosen(1.001, 0.043, 0.255, 4.4, 8.0, free)
    poles = matching(PrototypeControl(machine, **gains.on("body"), approach="body")).poles
    printed = (-2.198 + 1.778j, -10.71 + 7.09j, -2.32 + 2.38j, -1.63 + 1.97j)
    assert all(np.abs(poles - pole).min() < 8e-3 for pole in printed)
    assert gains.inertia.moment[0, 0] == pytest.approx(0.01098, abs=1e-5)
    assert gains.damping.moment[0, 0] == pytest.approx(0.2861, abs=1e-4)
    assert gains.stiffness.moment[0, 0] == pytest.approx(2.6020, abs=1e-3)
    flown = matching(PrototypeControl(machine, **QUADCOPTER_GAINS, approach="body"))
    assert flown.stable_at_rest
    assert flown.error > 1


def test_without_offsets_moving_sideways_is_not_controlled():
    gains = free_body(1.001, (0.0095, 0.0095, 0.0307), (2.8, 0.78), (9.0, 0.7))
    machine = quadcopter(drag=False, offset=False)
    with pytest.warns(FramefreeWarning, match="4 poles of small errors lie at -?0 1/s"):
        law = PrototypeControl(machine, **gains.on("body"), approach="body")
    found = matching(law)
    assert not found.stable_at_rest
    assert (np.abs(found.poles) < 1e-9).sum() == 4
    whole = matching(PrototypeControl(tricopter(drag=False), **gains.on("body"), approach="body"))
    assert whole.error == 0
    assert near(whole.poles, characteristic((2.8, 0.78), (9.0, 0.7)))


def test_pvtol_poles_are_placed():
    machine = planar.pvtol(pvtol.MASS, pvtol.INERTIA, pvtol.ARM, pvtol.INCLINATION)
    law = PrototypeControl(machine, *pvtol.parameters(POLES), approach="body")
    found = matching(law)
    assert found.error < 1e-12
    assert near(found.poles, POLES)


def test_two_masses_poles_are_placed():
    poles = characteristic((2.0, 0.8), (5.0, 0.7))
    gains = coupled_masses("first", "second", 20.0 / 0.5, poles)
    found = matching(PrototypeControl(planar.two_masses(), **gains, approach="body"))
    assert found.error < 1e-12
    assert near(found.poles, poles)
    assert found.stable_at_rest


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sideways(1.0, (1.0, 1.0, 1.0, 0.1), 9.81, 0.0), "not stable"),
        (lambda: chosen(1.0, 0.3, 0.2, 1, 1, (1, 1, 1)), "h > s > eps"),
        (lambda: chosen(1.0, 0.1, 0.2, 1, 1, (1, 1, 1), eps=(0.0, 0.15)), "h > s > eps"),
        (lambda: free_body(-1.0, 1.0, (1, 1), (1, 1)), "`mass`.*positive"),
        (lambda: thrust_borne(1.0, POLES, (0.0, 1), 0.1), "`frequency`.*positive"),
        (lambda: coupled_masses("a", "b", 1.0, characteristic((9, 0.8), (9, 0.8))), "varpi"),
    ],
)
def test_what_cannot_be_had_is_refused(make, message):
    with pytest.raises(ControlError, match=message):
        make()


# ---------------------------------------------------------------------- polytopes


def by_active_sets(u0, H, A, b):
    """The nearest point of a polytope, by trying all sets of active rows."""
    if (A @ u0 <= b).all():
        return u0
    for k in range(1, len(u0) + 1):
        for chosen_rows in itertools.combinations(range(len(b)), k):
            rows = A[list(chosen_rows)]
            if np.linalg.matrix_rank(rows) < k:
                continue
            K = np.block([[H, rows.T], [rows, np.zeros((k, k))]])
            z = np.linalg.solve(K, np.concatenate([H @ u0, b[list(chosen_rows)]]))
            if (A @ z[: len(u0)] <= b + 1e-9).all() and (z[len(u0) :] >= -1e-9).all():
                return z[: len(u0)]
    raise AssertionError("no solution")


def test_limited_law_is_the_nearest_point_by_all_active_sets():
    """In the metric H = N^T Mbar N of the template, N = M^-1 B."""
    rng = np.random.default_rng(0)
    machine = bicopter()
    law = PrototypeControl(machine, **bicopter_circle.gains().on("body"), approach="body")
    limited = dataclasses.replace(law, limits=True)
    x, v = ca.SX.sym("x", 7), ca.SX.sym("v", 6)
    still = ca.SX(6, 1)
    reference = {"x": ca.SX(ca.DM(machine.neutral())), "v": still, "a": still}
    u = [each.control(0, x, v, reference, ca.SX(0, 1)).u for each in (law, limited)]
    N = law.kinetics(x, v).per_input
    H = N.T @ law.template(x, v, reference).M @ N
    function = ca.Function("u", [x, v], [*u, ca.densify(H)])
    A, b = machine.input_polytope
    kept = irredundant(A, b)
    assert kept.sum() == 12
    inside = 0
    for size in np.repeat([0.05, 0.3, 1.0, 3.0], 15):
        at = machine.integrate(machine.neutral(), size * rng.normal(size=6))
        plain, within, metric = (np.array(o) for o in function(at, size * rng.normal(size=6)))
        expected = by_active_sets(plain.ravel(), metric, A[kept], b[kept])
        inside += np.array_equal(expected, plain.ravel())
        assert np.allclose(within.ravel(), expected, rtol=0, atol=1e-8)
        assert (A @ within.ravel() <= b + 1e-10).all()
    assert 5 < inside < 30


def test_limited_law_keeps_the_polytope_and_is_the_plain_one_inside():
    machine = bicopter()
    gains = bicopter_circle.gains().on("body")
    laws = [PrototypeControl(machine, **gains, approach="body", limits=on) for on in (False, True)]
    x, v = ca.SX.sym("x", 7), ca.SX.sym("v", 6)
    still, at = ca.SX(6, 1), ca.SX(ca.DM(machine.neutral()))
    reference = {"x": at, "v": still, "a": still}
    function = ca.Function(
        "u", [x, v], [law.control(0, x, v, reference, ca.SX(0, 1)).u for law in laws]
    )
    A, b = machine.input_polytope
    rng = np.random.default_rng(3)
    for size in (1e-3, 1.0):
        for _ in range(4):
            at_x = machine.integrate(machine.neutral(), size * rng.normal(size=6))
            plain, within = (np.array(u).ravel() for u in function(at_x, size * rng.normal(size=6)))
            assert (A @ within <= b + 1e-8).all()
            if (A @ plain <= b).all():
                assert np.array_equal(plain, within)
            else:
                assert not np.allclose(plain, within)
