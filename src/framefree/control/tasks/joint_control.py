"""Joints that go to a posture, or follow one that moves: what is left where tasks leave freedom.

On the groups of the joints, with the reference (x_d, v_d, a_d) and the velocity relative to it,

    e = difference(x_d, x),    s = v - X v_d,    d/dt s + Kd s + Kp e = 0

where X v_d is the reference's velocity in the axes of the joint; for joints with plain coordinates
X is 1 and s = d/dt e, so that the equation is linear. A posture at rest has s = v.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.shared.frames import Frames
from framefree.control.shared.model import IndependentJoint, Model
from framefree.control.tasks.base import Task, TaskRows
from framefree.machine import Machine
from framefree.machine.joints.base import JointKind

Matrix = Any


@dataclass(frozen=True)
class JointControl(Task):
    """Joints go to a posture, or follow the reference x, v, a; with Kp = 0 they are damped.

    Error equation: at the top of this file.

    Parameters
    ----------
    machine : Machine
    posture : (nx,)
        By default the neutral one.
    Kp, Kd : float or one for every velocity
        1/s^2, 1/s; with None for Kd, critically damped.
    name : str
    joints : sequence of str
        By default all; of a machine with loops or couplings those that move the others, see
        `Model`.
    moving : bool
        Whether the posture is that of the reference: x, v and a of the whole machine.
    """

    machine: Machine
    posture: Any = None
    Kp: Any = 0.0
    Kd: Any = 2.0
    name: str = "posture"
    joints: tuple[str, ...] = ()
    moving: bool = False

    def __post_init__(self) -> None:
        if self.moving and self.posture is not None:
            raise ControlError(f"task `{self.name}` has a `posture` or is `moving`, not both")
        posture = self.machine.neutral() if self.posture is None else self.posture
        self.machine.validate(posture)
        object.__setattr__(self, "posture", np.asarray(posture, float))
        given = (self.joints,) if isinstance(self.joints, str) else tuple(self.joints)
        object.__setattr__(self, "joints", given)
        for joint in self.joints:
            self.machine.joint(joint)
        self.settle_gains()

    @cached_property
    def _chosen(self) -> tuple[IndependentJoint, ...]:
        """Joints, and which of their velocities count."""
        if self.joints:
            named = [self.machine.joint(name) for name in self.joints]
            return tuple(IndependentJoint(joint, tuple(range(joint.nv))) for joint in named)
        return Model(self.machine).joints

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the velocities."""
        return tuple(name for joint in self._chosen for name in joint.v_names)

    @property
    def shapes(self) -> Mapping[str, tuple[int, int]]:
        """Shapes of the reference signals."""
        nx, nv = self.machine.nx, self.machine.nv
        return {"x": (nx, 1), "v": (nv, 1), "a": (nv, 1)} if self.moving else {}

    def check(self, machine: Machine) -> None:
        """Refuse a machine with other joints."""
        if machine.x_names != self.machine.x_names or machine.v_names != self.machine.v_names:
            raise ControlError(
                f"task `{self.name}` is one of `{self.machine.name}`, whose joints are not those "
                f"of `{machine.name}`"
            )

    def rows(self, frames: Frames, reference: Mapping[str, Matrix]) -> TaskRows:
        """Return the rows at a state."""
        machine, x, v = frames.machine, frames.state.x, frames.state.v
        s, rate = ca.SX(v), ca.SX(machine.nv, 1)
        if not self.moving:
            e = machine.difference(ca.SX(ca.DM(self.posture)), x)
        else:
            x_d, v_d, a_d = (ca.SX(reference[name]) for name in self.shapes)
            e = machine.difference(x_d, x)
            for joint in machine.joints:
                own_x, own_v = machine.x_slice[joint.name], machine.v_slice[joint.name]
                states = x_d[own_x], v_d[own_v], a_d[own_v], x[own_x], v[own_v]
                moved, rate[own_v] = _carried(joint.kind, *states)
                s[own_v] = s[own_v] + moved
        rows = TaskRows(ca.SX.eye(machine.nv), rate, s, e)
        return rows.only([machine.v_names.index(name) for name in self.parts])


def _carried(kind: JointKind, x_d: Matrix, v_d: Matrix, a_d: Matrix, x: Matrix, v: Matrix) -> Any:
    """Return -X v_d of one joint, and its rate."""
    if kind.additive or not kind.nv:
        return -v_d, -a_d
    return _differentiated(kind)(x_d, v_d, a_d, x, v)


@lru_cache(maxsize=64)
def _differentiated(kind: JointKind) -> ca.Function:
    """From states of a joint and of its reference to -X v_d and its rate.

    d/dt difference(x_d, x) = E v + E_d v_d, so that X = -E^-1 E_d.
    """
    sizes = {"x_d": kind.nx, "v_d": kind.nv, "a_d": kind.nv, "x": kind.nx, "v": kind.nv}
    x_d, v_d, a_d, x, v = (ca.SX.sym(name, size) for name, size in sizes.items())
    e = ca.densify(kind.difference(x_d, x))
    E = ca.jacobian(e, x) @ kind.rate(x)
    moved = ca.solve(ca.densify(E), ca.densify(ca.jtimes(e, x_d, kind.rate(x_d) @ v_d)))
    moving = ca.vertcat(x_d, x, v_d)
    velocity = ca.vertcat(kind.rate(x_d) @ v_d, kind.rate(x) @ v, a_d)
    return ca.Function(
        "carried", [x_d, v_d, a_d, x, v], [moved, ca.densify(ca.jtimes(moved, moving, velocity))]
    )
