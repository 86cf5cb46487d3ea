"""References of bodies in a vertical plane with two inputs: planar multicopters, PVTOL craft.

Two independent inputs push a body in its plane with forces f and moments about its center of mass

    tau = p x f,

that is, with every force at one point p of the body; or along one axis with any moment, which is a
point p infinitely far away on that axis. The point y beyond the center of mass at J/(m |p|) from
it, its center of oscillation against p, moves with y'' - g along the line from it to p: the
component of f/m across that line turns the body just so that y does not feel it. The path of y so
determines the angle, and everything else.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from framefree.control.law import ControlError
from framefree.control.references.flat_curves import Curve
from framefree.control.references.joints import JointPath, JointReference
from framefree.control.references.thrust import moments_of_change, value_at
from framefree.machine import Machine, Planar
from framefree.motion import actuation, equations

Matrix = Any

NOTHING = 1e-9
"""Share of the largest below which a force or moment is rounding."""


@dataclass(frozen=True)
class PlanarFlatReference(JointReference):
    """State of a body in a plane whose flat point follows a path.

    Parameters
    ----------
    machine : Machine
        One body on a planar joint, with inputs of rank two.
    position : Curve
        Of the flat point (2), m, along the joint's two axes.

    Attributes
    ----------
    point : (2,)
        The flat point in the body, m, in the joint's axes: the center of mass for a thrust along
        one axis, above it for propellers that are inclined outwards.
    """

    machine: Machine
    position: Curve

    def __post_init__(self) -> None:
        joints = self.machine.joints
        if len(joints) != 1 or self.machine.closed or not isinstance(joints[0].kind, Planar):
            raise ControlError(
                f"`{self.machine.name}` must be one body on a planar joint; it has joints "
                + ", ".join(f"`{joint.name}` ({type(joint.kind).__name__})" for joint in joints)
            )
        if not np.linalg.norm(self._gravity) > 0:
            raise ControlError(
                f"gravity does not act along the plane of `{self.machine.name}`: nothing tells "
                "its angle where it rests"
            )
        _ = self.point

    @property
    def times(self) -> tuple[float, ...]:  # type: ignore[override]
        """Times at which the curve is not smooth."""
        return moments_of_change(self.position)

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to x, v and a."""
        return JointPath(self.machine, self._configuration, self.times).function

    @property
    def point(self) -> np.ndarray:
        """The flat point (2) in the body, m."""
        return self._geometry[0]

    @cached_property
    def _gravity(self) -> np.ndarray:
        """Gravity (2) along the plane."""
        joint = self.machine.numeric.joints[0]
        assert isinstance(joint.kind, Planar), "checked where the reference is made"
        axes = np.asarray(joint.parent_pose, float)[:3, :3] @ joint.kind.basis
        return (axes.T @ np.asarray(self.machine.gravity, float))[:2]

    @cached_property
    def _geometry(self) -> tuple[np.ndarray, float]:
        """The flat point, and the angle in the body of the line that y'' - g is along."""
        machine = self.machine.numeric
        state = equations(machine).at(ca.SX(ca.DM(machine.neutral())))
        M = np.array(ca.DM(state.mass))
        B = np.array(ca.DM(ca.densify(actuation.input_matrix(state))))
        mass, center = M[0, 0], np.array([M[1, 2], -M[0, 2]]) / M[0, 0]
        inertia = M[2, 2] - mass * center @ center
        # Moments about the center of mass, in the unit of a force.
        length = np.sqrt(inertia / mass)
        B[2] = (B[2] - center[0] * B[1] + center[1] * B[0]) / length
        left, sizes, _ = np.linalg.svd(B)
        rank = int((sizes > NOTHING * sizes.max(initial=0)).sum())
        if rank != 2:
            raise ControlError(
                f"`{machine.name}` has inputs of rank {rank} in its plane; a flat point needs two, "
                "and with three every path can be followed (`JointPath`)"
            )
        across = left[:, 2]
        if abs(across[2]) < NOTHING:
            axis = np.array([-across[1], across[0]])
            return center, float(np.arctan2(axis[1], axis[0]))
        p = np.array([-across[1], across[0]]) / across[2] * length
        distance = np.linalg.norm(p)
        if not distance > NOTHING * length:
            raise ControlError(
                f"all forces of `{machine.name}` act at its center of mass: nothing turns it"
            )
        angle = float(np.arctan2(p[1], p[0]))
        return center - inertia / (mass * distance) * p / distance, angle

    def _configuration(self, t: Matrix) -> Matrix:
        y = value_at(self.position, t, 2, "`position`")
        point, along = self._geometry
        up = -self._gravity
        f = ca.jacobian(ca.jacobian(y, t), t) + ca.DM(up)
        # Of the two angles at which it can rest, the one nearer to neutral.
        rest = np.arctan2(up[1], up[0]) - along
        rest = (rest + np.pi / 2) % np.pi - np.pi / 2
        turned = ca.atan2(up[0] * f[1] - up[1] * f[0], up[0] * f[0] + up[1] * f[1])
        c, s = ca.cos(rest + turned), ca.sin(rest + turned)
        place = y - ca.blockcat([[c, -s], [s, c]]) @ ca.DM(point)
        return ca.vertcat(place, c, s)
