"""The same machine in other units: lengths, masses and times multiplied by factors.

With powers of two as factors nothing is rounded, and every quantity of the scaled machine is its
unit times that of the first, to the last bits. What an absolute threshold decides differs.
"""

from dataclasses import dataclass, replace

import numpy as np

from framefree.geometry import Moments
from framefree.machine import Cylindrical, Free, Helical, Planar, Prismatic
from framefree.machine.damper import Damper

LENGTHS = {Prismatic: 1, Cylindrical: 1, Planar: 2, Free: 3}
"""Coordinates and velocities of joint kinds that are lengths and speeds, from the first on."""


@dataclass(frozen=True)
class Units:
    """Factors of lengths, masses and times."""

    length: float
    mass: float
    time: float

    def of(self, *, mass=0, length=0, time=0):
        """Return the factor of a quantity with these powers in its unit."""
        return self.mass**mass * self.length**length * self.time**time

    @property
    def wrench(self):
        """Factors (6) of a wrench."""
        force = self.of(mass=1, length=1, time=-2)
        return np.repeat([force, force * self.length], 3)

    @property
    def twist(self):
        """Factors (6) of a twist."""
        return np.repeat([self.of(length=1, time=-1), self.of(time=-1)], 3)

    @property
    def energy(self):
        return self.of(mass=1, length=2, time=-2)

    @property
    def power(self):
        return self.of(mass=1, length=2, time=-3)

    def pose(self, G):
        G = np.array(G)
        G[:3, 3] *= self.length
        return G

    def moments(self, moments, weight):
        """Return moments whose total has the factor `weight`."""
        first, second = weight * self.length, weight * self.length**2
        return Moments(
            weight * moments.total, first * moments.first, second * np.array(moments.second)
        )

    def lengths(self, machine):
        """Return which velocities (nv) are speeds in m/s."""
        return _marked(machine, machine.nv, machine.v_slice)

    def x(self, machine, x):
        return np.where(_marked(machine, machine.nx, machine.x_slice), self.length, 1.0) * x

    def v(self, machine):
        """Return the factors (nv) of velocities."""
        return np.where(self.lengths(machine), self.length, 1.0) / self.time

    def a(self, machine):
        """Return the factors (nv) of accelerations."""
        return self.v(machine) / self.time

    def force(self, machine):
        """Return the factors (nv) of joint forces."""
        return self.power / self.v(machine)


def _marked(machine, size, slices):
    marked = np.zeros(size, bool)
    for joint in machine.joints:
        start = slices[joint.name].start
        marked[start : start + LENGTHS.get(type(joint.kind), 0)] = True
    return marked


def scaled(machine, units):
    """Return a machine of bodies, joints, springs, dampers, fluid and loops in other units."""
    force, v = units.force(machine), units.v(machine)
    joints = [_joint(machine, joint, units, force, v) for joint in machine.joints]
    bodies = [
        body if body.massless else replace(body, inertia=units.moments(body.moments, units.mass))
        for body in machine.bodies
    ]
    stiffness, damping = units.of(mass=1, time=-2), units.of(mass=1, time=-1)
    springs = [
        replace(s, moments=units.moments(s.moments, stiffness), rest=units.pose(s.rest))
        for s in machine.springs
    ]
    dampers = [
        Damper(d.name, d.frame_a, d.frame_b, units.wrench[:, None] * d.matrix / units.twist)
        if not isinstance(d.damping, Moments)
        else replace(d, damping=units.moments(d.damping, damping))
        for d in machine.dampers
    ]
    return replace(
        machine,
        bodies=bodies,
        joints=joints,
        frames=[replace(frame, pose=units.pose(frame.pose)) for frame in machine.frames],
        springs=springs,
        dampers=dampers,
        fluid=None if machine.fluid is None else _fluid(machine.fluid, units),
        loops=[_loop(loop, units) for loop in machine.loops],
        gravity=units.of(length=1, time=-2) * np.array(machine.gravity),
    )


def _joint(machine, joint, units, force, v):
    own = machine.v_slice[joint.name]
    kind = joint.kind
    if isinstance(kind, Helical):
        kind = replace(kind, pitch=units.length * kind.pitch)
    fields = {
        "kind": kind,
        "rest": units.x(machine, _whole(machine, joint))[_slice(machine, joint)],
    }
    if joint.nv:
        fields |= {
            "armature": joint.armature * (force * units.time / v)[own],
            "damping": joint.damping * (force / v)[own],
            "friction": joint.friction * force[own],
            "stiffness": joint.stiffness * (force / (v * units.time))[own],
            # One width for all velocities of a joint: those of two units have no friction here.
            "friction_width": joint.friction_width * v[own][0],
        }
    poses = {end: units.pose(getattr(joint, end)) for end in ("parent_pose", "child_pose")}
    return replace(joint, **fields, **poses)


def _slice(machine, joint):
    return machine.x_slice[joint.name]


def _whole(machine, joint):
    x = np.zeros(machine.nx)
    x[_slice(machine, joint)] = joint.rest
    return x


def _fluid(fluid, units):
    wrench, twist = units.wrench[:, None], units.twist
    immersed = [
        replace(
            part,
            volume=part.volume * units.of(length=3),
            center=units.length * np.array(part.center),
            added_mass=wrench * part.added_mass / (twist / units.time),
            linear_drag=wrench * part.linear_drag / twist,
            quadratic_drag=wrench * part.quadratic_drag / twist**2,
        )
        for part in fluid.immersed
    ]
    return replace(
        fluid,
        immersed=immersed,
        density=fluid.density * units.of(mass=1, length=-3),
        current=units.of(length=1, time=-1) * np.array(fluid.current),
    )


def _loop(loop, units):
    length = None if loop.length is None else units.length * loop.length
    return replace(loop, length=length, rest=units.pose(loop.rest))
