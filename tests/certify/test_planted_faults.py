"""Every kind of fault, planted in a sound machine or in its equations, is caught by its check."""

import dataclasses

import casadi as ca
import numpy as np
import pytest
from certify_machines import LIMITS, TREE, arm, floating, four_bar, rod
from random_machines import random_pose

from framefree.certify import CheckReport, Finding, Verdict, check
from framefree.certify.agreement import agreement
from framefree.certify.bounds import mass_bounds
from framefree.certify.confirm import confirm
from framefree.certify.energy import conservation
from framefree.certify.frames import invariance
from framefree.certify.laws import coriolis, kinematics, power_balance, round_trip
from framefree.certify.lint import idle_joints, lint
from framefree.certify.mass_search import search
from framefree.certify.proof import proved_bounds
from framefree.certify.subject import Subject, evaluate, relative
from framefree.geometry import Moments, se3
from framefree.machine import Body, Custom, Joint, Machine, Revolute, Spring
from framefree.motion.constrained import Constrained
from framefree.motion.embedded import Embedded
from framefree.motion.equations import EquationsError
from framefree.motion.quantities import Output
from framefree.motion.tree import Tree
from framefree.motion.tree import coriolis as matrices
from framefree.motion.tree.state import TreeState


def verdicts(machine):
    report = check(machine, samples=16, states=4, formulations=TREE)
    return report, {f.name for f in report.failures}


# ------------------------------------------------------------------ the machine


def test_an_impossible_inertia_is_caught():
    broken = Moments.of_body(0.5, (0, 0, 0.2), np.diag([0.001, 0.001, 0.01]))
    report, failed = verdicts(arm(Body("hand", broken, strict=False)))
    assert failed == {"impossible_inertias"}
    assert "`hand`" in report["impossible_inertias"].note
    assert report.to_dict()["failures"][0]["remedy"]


def test_a_negative_inertia_makes_the_mass_matrix_indefinite():
    broken = Moments.of_body(0.5, (0, 0, 0), np.diag([-0.01, 0.02, 0.02]))
    report, failed = verdicts(arm(Body("hand", broken, strict=False)))
    assert {"impossible_inertias", "mass_eigenvalue_min"} <= failed
    assert report["mass_eigenvalue_min"].value < 0


def test_a_massless_tip_makes_the_mass_matrix_singular():
    report, failed = verdicts(arm(Body("hand", None)))
    assert failed == {"joints_without_inertia", "mass_eigenvalue_min"}
    assert "`j2`" in report["joints_without_inertia"].note
    assert "`j2`" in report["mass_eigenvalue_min"].remedy
    # What follows from it is not reported as further faults.
    assert report["round_trip_residual"].verdict is Verdict.SKIPPED
    assert "singular" in report["frame_residual"].note


def test_a_point_mass_on_its_axis_makes_the_mass_matrix_singular():
    point = Moments.of_points([(0.1, 0, 0)], [1.0])
    machine = arm(Body("hand", point), kind=Revolute("x"))
    assert machine.problems == ()
    _, failed = verdicts(machine)
    assert failed == {"joints_without_inertia", "mass_eigenvalue_min"}


def test_an_armature_makes_it_regular_again():
    assert idle_joints(arm(Body("hand", None))) == ["j2"]
    assert idle_joints(arm(Body("hand", None), armature=0.1)) == []


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_joint_on_whose_axis_all_mass_lies_is_named(which):
    """A point mass at the end of a massless chain; joint frames lie anywhere."""
    rng = np.random.default_rng(which)
    joints = [
        Joint(
            f"j{i}",
            Revolute(rng.normal(size=3)),
            f"b{i - 1}" if i else "world",
            f"b{i}",
            parent_pose=random_pose(rng),
            child_pose=random_pose(rng),
        )
        for i in range(3)
    ]
    empty = Machine([Body(f"b{i}", None) for i in range(3)], joints)
    (poses,) = evaluate(Tree(empty).functions["body_pose"], np.zeros((1, 3)))
    at, tip = poses[0].reshape(3, 4, 4)[[which, 2]]
    frame = np.linalg.inv(tip) @ at @ joints[which].child_pose
    point = frame[:3, 3] + 0.3 * frame[:3, :3] @ joints[which].kind.axis
    loaded = empty.replace("b2", inertia=Moments.of_points([point], [2.0]))
    assert idle_joints(loaded) == [f"j{which}"]


def test_numbers_that_are_not_finite_fail():
    broken = np.array([[1.0, np.nan]])
    assert relative(broken, np.ones((1, 2))) == np.inf
    assert relative(np.ones((1, 2)), broken) == np.inf
    for value in (np.inf, np.nan):
        finding = Finding.measured("a", value, 1.0, "", "")
        assert finding.verdict is Verdict.FAIL
        assert CheckReport({}, (finding,)).to_dict()["a"] is None


def found(machine):
    return {finding.name: finding for finding in lint(machine)}


def test_odd_limits_and_sizes_are_warned_of():
    report = found(arm(lower=0.5, upper=0.5, effort_limit=0.0))
    assert report["odd_limits"].verdict is Verdict.WARN
    assert "can only be at 0.5" in report["odd_limits"].note
    assert "effort limit" in report["odd_limits"].note
    assert report["neutral_outside_limits"].value == 1
    in_millimetres = Moments.of_body(0.5, (0, 0, 0.2), np.diag([400.0, 400.0, 400.0]))
    assert "`hand`" in found(arm(Body("hand", in_millimetres)))["odd_sizes"].note


@pytest.mark.filterwarnings("ignore:spring `pusher`")
def test_remarks_of_the_description_are_shown():
    pushing = Spring("pusher", "world", "tip", Moments(-10.0, np.zeros(3), np.zeros((3, 3))))
    assert "`pusher`" in found(arm().attach(pushing))["remarks"].note


@dataclasses.dataclass(frozen=True, eq=False)
class Crooked(Custom):
    """Its pose turns about x, its Jacobian says it turns about another axis."""

    def jacobian(self, x):
        return super().jacobian(x) + 1e-6 * ca.DM([0, 0, 0, 1, 1, 1])


def turn(x):
    return se3.exp(ca.vertcat(0, 0, 0, x[0], 0, 0))


def test_a_joint_whose_frames_contradict_each_other_is_caught():
    assert kinematics(Subject(arm(kind=Custom(turn, 1)), TREE, states=4)).verdict is Verdict.PASS
    finding = kinematics(Subject(arm(kind=Crooked(turn, 1)), TREE, states=4))
    assert finding.verdict is Verdict.FAIL
    assert 1e-8 < finding.value < 1e-4


# ------------------------------------------------------------------ the equations


def planted(state, name="tree"):
    """The tree formulation with states that are wrong in one thing."""

    class Planted(Tree):
        def at(self, x, v=None, t=0):
            return state(self, x, ca.SX(self.machine.nv, 1) if v is None else v, t)

    Planted.name = name
    return Planted


class SkewButWrongState(TreeState):
    """C plus a skew-symmetric matrix: M_dot - 2C is skew all the same."""

    @property
    def coriolis(self):
        n = self.v.shape[0]
        extra = ca.DM(np.triu(np.ones((n, n)), 1) - np.tril(np.ones((n, n)), -1))
        return super().coriolis + 1e-6 * self.v[0] * extra


class RightButNotSkewState(TreeState):
    """The plain adjoint form: its C v is right."""

    @property
    def coriolis(self):
        inertias = self.equations.inertias
        return matrices.by_bodies("adjoint", inertias, self.motion, self.link_jacobians)


SkewButWrong, RightButNotSkew = planted(SkewButWrongState), planted(RightButNotSkewState)


@pytest.mark.parametrize(
    ("formulation", "skew", "bias"),
    [
        (Tree, Verdict.PASS, Verdict.PASS),
        (SkewButWrong, Verdict.PASS, Verdict.FAIL),
        (RightButNotSkew, Verdict.FAIL, Verdict.PASS),
    ],
)
def test_each_kind_of_wrong_coriolis_matrix_is_caught(formulation, skew, bias):
    findings = coriolis(Subject(floating(), {"tree": formulation}, states=6))
    assert [finding.verdict for finding in findings] == [skew, bias]


class FrameDependentState(TreeState):
    """Its acceleration changes with where the world's axes point."""

    def forward(self, load):
        return super().forward(load) + 1e-6 * self.poses[-1][0, 0]


FrameDependent = planted(FrameDependentState)


def test_dependence_on_the_frame_is_caught():
    assert invariance(Subject(floating(), TREE, states=4)).verdict is Verdict.PASS
    finding = invariance(Subject(floating(), {"tree": FrameDependent}, states=4))
    assert finding.verdict is Verdict.FAIL


class LeakingState(TreeState):
    """Its accelerations lose a little energy."""

    def forward(self, load):
        return super().forward(load) - 1e-4 * self.v


Leaking = planted(LeakingState, "leaking")


def test_lost_energy_is_caught_by_motion_round_trip_and_agreement():
    good = conservation(Subject(arm(), TREE, states=3))
    assert good.verdict is Verdict.PASS
    assert "order 4" in good.note
    subject = Subject(arm(), {"tree": Leaking}, states=3)
    drift = conservation(subject)
    assert drift.verdict is Verdict.FAIL
    assert 1e-6 < drift.value < 1e-3
    assert round_trip(subject).verdict is Verdict.FAIL
    finding, _ = agreement(Subject(arm(), {**TREE, "leaking": Leaking}, states=3))
    assert finding.name == "agreement_leaking_residual"
    assert finding.verdict is Verdict.FAIL


class WrongPotentialState(TreeState):
    """Its potential energy is not that of its forces."""

    @property
    def potential(self):
        return super().potential * (1 + 1e-6)


WrongPotential = planted(WrongPotentialState)


def test_a_potential_that_contradicts_its_force_is_caught():
    assert power_balance(Subject(arm(), TREE, states=4)).verdict is Verdict.PASS
    finding = power_balance(Subject(arm(), {"tree": WrongPotential}, states=4))
    assert finding.verdict is Verdict.FAIL


def test_a_machine_that_cannot_be_closed_is_skipped_with_the_reason():
    machine = four_bar("distance", length=50.0)
    report = check(machine, samples=8, states=2, formulations=TREE)
    assert "closes all loops" in report["mass_eigenvalue_min"].note
    assert report["energy_drift"].verdict is Verdict.SKIPPED


class BrokenState(TreeState):
    """Equations that cannot be derived."""

    @property
    def coriolis(self):
        raise EquationsError("no such matrix for `j1`")


Broken = planted(BrokenState)


def test_what_cannot_be_measured_is_a_failure_with_its_reason():
    report = check(arm(), samples=8, states=2, formulations={"tree": Broken})
    error = report["measuring_the_laws_of_motion_error"]
    assert error.verdict is Verdict.FAIL
    assert "`j1`" in error.note
    assert report["energy_drift"].verdict is Verdict.PASS


def spoiled(base, name):
    """Return a formulation, one quantity of which is no number where the first joint is above 0."""

    def quantity(self, asked):
        right = base.quantity(self, asked)
        if asked.partition(":")[0] != name:
            return right

        def trace(**inputs):
            hole = ca.if_else(inputs["x"][0] > 0, ca.SX(np.nan), 0)
            outputs = right.trace(**inputs)
            return {key: Output(out.value + hole, out.shape) for key, out in outputs.items()}

        return right._replace(trace=trace)

    return type("Spoiled", (base,), {"quantity": quantity})


@pytest.mark.parametrize(
    ("quantity", "failing"),
    [
        ("mass", {"mass_eigenvalue_min", "mass_eigenvalue_max", "closed_form_residual"}),
        ("bias", {"bias_residual", "closed_form_residual"}),
        ("coriolis", {"skew_residual", "bias_residual"}),
        ("forward", {"round_trip_residual", "frame_residual", "energy_drift"}),
        ("inverse", {"round_trip_residual", "power_residual"}),
        ("energy", {"energy_drift"}),
        ("body_pose", {"kinematic_residual"}),
        ("joint_wrench", {"frame_residual"}),
    ],
)
@pytest.mark.first_cases(1)
def test_answers_that_are_no_numbers_fail(quantity, failing):
    report = check(arm(), samples=16, states=6, formulations={"tree": spoiled(Tree, quantity)})
    assert failing <= {finding.name for finding in report.failures}


@pytest.mark.parametrize("quantity", ["forward", "body_acceleration", "joint_wrench", "power"])
def test_another_formulation_whose_answers_are_no_numbers_fails(quantity):
    other = spoiled(Tree, quantity)
    findings = agreement(Subject(arm(), {**TREE, "other": other}, states=6))
    failed = {finding.name for finding in findings if finding.verdict is Verdict.FAIL}
    wrench = "wrench_" if quantity == "joint_wrench" else ""
    assert f"agreement_other_{wrench}residual" in failed


@pytest.mark.parametrize(
    ("formulation", "verdict"),
    [(Embedded, Verdict.PASS), (spoiled(Embedded, "forward"), Verdict.FAIL)],
)
def test_minimal_coordinates_must_answer_where_they_serve(formulation, verdict):
    formulations = {**TREE, "constrained": Constrained, "embedded": formulation}
    subject = Subject(four_bar("distance", length=0.3), formulations, states=8)
    findings = {finding.name: finding for finding in agreement(subject)}
    assert findings["agreement_embedded_residual"].verdict is verdict


@pytest.mark.parametrize(("which", "factor"), [("low", 1.01), ("high", 0.99), ("low", 1e3)])
@pytest.mark.first_cases(1)
def test_a_wrong_proved_bound_is_caught(monkeypatch, which, factor):
    subject = Subject(arm(), TREE, samples=64)
    bounds = search(subject)
    measured = {"low": bounds.smallest.value, "high": bounds.largest.value}

    def wrong(machine, scale=None, **options):
        right = proved_bounds(machine, scale, **options)
        return dataclasses.replace(right, **{which: factor * measured[which]})

    monkeypatch.setattr("framefree.certify.bounds.proved_bounds", wrong)
    findings = {finding.name: finding for finding in mass_bounds(subject)}
    key = {"low": "mass_eigenvalue_min_proved", "high": "mass_eigenvalue_max_proved"}
    assert findings[key.pop(which)].verdict is Verdict.FAIL
    (other,) = key.values()
    assert findings[other].verdict is Verdict.PASS


def test_a_bound_that_holds_where_nothing_is_a_number_is_not_confirmed():
    subject = Subject(arm(), {"tree": spoiled(Tree, "mass")})
    x = arm().random(np.random.default_rng(0), 1000)
    outside = confirm(subject.bare, 0.0, 1e9, states=1000, seed=0)
    assert outside.below == outside.above == (x[:, 0] > 0).sum()


class WrongWrenchesState(TreeState):
    """Its motion is right, what its joints carry is not."""

    def carried_wrenches(self, a, load):
        return [(1 + 1e-6) * wrench for wrench in super().carried_wrenches(a, load)]


class NoWrenches(Tree):
    """It does not say what joints carry."""

    name = "silent"
    offers = tuple(name for name in Tree.offers if name != "joint_wrench")


def test_wrong_joint_wrenches_are_caught_and_missing_ones_are_said():
    def findings(other):
        return {f.name: f for f in agreement(Subject(arm(), {**TREE, "other": other}, states=3))}

    right, wrong, silent = (
        findings(Tree),
        findings(planted(WrongWrenchesState)),
        findings(NoWrenches),
    )
    motion, wrenches = "agreement_other_residual", "agreement_other_wrench_residual"
    assert right[motion].verdict is wrong[motion].verdict is silent[motion].verdict is Verdict.PASS
    assert right[wrenches].verdict is Verdict.PASS
    assert wrong[wrenches].verdict is Verdict.FAIL
    assert silent[wrenches].verdict is Verdict.SKIPPED
    assert silent[wrenches].note == "the silent formulation does not offer joint wrenches"


def test_the_fault_is_found_within_a_larger_machine():
    """One broken body among many is named."""
    bodies = [Body(f"b{i}", rod()) for i in range(6)]
    bodies[3] = Body("b3", Moments.of_body(1.0, (0, 0, 0), np.diag([1, 1, 3.0])), strict=False)
    joints = [
        Joint(f"j{i}", Revolute("xyz"[i % 3]), f"b{i - 1}" if i else "world", f"b{i}", **LIMITS)
        for i in range(6)
    ]
    report = found(Machine(bodies, joints))
    failed = {name for name, finding in report.items() if finding.verdict is Verdict.FAIL}
    assert failed == {"impossible_inertias"}
    assert report["impossible_inertias"].value == 1
    assert "`b3`" in report["impossible_inertias"].note
