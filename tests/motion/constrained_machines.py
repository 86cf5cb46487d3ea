"""Machines with loops for the tests of the constrained and embedded formulations."""

from dataclasses import replace

import casadi as ca
import numpy as np
from random_machines import random_machine

from framefree.geometry import Moments
from framefree.machine import Body, Coupling, Frame, Joint, Loop, Machine, Prismatic, Revolute
from framefree.motion.constrained.project import ClosureError
from framefree.motion.tree import Tree

KINDS = ("weld", "ball", "hinge", "slider", "distance")


def at(x, y, z=0.0, turn=None):
    G = np.eye(4)
    G[:3, 3] = x, y, z
    if turn is not None:
        G[:3, :3] = turn
    return G


def rod(name):
    return Body(name, Moments.of_body(1.0, [0.5, 0, 0], np.diag([0, 1 / 12, 1 / 12])))


def n_four_bar(count, kind="hinge", world=None):
    """N four-bars in a row of rods of 1 kg and 1 m, in the plane x-y of a world frame.

    [Gonzalez2006], benchmark A02.
    """
    world = np.eye(4) if world is None else world
    bodies, joints, frames, loops = [], [], [], []
    axis = {"axis": "z"} if kind == "hinge" else {}
    for i in range(count + 1):
        bodies.append(rod(f"v{i}"))
        joints.append(Joint(f"p{i}", Revolute("z"), "world", f"v{i}", parent_pose=world @ at(i, 0)))
        frames.append(Frame(f"top{i}", f"v{i}", at(1, 0)))
    for i in range(count):
        bodies.append(rod(f"h{i}"))
        joints.append(Joint(f"e{i}", Revolute("z"), f"v{i}", f"h{i}", parent_pose=at(1, 0)))
        frames.append(Frame(f"end{i}", f"h{i}", at(1, 0)))
        loops.append(Loop(f"l{i}", kind, f"top{i + 1}", f"end{i}", **axis))
    gravity = world[:3, :3] @ (0, -9.81, 0)
    return Machine(bodies, joints, frames, loops=loops, gravity=gravity, name="four-bars")


def four_bar_state(machine, phi, rate):
    """State with all upright rods at angle phi from the vertical, horizontal rods level."""
    signs = np.array([1.0 if name[0] == "p" else -1.0 for name in machine.x_names])
    return signs * (np.pi / 2 - phi), -signs * rate


def random_closed(rng, kinds=KINDS, **options):
    """A random tree with one or two loops, closed in the configuration that is returned.

    At least one velocity stays free.
    """
    while True:
        machine = random_machine(rng, bodies=int(rng.integers(3, 7)), **options)
        if machine.nv < 2:
            continue
        x = machine.random(rng)
        loops = []
        for k in range(rng.integers(1, 3)):
            names = rng.permutation([frame.name for frame in machine.frames])
            loops.append(_loop(rng, machine, f"loop{k}", kinds[rng.integers(len(kinds))], names, x))
        closed = replace(machine, loops=loops)
        if sum(loop.size for loop in loops) < closed.nv:
            return closed, x


def _loop(rng, machine, name, kind, frames, x):
    a, b = frames[:2]
    eom = Tree(replace(machine, loops=(), couplings=()))
    G_a, G_b = (np.array(ca.DM(eom.functions[f"frame_pose:{f}"](x))) for f in (a, b))
    G = np.linalg.inv(G_a) @ G_b
    if kind == "distance":
        return Loop(name, kind, a, b, length=np.linalg.norm(G[:3, 3]))
    axis = {"axis": rng.normal(size=3)} if kind in ("hinge", "slider") else {}
    return Loop(name, kind, a, b, rest=_orthonormal(G), **axis)


def _orthonormal(G):
    U, _, V = np.linalg.svd(G[:3, :3])
    return at(*G[:3, 3], turn=U @ V)


def random_couplings(rng):
    """A random tree in which some plain coordinates follow from others, some of them twice over."""
    while True:
        machine = random_machine(rng, bodies=int(rng.integers(3, 8)))
        plain = [name for joint in machine.joints if joint.kind.vector for name in joint.x_names]
        if len(plain) < 4:
            continue
        target, middle, *sources = rng.permutation(plain)[:4]
        first = Coupling("first", target, (middle, sources[0]), lambda p, q: p * ca.sin(q) + p)
        second = Coupling("second", middle, sources[1], lambda q: ca.tanh(q) - q / 3)
        return replace(machine, couplings=(first, second))


def closed_state(rng, equations, x, spread=0.2):
    """A random closed state of the tree near x."""
    for _ in range(20):
        near = equations.machine.integrate(x, spread * rng.normal(size=equations.machine.nv))
        try:
            found = equations.project(near, rng.normal(size=equations.machine.nv))
        except ClosureError:
            continue
        return one_turn(equations.machine, found.x), found.v
    found = equations.project(x, rng.normal(size=equations.machine.nv))
    return one_turn(equations.machine, found.x), found.v


def one_turn(machine, x):
    """Angles within (-pi, pi]: poses of bodies, which maximal has, do not tell full turns."""
    x = x.copy()
    for joint in machine.joints:
        if isinstance(joint.kind, Revolute):
            angle = x[machine.x_slice[joint.name]]
            x[machine.x_slice[joint.name]] = np.arctan2(np.sin(angle), np.cos(angle))
    return x


def crane(closed):
    """The series-parallel manipulator of [Dastranj2026]; with `closed`, cylinder and piston too.

    The boom's shoulder axis is horizontal, links lie along x.
    """
    up = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])

    def link(name, mass, center, inertia):
        return Body(name, Moments.of_body(mass, center, inertia))

    I2 = [[0.311, -0.065, 0.098], [-0.065, 22.7, -0.003], [0.098, -0.003, 22.8]]
    I3 = [[0.311, 0.065, -0.098], [0.065, 22.7, -0.003], [-0.098, -0.003, 22.8]]
    bodies = [
        link("base", 30.0, (0, 0, 0.103), np.diag([0.804, 0.831, 1.18])),
        link("boom", 60.0, (0.959, 0.001, -0.077), np.array(I2)),
        link("arm", 60.0, (1.041, 0.001, -0.077), np.array(I3)),
    ]
    joints = [
        Joint("phi", Revolute("z"), "world", "base"),
        Joint("theta", Revolute("z"), "base", "boom", parent_pose=at(0, -0.075, 0.206, turn=up)),
        Joint("zeta", Revolute("z"), "boom", "arm", parent_pose=at(2, 0)),
    ]
    frames = [Frame("tip", "arm", at(2, 0))]
    loops = []
    if closed:
        bodies += [
            Body("cylinder", Moments.of_body(1.5, [0.1, 0, 0], 0.01 * np.eye(3))),
            Body("piston", Moments.of_body(1.0, [-0.1, 0, 0], 0.01 * np.eye(3))),
        ]
        joints += [
            Joint("beta", Revolute("z"), "boom", "cylinder", parent_pose=at(2 - 0.35, 0)),
            Joint("delta", Prismatic("x"), "cylinder", "piston", parent_pose=at(0.425, 0)),
        ]
        frames.append(Frame("mount", "arm", at(0.35, 0)))
        loops.append(Loop("cylinder_end", "hinge", "mount", "piston", axis="z"))
    return Machine(bodies, joints, frames, loops=loops, name="crane")


def crane_elbow(delta):
    """Return zeta(delta) of the isosceles triangle of sides 0.35 m, 0.35 m and 0.425 m + delta."""
    return -ca.acos((0.425 + delta) ** 2 / (2 * 0.35**2) - 1)
