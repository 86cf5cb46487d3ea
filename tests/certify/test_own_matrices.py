"""The user's own M, C and estimate of M: right ones pass, each kind of mistake is told apart."""

import math

import numpy as np
import pytest
from certify_machines import TREE, floating
from test_certificate import CENTER, INERTIA, LENGTH, MASS, two_links

from framefree.certify import Verdict, check
from framefree.certify.bounds import mass_bounds
from framefree.certify.estimate import property_3
from framefree.certify.own import OwnMatrix
from framefree.certify.subject import Subject
from framefree.errors import FramefreeError
from framefree.geometry import Moments
from framefree.machine import Body, Free, Joint, Machine
from framefree.motion.tree import Tree

(M1, M2), (C1, C2), (I1, I2) = MASS, CENTER, INERTIA


def textbook_mass(x, cos=np.cos):
    mixed = M2 * LENGTH * C2 * cos(x[1])
    own = I2 + M2 * C2**2
    first = I1 + M1 * C1**2 + M2 * LENGTH**2 + own + 2 * mixed
    return [[first, own + mixed], [own + mixed, own]]


def textbook_coriolis(x, v, sin=np.sin):
    h = -M2 * LENGTH * C2 * sin(x[1])
    return [[h * v[1], h * (v[0] + v[1])], [-h * v[0], 0 * v[0]]]


def in_numbers(function, trigonometry):
    """The same for numbers alone."""
    return lambda *state: np.array(function(*state, trigonometry), float)


def asked(**own):
    report = check(two_links(), states=12, samples=24, formulations=TREE, **own)
    return {f.name: f for f in report.findings if f.name.startswith(("own_", "mass_estimate"))}


@pytest.mark.parametrize("exact", [True, False])
def test_the_textbooks_matrices_pass(exact):
    own = {"mass": textbook_mass, "coriolis": textbook_coriolis}
    if not exact:
        own = {
            "mass": in_numbers(textbook_mass, math.cos),
            "coriolis": in_numbers(textbook_coriolis, math.sin),
        }
    findings = asked(**own)
    assert len(findings) == 6
    assert all(f.verdict is Verdict.PASS for f in findings.values())
    assert findings["own_skew_residual"].bar == (1e-11 if exact else 1e-7)


def test_a_casadi_function_is_taken_as_it_is():
    machine = floating()
    own = Tree(machine.replace(fluid=None, gravity=(0, 0, 0))).functions["coriolis:kirchhoff"]
    report = check(machine, states=8, samples=24, formulations=TREE, coriolis=own)
    for name in ("own_skew_residual", "own_bias_residual", "own_weak_residual"):
        assert report[name].verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("planted", "failing"),
    [
        # Skew but wrong: the transposed off-diagonal part.
        (lambda x, v: np.array(textbook_coriolis(x, v)).T, {"bias"}),
        # Right but not skew: the same product, all in the first column where v is not zero.
        (lambda x, v: np.outer(np.array(textbook_coriolis(x, v)) @ v / v[0], [1.0, 0.0]), {"skew"}),
        # Neither.
        (lambda x, v: 2 * np.array(textbook_coriolis(x, v)), {"skew", "bias", "weak"}),
    ],
)
def test_each_mistake_is_told_apart(planted, failing):
    findings = asked(coriolis=planted)
    failed = {name.split("_")[1] for name, f in findings.items() if f.verdict is Verdict.FAIL}
    assert failed == failing


def test_a_wrong_mass_matrix_is_found_where_it_is_wrong():
    def wrong(x):
        M = np.array(textbook_mass(x))
        M[0, 1] = M[1, 0] = M[0, 1] * 1.001
        return M

    findings = asked(mass=wrong)
    assert findings["own_mass_residual"].verdict is Verdict.FAIL
    assert "`first` and `second`" in findings["own_mass_residual"].note
    assert findings["own_mass_symmetry_residual"].verdict is Verdict.PASS
    singular = asked(mass=lambda x: np.ones((2, 2)))
    assert singular["own_mass_definiteness"].verdict is Verdict.FAIL


def test_the_best_multiple_of_the_identity_has_the_error_of_the_margin():
    subject = Subject(two_links(), TREE, samples=200)
    margin = next(f for f in mass_bounds(subject) if f.name == "mass_margin")
    values = np.linalg.eigvalsh([textbook_mass([0.0, q]) for q in np.linspace(-np.pi, np.pi, 2001)])
    low, high = values.min(), values.max()
    best = 2 * low * high / (low + high) * np.eye(2)
    finding = asked(mass_estimate=best)["mass_estimate_error"]
    assert finding.value == pytest.approx((high - low) / (high + low), rel=1e-5)
    assert finding.value == pytest.approx(margin.value, rel=1e-5)
    assert finding.verdict is Verdict.PASS
    too_large = asked(mass_estimate=2.1 * low * np.eye(2))["mass_estimate_error"]
    assert too_large.verdict is Verdict.FAIL
    exact = asked(mass_estimate=textbook_mass)["mass_estimate_error"]
    assert exact.value < 1e-12


def ball(inertia=0.4):
    body = Body("b", Moments.of_body(2.0, (0, 0, 0), inertia * np.eye(3)))
    return Machine([body], [Joint("free", Free(), "world", "b")])


@pytest.mark.parametrize("delta", [1.0, 0.1, 0.01])
def test_property_3_of_a_ball_is_known_in_closed_form(delta):
    """Of the turning part I E^T E the eigenvalues are I (1 - |sin|), I and I (1 + |sin|)."""
    findings = {f.name: f for f in property_3(Subject(ball(), TREE), delta, None)}
    least = findings["euler_mass_eigenvalue_min_at_delta"]
    assert least.value == pytest.approx(0.4 * (1 - np.cos(delta)), rel=1e-9)
    proved = float(least.note.split("proved: ")[1].split()[0])
    assert proved == pytest.approx(least.value, rel=1e-4)
    assert findings["euler_mass_eigenvalue_max_at_delta"].value == pytest.approx(2.0)


def test_how_near_to_pitch_90_an_estimate_serves():
    """Mhat = 0.5 I for the turning part serves while 0.5 / (0.4 (1 - cos delta)) - 1 < 1."""
    estimate = OwnMatrix.of("mass_estimate", np.diag([2.0] * 3 + [0.5] * 3), (7,), 6)
    findings = {f.name: f for f in property_3(Subject(ball(), TREE), 0.5, estimate)}
    least = np.arccos(1 - 0.5 / 0.8)
    assert findings["euler_mass_estimate_delta_rad"].value == pytest.approx(least, rel=0.02)
    assert findings["euler_mass_estimate_error_at_delta"].verdict is Verdict.WARN
    expected = 0.5 / (0.4 * (1 - np.cos(0.5))) - 1
    assert findings["euler_mass_estimate_error_at_delta"].value == pytest.approx(expected)


def test_a_machine_without_angles_has_no_property_3():
    skipped = list(property_3(Subject(two_links(), TREE), 0.1, None))
    assert all(f.verdict is Verdict.SKIPPED for f in skipped)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"mass": lambda x: np.eye(3)}, r"`mass` must give a matrix of 2 x 2 .* \(3, 3\)"),
        ({"mass": np.eye(3)}, "`mass` must be a function, a casadi.Function or a matrix of 2 x 2"),
        ({"coriolis": Tree(two_links()).functions["mass"]}, "a casadi.Function of x and v"),
        ({"delta": 2.0}, "`delta` must lie between 0 and pi/2"),
    ],
)
def test_what_is_no_matrix_is_refused_in_words(own, words):
    with pytest.raises(FramefreeError, match=words):
        check(two_links(), states=4, samples=8, formulations=TREE, **own)


def test_a_function_that_fails_is_a_finding_with_the_place():
    def broken(x, v):
        raise ZeroDivisionError("no inverse")

    report = check(two_links(), states=4, samples=8, formulations=TREE, coriolis=broken)
    (failed,) = report.failures
    assert "`coriolis` has no value at x = (" in failed.note
    assert "ZeroDivisionError: no inverse" in failed.note
