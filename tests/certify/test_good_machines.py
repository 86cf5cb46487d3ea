"""A sound machine passes every check that applies, and the report says so in three forms."""

import io
import json

import numpy as np
import pytest
from certify_machines import TREE, arm, floating, four_bar
from random_machines import random_machine
from rich.console import Console

from framefree.certify import Verdict, check
from framefree.certify.agreement import agreement
from framefree.certify.frames import invariance
from framefree.certify.laws import laws
from framefree.certify.subject import Subject
from framefree.errors import FramefreeError
from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Coupling,
    Fixed,
    Joint,
    Machine,
    Prismatic,
    Revolute,
    Spherical,
)
from framefree.motion.constrained import Constrained
from framefree.motion.maximal import Maximal

THREE = {**TREE, "constrained": Constrained, "maximal": Maximal}


@pytest.fixture(scope="module")
def report():
    return check(arm(), samples=64, formulations=TREE)


def test_a_sound_arm_passes_everything(report):
    verdicts = {f.name: f.verdict for f in report.findings if f.verdict is not Verdict.SKIPPED}
    assert set(verdicts.values()) == {Verdict.PASS}
    assert report.ok
    for name in (
        "impossible_inertias",
        "skew_residual",
        "bias_residual",
        "mass_eigenvalue_min",
        "frame_residual",
        "energy_drift",
        "round_trip_residual",
        "power_residual",
    ):
        assert verdicts[name] is Verdict.PASS


def test_the_report_is_flat_json(report):
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["ok"] is True
    assert (data["nx"], data["nv"], data["bodies"]) == (3, 3, 3)
    assert 0 < data["skew_residual"] < data["skew_residual_bar"] == 1e-11
    assert data["skew_residual_verdict"] == "pass"
    assert len(data["mass_eigenvalue_min_x"]) == 3
    assert data["failures"] == []
    lists = {key for key, value in data.items() if isinstance(value, list)}
    assert lists == {"failures", "warnings", "mass_eigenvalue_min_x", "mass_eigenvalue_max_x"}


def test_the_table_names_every_check(report):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(report.table())
    text = console.export_text()
    for finding in report.findings:
        assert finding.name.replace("_", " ") in text
    assert "found, not proved" in text


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(report):
    again = check(arm(), samples=64, formulations=TREE)
    same, other = report.to_dict(), again.to_dict()
    assert {**same, "seconds": 0} == {**other, "seconds": 0}


@pytest.mark.slow
def test_progress_keeps_standard_output_clean(capsys):
    check(arm(), samples=8, states=2, formulations=TREE, progress=True)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_a_floating_machine_passes():
    report = check(floating(), samples=64, formulations=TREE)
    assert report.ok, report.failures
    assert report["joints_without_inertia"].value == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.first_cases(1)
def test_random_machines_obey_the_laws_in_every_frame(seed):
    machine = random_machine(np.random.default_rng(seed), bodies=4)
    subject = Subject(machine, THREE, states=4)
    for finding in (*laws(subject), invariance(subject), *agreement(subject)):
        if finding.name == "inertial_skew_residual" and any(
            np.any(j.armature) for j in machine.joints
        ):
            assert finding.verdict is Verdict.SKIPPED  # its M is not block-diagonal with rotors
            continue
        assert finding.verdict is Verdict.PASS, finding


@pytest.mark.parametrize(
    ("kind", "fields"), [("ball", {}), ("distance", {"length": 0.3}), ("hinge", {"axis": "y"})]
)
def test_closed_linkages_are_checked_where_they_close(kind, fields):
    report = check(four_bar(kind, **fields), samples=16, states=4, formulations=THREE)
    assert report.ok, report.failures
    assert report["agreement_tree_residual"].verdict is Verdict.SKIPPED
    agreed = report["agreement_maximal_residual"]
    assert agreed.verdict is Verdict.PASS
    # A planar linkage closed by a spatial joint leaves the wrenches across the plane open.
    wrenches = report["agreement_maximal_wrench_residual"]
    assert ("open" in wrenches.note) == (kind != "distance")
    assert wrenches.verdict is (Verdict.PASS if kind == "distance" else Verdict.SKIPPED)


def test_coupled_joints_are_checked():
    machine = arm().attach(Coupling.mimic("follow", "j2", "j1", multiplier=0.5))
    report = check(machine, samples=16, states=4, formulations=THREE)
    assert report.ok, report.failures
    assert report["agreement_maximal_residual"].verdict is Verdict.PASS


def test_a_machine_that_cannot_move_is_only_read():
    machine = Machine([Body("b", None)], [Joint("j", Fixed(), "world", "b")])
    report = check(machine)
    assert report.ok
    assert "skew_residual" not in report.to_dict()


def test_tunable_numbers_are_checked_at_their_defaults():
    machine = arm().tunable("hand.mass")
    assert check(machine, samples=8, states=4, formulations=TREE).ok


def test_options_of_reading_need_a_file():
    with pytest.raises(FramefreeError, match="`base`"):
        check(arm(), base="free")


def odd_machines():
    """Machines in which something vanishes, or is far larger than all else."""
    rod = Moments.of_body(1.0, (0, 0, -0.25), np.diag([0.03, 0.02, 0.01]))
    light = Moments.of_body(1e-6, (0, 0, -0.25), 1e-6 * np.diag([0.03, 0.02, 0.01]))

    def pair(moments=rod, stiffness=0.0, kinds=None, **options):
        kinds = kinds or (Revolute("x"), Revolute("y"))
        joints = [
            Joint("j0", kinds[0], "world", "b0", stiffness=stiffness),
            Joint("j1", kinds[1], "b0", "b1", (0, 0, -0.5), stiffness=stiffness),
        ]
        return Machine([Body("b0", moments), Body("b1", moments)], joints, **options)

    return {
        "stiff": pair(stiffness=1e6),
        "light and stiff": pair(light, stiffness=1e3),
        "sprung balls": pair(stiffness=50.0, kinds=(Spherical(), Spherical())),
        "no gravity": pair(gravity=(0, 0, 0)),
        "slides": pair(kinds=(Prismatic("x"), Prismatic("z")), gravity=(0, 0, 0)),
    }


@pytest.mark.parametrize("name", odd_machines())
def test_no_false_alarm_and_no_bar_that_is_the_measurement(name):
    report = check(odd_machines()[name], states=8, samples=64)
    assert report.ok, [(f.name, f.value, f.note) for f in report.failures]
    for finding in report.findings:
        if finding.value is not None:
            assert np.isfinite(finding.value), finding.name
            assert finding.value == 0 or finding.value != finding.bar, finding.name
    assert report["energy_drift"].bar == 1e-9


def test_huge_damping_is_no_false_alarm():
    """What flows into a damper of 1e11 Nm s/rad and is lost there leaves only its rounding."""
    rod = Moments.of_body(1.0, (0, 0, -0.5), 0.1 * np.eye(3))
    joint = Joint("j", Revolute("y"), "world", "rod", damping=1e11)
    report = check(Machine([Body("rod", rod)], [joint]), samples=16)
    assert "power_residual" not in [f.name for f in report.findings if f.verdict.name == "FAIL"]
