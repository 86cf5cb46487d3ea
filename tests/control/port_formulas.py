"""Port laws in closed loop at random states, and their formulas from the maximal form."""

import casadi as ca
import numpy as np
from random_machines import evaluate, random_pose

import framefree as ff
from framefree.control.port import PoseControl, VelocityControl
from framefree.geometry import se3
from framefree.motion.actuation import input_bias, input_matrix
from framefree.motion.tree import Tree


class Closed:
    """A law as a function of state and reference, with the true rate of V in closed loop.

    `error` is what the law is wrongly told of accelerations.
    """

    def __init__(self, law, error=0.0):
        machine = self.machine = law.machine
        x, v = ca.SX.sym("x", machine.nx), ca.SX.sym("v", machine.nv)
        self.names, given, moving, speed = [], {}, [x, v], [machine.rate_matrix(x) @ v]
        self.symbols = [x, v]
        for name in law.needs:
            size = (4, 4) if name.endswith(".pose") else (6, 1)
            given[name] = ca.SX.sym(name, *size)
            self.names.append(name)
            self.symbols.append(given[name])
        told = {
            name: value + error if name.endswith(("acceleration", "velocity_rate")) else value
            for name, value in given.items()
        }
        found = law.control(ca.SX(0), x, v, told, ca.SX(0, 1))
        state = Tree(machine).at(x, v)
        force = input_matrix(state) @ found.u + input_bias(state)
        speed.append(state.accelerate(force))
        for name in law.needs:
            frame, _, what = name.rpartition(".")
            if what == "pose":
                moving.append(given[name])
                speed.append(given[name] @ se3.wed(given[f"{frame}.twist"]))
            elif what == "twist":
                moving.append(given[name])
                speed.append(given[f"{frame}.acceleration"])
            elif what == "velocity":
                moving.append(given[name])
                speed.append(given[f"{frame}.velocity_rate"])
        V = found.signals["V"]
        self.moving, self.speed = (ca.vertcat(*map(ca.vec, one)) for one in (moving, speed))
        true = ca.jtimes(V, self.moving, self.speed)
        outputs = [V, found.signals["V_rate"], true, found.signals["s"], found.u]
        outputs.append(found.signals.get("unrealised", ca.SX(1, 1)))
        outputs.append(found.signals.get("clearance", ca.SX(1)))
        outputs.append(found.signals.get("task_mobility", ca.SX(1)))
        self.function = ca.Function("closed", self.symbols, outputs)

    def __call__(self, rng):
        """Evaluate at a random state that is clear of obstacles and singularities."""
        while True:
            self.x = self.machine.random(rng)
            self.v = rng.normal(size=self.machine.nv)
            self.given = {
                name: random_pose(rng) if name.endswith(".pose") else rng.normal(size=6)
                for name in self.names
            }
            *found, clearance, mobility = self.at(self.x, self.v, self.given)
            if clearance > 0.1 and mobility > 1e-4:
                return found

    def at(self, x, v, given):
        V, stated, true, *rest = evaluate(self.function, x, v, *given.values())
        return V.item(), stated.item(), true.item(), *rest


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
