"""References of a craft that carries a load on a rod: from the path of the load to all the rest.

The load hangs by a joint at the craft's center of mass, its own center of mass at the distance l
on the rod. Its center of oscillation B, at L = l + J/(m l) from the joint, moves with r_B'' - g
along the rod: the rod's direction n, the craft at r_B + L n, and so the center of all mass follow
from the path of B, and the craft's attitude from that of the center, as without a load
(`framefree.control.references.flat`). Six derivatives of the path are needed.

A ball joint lets the load spin about its rod, which no input reaches. The reference does not spin
it about the vertical; on paths in a vertical plane that is exact, on others the moments of the spin
are what lacks, J_3 w_3' and what goes with it. A universal joint that carries a load without
inertia about its rod has no such remainder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from framefree.control.law import ControlError
from framefree.control.references.flat_curves import Curve
from framefree.control.references.joints import JointPath, JointReference
from framefree.control.references.thrust import (
    attitude,
    center_of_mass,
    flying_coordinates,
    flying_joint,
    held_joints,
    moments_of_change,
    swing,
    thrust_axis,
    value_at,
)
from framefree.geometry import quaternion
from framefree.machine import Machine, Spherical, Universal
from framefree.motion import equations

Matrix = Any

EXACT = 1e-9
"""Share of the length of the rod by which places may differ."""


class _Rod(NamedTuple):
    """Of the load: its mass, its direction (3) in the joint's child frame, and its distances, m."""

    mass: float
    down: np.ndarray
    center: float
    oscillation: float


@dataclass(frozen=True)
class SlungLoadReference(JointReference):
    """State of a craft on its thrust and of the load below it, whose flat point follows a path.

    Parameters
    ----------
    machine : Machine
        A tree on one free joint whose inputs push along one axis of its body, with any torques, and
        drive all joints but the load's. That is a `Spherical` or `Universal` joint at the center of
        mass of all but the load, with the load's mass symmetric about its rod.
    position : Curve
        Of the load's center of oscillation (3), m: the load itself, if it is small.
    heading : Curve or float
        As in `FlatReference`, rad.
    joint : str, optional
        The load's joint; by default the only one that is spherical or universal.
    joints : mapping of joint name to numbers
        Where other joints rest, if not at their neutral place.
    """

    machine: Machine
    position: Curve
    heading: Any = 0.0
    joint: str | None = None
    joints: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = flying_joint(self.machine), self._rod
        self._check_place()

    @property
    def times(self) -> tuple[float, ...]:  # type: ignore[override]
        """Times at which one of the curves is not smooth."""
        return moments_of_change(self.position, self.heading)

    @cached_property
    def function(self) -> ca.Function:  # type: ignore[override]
        """From t to x, v and a."""
        return JointPath(self.machine, self._configuration, self.times).function

    @property
    def length(self) -> float:
        """Distance of the flat point from the joint, m."""
        return self._rod.oscillation

    # ------------------------------------------------------------------ what is checked beforehand

    @cached_property
    def _load_joint(self) -> Any:
        machine = self.machine.numeric
        hung = [j for j in machine.joints if isinstance(j.kind, Spherical | Universal)]
        if self.joint is not None:
            hung = [j for j in hung if j.name == self.joint]
        if len(hung) != 1 or any(j.parent == hung[0].child for j in machine.joints):
            names = ", ".join(f"`{j.name}` ({type(j.kind).__name__})" for j in machine.joints)
            raise ControlError(
                f"`{machine.name}` needs one load at the end of a spherical or universal joint, "
                f"named by `joint` if there are several; its joints are {names}"
            )
        return hung[0]

    @cached_property
    def _rod(self) -> _Rod:
        """Return the load in its joint's child frame, whose origin is the pivot."""
        joint = self._load_joint
        machine = self.machine.numeric
        body = machine.bodies[machine.body_index[joint.child]].moments
        moments = body.moved(np.linalg.inv(np.asarray(joint.child_pose, float)))
        mass, center = float(moments.total), np.asarray(moments.center, float)
        distance = float(np.linalg.norm(center))
        if not (mass > 0 and distance > 0):
            raise ControlError(f"the load `{joint.child}` needs mass at a distance from its joint")
        down = center / distance
        matrix = np.asarray(moments.matrix6, float)
        about_joint = matrix[3:, 3:]
        across = np.linalg.svd(down[None])[2][1:]
        J = about_joint - mass * (distance**2 * np.eye(3) - np.outer(center, center))
        both = across @ J @ across.T
        off = max(np.abs(both - np.eye(2) * both[0, 0]).max(), np.abs(across @ J @ down).max())
        if off > EXACT * mass * distance**2:
            raise ControlError(
                f"the load `{joint.child}` must be symmetric about its rod: its moments of inertia "
                f"across it differ by {off:.3g} kg m^2, so that no point of it is flat"
            )
        if isinstance(joint.kind, Universal):
            self._check_universal(joint, down)
        return _Rod(mass, down, distance, distance + float(both[0, 0]) / (mass * distance))

    def _check_universal(self, joint: Any, down: np.ndarray) -> None:
        first, second = np.asarray(joint.kind.axis1, float), np.asarray(joint.kind.axis2, float)
        if abs(first @ second) > EXACT or abs(abs(down @ np.cross(first, second)) - 1) > EXACT:
            raise ControlError(
                f"the axes of universal joint `{joint.name}` must be across each other and across "
                "the rod where its angles are zero"
            )

    @property
    def _carrier(self) -> list[str]:
        return [b.name for b in self.machine.bodies if b.name != self._load_joint.child]

    def _check_place(self) -> None:
        """Refuse a joint that is not at the center of mass of what carries the load."""
        x = self._held(ca.SX(0))
        center = center_of_mass(self.machine.numeric, x, self._carrier)
        off = np.array(ca.DM(ca.evalf(center - self._pivot(x)))).ravel()
        if np.abs(off).max() > EXACT * self._rod.oscillation:
            raise ControlError(
                f"joint `{self._load_joint.name}` must be at the center of mass of what carries "
                f"the load, which is {np.round(off, 9).tolist()} m from it: with the load "
                "elsewhere no point of it is flat"
            )

    # ------------------------------------------------------------------ the reference

    @cached_property
    def _held(self) -> Any:
        apart = (flying_joint(self.machine).name, self._load_joint.name)
        return held_joints(self.machine, self.joints, apart=apart)

    def _pivot(self, x: Matrix) -> Matrix:
        """Return the place (3) of the load's joint at x."""
        return self._parent(x)[:3, 3]

    def _parent(self, x: Matrix) -> Matrix:
        """Return the pose (4x4) of the load joint's parent frame at x."""
        machine, joint = self.machine.numeric, self._load_joint
        pose = equations(machine).at(x).poses[machine.body_index[joint.parent]]
        return pose @ ca.DM(np.asarray(joint.parent_pose, float))

    def _configuration(self, t: Matrix) -> Matrix:
        machine, rod = self.machine, self._rod
        up = -ca.DM(np.asarray(machine.gravity, float))
        r_B = value_at(self.position, t, 3, "`position`")
        pull = _twice(r_B, t) + up
        n = pull / ca.sqrt(ca.sumsqr(pull))
        craft, load = r_B + rod.oscillation * n, r_B + (rod.oscillation - rod.center) * n
        carrier = sum(float(b.moments.total) for b in machine.numeric.bodies) - rod.mass
        thrust = carrier * (_twice(craft, t) + up) + rod.mass * (_twice(load, t) + up)
        heading = value_at(self.heading, t, 1, "`heading`")
        wxyz = attitude(thrust, heading, thrust_axis(machine))
        x = self._held(t)
        base = machine.x_slice[flying_joint(machine).name]
        x[base] = flying_coordinates(machine, wxyz, craft, self._pivot(x))
        x[machine.x_slice[self._load_joint.name]] = self._hanging(self._parent(x)[:3, :3], n)
        return x

    def _hanging(self, R_P: Matrix, n: Matrix) -> Matrix:
        """Return the joint's coordinates with the rod along -n, from its parent's attitude."""
        kind, down = self._load_joint.kind, self._rod.down
        if isinstance(kind, Spherical):
            # The rod at rest is taken to hang straight down, and from there by the least turn.
            R = quaternion.to_rotation(swing(n)) @ ca.DM(_turn(down, np.array([0.0, 0.0, -1.0])))
            return quaternion.from_rotation(R_P.T @ R)
        first, second = np.asarray(kind.axis1, float), np.asarray(kind.axis2, float)
        third = np.cross(first, second)
        side = float(np.sign(down @ third))
        # R1 R2 third = (sin b, -sin a cos b, cos a cos b) along the three axes.
        a, b, c = (side * ca.dot(ca.DM(axis), -(R_P.T @ n)) for axis in (first, second, third))
        return ca.vertcat(ca.atan2(-b, c), ca.atan2(a, ca.sqrt(b * b + c * c)))


def _twice(value: Matrix, t: Matrix) -> Matrix:
    return ca.jacobian(ca.jacobian(value, t), t)


def _turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the least rotation (3x3) that takes unit vector a to b."""
    axis = np.cross(a, b)
    size = float(np.linalg.norm(axis))
    if size < EXACT:
        if a @ b > 0:
            return np.eye(3)
        axis = np.linalg.svd(a[None])[2][1]
        size = 1.0
    angle = np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)
    return Rotation.from_rotvec(axis / size * angle).as_matrix()
