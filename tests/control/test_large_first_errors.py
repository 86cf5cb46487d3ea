"""Large first errors of craft with limits: who comes back, and what is said of those who do not."""

import warnings

import casadi as ca
import numpy as np
import pytest

from framefree.control.law import ControlError
from framefree.control.prototype import PrototypeControl
from framefree.control.prototype.bounded import BoundedErrors
from framefree.control.prototype.hover import hover_poles
from framefree.control.prototype.tuning import (
    characteristic,
    free_body,
    matching,
    thrust_borne,
)
from framefree.errors import FramefreeWarning
from framefree.gallery.machines.scara import scara
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, Machine, Propeller
from framefree.simulate.recovery import FirstErrors, recovery

MATCHED = thrust_borne(2.0, characteristic((2, 0.8), (8, 0.8)), (2, 0.8), 0.05)
UNCOUPLED = free_body(2.0, (0.03, 0.03, 0.05), (1.5, 0.9), (8, 0.8))


def hexacopter(upper=5.0):
    angles = np.arange(6) * np.pi / 3
    return Machine(
        (Body("body", Moments.of_body(2.0, (0, 0, 0), np.diag([0.03, 0.03, 0.05]))),),
        (Joint("base", Free(), "world", "body"),),
        tuple(
            Frame(f"r{k}", "body", (0.3 * np.cos(a), 0.3 * np.sin(a), 0))
            for k, a in enumerate(angles)
        ),
        actuators=tuple(
            Propeller(f"p{k}", f"r{k}", torque_ratio=0.02, spin=(-1) ** k, upper=upper)
            for k in range(6)
        ),
        name="hexacopter",
    )


def law_of(gains, **options):
    return PrototypeControl(hexacopter(), **gains.on("body"), approach="body", **options)


def test_gains_that_leave_a_craft_drifting_are_told_with_what_to_change():
    """Equal centers: four poles at zero, and from 65 degrees it never comes back."""
    with pytest.warns(FramefreeWarning, match=r"4 poles .* lie at .*thrust_borne") as said:
        law_of(UNCOUPLED)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", FramefreeWarning)
        law_of(MATCHED)


@pytest.mark.filterwarnings("ignore::framefree.errors.FramefreeWarning")
@pytest.mark.parametrize("gains", [MATCHED, UNCOUPLED])
def test_poles_about_hovering_are_those_of_the_law(gains):
    """By linear algebra against slopes of the law itself."""
    law = law_of(gains)
    one = gains.inertia, gains.damping, gains.stiffness
    poles = hover_poles(law.machine, *(np.asarray(m.matrix6, float) for m in one))
    polynomials = [np.poly(p).real for p in (poles, matching(law).poles)]
    assert np.allclose(*polynomials, rtol=1e-6, atol=1e-6 * np.abs(polynomials[0]).max())


def felt(bounded, e, rate, turn=0.4):
    """Errors of position and velocity that the law sees, and the world acceleration of x_R."""
    law = law_of(MATCHED, bounded=bounded)
    wxyz = np.array([np.cos(turn / 2), 0, np.sin(turn / 2), 0])
    x = np.concatenate([e, [1, 0, 0, 0]])
    v = np.concatenate([rate, np.zeros(3)])
    v_R = np.array([0, 0, 0, 0.3, -0.2, 0.5])
    reference = {"x": np.concatenate([np.zeros(3), wxyz]), "v": v_R, "a": np.arange(6.0)}
    moved = bounded.reference(
        law.machine, law.pairs, (ca.DM(x), ca.DM(v)), {k: ca.DM(u) for k, u in reference.items()}
    )
    x_R, v_R, a_R = (np.array(ca.DM(ca.evalf(moved[name]))).ravel() for name in "xva")
    assert np.allclose(x_R[3:], wxyz)
    assert np.allclose(v_R[3:], reference["v"][3:])
    from scipy.spatial.transform import Rotation

    R = Rotation.from_quat(wxyz[[1, 2, 3, 0]]).as_matrix()
    world = R @ (a_R[:3] + np.cross(v_R[3:], v_R[:3]))
    return e - x_R[:3], rate - R @ v_R[:3], world - R @ np.arange(3.0)


def test_errors_near_by_are_felt_as_they_are():
    e, rate = np.array([0.1, -0.2, 0.05]), np.array([0.1, 0.0, -0.1])
    near, slow, changed = felt(BoundedErrors(4.0, 4.0), e, rate)
    assert np.allclose(near, e)
    assert np.allclose(slow, rate)
    assert np.allclose(changed, 0)


def test_errors_far_away_ask_for_the_given_speed_and_acceleration():
    d, k, m = (MATCHED.damping.total, MATCHED.stiffness.total, MATCHED.inertia.total)
    far, _, changed = felt(BoundedErrors(2.0, 1e3), np.array([30.0, 0, 40.0]), np.zeros(3))
    assert np.allclose(far * k / d, [1.2, 0, 1.6])
    assert np.allclose(changed, 0)
    e, rate, _ = felt(BoundedErrors(50.0, 3.0), np.array([5.0, 0, 0]), np.array([9.0, 0, 12.0]))
    assert np.linalg.norm(k * e + d * rate) / m == pytest.approx(3.0)


@pytest.mark.slow
def test_all_come_back_with_limits_and_bounded_errors():
    """A batch of large random first errors; thrust is 1.5 times the weight."""
    law = law_of(MATCHED, limits=True, bounded=BoundedErrors())
    found = recovery(law, FirstErrors(3.0, 3.0), count=12, duration=8.0, progress=False)
    assert found.returned.all()
    assert not found.advice
    assert found.farthest.max() < 40.0


@pytest.mark.slow
def test_advice_names_what_brings_the_lost_ones_back():
    errors = FirstErrors(12.0, 12.0, np.pi * 0.95, 10.0)
    found = recovery(law_of(MATCHED), errors, count=6, duration=12.0, seed=3, progress=False)
    assert not found.returned.all()
    assert "`limits=True` brings back" in found.advice


FAR = FirstErrors(30.0, 10.0, np.deg2rad(170), 10.0)


@pytest.mark.slow
def test_a_hundred_very_large_first_errors_within_limits_all_come_back():
    law = law_of(MATCHED, limits=True, bounded=BoundedErrors())
    assert recovery(law, FAR, count=100, duration=28.0, progress=False).returned.all()


@pytest.mark.slow
def test_without_bounded_errors_some_of_them_are_lost():
    law = law_of(MATCHED, limits=True)
    found = recovery(law, FAR, count=32, duration=24.0, seed=0, progress=False)
    lost = int((~found.returned).sum())
    assert lost > 1
    assert found.farthest.max() > 200
    assert f"brings back {lost} of {lost}" in found.advice


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BoundedErrors(speed=-1.0), "speed"),
        (
            lambda: PrototypeControl(
                scara(),
                *[{"tool": Moments.of_body(1.0, (0, 0, 0), np.eye(3))}] * 3,
                approach="body",
                bounded=BoundedErrors(),
            ),
            "one tree on a free joint",
        ),
    ],
)
def test_what_cannot_be_bounded_is_refused(make, message):
    with pytest.raises(ControlError, match=message):
        make()
