"""What damping and friction of joints take of an acceleration while inputs are held.

Over a control period h inputs stay as they are, while the resistance r(v) of a joint follows its
speed. A joint with the inertia m so has the mean acceleration a over the period if its motor gives,
beside what the state at the beginning needs, the mean change of r on the way to v + h a where the
joint is slow, and the change at its end where it has its new speed at once:

    mean + (2 theta(s) - 1) (end - mean),    s = h c / m,    theta(s) = 1 / (1 - exp(-s)) - 1 / s

with c the slope of r from begin to end. For one joint with viscous damping this is exact. Wrists
in robot files have s = 3 with their damping and s = 300 with their dry friction, for h = 1 ms:
without this term a joint gets next to nothing of the acceleration that a law asks for, and overruns
its limits.
"""

from typing import Any

import casadi as ca
import numpy as np
from numpy.polynomial.legendre import leggauss

from framefree.machine import Joint, Machine
from framefree.machine.values import is_symbolic
from framefree.motion.actuation import input_matrix
from framefree.motion.state import State

Matrix = Any
LEAST_CHANGE = 1e-7
"""Change of speed, rad/s or m/s, over which the slope is taken where it changes by less."""
GAUSS = tuple((0.5 + 0.5 * t, 0.5 * w) for t, w in zip(*leggauss(3), strict=True))
"""Shares of the way, and weights, by which its mean is taken."""
FAR = 1e3
"""Speed, in widths of friction, at which it is all there."""
SLOW = 1e-2
"""s below which theta is its series."""


def resists(machine: Machine) -> bool:
    """Tell whether any joint has damping or friction."""
    return any(_resists(joint) for joint in machine.joints)


def held_resistance(machine: Machine, tree: State, a: Matrix, period: float | None) -> Matrix:
    """Return the joint forces (nv) that make up for what joints resist over a period.

    Parameters
    ----------
    machine : Machine
    tree : State
        Of all its joints.
    a : (nv)
        Their accelerations.
    period : float or None
        h, s; None or 0 where inputs are not held.
    """
    total = ca.SX(machine.nv, 1)
    if not period:
        return total
    driven = driven_velocities(machine, tree)
    for joint in machine.joints:
        span = machine.v_slice[joint.name]
        if _resists(joint) and driven.issuperset(range(span.start, span.stop)):
            inertia = ca.diag(tree.mass)[span]
            total[span] = _compensation(joint, tree.v[span], a[span], inertia, period)
    return total


def resistance_range(
    machine: Machine, tree: State, period: float | None
) -> tuple[Matrix, Matrix, Matrix]:
    """Return bounds of `held_resistance`: slopes by the acceleration (nv), least and most (nv).

    For any acceleration a it is between least and most beside slope a: damping grows with the
    change of speed, and friction turns round at most.
    """
    slope, least, most = (ca.SX(machine.nv, 1) for _ in range(3))
    driven = driven_velocities(machine, tree) if period else set()
    for joint in machine.joints:
        span = machine.v_slice[joint.name]
        if not (_resists(joint) and driven.issuperset(range(span.start, span.stop))):
            continue
        ones = ca.SX.ones(joint.nv)
        slope[span] = period * joint.damping_force(ones)
        if joint.has_friction:
            now, far = joint.friction_force(tree.v[span]), FAR * joint.friction_width
            least[span] = joint.friction_force(-far * ones) - now
            most[span] = joint.friction_force(far * ones) - now
    return slope, least, most


def driven_velocities(machine: Machine, tree: State) -> set[int]:
    """Return velocities of joints that move with a drive: their own, or by loops and couplings."""
    if machine.closed:
        return set(range(machine.nv))
    return set(ca.sparsify(ca.SX(input_matrix(tree))).sparsity().row())


def _resists(joint: Joint) -> bool:
    return joint.has_friction or is_symbolic(joint.damping) or bool(np.any(joint.damping))


def _compensation(joint: Joint, v: Matrix, a: Matrix, inertia: Matrix, h: float) -> Matrix:
    dv = h * a
    way = ca.if_else(ca.fabs(dv) > LEAST_CHANGE, dv, LEAST_CHANGE)
    begin = _resistance(joint, v)
    slope = (_resistance(joint, v + way) - begin) / way
    mean = sum(w * (_resistance(joint, v + t * way) - begin) for t, w in GAUSS) * dv / way
    s = ca.fmax(h * slope / inertia, 0)
    fast = ca.fmax(s, SLOW)
    theta = ca.if_else(s > SLOW, 1 / (1 - ca.exp(-fast)) - 1 / fast, 0.5 + s / 12)
    return mean + (2 * theta - 1) * (slope * dv - mean)


def _resistance(joint: Joint, v: Matrix) -> Matrix:
    force = joint.damping_force(v)
    return force + joint.friction_force(v) if joint.has_friction else force
