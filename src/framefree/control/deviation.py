"""How far joints are from a reference, on their groups, and how that changes.

    e = difference(x_d, x),    de/dt = E v + (what the reference adds),    d2e/dt2 = E a + rest

For joints with plain coordinates and for turns E is the identity; for a ball or a free joint it is
the inverse of the right Jacobian of the logarithm, found by differentiating `difference`. At a half
turn e jumps from one half turn to the other; on both sides all of this is finite and exact.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.model import Part
from framefree.machine import Machine
from framefree.machine.joints import Continuous
from framefree.machine.joints.base import JointKind

Matrix = Any


class Motion(NamedTuple):
    """e (n), its rate (n), E (n x n) and rest (n)."""

    e: Matrix
    rate: Matrix
    E: Matrix
    rest: Matrix


class Deviation:
    """Errors of some joints of a machine.

    Parameters
    ----------
    machine : Machine
    parts : sequence of Part
        Their errors are stacked in this order.
    """

    def __init__(self, machine: Machine, parts: Sequence[Part]) -> None:
        self._machine, self._parts = machine, parts

    def motion(self, x_d: Matrix, v_d: Matrix, a_d: Matrix, x: Matrix, v: Matrix) -> Motion:
        """Return e and how it changes; all arguments are of the whole machine."""
        parts = []
        for joint, chosen in self._parts:
            sx, sv = self._machine.x_slice[joint.name], self._machine.v_slice[joint.name]
            whole = _motion(joint.kind, x_d[sx], v_d[sv], a_d[sv], x[sx], v[sv])
            keep = list(chosen)
            parts.append(
                Motion(whole.e[keep], whole.rate[keep], whole.E[keep, keep], whole.rest[keep])
            )
        columns = [ca.vertcat(*(part[k] for part in parts)) for k in (0, 1, 3)]
        return Motion(columns[0], columns[1], ca.diagcat(*(part.E for part in parts)), columns[2])

    def acceleration(self, motion: Motion, wanted: Matrix) -> Matrix:
        """Return the accelerations (n) of the joints with d2e/dt2 = wanted."""
        return self._solved(motion, wanted - motion.rest)

    def velocity(self, motion: Motion) -> Matrix:
        """Return the velocities (n) relative to the reference: E^-1 de/dt."""
        return self._solved(motion, motion.rate)

    def _solved(self, motion: Motion, right: Matrix) -> Matrix:
        parts, first = [], 0
        for one in self._parts:
            rows = slice(first, first + one.size)
            part = right[rows]
            if not _plain(one.joint.kind):
                part = ca.solve(motion.E[rows, rows], ca.densify(part))
            parts.append(part)
            first += one.size
        return ca.vertcat(*parts)


def _motion(kind: JointKind, x_d: Matrix, v_d: Matrix, a_d: Matrix, x: Matrix, v: Matrix) -> Motion:
    if _plain(kind):
        return Motion(kind.difference(x_d, x), v - v_d, ca.DM.eye(kind.nv), -a_d)
    return Motion(*_differentiated(kind)(x_d, v_d, a_d, x, v))


def _plain(kind: JointKind) -> bool:
    """Tell whether de/dt = v - v_d."""
    own = getattr(kind, "difference_map", None) is not None
    return isinstance(kind, Continuous) or (kind.vector and not own)


@lru_cache(maxsize=64)
def _differentiated(kind: JointKind) -> ca.Function:
    sizes = {"x_d": kind.nx, "v_d": kind.nv, "a_d": kind.nv, "x": kind.nx, "v": kind.nv}
    x_d, v_d, a_d, x, v = (ca.SX.sym(name, size) for name, size in sizes.items())
    moving, velocity = ca.vertcat(x_d, x), ca.vertcat(kind.rate(x_d) @ v_d, kind.rate(x) @ v)
    e = ca.densify(kind.difference(x_d, x))
    rate = ca.jtimes(e, moving, velocity)
    rest = ca.jtimes(rate, ca.vertcat(moving, v_d), ca.vertcat(velocity, a_d))
    return ca.Function(
        "deviation", [x_d, v_d, a_d, x, v], [e, rate, ca.jacobian(rate, v), ca.densify(rest)]
    )
