"""The skew property of the maximal form in inertial layout is measured, and the check can fail."""

from dataclasses import replace

import pytest

from framefree.certify import laws
from framefree.certify.report import Verdict
from framefree.certify.subject import Subject
from framefree.gallery.machines.chains import chain
from framefree.motion.maximal.inertial import tensors
from framefree.motion.tree import Tree


def measured(machine):
    return laws.inertial_layout(Subject(machine, {"tree": Tree}, 4, 16, 0, None))


def test_a_chain_is_skew_in_inertial_layout():
    found = measured(chain(3, masses=[1.0, 2.0, 0.5], radius=0.1))
    assert found.name == "inertial_skew_residual"
    assert found.verdict is Verdict.PASS
    assert 0 < found.value < 1e-12


@pytest.mark.parametrize("fault", ["sign", "transposed", "inertia"])
def test_wrong_matrices_are_seen(fault, monkeypatch):
    def wrong(state):
        M_v, M, C, D_M = tensors(state)
        if fault == "inertia":
            return M_v, 1.001 * M, C, D_M
        return M_v, M, -C if fault == "sign" else C.T, D_M

    monkeypatch.setattr(laws, "tensors", wrong)
    assert measured(chain(2, radius=0.1)).verdict is Verdict.FAIL


def test_rotors_are_named_as_what_the_layout_cannot_hold():
    machine = chain(2)
    joints = [replace(one, armature=0.1) if one.nv == 3 else one for one in machine.joints]
    found = measured(replace(machine, joints=joints))
    assert found.verdict is Verdict.SKIPPED
    assert "rotors" in found.note
