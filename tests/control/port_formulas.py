"""Reference velocities of the port laws by the formulas of the document, from the maximal form."""

import casadi as ca
import numpy as np
from random_machines import evaluate

import framefree as ff
from framefree.control.port import PoseControl, VelocityControl
from framefree.geometry import se3


def dense(law, closed):
    """nu, nu_r by the formulas of the documents, and J, all from the maximal form."""
    machine = law.machine
    eom = ff.equations(machine, "maximal")
    x, nu = eom.functions["from_joints"](closed.x, closed.v)
    P, Phi = (evaluate(eom.functions[name], x) for name in ("projector", "mobility"))
    J = evaluate(eom.functions["constraint"], x, nu)[0]
    poses = evaluate(eom.functions["body_pose"], x).reshape(-1, 4, 4)
    given, nu_d, gradient = closed.given, [], []
    for body, G in zip(machine.bodies, poses, strict=True):
        R = G[:3, :3]
        if isinstance(law, VelocityControl):
            world = given[f"{body.name}.velocity"]
            nu_d += [R.T @ world[:3], R.T @ world[3:]]
        elif isinstance(law, PoseControl):
            Gd, twist = given[f"{body.name}.pose"], given[f"{body.name}.twist"]
            nu_d += [R.T @ Gd[:3, :3] @ twist[:3], R.T @ Gd[:3, :3] @ twist[3:]]
            Q = (np.eye(4) - np.linalg.inv(G) @ Gd) @ np.asarray(body.moments.matrix4)
            turned = Q[:3, :3] - Q[:3, :3].T
            gradient += [Q[:3, 3], [turned[2, 1], turned[0, 2], turned[1, 0]]]
    nu = np.asarray(nu).ravel()
    if isinstance(law, VelocityControl):
        return nu, P @ np.concatenate(nu_d), J
    if isinstance(law, PoseControl):
        return nu, P @ np.concatenate(nu_d) - law.rate * Phi @ np.concatenate(gradient), J
    return nu, _end_effector(law, given, poses, Phi), J


def _end_effector(law, given, poses, Phi):
    G, frame = poses[-1], law.frame
    Gd, twist = given[f"{frame}.pose"], given[f"{frame}.twist"]
    R, turn = G[:3, :3], G[:3, :3].T @ Gd[:3, :3]
    sine = (turn.T - turn) / 2
    sine = np.array([sine[2, 1], sine[0, 2], sine[1, 0]])
    wished = np.concatenate(
        [
            turn @ twist[:3] - law.rate * R.T @ (G[:3, 3] - Gd[:3, 3]),
            turn @ twist[3:] - law.turn_rate * sine,
        ]
    )
    J_t = np.eye(len(Phi))[-6:]
    push = np.zeros(len(Phi))
    if law.avoidance is not None:
        Phi, push = guarded(law, poses, Phi)
    Jbar = Phi @ J_t.T @ np.linalg.inv(J_t @ Phi @ J_t.T)
    return Jbar @ wished + (np.eye(len(Phi)) - Jbar @ J_t) @ Phi @ push


def guarded(law, poses, Phi):
    """Mobility with the inertia of the barrier, and its push: from differences of distances."""
    avoidance, machine = law.avoidance, law.machine
    mass = sum(body.moments.total for body in machine.bodies)
    lines, inertia, push = avoidance.lines_of(machine), np.zeros(Phi.shape), np.zeros(len(Phi))
    for i, (body, G) in enumerate(zip(machine.bodies, poses, strict=True)):
        part = slice(6 * i, 6 * i + 6)
        for line in lines[body.name]:
            for item in avoidance.obstacles:
                d = line_gaps(item, G, line)
                w = np.array([moved_gaps(item, G, line, k) for k in range(6)])
                rho = mass * (np.maximum(avoidance.reach - d, 0) / d) ** 2
                target = avoidance.speed * (1 - d / avoidance.reach)
                inertia[part, part] += w @ np.diag(rho) @ w.T
                push[part] += w @ (rho * target)
    # The inverse of the mobility on what the joints allow, with the added inertia there.
    values, basis = np.linalg.eigh(Phi)
    basis = basis[:, values > 1e-9 * values.max()]
    allowed = np.linalg.inv(basis.T @ Phi @ basis) + basis.T @ inertia @ basis
    return basis @ np.linalg.solve(allowed, basis.T), push


def line_gaps(item, G, line):
    """Distances of a line on a body at a pose, of which a barrier makes rows."""
    ends = [ca.DM(G[:3, :3] @ end + G[:3, 3]) for end in line]
    return np.array([float(one) for one in item.gaps(*ends)])


def moved_gaps(item, G, line, k):
    h = 1e-6 * np.eye(6)[k]
    ends = [line_gaps(item, G @ se3.exp(sign * h).full(), line) for sign in (1, -1)]
    return (ends[0] - ends[1]) / 2e-6
