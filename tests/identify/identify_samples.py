"""A small arm with everything that can be identified of it, and recorded motions of it."""

from dataclasses import replace

import numpy as np

from framefree.geometry import Moments
from framefree.identify import Recording
from framefree.identify.excitation import FourierMotion
from framefree.machine import Body, Joint, Machine, Revolute, motors
from framefree.motion.tree import Tree

UNKNOWN = ("bodies", "armature", "damping", "friction", "friction_asymmetry")


def two_links():
    """Two links in a vertical plane and across it, with friction and drives."""
    upper = Moments.of_body(3.0, (0.02, 0.01, -0.2), np.diag([0.05, 0.06, 0.02]))
    lower = Moments.of_body(1.5, (0.01, 0.02, -0.15), np.diag([0.02, 0.015, 0.01]))
    rough = {"damping": 0.4, "friction": 0.6, "friction_asymmetry": 0.1, "friction_width": 0.05}
    joints = [
        Joint("shoulder", Revolute("y"), "world", "upper", armature=0.1, **rough),
        Joint("elbow", Revolute("x"), "upper", "lower", (0, 0, -0.4), armature=0.05, **rough),
    ]
    return Machine(
        [Body("upper", upper), Body("lower", lower)],
        joints,
        actuators=motors(joints, "_motor"),
        name="two links",
    )


def guessed(machine):
    """The same machine with other masses and hardly any friction."""
    bodies = [replace(body, inertia=body.moments * 1.2) for body in machine.bodies]
    joints = [
        replace(joint, armature=0.02, damping=0.1, friction=0.1, friction_asymmetry=0.0)
        for joint in machine.joints
    ]
    return replace(machine, bodies=bodies, joints=joints)


def motion(machine, seed=0, period=8.0, size=1.0):
    rng = np.random.default_rng(seed)
    k = np.arange(1, 7)
    sines, cosines = rng.normal(size=(2, 6, machine.nv)) * size / k[:, None] ** 0.5
    return FourierMotion(machine, machine.neutral(), sines, cosines, period)


def record(machine, seed=0, rate=500.0, noise=0.0, delay=0.0, exact=False, **options):
    """A motion that is followed perfectly: forces are those that it takes."""
    path = motion(machine, seed, **options)
    t = np.arange(0.0, path.period, 1 / rate)
    x, v, a = path.sample(t).values()
    if exact:
        return Recording(t, x, v, a, Tree(machine).inverse(x, v, a))
    later = path.sample(t + delay).values()
    force = Tree(machine).inverse(*later)
    rng = np.random.default_rng(1000 + seed)
    return Recording(t, x + noise * rng.normal(size=x.shape), force=force)


def truth(machine, fit):
    return np.array(machine.tunable(*fit.names).parameters.defaults)
