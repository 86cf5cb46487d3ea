"""Derivatives of the tree's motion against Pinocchio's analytical ones."""

import numpy as np
import pytest
from random_machines import without_forces
from test_against_pinocchio import URDFS, Peer
from test_linearise import Derivatives

from framefree.machine.read import read

pin = pytest.importorskip("pinocchio", reason="needs the extra `peers`")

FEW = ("panda.urdf", "ur5_robot.urdf", "hyq_no_sensors.urdf", "talos_reduced.urdf", "kinova.urdf")
"""Robots compared on every run: arms, legs, wheels that turn for ever; the others are slow."""

CASES = [
    pytest.param(name, base, marks=() if name.endswith(FEW) else pytest.mark.slow)
    for name in URDFS
    for base in ("fixed", "free")
    if not (name.endswith("talos_reduced.urdf") and base == "fixed")
]


@pytest.mark.parametrize(("name", "base"), CASES)
def test_derivatives_agree(name, base):
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(str(URDFS[name]), *root)
    if model.nv == 0:
        pytest.skip("nothing moves in this file")
    machine = without_forces(read(URDFS[name], base=base, mimic="independent"), gravity=True)
    peer = Peer(machine, model)
    peer.eom = Derivatives(machine)
    data = peer.data
    mass = peer.matrices(_slope(pin.computeRNEADerivatives, model, data, "M", upper=True))
    good = np.linalg.cond(mass) < 1e8
    for quantity, call, slopes, kept in (
        (
            "inverse_derivatives",
            pin.computeRNEADerivatives,
            ("dtau_dq", "dtau_dv", "M"),
            good | True,
        ),
        ("forward_derivatives", pin.computeABADerivatives, ("ddq_dq", "ddq_dv", "Minv"), good),
    ):
        ours = peer.ours(quantity, peer.x, peer.v, peer.a)
        for slope, found in zip(slopes, ours, strict=True):
            upper = slope in ("M", "Minv")
            expected = peer.matrices(_slope(call, model, data, slope, upper=upper))
            scale = np.maximum(np.abs(expected[kept]).max((1, 2)), 1e-6)
            worst = np.abs(found[kept] - expected[kept]).max((1, 2)) / scale
            assert worst.max(initial=0) <= 1e-10, f"{quantity} {slope}: {worst.max():.2e}"


def _slope(call, model, data, name, *, upper):
    """Return the function that reads one result; of symmetric ones the upper half is filled."""

    def values(q, v, a):
        call(model, data, q, v, a)
        matrix = np.array(getattr(data, name))
        return np.triu(matrix) + np.triu(matrix, 1).T if upper else matrix

    return values
