"""Small machines and laws for the tests of simulations."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import casadi as ca
import numpy as np

from framefree.control.law import Command, Law
from framefree.control.references.base import Reference
from framefree.geometry import Moments
from framefree.machine import Body, Frame, Free, Joint, Machine, Prismatic, Revolute, Spherical
from framefree.machine.actuators import motors

ROD = Moments.of_body(1.0, (0, 0, -0.25), np.diag([0.03, 0.02, 0.01]))


def pendulum(n=2, *, driven=True, kinds=None, **options):
    """Rods in a row, hanging from the world, with a frame `tip`."""
    kinds = kinds or [Revolute("x"), Revolute("y"), Revolute("x")][:n]
    bodies = [Body(f"rod{i}", ROD) for i in range(n)]
    joints = [
        Joint(f"j{i}", kind, f"rod{i - 1}" if i else "world", f"rod{i}", (0, 0, -0.5 if i else 0))
        for i, kind in enumerate(kinds)
    ]
    machine = Machine(bodies, joints, (Frame("tip", f"rod{n - 1}", (0, 0, -0.5)),), **options)
    return machine.attach(*motors(machine.joints)) if driven else machine


def graded(n=3, *, kinds=None, lossy=True, **options):
    """Rods in a row that grow shorter and lighter, each joint with numbers of its own.

    Without `lossy` there are rotors and springs only, and the energy stays.
    """
    kinds = kinds or [Spherical(), Revolute((1, 1, 0)), Revolute("y"), Prismatic("z")][:n]
    bodies, joints = [], []
    for i, kind in enumerate(kinds):
        mass, length = 2.0 * 0.5**i, 0.6 * 0.8**i
        inertia = mass * length**2 * np.diag([0.08, 0.1, 0.02])
        bodies.append(Body(f"rod{i}", Moments.of_body(mass, (0.02 * i, 0, -length / 2), inertia)))
        share = np.arange(1, kind.nv + 1) / kind.nv
        fields = {"armature": 0.02 * share / (i + 1)}
        fields |= {"stiffness": 1.5 * share * (i + 1)} if kind.springy else {}
        if lossy:
            fields |= {"damping": 0.2 * share / (i + 1), "friction": 0.05 * share * i}
            fields |= {"friction_width": 0.2 + 0.1 * i}
        place = (0, 0.01 * i, -0.75 * length if i else 0)
        parent = f"rod{i - 1}" if i else "world"
        joints.append(Joint(f"j{i}", kind, parent, f"rod{i}", place, **fields))
    return Machine(bodies, joints, (Frame("tip", f"rod{n - 1}", (0, 0, -0.4)),), **options)


def slider(mass=2.0, **options):
    """One mass on a rail along x, with a motor `motor`."""
    body = Body("cart", Moments.of_body(mass, (0, 0, 0), np.eye(3)))
    machine = Machine([body], [Joint("rail", Prismatic("x"), "world", "cart")], gravity=(0, 0, 0))
    return (
        machine.attach(*motors(machine.joints, "_motor"))
        if options.get("driven", True)
        else machine
    )


def free_body(kind=None, **options):
    """One body with three different moments of inertia."""
    moments = Moments.of_body(2.0, options.pop("center", (0, 0, 0)), np.diag([0.1, 0.2, 0.25]))
    options.setdefault("gravity", (0, 0, 0))
    return Machine(
        [Body("body", moments)], [Joint("base", kind or Free(), "world", "body")], **options
    )


def swinging(machine, seed=0):
    rng = np.random.default_rng(seed)
    return machine.random(rng), rng.normal(size=machine.nv)


@dataclass(frozen=True)
class PD(Law):
    """u = -stiffness (x - x_d) - damping v, with its energy as V."""

    machine: Machine
    stiffness: float = 20.0
    damping: float = 3.0

    units = MappingProxyType({"V": "J"})

    def control(self, t, x, v, reference: Mapping, memory):
        error = x - reference["x"] if "x" in reference else x
        V = self.stiffness * ca.dot(error, error) / 2
        return Command(-self.stiffness * error - self.damping * v, {"V": V, "error": error})


@dataclass(frozen=True)
class Counter(Law):
    """Counts its own evaluations, and adds the count to a push back to zero."""

    machine: Machine

    @property
    def memory(self):
        return np.array([0.0, 5.0])

    def control(self, t, x, v, reference, memory):
        following = ca.vertcat(memory[0] + 1, memory[1])
        return Command(-x - v + 0.01 * memory[0], {"count": memory[0]}, following)


@dataclass(frozen=True)
class Sine(Reference):
    """x = amplitude sin(rate t) for every joint."""

    n: int
    amplitude: float = 0.3
    rate: float = 2.0

    def at(self, t):
        one = ca.DM.ones(self.n)
        a, w = self.amplitude, self.rate
        return {"x": a * ca.sin(w * t) * one, "v": a * w * ca.cos(w * t) * one}


BALL = Spherical()
