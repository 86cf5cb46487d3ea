"""The published experiment of two arms, the better ones, and Pinocchio's word on the law."""

import numpy as np
import pytest

from framefree.gallery.machines.dual_arm import START, dual_arm
from framefree.gallery.scenarios.cooperation.arm_pose import ArmPose, decay
from framefree.gallery.scenarios.cooperation.dual_arm import DualArm
from framefree.gallery.scenarios.cooperation.dual_arm_figures import hands, published_figures
from framefree.gallery.scenarios.cooperation.dual_arm_limits import DualArmLimits
from framefree.gallery.scenarios.cooperation.dual_arm_parts import (
    CIRCLE,
    HELD_CIRCLE,
    LEFT,
    PUBLISHED,
    RIGHT,
    HoldErrors,
    experiment,
    norm,
    published_law,
    strict_law,
)
from framefree.gallery.scenarios.cooperation.two_arms import TwoArms

pytest.importorskip("mujoco")

# Time, norms of coupling and control error, error of position: a run of others [Milioshin2024].
COURSE = (
    (0.0, 0.28389, 0.34475, (0.03027, 0.01084, 0.02062)),
    (0.05, 0.09086, 0.18336, (0.01484, 0.00765, 0.01579)),
    (0.10, 0.02924, 0.01895, (-0.00434, 0.00091, 0.01046)),
    (0.15, 0.02329, 0.08003, (-0.01090, -0.00385, 0.00369)),
    (0.25, 0.00678, 0.00683, (0.00094, -0.00114, -0.00129)),
    (0.40, 0.00282, 0.01069, (-0.00013, 0.00038, 0.01007)),
    (0.75, 0.00170, 0.00693, (0.00015, -0.00002, 0.00547)),
    (1.50, 0.00273, 0.00467, (0.00047, -0.00023, 0.00393)),
)


@pytest.fixture(scope="module")
def published():
    return experiment(dual_arm(), published_law(), START)


def test_published_figures(published):
    found = HoldErrors(published).published()
    for key, printed in PUBLISHED.items():
        assert round(found[key], 4) == printed, key
    assert HoldErrors(published).settling() < 0.75


def test_published_figures_on_our_own_plant():
    """The same digits without MuJoCo, with the integrator that it has."""
    run = experiment(dual_arm(), published_law(), START, plant="native")
    found = HoldErrors(run).published()
    for key, printed in PUBLISHED.items():
        assert round(found[key], 4) == printed, key


def test_published_plots(published):
    """First positions of both hands and peaks, as the plots and the run of others have them."""
    machine = dual_arm()
    poses, twists = hands(published, machine)
    np.testing.assert_allclose(poses[LEFT][0, :3, 3], [0.40650, 0.17484, 0.61204], atol=1e-5)
    np.testing.assert_allclose(poses[RIGHT][0, :3, 3], [0.41801, -0.27680, 0.70070], atol=1e-5)
    speeds = norm(published.v)
    assert speeds.max() == pytest.approx(6.10, abs=5e-3)
    assert published.t[speeds.argmax()] == pytest.approx(0.035)
    assert norm(HoldErrors(published).velocity[:, 3:]).max() == pytest.approx(4.59, abs=5e-3)
    # Velocities of the hand are the differences of its positions.
    rates = np.diff(poses[RIGHT][:, :3, 3], axis=0) / np.diff(published.t)[:, None]
    linear = np.einsum("tij,tj->ti", poses[RIGHT][:, :3, :3], twists[RIGHT][:, :3])
    middle = (linear[1:] + linear[:-1]) / 2
    assert np.abs(rates - middle)[published.t[1:] > 1.0].max() < 1e-3
    figures = published_figures(published, machine)
    assert [len(figure.lines) for figure in figures] == [6, 3, 3, 6, 2, 2]
    assert all(np.isfinite(line.y).all() for figure in figures for line in figure.lines)


def test_published_time_course(published):
    errors = HoldErrors(published)
    for t, coupling, control, position in COURSE:
        row = round(t / 0.005)
        assert norm(errors.coupling)[row] == pytest.approx(coupling, abs=5e-6)
        assert norm(errors.control)[row] == pytest.approx(control, abs=5e-6)
        np.testing.assert_allclose(errors.control[row, :3], position, atol=6e-6)
    assert norm(published.v).max() == pytest.approx(6.10, abs=0.005)
    assert norm(errors.velocity[:, 3:]).max() == pytest.approx(4.59, abs=0.005)


@pytest.mark.slow
def test_strict_priority_leaves_what_the_step_leaves():
    """The coupling error is in proportion to the step, the path has no sag."""
    found = []
    for dt in (0.005, 0.001):
        run = experiment(
            dual_arm(), strict_law(), START, reference=HELD_CIRCLE, duration=3.0, dt=dt
        )
        errors = HoldErrors(run)
        found.append(errors.largest(errors.coupling))
        assert errors.largest(errors.control[:, :3]) < 1e-4
    assert found[0] < 3e-4
    assert found[0] / found[1] == pytest.approx(5.0, rel=0.02)


def test_pinocchio_and_proxsuite_agree():
    """The law as others would write it gives the same torques."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("proxsuite")
    from framefree.benchmarks.dual_arm import _compiled, _PeerLaw

    peer, kernel = _PeerLaw(accuracy=1e-9), _compiled()
    rng = np.random.default_rng(0)
    for _ in range(50):
        t, x, v = rng.uniform(0, 5), START + 0.3 * rng.normal(size=14), rng.normal(size=14)
        ours, theirs = kernel(t, x, v), peer(t, x, v)
        assert np.abs(ours - theirs).max() < 1e-7 * np.abs(theirs).max()


@pytest.mark.parametrize("scenario", [ArmPose(), TwoArms()])
def test_small_experiments(scenario):
    outcome = scenario.run()
    assert outcome.ok, [promise for promise in outcome.promises if not promise.holds]
    assert outcome.figures
    assert outcome.animations


def test_promises_can_fail():
    assert not ArmPose(duration=1.0).run().ok


def test_decay_solves_its_equation():
    t = np.linspace(0, 2, 20001)
    for Kp, Kd in ((25.0, 50.0), (9.0, 6.0), (30.0, 2.0)):
        e = decay(t, Kp, Kd)
        rate, second = np.gradient(e, t), np.gradient(np.gradient(e, t), t)
        assert np.abs(second + Kd * rate + Kp * e)[5:-5].max() < 1e-3 * Kp
        assert e[0] == pytest.approx(1.0)


@pytest.mark.slow
def test_limits_short():
    pytest.importorskip("proxsuite")
    outcome = DualArmLimits(duration=5.0, away=1.0).run()
    assert outcome.ok, [promise for promise in outcome.promises if not promise.holds]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [DualArm(), DualArmLimits()])
def test_whole_scenarios(scenario):
    outcome = scenario.run()
    assert outcome.ok, [promise for promise in outcome.promises if not promise.holds]


def test_circles():
    """Both circles are one motion, of two points of a body that keeps its attitude."""
    one, other = (np.array(circle.function(0.4)[0]) for circle in (CIRCLE, HELD_CIRCLE))
    np.testing.assert_allclose(other[:3, 3] - one[:3, 3], [0, -0.2, 0.06], atol=1e-12)
    np.testing.assert_allclose(
        one[:3, 3],
        [
            0.436763 + 0.12 * np.cos(1.5 * 0.4 + np.pi / 2),
            0.185684,
            0.512661 + 0.12 * np.sin(1.5 * 0.4 + np.pi / 2),
        ],
    )
