"""Random machines and states for property tests: trees over all joint kinds, with all that acts."""

from dataclasses import replace

import casadi as ca
import numpy as np

from framefree.geometry import Moments
from framefree.machine import (
    Body,
    Continuous,
    Cylindrical,
    Fixed,
    Fluid,
    Frame,
    Free,
    Helical,
    Immersed,
    Joint,
    Machine,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from framefree.machine.damper import Damper
from framefree.machine.spring import Spring


def random_rotation(rng):
    q = rng.normal(size=4)
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_pose(rng, size=0.5):
    G = np.eye(4)
    G[:3, :3] = random_rotation(rng)
    G[:3, 3] = rng.uniform(-size, size, 3)
    return G


def random_moments(rng, total=None, size=0.3):
    """Moments of a few random points: physically consistent and positive definite."""
    points = rng.uniform(-size, size, (6, 3))
    weights = rng.uniform(0.1, 1.0, 6)
    if total is not None:
        weights *= total / weights.sum()
    return Moments.of_points(points, weights)


def decades(rng, low, high, shape=None):
    """Return numbers between 10^low and 10^high, evenly spread over the decades."""
    return 10.0 ** rng.uniform(low, high, shape)


def some(rng, values, share):
    """Return values of which each is kept with a probability, and zero otherwise."""
    return values * (rng.random(np.shape(values)) < share)


def random_kind(rng):
    axis = rng.normal(size=3)
    kinds = [
        lambda: Revolute(axis),
        lambda: Revolute("xyz"[rng.integers(3)]),
        lambda: Continuous(axis),
        lambda: Prismatic(axis),
        lambda: Helical(axis, pitch=rng.uniform(-0.3, 0.3)),
        lambda: Cylindrical(axis),
        lambda: Universal(axis, np.cross(axis, rng.normal(size=3))),
        lambda: Planar(axis),
        lambda: Spherical(),
        lambda: Free(),
        lambda: Fixed(),
    ]
    return kinds[rng.integers(len(kinds))]()


def random_machine(rng, bodies=None, *, passive=True, fluid=True, massless=True):
    """A tree of 1 to 12 bodies; with `passive` springs, dampers, friction and rotors too.

    No two bodies or joints are alike: masses differ by two decades and sizes by one along a chain,
    every velocity of a joint has an armature, a damping, a friction and a stiffness of its own.
    With `massless` (and `passive`), some bodies have no mass: those move by their rotors.
    """
    n = int(rng.integers(1, 13)) if bodies is None else bodies
    parts, joints, frames = [], [], []
    for i in range(n):
        size = decades(rng, -0.5, 0.5)
        parent = "world" if i == 0 or rng.random() < 0.12 else f"b{rng.integers(i)}"
        kind = Free() if i == 0 and rng.random() < 0.4 else random_kind(rng)
        hollow = passive and massless and rng.random() < 0.12
        moments = random_moments(rng, 3 * decades(rng, -1, 1), 0.3 * size)
        parts.append(Body(f"b{i}", None if hollow else moments))
        joints.append(
            Joint(
                f"j{i}",
                kind,
                parent,
                f"b{i}",
                parent_pose=random_pose(rng, 0.5 * size),
                child_pose=random_pose(rng, 0.5 * size),
                **(_resistance(rng, kind, hollow) if passive and kind.nv else {}),
            )
        )
        frames.append(Frame(f"f{i}", f"b{i}", random_pose(rng)))
    frames.append(Frame("f_world", "world", random_pose(rng)))
    springs, dampers = _connections(rng, n) if passive else ((), ())
    return Machine(
        parts,
        joints,
        frames,
        springs=springs,
        dampers=dampers,
        fluid=_fluid(rng, n) if fluid and rng.random() < 0.4 else None,
        gravity=rng.normal(size=3) * 5,
        name="random",
    )


def engine_machine(rng, bodies):
    """A random machine as other engines have them: masses everywhere, rotors about single axes."""
    machine = random_machine(rng, bodies, massless=False)
    joints = []
    for joint in machine.joints:
        if joint.nv > 1:
            ball = isinstance(joint.kind, Spherical)
            equal = {"armature": joint.armature.max() if ball else 0.0}
            if ball:
                equal |= {name: getattr(joint, name).max() for name in ("damping", "stiffness")}
            joint = replace(joint, **equal)
        joints.append(joint)
    return replace(machine, joints=joints)


def _resistance(rng, kind, hollow):
    """What a joint does by itself, a number for each velocity; rotors where it must have them."""
    nv = kind.nv
    fields = {
        "damping": some(rng, decades(rng, -1.5, 0.5, nv), 0.4),
        "friction": some(rng, decades(rng, -1.5, 0.5, nv), 0.3),
        "friction_width": decades(rng, -0.7, 0),
        "armature": some(rng, decades(rng, -1.5, 0.5, nv), 1.0 if hollow else 0.3),
    }
    if kind.springy:
        fields["stiffness"] = some(rng, decades(rng, -0.5, 1.5, nv), 0.3)
        fields["rest"] = kind.random(rng)
    return fields


def _connections(rng, n):
    def ends():
        a, b = rng.integers(-1, n), rng.integers(n)
        return ("f_world" if a < 0 or a == b else f"f{a}"), f"f{b}"

    springs = [
        Spring(f"s{k}", *ends(), random_moments(rng, decades(rng, 0.3, 2.3)), random_pose(rng))
        for k in range(rng.integers(3))
    ]
    dampers = [Damper(f"d{k}", *ends(), _damping(rng)) for k in range(rng.integers(3))]
    return springs, dampers


def _damping(rng):
    """Damping of points, or any matrix (6x6) that resists every motion."""
    if rng.random() < 0.5:
        return random_moments(rng, decades(rng, -0.7, 1.3))
    root = rng.normal(size=(6, 6))
    return decades(rng, -1.5, 0) * (root @ root.T)


def _fluid(rng, n):
    def immersed(i):
        root = rng.normal(size=(6, 6))
        return Immersed(
            f"f{i}",
            volume=1e-3 * rng.uniform(0, 5),
            center=rng.uniform(-0.2, 0.2, 3),
            added_mass=root @ root.T / 6,
            linear_drag=rng.uniform(0, 1, 6),
            quadratic_drag=rng.uniform(0, 1, 6),
        )

    chosen = [i for i in range(n) if rng.random() < 0.6]
    return Fluid([immersed(i) for i in chosen], current=rng.normal(size=3) * 0.3)


def random_state(rng, machine):
    """Configuration, velocity, and one more vector of velocity size (acceleration or force)."""
    return machine.random(rng), rng.normal(size=machine.nv), rng.normal(size=machine.nv) * 3


def evaluate(function, *arguments):
    """Call a casadi function on NumPy arrays by the graph interpreter; arrays come back."""
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    arrays = tuple(np.asarray(ca.DM(result).full()) for result in results)
    return arrays if len(arrays) > 1 else arrays[0]


def relative_error(value, expected):
    """Largest difference, relative to the largest expected entry (at least 1e-6)."""
    value, expected = np.asarray(value), np.asarray(expected)
    if value.size == 0:
        return 0.0
    return float(np.abs(value - expected).max() / max(np.abs(expected).max(), 1e-6))


def without_forces(machine, *, gravity=False):
    """The same bodies, joints and added mass, but nothing that pulls, resists or rests."""
    joints = [
        replace(j, damping=0.0, friction=0.0, stiffness=0.0) if j.kind.nv else j
        for j in machine.joints
    ]
    fluid = machine.fluid
    if fluid is not None:
        still = [
            replace(b, volume=0.0, linear_drag=np.zeros((6, 6)), quadratic_drag=np.zeros((6, 6)))
            for b in fluid.immersed
        ]
        fluid = replace(fluid, immersed=still, current=(0, 0, 0))
    return replace(
        machine,
        joints=joints,
        springs=(),
        dampers=(),
        gravity=machine.gravity if gravity else (0, 0, 0),
        fluid=fluid,
    )


def tunable_paths(machine):
    """Paths of `Machine.tunable` to the numbers of a machine's bodies, joints and passive parts."""
    pose = [f".{name}" for name in ("x", "y", "z", "rx", "ry", "rz")]
    moments = [f".{pair}" for pair in ("xx", "xy", "xz", "yy", "yz", "zz")]
    paths = [f"gravity.{axis}" for axis in "xyz"]
    for body in machine.bodies:
        if not body.massless:
            paths += [f"{body.name}.mass", *(f"{body.name}.center.{axis}" for axis in "xyz")]
            paths += [f"{body.name}.inertia{pair}" for pair in moments]
    for joint in machine.joints:
        paths += [f"{joint.name}.{end}{p}" for end in ("parent_pose", "child_pose") for p in pose]
        for field in ("armature", "damping", "friction", "stiffness"):
            if field != "stiffness" or joint.kind.springy:
                names = (f".{name}" if name else "" for name in joint.kind.v_names)
                paths += [f"{joint.name}.{field}{name}" for name in names]
        if joint.kind.vector and joint.kind.springy:
            names = (f".{name}" if name else "" for name in joint.kind.x_names)
            paths += [f"{joint.name}.rest{name}" for name in names]
    paths += [f"{frame.name}.pose{p}" for frame in machine.frames for p in pose]
    for spring in machine.springs:
        paths += [f"{spring.name}.stiffness", f"{spring.name}.center.y", f"{spring.name}.moment.xz"]
        paths += [f"{spring.name}.rest{p}" for p in pose]
    for damper in machine.dampers:
        if isinstance(damper.damping, Moments):
            paths += [
                f"{damper.name}.damping",
                f"{damper.name}.center.x",
                f"{damper.name}.moment.xy",
            ]
    if machine.fluid is not None:
        paths += ["fluid.density", *(f"fluid.current.{axis}" for axis in "xyz")]
        for part in machine.fluid.immersed:
            paths += [f"fluid.{part.frame}.volume", f"fluid.{part.frame}.center.y"]
    return paths
