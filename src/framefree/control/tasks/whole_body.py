"""Tasks of all bodies together: where their center of mass goes, and their momentum.

With m, f = R first and I the moments of a body about its origin p, in world axes, its momenta are

    P = m v + w x f,              d/dt P = m dv + dw x f + w x (w x f)
    H = f x v + I w + p x P,      d/dt H = f x dv + I dw + w x I w + p x d/dt P

(about the world's origin), and the centroidal one of all is sum H - c x sum P. Momenta are of the
bodies alone: rotors and the fluid's added mass do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.tasks.along import signal_shapes
from framefree.control.tasks.base import (
    TaskOfChosenRows,
    TaskRows,
    chosen_parts,
    frame_shapes,
)
from framefree.geometry import se3, so3
from framefree.machine import Machine
from framefree.machine.values import constant

Matrix = Any
AXES = ("x", "y", "z")
MOMENTUM_PARTS = (*AXES, "turn x", "turn y", "turn z")


class _Sum(NamedTuple):
    """Sums over bodies: mass, m c (3), momenta (6), their rows (6 x nv) and rates (6)."""

    mass: Matrix
    weighted: Matrix
    momentum: Matrix
    A: Matrix
    rate: Matrix


def summed(frames: Frames, bodies: tuple[str, ...]) -> _Sum:
    """Return the sums over bodies, angular momenta about the world's origin."""
    machine = frames.machine
    mass, weighted = ca.SX(0), ca.SX(3, 1)
    momentum, A, rate = ca.SX(6, 1), ca.SX(6, machine.nv), ca.SX(6, 1)
    for body in machine.bodies:
        if bodies and body.name not in bodies:
            continue
        at, moments = frames.at(body.name), body.moments
        f = at.R @ ca.SX(moments.first)
        inertia = at.R @ ca.SX(constant(moments.matrix6))[3:, 3:] @ at.R.T
        P = moments.total * at.v + ca.cross(at.w, f)
        P_A = moments.total * at.Jv - so3.wed(f) @ at.Jw
        P_rate = moments.total * at.dv + ca.cross(at.dw, f) + ca.cross(at.w, ca.cross(at.w, f))
        spin = inertia @ at.w
        H = ca.cross(f, at.v) + spin + ca.cross(at.p, P)
        H_A = so3.wed(f) @ at.Jv + inertia @ at.Jw + so3.wed(at.p) @ P_A
        H_rate = (
            ca.cross(f, at.dv) + inertia @ at.dw + ca.cross(at.w, spin) + ca.cross(at.p, P_rate)
        )
        mass, weighted = mass + moments.total, weighted + f + moments.total * at.p
        momentum, A = momentum + ca.vertcat(P, H), A + ca.vertcat(P_A, H_A)
        rate = rate + ca.vertcat(P_rate, H_rate)
    return _Sum(mass, weighted, momentum, A, rate)


def _checked_bodies(machine: Machine, bodies: tuple[str, ...], name: str) -> None:
    for body in bodies:
        machine.body(body)
    chosen = [body for body in machine.bodies if not bodies or body.name in bodies]
    # A mass that can be tuned is an expression, and taken to be one.
    if not any(ca.SX(body.moments.total).nnz() for body in chosen):
        raise ControlError(f"the bodies of task `{name}` have no mass: {', '.join(bodies)}")


@dataclass(frozen=True)
class CenterOfMassControl(TaskOfChosenRows):
    """The center of mass follows the origin of TARGET.pose, with its velocity and acceleration.

    Error equation: with e = p_D - c, ``d2/dt2 e + Kd d/dt e + Kp e = 0``, in world axes.

    Parameters
    ----------
    target : str
        Of the reference, that of a frame: any path of a frame will do, its attitude is not read.
    Kp, Kd : float or one for every row
        1/s^2, 1/s; without Kd, critically damped.
    name : str
    only : str or sequence of str
        "all", or some of "x", "y", "z".
    bodies : sequence of str
        By default all.
    """

    target: str = "center"
    Kp: Any = 100.0
    Kd: Any = None
    name: str = "center_of_mass"
    only: Any = "all"
    bodies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "only", chosen_parts(self.only, AXES, {"all": AXES}, self.name))
        object.__setattr__(self, "bodies", tuple(self.bodies))
        self.settle_gains()

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        return frame_shapes(self.target)

    def check(self, machine: Machine) -> None:
        """Refuse bodies that are not there, or have no mass."""
        _checked_bodies(machine, self.bodies, self.name)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        total = summed(frames, self.bodies)
        G, xi, rate = (ca.SX(reference[name]) for name in self.shapes)
        R = se3.rotation(G)
        v, a = R @ xi[:3], R @ (rate[:3] + ca.cross(xi[3:], xi[:3]))
        rows = TaskRows(
            -total.A[:3, :] / total.mass,
            a - total.rate[:3] / total.mass,
            v - total.momentum[:3] / total.mass,
            se3.position(G) - total.weighted / total.mass,
        )
        return rows.only([AXES.index(part) for part in self.parts])


@dataclass(frozen=True)
class MomentumControl(TaskOfChosenRows):
    """Linear and centroidal angular momentum, world axes, go to zero or follow the reference.

    A momentum belongs to no position: with s = h - TARGET.value, ``d/dt s + Kd s = 0``.

    Parameters
    ----------
    target : str
        Of the reference: TARGET.value (as many as rows) and so on, see `SignalPath`.
    Kd : float or one for every row
        1/s.
    name : str
    only : str or sequence of str
        "all", "linear", "angular", or some of "x", "y", "z", "turn x", "turn y", "turn z".
    bodies : sequence of str
        By default all.
    """

    target: str = ""
    Kd: Any = 10.0
    name: str = "momentum"
    only: Any = "all"
    bodies: tuple[str, ...] = ()
    Kp = 0.0

    def __post_init__(self) -> None:
        groups = {"all": MOMENTUM_PARTS, "linear": AXES, "angular": MOMENTUM_PARTS[3:]}
        only = chosen_parts(self.only, MOMENTUM_PARTS, groups, self.name)
        object.__setattr__(self, "only", only)
        object.__setattr__(self, "bodies", tuple(self.bodies))
        self.settle_gains()

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        known = signal_shapes(self.target, len(self.parts))
        return {name: shape for name, shape in known.items() if not name.endswith(".second")}

    def check(self, machine: Machine) -> None:
        """Refuse bodies that are not there, or have no mass."""
        _checked_bodies(machine, self.bodies, self.name)

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        total = summed(frames, self.bodies)
        # c x P with P = m dc/dt: the rate of c does not enter.
        about = ca.blockcat([[ca.DM.eye(3), ca.SX(3, 3)], [-self._lever(total), ca.DM.eye(3)]])
        rows = TaskRows(about @ total.A, about @ total.rate, about @ total.momentum, ca.SX(6, 1))
        rows = rows.only([MOMENTUM_PARTS.index(part) for part in self.parts])
        if not self.target:
            return rows
        value, rate = (ca.SX(reference[name]) for name in self.shapes)
        return rows._replace(rate=rows.rate - rate, velocity_error=rows.velocity_error - value)

    def _lever(self, total: _Sum) -> Matrix:
        return so3.wed(total.weighted / total.mass)
