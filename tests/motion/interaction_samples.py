"""Interactions for tests: random ones with energy, losses and time in them, on any machine."""

import casadi as ca
import numpy as np

from framefree.machine import Interaction


def field(name, a, b, rng, *, timed=True):
    """A nonlinear pull towards a point, drag, and a push that comes and goes.

    The energy k log(1 + |p - c|^2 / l^2) / 2 of a point p of frame b depends on time; the push has
    none.
    """

    def distance(pose, at, center):
        return pose[:3, :3] @ at + pose[:3, 3] - center

    def strength(k, time):
        return k * (1 + 0.3 * ca.sin(2 * time)) if timed else k

    def energy(pose, time, k, at, center):
        return strength(k, time) * ca.log(1 + ca.sumsqr(distance(pose, at, center)) / 0.25) / 2

    def losses(twist, drag):
        return ca.vertcat(drag * twist[:3], 0.1 * drag * twist[3:] * ca.sumsqr(twist[3:]))

    def wrench(pose, twist, time, k, at, center, drag, push):
        d = distance(pose, at, center)
        force = -strength(k, time) * (pose[:3, :3].T @ d) / (0.25 + ca.sumsqr(d))
        pulled = ca.vertcat(force, ca.cross(at, force))
        return pulled - losses(twist, drag) + (ca.cos(time) if timed else 1) * push

    return Interaction(
        name,
        a,
        b,
        wrench,
        energy=energy,
        dissipation=lambda twist, drag: ca.dot(twist, losses(twist, drag)),
        parameters={
            "k": rng.uniform(1, 5),
            "at": rng.normal(size=3),
            "center": rng.normal(size=3),
            "drag": rng.uniform(0.1, 1),
            "push": rng.normal(size=6),
        },
    )


def with_fields(machine, rng, count=3, *, timed=True):
    """Return a machine with interactions between random frames of it and the world."""
    names = ["world", *(body.name for body in machine.bodies), *(f.name for f in machine.frames)]
    parts = []
    for i in range(count):
        a, b = rng.choice(names, 2, replace=False)
        parts.append(field(f"field{i}", str(a), str(b), rng, timed=timed))
    return machine.attach(*parts)


def constant_push(name, frame, force):
    """A force in world axes on a frame."""
    return Interaction(
        name,
        "world",
        frame,
        lambda pose, force: ca.vertcat(pose[:3, :3].T @ force, 0, 0, 0),
        parameters={"force": np.asarray(force, float)},
    )
