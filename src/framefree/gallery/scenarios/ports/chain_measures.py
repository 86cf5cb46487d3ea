"""Figures taken from runs of chains, for the scenarios."""

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.port import Sphere
from framefree.gallery.shared.rotations import angle_between
from framefree.kernel import compile
from framefree.look.report.scene import body_poses
from framefree.machine import Machine, Spherical
from framefree.motion import Load, equations
from framefree.motion.quantities import table
from framefree.motion.tree import Tree
from framefree.simulate import Pulse, Run


def body_momenta(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return linear and angular momentum (rows, bodies, 3) of every body, about the origin."""
    machine = _machine(run)
    G = body_poses(machine, run.x)
    xi = equations(machine, "tree").body_velocity(run.x, run.v)
    M = np.array([body.moments.matrix6 for body in machine.bodies])
    h = np.einsum("bij,nbj->nbi", M, xi)
    R, r = G[..., :3, :3], G[..., :3, 3]
    p = np.einsum("nbij,nbj->nbi", R, h[..., :3])
    own = np.einsum("nbij,nbj->nbi", R, h[..., 3:])
    return p, own + np.cross(r, p)


def joint_forces(run: Run) -> np.ndarray:
    """Return the size (rows, joints) of the force that every joint carries, N."""
    return np.linalg.norm(run["joint_wrench"][..., :3], axis=-1)


def tree_joint_forces(run: Run, pulses: Sequence[Pulse]) -> np.ndarray:
    """Return the forces (rows, joints, 3) of the joints by the tree form, at the states of a run.

    `pulses` are what acts on bodies, in world axes at the bodies' frames.
    """
    machine = _machine(run)
    x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
    loads = ca.SX.sym("loads", 6 * len(machine.bodies))
    state = Tree(machine).at(x, v)
    wrenches = ca.vertsplit(loads, 6)
    carried = table(state.joint_wrenches(Load(machine, wrenches=wrenches)), 6)
    names = ["x", "v", "loads"], ["wrench"]
    function = ca.Function("carried", [x, v, loads], [ca.densify(carried.value)], *names)
    kernel = compile(function, shapes={"wrench": carried.shape})
    R = body_poses(machine, run.x)[..., :3, :3]
    applied = np.zeros((len(run), len(machine.bodies), 6))
    # Like the integrator, a record takes the mean of a pulse over the step that begins there.
    h = run.meta["options"]["dt"]
    for pulse in pulses:
        i = machine.body_index[pulse.target]
        inside = np.minimum(run.t + h, pulse.stop) - np.maximum(run.t, pulse.start)
        share = np.clip(inside / h, 0.0, 1.0)
        for part in (slice(0, 3), slice(3, 6)):
            turned = np.einsum("nji,j->ni", R[:, i], pulse.size[part])
            applied[:, i, part] += share[:, None] * turned
    return kernel(run.x, run.v, applied.reshape(len(run), -1))[..., :3]


def violations_of_s(run: Run) -> np.ndarray:
    """Return the largest entry (rows,) of J s: how fast the ends of rods part at ball joints.

    J is that of the maximal form, its rows in the axes of the child.
    """
    machine, s = _machine(run), run["s"].reshape(len(run), -1, 6)
    R = body_poses(machine, run.x)[..., :3, :3]
    worst = np.zeros(len(run))
    for i, joint in enumerate(machine.joints):
        if joint.nv == 6:
            continue
        assert isinstance(joint.kind, Spherical)
        parting = _velocity_at(s[:, i], joint.child_pose)
        parent = machine.parent[i]
        if parent >= 0:
            turned = np.einsum("nji,njk->nik", R[:, i], R[:, parent])
            above = _velocity_at(s[:, parent], joint.parent_pose)
            parting = parting - np.einsum("nij,nj->ni", turned, above)
        worst = np.maximum(worst, np.abs(parting).max(axis=1))
    return worst


def _velocity_at(twists: np.ndarray, pose: Any) -> np.ndarray:
    """Return the velocity (rows, 3) of a point of a body with body twists (rows, 6)."""
    return twists[:, :3] + np.cross(twists[:, 3:], np.asarray(pose, float)[:3, 3])


def frame_errors(run: Run, frame: str) -> tuple[np.ndarray, np.ndarray]:
    """Return position error (m) and angle (deg), (rows,) each, of a frame and its reference."""
    machine = _machine(run)
    own = machine.frame(frame)
    poses = body_poses(machine, run.x)[:, machine.body_index[own.body]] @ np.asarray(own.pose)
    desired = run[f"{frame}.pose"]
    gap = np.linalg.norm(poses[:, :3, 3] - desired[:, :3, 3], axis=1)
    return gap, np.rad2deg(angle_between(poses[:, :3, :3], desired[:, :3, :3]))


def body_errors(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return position errors (m) and angles (deg), (rows, bodies) each, of bodies with poses."""
    machine = _machine(run)
    poses = body_poses(machine, run.x)
    desired = np.stack([run[f"{body.name}.pose"] for body in machine.bodies], axis=1)
    gap = np.linalg.norm(poses[..., :3, 3] - desired[..., :3, 3], axis=-1)
    return gap, np.rad2deg(angle_between(poses[..., :3, :3], desired[..., :3, :3]))


def velocity_errors(run: Run) -> np.ndarray:
    """Return by how much (rows, bodies) the bodies' velocities differ from those asked for, m/s."""
    machine = _machine(run)
    R = body_poses(machine, run.x)[..., :3, :3]
    xi = equations(machine, "tree").body_velocity(run.x, run.v)
    desired = np.stack([run[f"{body.name}.velocity"] for body in machine.bodies], axis=1)
    return np.linalg.norm(np.einsum("nbij,nbj->nbi", R, xi[..., :3]) - desired[..., :3], axis=-1)


def rod_clearance(run: Run, sphere: Sphere, half_lengths: Any, radius: float) -> np.ndarray:
    """Return the distance (rows, bodies) of rods along their x axes to a sphere, m."""
    G = body_poses(_machine(run), run.x)
    return rods_to_ball(G, np.asarray(sphere.center), sphere.radius, half_lengths, radius)


def rods_to_ball(
    rods: np.ndarray, center: np.ndarray, ball: float, half_lengths: Any, radius: float
) -> np.ndarray:
    """Return the distance (...) of rods of poses (..., 4, 4) along x to balls about (..., 3), m."""
    to_center, axis = center - rods[..., :3, 3], rods[..., :3, 0]
    half = np.asarray(half_lengths, float)
    along = np.clip(np.einsum("...i,...i", to_center, axis), -half, half)
    gap = np.linalg.norm(to_center - along[..., None] * axis, axis=-1)
    return gap - ball - radius


def _machine(run: Run) -> Machine:
    assert run.machine is not None
    return run.machine
