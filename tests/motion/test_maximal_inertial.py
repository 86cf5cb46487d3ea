"""The inertial layout of the maximal form: the matrices of the document's appendices, by name."""

from dataclasses import replace

import numpy as np
import pytest
from random_machines import random_machine, relative_error

import framefree as ff
from framefree.gallery.machines.arms import iiwa
from framefree.gallery.machines.auv import auv
from framefree.gallery.machines.chains import chain
from framefree.gallery.machines.five_bar import five_bar, five_bar_at
from framefree.machine import MachineError


def wed(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def at(machine, x, v):
    """The maximal form, its state, and its matrices."""
    eom = ff.equations(machine, "maximal")
    own = [np.asarray(one).ravel() for one in eom.functions["from_joints"](x, v)]
    return eom, *own, eom.inertial(*own)


def test_the_matrices_of_a_chain_are_those_of_appendix_b():
    masses, lengths = [1.0, 2.0, 0.7], [0.4, 0.5, 0.3]
    machine = chain(3, masses=masses, lengths=lengths, radius=0.1)
    rng = np.random.default_rng(0)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    _, _, _, m = at(machine, x, v)
    poses = ff.equations(machine).body_pose(x)
    twists = ff.equations(machine).body_velocity(x, v)
    R, r = poses[:, :3, :3], poses[:, :3, 3]
    w = np.einsum("bij,bj->bi", R, twists[:, 3:])
    assert np.allclose(m.nu[:9].reshape(3, 3), np.einsum("bij,bj->bi", R, twists[:, :3]))
    assert np.allclose(m.nu[9:].reshape(3, 3), w)
    assert np.allclose(m.M_v, np.kron(np.diag(masses), np.eye(3)))
    eye, S = np.eye(3), {}
    J_v, J_omega, gamma = np.zeros((6, 9)), np.zeros((6, 9)), np.zeros(6)
    for j in range(2):
        joint = r[j] + R[j] @ [lengths[j] / 2, 0, 0]
        rows = slice(3 * j, 3 * j + 3)
        for b, sign in ((j, -1), (j + 1, 1)):
            s = r[b] - joint  # from the joint to the mass center
            S[b, j] = wed(s)
            own = slice(3 * b, 3 * b + 3)
            J_v[rows, own], J_omega[rows, own] = sign * eye, sign * S[b, j]
            gamma[rows] += sign * np.cross(w[b], np.cross(w[b], s))
    assert np.allclose(m.J_v, J_v)
    assert np.allclose(m.J_omega, J_omega)
    assert np.allclose(m.gamma, gamma)
    assert np.allclose(m.C_F, -J_v.T)
    assert np.allclose(m.C_M, -J_omega.T)
    inertia = [R[b] @ machine.bodies[b].moments.moment_at_center @ R[b].T for b in range(3)]
    for b in range(3):
        own = slice(3 * b, 3 * b + 3)
        assert np.allclose(m.M_omega[own, own], inertia[b])
        assert np.allclose(m.C_omega[own, own], wed(w[b]) @ inertia[b])
        N = m.N[9:, 9:][own, own]
        assert np.allclose(N, -wed(w[b]) @ inertia[b] - inertia[b] @ wed(w[b]))


def plain(rng):
    """A random machine without rotors and added mass."""
    while True:
        machine = replace(random_machine(rng, 4), fluid=None)
        if not any(np.any(joint.armature) for joint in machine.joints):
            return machine


MACHINES = {"random": plain, "robot": lambda rng: iiwa(), "five-bar": lambda rng: five_bar(0.3)}


@pytest.mark.parametrize("name", MACHINES)
def test_the_layout_is_skew_and_moves_as_the_body_twists_do(name):
    rng = np.random.default_rng(5)
    machine = MACHINES[name](rng)
    x, v = machine.random(rng), rng.normal(size=machine.nv)
    joints = ff.equations(machine, "constrained" if machine.closed else "tree")
    if machine.closed:
        near = joints.project(five_bar_at(machine, (0, 0.45)), v)
        x, v = near.x, near.v
    eom, X, nu, m = at(machine, x, v)
    assert np.abs(m.N + m.N.T).max() < 1e-14 * np.abs(m.M).max() * max(1, np.abs(m.nu).max())
    assert np.abs(m.J @ m.nu).max() < 1e-9 * np.abs(m.nu).max()
    # Rates against differences along the motion that the formulation in joints gives.
    force, motors, h = rng.normal(size=nu.size), rng.normal(size=machine.nv), 1e-5
    T = eom.functions["stacked_jacobian"](X).full()
    a = joints.functions["forward"](x, v, T.T @ force + motors).full().ravel()
    one, other = (
        at(machine, machine.integrate(x, s * v + s**2 / 2 * a), v + s * a)[3] for s in (h, -h)
    )
    assert relative_error((one.M - other.M) / (2 * h), m.D_M) < 1e-6
    rate, F_J, port = (
        np.asarray(part).ravel() for part in eom.functions["inertial_motion"](X, nu, force, motors)
    )
    assert relative_error((one.nu - other.nu) / (2 * h), rate) < 1e-5
    # The equations of the document, with the sign of errata E0-2.
    left = m.K @ np.concatenate([rate, F_J])
    assert relative_error(left, np.concatenate([m.F_known + port, m.gamma])) < 1e-9


def test_joint_forces_of_a_hanging_chain_carry_the_weight_below():
    machine = chain(3, held=True, spring="none", masses=[1.0, 2.0, 3.0])
    down = np.zeros(machine.nv)
    down[1] = np.pi / 2
    x = machine.integrate(machine.neutral(), down)
    eom, X, nu, _ = at(machine, x, np.zeros(machine.nv))
    zeros = np.zeros(nu.size), np.zeros(machine.nv)
    F_J = np.asarray(eom.functions["inertial_motion"](X, nu, *zeros)[1]).reshape(3, 3)
    assert np.allclose(F_J, [[0, 0, -9.81 * below] for below in (6, 5, 3)], atol=1e-9)


def test_what_the_layout_cannot_hold_is_refused():
    arm = iiwa()
    geared = replace(arm, joints=[replace(arm.joints[0], armature=0.1), *arm.joints[1:]])
    wet = auv()
    wet = replace(wet, joints=[replace(joint, armature=0.0) for joint in wet.joints])
    for machine, why in ((geared, "rotors"), (wet, "added mass")):
        x = machine.neutral()
        with pytest.raises(MachineError, match=why):
            at(machine, x, np.zeros(machine.nv))
