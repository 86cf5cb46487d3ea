"""Derivatives of the tree's motion against Pinocchio's analytical ones.

Those of forward dynamics are compared only where Pinocchio agrees with itself: its
``computeABADerivatives`` with its own mass matrix and derivatives of inverse dynamics. Where light
tips hang on heavy bodies it loses digits that the latter keep.
"""

import numpy as np
import pytest
from random_machines import without_forces
from test_against_pinocchio import URDFS, Peer

from framefree.machine.read import read
from framefree.motion.tree import Tree

pin = pytest.importorskip("pinocchio", reason="needs the extra `peers`")

FEW = ("panda.urdf", "ur5_robot.urdf", "hyq_no_sensors.urdf", "talos_reduced.urdf", "kinova.urdf")
"""Robots compared on every run: arms, legs, joints that turn for ever; the others are slow."""

BAR = 1e-10

CASES = [
    pytest.param(name, base, marks=() if name.endswith(FEW) else pytest.mark.slow)
    for name in URDFS
    for base in ("fixed", "free")
    if not (name.endswith("talos_reduced.urdf") and base == "fixed")
]


def peer_of(name, base):
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(str(URDFS[name]), *root)
    if model.nv == 0:
        pytest.skip("nothing moves in this file")
    machine = without_forces(read(URDFS[name], base=base, mimic="independent"), gravity=True)
    peer = Peer(machine, model)
    peer.eom = Tree(machine)
    return peer


def worst(found, expected):
    """Largest difference of each state, relative to the largest number of that state."""
    scale = np.maximum(np.abs(expected).max((1, 2)), 1e-3)
    return np.abs(found - expected).max((1, 2)) / scale


@pytest.mark.parametrize(("name", "base"), CASES)
def test_derivatives_agree(name, base):
    peer = peer_of(name, base)
    ours = peer.ours("inverse_derivatives", peer.x, peer.v, peer.a)
    theirs = inverse_slopes(peer, lambda q, v, a: a)
    for slope, found, expected in zip(("dq", "dv", "M"), ours, theirs, strict=True):
        assert worst(found, expected).max() <= BAR, f"inverse by {slope}"

    ours = peer.ours("forward_derivatives", peer.x, peer.v, peer.a)
    theirs = forward_slopes(peer)
    by_q, by_v, mass = inverse_slopes(peer, lambda q, v, a: pin.aba(peer.model, peer.data, q, v, a))
    condition = np.linalg.cond(mass)
    good = condition < 1e8
    mass = np.where(good[:, None, None], mass, np.eye(mass.shape[1]))
    derived = [*(-solved(mass, right) for right in (by_q, by_v)), solved(mass, None)]
    bar = np.maximum(BAR, 1e-16 * condition)  # the problem itself has no more digits
    for slope, found, given, expected in zip(
        ("dq", "dv", "force"), ours, theirs, derived, strict=True
    ):
        error = worst(found, expected) / bar
        assert error[good].max(initial=0) <= 1, f"forward by {slope}: {error[good].max():.2g}"
        same = good & (worst(given, expected) <= bar / 2)
        error = worst(found, given) / (1.5 * bar)
        assert error[same].max(initial=0) <= 1, f"forward by {slope}: {error[same].max():.2g}"


def inverse_slopes(peer, acceleration):
    """Pinocchio's slopes of inverse dynamics by q and v, and M, at an acceleration."""
    model, data = peer.model, peer.data

    def values(q, v, a):
        pin.computeRNEADerivatives(model, data, q, v, np.array(acceleration(q, v, a)))
        slopes = np.array(data.dtau_dq), np.array(data.dtau_dv)
        # Of the recursion in link axes: the M of the call above has lost digits at light tips.
        return np.array([*slopes, full(pin.crba(model, data, q))])

    return ordered(peer, values)


def forward_slopes(peer):
    """Pinocchio's slopes of forward dynamics by q, v and force."""
    model, data = peer.model, peer.data

    def values(q, v, a):
        pin.computeABADerivatives(model, data, q, v, a)
        return np.array([data.ddq_dq, data.ddq_dv, full(data.Minv)])

    return ordered(peer, values)


def ordered(peer, values):
    found = peer.theirs(values)[:, :, peer.place][:, :, :, peer.place]
    return found.swapaxes(0, 1)


def full(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def solved(mass, right):
    """Return M^-1 right, M scaled to a unit diagonal: this keeps the digits of light tips."""
    scale = 1 / np.sqrt(np.einsum("nii->ni", mass))
    unit = mass * scale[:, :, None] * scale[:, None, :]
    right = np.eye(mass.shape[1]) if right is None else right
    return scale[:, :, None] * np.linalg.solve(unit, scale[:, :, None] * right)
