"""Which Coriolis matrix, and which coordinates, have which property: every verdict asserted."""

import numpy as np
import pytest
from certify_machines import TREE, arm, floating, four_bar

from framefree.certify import Verdict, check
from framefree.certify.forms import attitudes_at_pitch_90, compare, eigenvalues_through_pitch_90
from framefree.errors import FramefreeError
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.space_arm import space_arm
from framefree.geometry import quaternion
from framefree.motion.tree import Tree

# skew, bias, weak, bounded
VERDICTS = {
    "skew": (True, True, True, True),
    "kirchhoff": (True, True, True, True),
    "adjoint": (False, True, True, True),
    "quasi": (False, True, True, True),
    "euler": (True, True, True, False),
    "printed": (True, False, True, True),
    "quaternion": (True, True, True, True),
}


def test_verdicts_of_a_floating_machine_at_200_states():
    forms, refused = compare(floating())
    assert {form.name for form in forms} == set(VERDICTS)
    assert set(refused) == {"christoffel", "task", "task_euler"}
    assert "cannot move the frame `ball` in 3 directions" in refused["task"]
    for form in forms:
        found = (form.skew.holds, form.bias.holds, form.weak.holds, form.bounded)
        assert found == VERDICTS[form.name], form.name
        for which in (form.skew, form.bias, form.weak):
            assert which.holds or which.value > 1e-3


@pytest.mark.parametrize("name", ["task", "task_euler"])
def test_task_coordinates_are_skew_and_right_but_not_bounded(name):
    (form,), _ = compare(space_arm(), [name], states=30)
    assert form.skew.holds
    assert form.bias.holds
    assert not form.bounded
    assert "the end frame `gripper` cannot be moved in all directions" in form.reason
    assert ("pitch 90 degrees" in form.reason) == (name == "task_euler")


def test_the_place_at_which_a_task_is_singular_is_singular():
    (form,), _ = compare(space_arm(), ["task"], states=30)
    x = np.array([float(v) for v in form.reason.split("x = (")[1].split(")")[0].split(",")])
    J = Tree(space_arm()).functions["jacobian:gripper"](x).full()[:, 6:]
    values = np.linalg.svd(J, compute_uv=False)
    assert values[-1] < 0.02 * values[0]  # x is told to three digits


def test_an_arm_has_christoffel_symbols_and_no_trouble_with_angles():
    forms, refused = compare(iiwa())
    assert not refused
    verdict = {form.name: (form.skew.holds, form.bias.holds, form.bounded) for form in forms}
    assert verdict["christoffel"] == (True, True, True)
    assert verdict["euler"] == (True, True, True)
    assert verdict["printed"] == (True, False, True)
    # Where dx/dt = v the quasi-coordinate form is right, too, but not skew.
    assert verdict["quasi"] == (False, True, True)


def test_weak_residual_tells_less():
    """The wrong matrix is skew, so that v^T (M_dot - 2C) v vanishes for it as well."""
    (form,), _ = compare(floating(), ["printed"], states=50)
    assert form.weak.holds
    assert not form.bias.holds


def test_states_at_pitch_90_are_there():
    machine, rng = floating(), np.random.default_rng(0)
    x = attitudes_at_pitch_90(machine, machine.random(rng, 5), rng)
    for row in x:
        R = np.array(quaternion.to_rotation(row[machine.x_slice["free"]][3:7]))
        assert R[2, 0] == pytest.approx(-1, abs=1e-15)


def test_eigenvalues_on_the_way_through_pitch_90():
    pitch, group, angles = eigenvalues_through_pitch_90(floating())
    assert np.ptp(group, axis=0).max() < 1e-12
    upright = np.abs(np.abs(pitch) - 90) < 1e-9
    assert angles[upright].min() < 1e-14
    assert angles[~upright, 0].min() > 1e-8
    with pytest.raises(FramefreeError, match="no free or ball joint"):
        eigenvalues_through_pitch_90(arm())


def test_the_check_warns_but_does_not_fail():
    report = check(floating(), samples=50, formulations=TREE, parametrisations=["euler", "adjoint"])
    assert report["euler_mass_eigenvalue_min"].verdict is Verdict.WARN
    assert report["adjoint_skew_residual"].verdict is Verdict.WARN
    assert report["adjoint_bias_residual"].verdict is Verdict.PASS
    assert report.ok


def test_closed_machines_are_compared_with_their_loops_opened():
    forms, _ = compare(four_bar(), ["skew", "kirchhoff"], states=20)
    assert all(form.skew.holds and form.bias.holds for form in forms)


def test_unknown_names_are_refused():
    with pytest.raises(FramefreeError, match="no parametrisation `lagrange`"):
        compare(arm(), ["lagrange"])
    with pytest.raises(FramefreeError, match="no parametrisation `lagrange`"):
        check(arm(), parametrisations=["skew", "lagrange"])
